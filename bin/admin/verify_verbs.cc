// verifyLog. Exit code: 0 identical (or made so), 1 different, 2 could not check.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bin/admin/log_check.h"
#include "bin/admin/peers.h"
#include "bin/admin/verbs.h"
#include "bin/table.h"

namespace triad::admin {
namespace {

constexpr int kRepairRoundsMax = 1000;

struct VerifyOptions {
  GroupChoice choice;
  std::int64_t from = 0;
  std::int64_t to = -1;
  std::int64_t rate_mib = 0;
  bool repair = false;
  std::string format = "table";
};

int CannotCheck(const Status& why) {
  std::fprintf(stderr, "mqadmin: cannot check: %s\n", std::string(why.message()).c_str());
  return kUnreachable;
}

// On a terminal only.
class ProgressBar {
 public:
  ProgressBar(std::int64_t from, std::int64_t to)
      : from_(from), to_(to), shown_(::isatty(STDERR_FILENO) != 0) {}
  ~ProgressBar() {
    if (shown_) std::fprintf(stderr, "\r%*s\r", kWidth + 8, "");
  }
  void Show(std::int64_t at) const {
    if (!shown_ || to_ <= from_) return;
    const auto done = static_cast<int>((at - from_) * kWidth / (to_ - from_));
    std::string bar(static_cast<std::size_t>(done), '#');
    bar.resize(kWidth, '.');
    std::fprintf(stderr, "\r[%s] %3d%%", bar.c_str(), done * 100 / kWidth);
  }

 private:
  static constexpr int kWidth = 50;
  const std::int64_t from_;
  const std::int64_t to_;
  const bool shown_;
};

Table TableOf(const std::vector<LogDifference>& differences) {
  Table table({"#Position", "#Index", "#Peer", "#Bytes", "#Term", "#Hash", "#CRC", "#Verdict"});
  for (const LogDifference& difference : differences) {
    for (const auto& [peer, record] : difference.here) {
      const bool is_there = record.bytes > 0;
      const std::string crc = !is_there ? "no record" : record.damage.empty() ? "ok" : "wrong";
      std::string verdict = difference.right.empty()            ? "unclear"
                            : difference.IsRight(peer)          ? "right"
                            : record.damage.empty() && is_there ? "another history"
                                                                : "damaged";
      if (!record.damage.empty()) verdict += ": " + record.damage;
      table.Add({std::to_string(difference.position), std::to_string(difference.index), peer,
                 std::to_string(record.bytes), std::to_string(record.term), record.hash, crc,
                 verdict});
    }
  }
  return table;
}

Result<std::vector<LogDifference>> CompareShowing(const VerifyOptions& o, LogCheck* check,
                                                  std::int64_t from, std::int64_t to) {
  const ProgressBar bar(from, to);
  return check->Compare(from, to, o.rate_mib << 20, [&bar](std::int64_t at) { bar.Show(at); });
}

// Repairs what can be, record by record: one that cannot be read hides those behind it.
Status RepairAll(LogCheck* check, std::vector<LogDifference> differences, std::int64_t to,
                 int* repaired) {
  for (int round = 0; round < kRepairRoundsMax && !differences.empty(); ++round) {
    const LogDifference& first = differences.front();
    TRIAD_RETURN_IF_ERROR(check->Repair(first));
    ++*repaired;
    const std::int64_t from = first.position;
    Result<std::vector<LogDifference>> again =
        check->Compare(from, std::min(to, from + (std::int64_t{1} << 20)), 0, [](std::int64_t) {});
    if (!again.ok()) return again.status();
    std::vector<LogDifference> left = std::move(again).value();
    for (LogDifference& later : differences) {
      if (later.position >= from + (std::int64_t{1} << 20)) left.push_back(std::move(later));
    }
    differences = std::move(left);
  }
  return differences.empty() ? Status::Ok() : Status::Busy("too much is damaged to be repaired so");
}

int VerifyLog(const VerifyOptions& o, Session* session) {
  const Result<GroupView> group = ViewGroup(o.choice, session);
  if (!group.ok()) return CannotCheck(group.status());
  LogCheck check(*group, session);
  const Result<LogCheck::Bounds> bounds = check.FindBounds();
  if (!bounds.ok()) return CannotCheck(bounds.status());
  const std::int64_t from = std::max(bounds->begin, o.from / 8 * 8);
  const std::int64_t to = o.to < 0 ? bounds->end : std::min(bounds->end, (o.to + 7) / 8 * 8);
  for (const std::string& each : bounds->left_out) {
    std::fprintf(stderr, "mqadmin: not compared: %s\n", each.c_str());
  }
  if (from >= to) {
    return CannotCheck(Status::InvalidArgument("nothing to compare: the peers share positions " +
                                               std::to_string(bounds->begin) + " to " +
                                               std::to_string(bounds->end)));
  }
  Result<std::vector<LogDifference>> differences = CompareShowing(o, &check, from, to);
  if (!differences.ok()) return CannotCheck(differences.status());
  std::string peers;
  for (const std::string& peer : bounds->peers) peers += (peers.empty() ? "" : ", ") + peer;
  if (!differences->empty() || o.format == "json") Print(TableOf(*differences), o.format);
  if (differences->empty()) {
    if (o.format == "table")
      std::printf("identical: positions %lld to %lld of %s\n", static_cast<long long>(from),
                  static_cast<long long>(to), peers.c_str());
    return kDone;
  }
  if (!o.repair) return kRefused;
  int repaired = 0;
  const Status done = RepairAll(&check, std::move(differences).value(), to, &repaired);
  std::printf("%d record%s repaired\n", repaired, repaired == 1 ? "" : "s");
  if (done.ok()) return kDone;
  std::fprintf(stderr, "mqadmin: not all is repaired: %s\n", done.ToString().c_str());
  return kRefused;
}

}  // namespace

void AddVerifyVerbs(Registry* verbs) {
  const auto o = std::make_shared<VerifyOptions>();
  CLI::App* verb =
      verbs->Add("verifyLog",
                 "compare the committed logs of a group's peers; exit 0 same, 1 different, 2 could "
                 "not check",
                 [o](Session* session) { return VerifyLog(*o, session); });
  AddGroupChoice(verb, &o->choice);
  verb->add_option("--from", o->from, "first position (default: what all keep)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--to", o->to, "position behind the last (default: what is committed)");
  verb->add_option("--rate", o->rate_mib, "MiB per second and peer; 0: as fast as it goes")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  verb->add_flag("--repair", o->repair, "replace damaged records by what the other peers have");
  AddOutput(verb, &o->format);
}

}  // namespace triad::admin
