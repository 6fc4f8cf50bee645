#include "dledger/log_cleaner.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>
#include <vector>

namespace triad::dledger {
namespace {

constexpr std::chrono::seconds kHeardLately{5};

// Of the day, in the machine's own time zone, as deleteWhen means it.
int HourOf(std::int64_t wall_ms) {
  const auto seconds = static_cast<std::time_t>(wall_ms / 1000);
  std::tm local{};
  return ::localtime_r(&seconds, &local) == nullptr ? 0 : local.tm_hour;
}

// False: not now.
bool Postpone(const Status& why) {
  LOG_EVERY_N(ERROR, 60) << "the oldest segment of the log stays for now: " << why;
  return false;
}

}  // namespace

std::optional<LogIndex> WantedByPeers(const NodeStatus& status) {
  std::optional<LogIndex> wanted;
  if (status.leader.role != Role::kLeader) return wanted;
  for (const NodeStatus::Peer& peer : status.peers) {
    const bool is_there = peer.connected && peer.heard_ago && *peer.heard_ago < kHeardLately;
    if (is_there) wanted = std::min(wanted.value_or(peer.match + 1), peer.match + 1);
  }
  return wanted;
}

LogCleaner::LogCleaner(LogStore& log, const Clock& clock, RetentionOptions retention,
                       std::function<void(LogIndex first)> on_dropped)
    : log_(log),
      clock_(clock),
      retention_(std::move(retention)),
      on_dropped_(std::move(on_dropped)) {}

Status LogCleaner::Clean(const Facts& facts, bool is_asked) {
  const Result<Space> space = log_.GetSpace();
  if (!space.ok()) {
    LOG_EVERY_N(WARNING, 60) << "no retention: the disk's space is unknown: " << space.status();
    return {};
  }
  retention_.Begin({.now = clock_.MonoNow(),
                    .log_time_ms = facts.log_time_ms,
                    .hour = HourOf(clock_.WallNowMs()),
                    .space = *space,
                    .segments = log_.segments().size(),
                    .is_asked = is_asked});
  for (;;) {
    const Result<bool> went = CleanOne(facts);
    if (!went.ok()) return went.status();
    if (!*went) return {};
  }
}

Result<bool> LogCleaner::CleanOne(const Facts& facts) {
  const std::vector<SegmentFacts> segments = log_.segments();
  // The one with the log's end stays, and whatever the state may still need.
  if (segments.size() < 2 || segments[1].first > facts.durable) return false;
  // Its last entry's is its newest time.
  const Result<StoreBase> behind = log_.BaseAt(segments[1]);
  if (!behind.ok()) return Postpone(behind.status());
  const bool is_wanted = facts.wanted && *facts.wanted < segments[1].first;
  const Retention::Verdict verdict = retention_.Judge(behind->tail.last_store_time_ms, is_wanted);
  if (verdict == Retention::Verdict::kKeep) return false;
  const Result<std::size_t> dropped = log_.DropBefore(segments[1].first);
  if (!dropped.ok()) {
    // One sector that cannot be read is no reason to die, nor is a disk that is full.
    if (dropped.status().code() != StatusCode::kIoError) return Postpone(dropped.status());
    return dropped.status();
  }
  on_dropped_(segments[1].first);
  LOG(INFO) << "the log forgets its segment at " << segments[0].base << ", entries up to "
            << segments[1].first - 1
            << (verdict == Retention::Verdict::kForced
                    ? ": the disk is nearly full (diskSpaceCleanForciblyRatio)"
                    : ": older than fileReservedTime");
  return true;
}

}  // namespace triad::dledger
