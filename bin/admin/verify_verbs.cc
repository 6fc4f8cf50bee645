// verifyLog. Exit code: 0 identical (or made so), 1 different, 2 could not check.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bin/admin/log_check.h"
#include "bin/admin/peers.h"
#include "bin/admin/verbs.h"

namespace triad::admin {
namespace {

constexpr int kRepairRoundsMax = 1000;

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

Result<std::vector<LogDifference>> CompareShowing(LogCheck* check, std::int64_t from,
                                                  std::int64_t to, std::int64_t rate_mib) {
  const ProgressBar bar(from, to);
  return check->Compare(from, to, rate_mib << 20, [&bar](std::int64_t at) { bar.Show(at); });
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

int VerifyLog(const Given& given, Session* session) {
  const Result<GroupView> group = ViewGroup(ChoiceOf(given), session);
  if (!group.ok()) return CannotCheck(group.status());
  LogCheck check(*group, session);
  const Result<LogCheck::Bounds> bounds = check.FindBounds();
  if (!bounds.ok()) return CannotCheck(bounds.status());
  const std::int64_t from = std::max(bounds->begin, given.Number("from") / 8 * 8);
  const std::int64_t asked_to = given.Number("to");
  const std::int64_t to =
      asked_to < 0 ? bounds->end : std::min(bounds->end, (asked_to + 7) / 8 * 8);
  for (const std::string& each : bounds->left_out) {
    std::fprintf(stderr, "mqadmin: not compared: %s\n", each.c_str());
  }
  if (from >= to) {
    return CannotCheck(Status::InvalidArgument("nothing to compare: the peers share positions " +
                                               std::to_string(bounds->begin) + " to " +
                                               std::to_string(bounds->end)));
  }
  Result<std::vector<LogDifference>> differences =
      CompareShowing(&check, from, to, given.Number("rate"));
  if (!differences.ok()) return CannotCheck(differences.status());
  std::string peers;
  for (const std::string& peer : bounds->peers) peers += (peers.empty() ? "" : ", ") + peer;
  if (!differences->empty() || given.json()) Print(TableOf(*differences), given);
  if (differences->empty()) {
    Note("identical: positions " + std::to_string(from) + " to " + std::to_string(to) + " of " +
             peers,
         given);
    return kDone;
  }
  if (!given.Is("repair")) return kRefused;
  int repaired = 0;
  const Status done = RepairAll(&check, std::move(differences).value(), to, &repaired);
  Note(std::to_string(repaired) + " record" + (repaired == 1 ? "" : "s") + " repaired", given);
  if (done.ok()) return kDone;
  std::fprintf(stderr, "mqadmin: not all is repaired: %s\n", done.ToString().c_str());
  return kRefused;
}

}  // namespace

std::vector<Verb> VerifyVerbs() {
  return {{"verifyLog",
           "compare the committed logs of a group's peers; exit 0 same, 1 different, 2 could not "
           "check",
           "-c DefaultCluster",
           WithGroupChoice(
               {{"--from", "first position (0: what all keep)", "0", kCount},
                {"--to", "position behind the last (-1: what is committed)", "-1", kNumber},
                {"--rate", "MiB per second and peer; 0: as fast as it goes", "0", kCount},
                {"--repair", "replace damaged records by what the other peers have", "", kSwitch}}),
           VerifyLog}};
}

}  // namespace triad::admin
