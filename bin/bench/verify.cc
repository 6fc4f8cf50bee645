#include "bin/bench/verify.h"

#include <utility>

#include "bin/bench/pull_loop.h"
#include "bin/bench/send_protocol.h"
#include "common/java_crc32.h"

namespace triad::bench {
namespace {

constexpr double kSecondsPerPeer = 120;
constexpr int kTries = 100;

// The next offset of every lane that `address` has, read from `begins` on.
Result<std::vector<std::int64_t>> ReadPeer(Lanes* lanes, const std::string& address,
                                           std::vector<std::int64_t> begins, RunChecker* checker) {
  PullOptions pull;
  pull.peer = address;
  pull.begins = begins;
  pull.seconds = kSecondsPerPeer;
  pull.on_message = [&](std::size_t lane, const StoredMessage& message) {
    begins[lane] = message.queue_offset + 1;
    checker->Take(message.body, message.body_crc);
  };
  const Result<PullOutcome> outcome = RunPullLoop(lanes, pull);
  if (!outcome.ok()) return outcome.status();
  if (!outcome->is_at_end) {
    return Status::TimedOut("peer " + address +
                            " could not be read to its end: " + outcome->first_error);
  }
  return begins;
}

bool IsAtLeast(const std::vector<std::int64_t>& reached, const std::vector<std::int64_t>& ends) {
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (reached[i] < ends[i]) return false;
  }
  return true;
}

}  // namespace

RunChecker::RunChecker(const VerifyOptions& options)
    : options_(options),
      filler_(Filler(options.size)),
      seen_(options.acknowledged->size() * options.batch, 0) {}

void RunChecker::Take(std::string_view body, std::uint32_t body_crc) {
  if (body.size() < kStampBytes) return;
  const Stamp stamp = ReadStamp(body.data());
  if (stamp.run != options_.run) return;  // somebody else's
  const bool is_whole = body.size() == options_.size && body_crc == JavaCrc32(body) &&
                        stamp.message < seen_.size() &&
                        body.substr(kStampBytes) == std::string_view(filler_).substr(kStampBytes);
  if (!is_whole) {
    ++check_.damaged;
    return;
  }
  ++check_.stored;
  std::uint8_t& times = seen_[stamp.message];
  if (times > 0) ++check_.repeated;
  times = 1;
}

PeerCheck RunChecker::Finish() {
  for (std::size_t message = 0; message < seen_.size(); ++message) {
    if ((*options_.acknowledged)[message / options_.batch] && seen_[message] == 0) ++check_.missing;
  }
  return check_;
}

Result<std::vector<PeerCheck>> VerifyPeers(Lanes* lanes, const VerifyOptions& options) {
  const Result<std::vector<std::int64_t>> ends = lanes->Ends();
  if (!ends.ok()) return ends.status();
  if (lanes->groups().size() != 1) {
    return Status::Unsupported("--verify reads one broker group; the topic has " +
                               std::to_string(lanes->groups().size()));
  }
  std::vector<PeerCheck> checks;
  for (const auto& [id, address] : lanes->groups()[0].all) {
    RunChecker checker(options);
    std::vector<std::int64_t> reached = options.begins;
    for (int i = 0; i < kTries && (i == 0 || !IsAtLeast(reached, *ends)); ++i) {
      Result<std::vector<std::int64_t>> read = ReadPeer(lanes, address, reached, &checker);
      if (!read.ok()) return read.status();
      reached = std::move(*read);
    }
    PeerCheck check = checker.Finish();
    check.address = address;
    checks.push_back(check);
  }
  return checks;
}

}  // namespace triad::bench
