#include "broker/service/runtime_info.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <utility>

#include "broker/service/dedup_watch.h"
#include "broker/service/replication_status.h"
#include "remoting/command.h"

namespace triad::broker {
namespace {

// A number that grows with each midnight of the machine's own time zone, like the original's day.
std::int64_t LocalDay(std::int64_t wall_ms) {
  const auto seconds = static_cast<std::time_t>(wall_ms / 1000);
  std::tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) return 0;
  return std::int64_t{local.tm_year} * 366 + local.tm_yday;
}

// "17 B", "1.5 MiB": a number, a blank, a unit.
std::string ReadableBytes(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  const char* unit = "KMGTPE";
  for (; value >= 1024 && unit[1] != '\0'; ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %ciB", value, *unit);
  return text;
}

std::string Gib(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

std::string Uptime(std::int64_t ms) {
  const std::int64_t seconds = ms / 1000;
  return "[ " + std::to_string(seconds / 86400) + " days, " + std::to_string(seconds / 3600 % 24) +
         " hours, " + std::to_string(seconds / 60 % 60) + " minutes, " +
         std::to_string(seconds % 60) + " seconds ]";
}

std::string Ratio(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

std::string Millis(std::uint64_t micros) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(micros) / 1000);
  return text;
}

// How many took how long, in the ranges and the words of the original.
std::string Distribution(const Histogram& times) {
  using Range = std::pair<const char*, std::uint64_t>;  // name, its bound in ms
  static constexpr std::array<Range, 12> kRanges{{{"<=0ms", 1},
                                                  {"0~10ms", 10},
                                                  {"10~50ms", 50},
                                                  {"50~100ms", 100},
                                                  {"100~200ms", 200},
                                                  {"200~500ms", 500},
                                                  {"500ms~1s", 1000},
                                                  {"1~2s", 2000},
                                                  {"2~3s", 3000},
                                                  {"3~4s", 4000},
                                                  {"4~5s", 5000},
                                                  {"5~10s", 10000}}};
  std::string text;
  std::uint64_t counted = 0;
  for (const auto& [name, below_ms] : kRanges) {
    const std::uint64_t upto = times.CountUpTo(below_ms * 1000 - 1);
    text += "[" + std::string(name) + "]:" + std::to_string(upto - counted) + " ";
    counted = upto;
  }
  return text + "[10s~]:" + std::to_string(times.count() - counted) + " ";
}

}  // namespace

RuntimeInfo::RuntimeInfo(const BrokerConfig& config, const Clock& clock, const Counters& counters,
                         const DiskGuard& disk, const LogAlarm& alarm, MessageStore& store)
    : config_(config),
      clock_(clock),
      counters_(counters),
      disk_(disk),
      alarm_(alarm),
      store_(store),
      boot_ms_(clock.WallNowMs()),
      day_(LocalDay(boot_ms_)) {}

void RuntimeInfo::Sample() {
  const TimePoint now = clock_.MonoNow();
  const std::int64_t put = counters_.put_messages.load(std::memory_order_relaxed);
  const std::int64_t get = counters_.get_messages.load(std::memory_order_relaxed);
  const std::int64_t found = counters_.get_found.load(std::memory_order_relaxed);
  const std::int64_t miss = counters_.get_miss.load(std::memory_order_relaxed);
  put_.Sample(now, put);
  found_.Sample(now, found);
  miss_.Sample(now, miss);
  total_.Sample(now, found + miss);
  transferred_.Sample(now, get);
  LookForEarliest();
  const std::int64_t day = LocalDay(clock_.WallNowMs());
  const std::lock_guard lock(mutex_);
  if (day <= day_) return;
  day_ = day;
  put_daily_ = {counters_.put_user_messages, put_daily_.today_morning};
  get_daily_ = {counters_.get_user_messages, get_daily_.today_morning};
}

// The store time of the first entry kept, from its file; again when retention has moved on.
void RuntimeInfo::LookForEarliest() {
  const LogIndex first = store_.node().status().first_index;
  if (first == looked_for_ || first == LogIndex{0}) return;
  const bool posted = store_.node().PostReader([this, first] {
    const auto entries = store_.node().ReadRange(first, first + 1, 1);
    if (entries.ok() && !entries->empty()) earliest_ms_ = entries->front()->store_time_ms;
  });
  if (posted) looked_for_ = first;
}

void RuntimeInfo::AddRates(std::map<std::string, std::string>* table) const {
  (*table)["putTps"] = put_.Text();
  (*table)["getFoundTps"] = found_.Text();
  (*table)["getMissTps"] = miss_.Text();
  (*table)["getTotalTps"] = total_.Text();
  (*table)["getTransferredTps"] = transferred_.Text();
  (*table)["getTransferedTps"] = transferred_.Text();
  const std::int64_t puts = counters_.stored_messages.load(std::memory_order_relaxed);
  const std::int64_t bytes = counters_.stored_bytes.load(std::memory_order_relaxed);
  (*table)["putMessageTimesTotal"] = std::to_string(puts);
  (*table)["putMessageFailedTimes"] =
      std::to_string(counters_.put_failed.load(std::memory_order_relaxed));
  (*table)["putMessageSizeTotal"] = std::to_string(bytes);
  (*table)["putMessageAverageSize"] =
      Ratio(puts > 0 ? static_cast<double>(bytes) / static_cast<double>(puts) : 0.0);
  (*table)["pageCacheLockTimeMills"] = "0";
  const TimePoint now = clock_.MonoNow();
  const Histogram put_times = counters_.put_times.Recent(now);
  (*table)["putMessageEntireTimeMax"] = std::to_string(put_times.max() / 1000);
  (*table)["putMessageDistributeTime"] = Distribution(put_times);
  (*table)["putLatency99"] = Millis(put_times.Percentile(0.99));
  (*table)["putLatency999"] = Millis(put_times.Percentile(0.999));
  (*table)["getMessageEntireTimeMax"] =
      std::to_string(counters_.get_times.Recent(now).max() / 1000);
  (*table)["triadPutDuplicates"] =
      std::to_string(counters_.put_duplicates.load(std::memory_order_relaxed));
  (*table)["triadRetryCopies"] =
      std::to_string(counters_.retry_copies.load(std::memory_order_relaxed));
}

void RuntimeInfo::AddDaily(std::map<std::string, std::string>* table) const {
  const std::lock_guard lock(mutex_);
  (*table)["msgPutTotalTodayNow"] =
      std::to_string(counters_.put_user_messages.load(std::memory_order_relaxed));
  (*table)["msgPutTotalTodayMorning"] = std::to_string(put_daily_.today_morning);
  (*table)["msgPutTotalYesterdayMorning"] = std::to_string(put_daily_.yesterday_morning);
  (*table)["msgGetTotalTodayNow"] =
      std::to_string(counters_.get_user_messages.load(std::memory_order_relaxed));
  (*table)["msgGetTotalTodayMorning"] = std::to_string(get_daily_.today_morning);
  (*table)["msgGetTotalYesterdayMorning"] = std::to_string(get_daily_.yesterday_morning);
}

void RuntimeInfo::AddStore(std::map<std::string, std::string>* table) const {
  const dledger::NodeStatus status = store_.node().status();
  (*table)["commitLogMinOffset"] = std::to_string(status.begin_position.value());
  (*table)["commitLogMaxOffset"] = std::to_string(status.end_position.value());
  const std::uint64_t behind =
      status.commit_index > status.applied_index ? status.commit_index - status.applied_index : 0;
  (*table)["dispatchBehindBytes"] = std::to_string(behind);  // in entries: 0 when caught up
  (*table)["dispatchMaxBuffer"] = "0";
  const Space space = disk_.space();
  (*table)["commitLogDiskRatio"] = Ratio(disk_.used_ratio());
  (*table)["consumeQueueDiskRatio"] = Ratio(disk_.used_ratio());
  (*table)["commitLogDirCapacity"] =
      "Total : " + Gib(space.total_bytes) + ", Free : " + Gib(space.available_bytes) + ".";
  (*table)["remainHowManyDataToFlush"] = ReadableBytes(status.unsynced_bytes);
  (*table)["remainHowManyDataToCommit"] = "0 B";
  (*table)["remainTransientStoreBufferNumbs"] = "2147483647";
  // What is not known yet counts as new: a hole of 50 years would be worse.
  const std::int64_t earliest = earliest_ms_.load();
  (*table)["earliestMessageTimeStamp"] =
      std::to_string(earliest > 0 ? earliest : clock_.WallNowMs());
  // Ours: what an operator asks first.
  (*table)["triadRole"] = status.leader.ready ? "leader" : "follower";
  (*table)["triadLeader"] = status.leader.leader.value();
  (*table)["triadTerm"] = std::to_string(status.leader.term.value());
  (*table)["triadCommitIndex"] = std::to_string(status.commit_index.value());
  (*table)["triadAppliedIndex"] = std::to_string(status.applied_index.value());
  const Readiness readiness = ReadinessOf(status, config_.self, disk_.Writable());
  (*table)["triadReady"] = readiness.ready ? "true" : "false";
  (*table)["triadNotReady"] = readiness.reason;
  (*table)["triadLogAlarm"] = alarm_.text();
  (*table)["triadSyncP99Micros"] = std::to_string(status.sync.p99.count());
  (*table)["triadSyncMaxMicros"] = std::to_string(status.sync.max.count());
  (*table)["triadLoopDelayP99Micros"] = std::to_string(status.loop_delay.p99.count());
  (*table)["triadLoopDelayMaxMicros"] = std::to_string(status.loop_delay.max.count());
  ShowDedup(store_.state().DedupUses(), table);
}

// delivered,max of each delay level.
void RuntimeInfo::AddDelays(std::map<std::string, std::string>* table) const {
  const auto levels = ParseDelayLevels(store_.state().delay_levels());
  const std::size_t count = levels.ok() ? levels->size() : 0;
  for (std::int32_t level = 1; level <= static_cast<std::int32_t>(count); ++level) {
    const TopicQueue queue{Topic(std::string(kScheduleTopic)), QueueId(level - 1)};
    (*table)["scheduleMessageOffset_" + std::to_string(level)] =
        std::to_string(store_.state().DelayProgress(level).value()) + "," +
        std::to_string(store_.state().NextOffset(queue).value());
  }
}

std::map<std::string, std::string> RuntimeInfo::Table() const {
  std::map<std::string, std::string> table;
  table["brokerVersionDesc"] = std::string(remoting::kServerVersionName);
  table["brokerVersion"] = std::to_string(remoting::kServerVersion);
  const bool leads = store_.node().leader_info().ready;
  table["brokerActive"] = leads ? "true" : "false";
  table["bootTimestamp"] = std::to_string(boot_ms_);
  table["startAcceptSendRequestTimeStamp"] = "0";
  table["runtime"] = Uptime(clock_.WallNowMs() - boot_ms_);
  for (const char* pool : {"sendThreadPoolQueue", "pullThreadPoolQueue", "ackThreadPoolQueue",
                           "queryThreadPoolQueue", "litePullThreadPoolQueue"}) {
    const std::string name(pool);
    table[name + "Size"] = "0";
    table[name + "Capacity"] = std::to_string(config_.send_queue_capacity.get());
    table[name + "HeadWaitTimeMills"] = "0";
  }
  table["sendThreadPoolQueueSize"] = std::to_string(store_.appender().waiting());
  table["EndTransactionQueueSize"] = "0";
  table["EndTransactionThreadPoolQueueCapacity"] = "0";
  for (const char* key : {"timerReadBehind", "timerOffsetBehind", "timerCongestNum"}) {
    table[key] = "0";
  }
  table["timerEnqueueTps"] = "0.0";
  table["timerDequeueTps"] = "0.0";
  AddRates(&table);
  AddDaily(&table);
  AddStore(&table);
  AddDelays(&table);
  return table;
}

}  // namespace triad::broker
