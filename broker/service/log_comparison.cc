#include "broker/service/log_comparison.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <utility>

#include "remoting/codes.h"

namespace triad::broker {
namespace {

constexpr std::chrono::milliseconds kStep{1000};
constexpr std::chrono::milliseconds kAskTimeout{5000};
constexpr std::size_t kSuspectsMax = 100;  // further ones are found again by the next pass

using Record = remoting::LogRecordsBody::Record;

const Record* RecordAt(const remoting::LogRecordsBody& body, std::int64_t position) {
  for (const Record& record : body.records) {
    if (record.position == position) return &record;
  }
  return nullptr;
}

std::string Verdict(const Record* record) {
  if (record == nullptr) return "no record begins there";
  return record->damage.empty() ? "its CRCs are right" : record->damage;
}

}  // namespace

std::string DescribeDifference(const remoting::LogRecordsBody& here,
                               const remoting::LogRecordsBody& there,
                               const std::string& there_name) {
  for (const Record& record : here.records) {
    const Record* other = RecordAt(there, record.position);
    const bool same = other != nullptr && other->hash == record.hash && record.damage.empty() &&
                      other->damage.empty();
    if (same) continue;
    const std::int64_t index = record.index != 0 || other == nullptr ? record.index : other->index;
    return "the log differs from " + there_name + "'s at position " +
           std::to_string(record.position) + " (entry " + std::to_string(index) + "): here " +
           Verdict(&record) + "; at " + there_name + " " + Verdict(other);
  }
  return "";
}

struct LogComparison::Shared : std::enable_shared_from_this<Shared> {
  Shared(const BrokerConfig& c, TimerQueue& t, remoting::Client& cl, MessageStore& s, LogReader& r,
         LogAlarm& a)
      : rate(std::min(c.log_verify_bytes_per_second, kRecordsBytesMax) / 8 * 8),
        self(c.self),
        timers(t),
        client(cl),
        store(s),
        reader(r),
        alarm(a) {}

  struct Stretch {
    std::int64_t from = 0;
    std::int64_t to = 0;
    bool operator==(const Stretch&) const = default;
  };

  void Later();
  void OnReader(const std::function<void(Shared&)>& task);
  void Step();
  Stretch NextStretch();
  void CheckOwn(const Stretch& stretch);
  void Compare(const Stretch& stretch);
  void OnDigest(const Stretch& stretch, const std::string& own_hash,
                const Result<remoting::Command>& answer);
  void AskRecords(const Stretch& stretch);
  void OnRecords(const Stretch& stretch, const Result<remoting::Command>& answer);
  void Found(const Stretch& stretch, const std::string& difference);
  void Same(const Stretch& stretch);
  void Ask(std::int32_t code, const Stretch& stretch,
           std::function<void(Shared&, const Result<remoting::Command>&)> then);

  const std::int64_t rate;
  const PeerId self;
  TimerQueue& timers;
  remoting::Client& client;
  MessageStore& store;
  LogReader& reader;
  LogAlarm& alarm;

  // One step at a time: handed from thread to thread.
  std::int64_t at = -1;  // -1: a random place, so that restarts do not always check the same
  std::deque<Stretch> suspects;  // differed; looked at again in turn
  bool suspects_turn = false;
  dledger::LeaderInfo leader;
};

void LogComparison::Shared::Later() {
  timers.Schedule(kStep,
                  [shared = shared_from_this()] { shared->OnReader([](Shared& s) { s.Step(); }); });
}

void LogComparison::Shared::OnReader(const std::function<void(Shared&)>& task) {
  const bool is_taken =
      store.node().PostReader([shared = shared_from_this(), task] { task(*shared); });
  if (!is_taken) Later();
}

LogComparison::Shared::Stretch LogComparison::Shared::NextStretch() {
  const LogReader::Bounds bounds = reader.CommittedBounds();
  const std::int64_t begin = bounds.begin.value();
  alarm.EndIn(0, begin);  // what retention dropped is nobody's damage
  std::erase_if(suspects, [begin](const Stretch& one) { return one.to <= begin; });
  suspects_turn = !suspects_turn && !suspects.empty();
  if (suspects_turn) {
    suspects.push_back(suspects.front());
    suspects.pop_front();
    return suspects.back();
  }
  const std::int64_t end = bounds.end.value();
  if (at < 0 && end > begin) {
    at = begin + static_cast<std::int64_t>(std::random_device()()) % (end - begin) / 8 * 8;
  }
  if (at < begin || at >= end) at = begin;
  const Stretch stretch{.from = at, .to = std::min(at + rate, end)};
  at = stretch.to;
  return stretch;
}

void LogComparison::Shared::Step() {
  leader = store.node().leader_info();
  const Stretch stretch = NextStretch();
  const bool has_other = !leader.leader.empty() && leader.leader != self &&
                         !leader.leader_client_address.empty() && !leader.recovering;
  if (stretch.from >= stretch.to) {
    Later();
  } else if (has_other) {
    Compare(stretch);
  } else {
    CheckOwn(stretch);
  }
}

void LogComparison::Shared::CheckOwn(const Stretch& stretch) {
  const Result<remoting::LogRecordsBody> records = reader.Records(stretch.from, stretch.to);
  std::string damage;
  if (records.ok()) damage = DescribeDifference(*records, *records, "this peer");
  damage.empty() ? Same(stretch) : Found(stretch, "");  // Records has raised the alarm
}

void LogComparison::Shared::Compare(const Stretch& stretch) {
  const Result<remoting::LogDigestBody> own = reader.Digest(stretch.from, stretch.to, 1);
  if (!own.ok() || own->pieces.size() != 1) {
    Later();
    return;
  }
  Ask(remoting::kTriadLogDigest, stretch,
      [stretch, hash = own->pieces[0].hash](Shared& s, const Result<remoting::Command>& answer) {
        s.OnDigest(stretch, hash, answer);
      });
}

void LogComparison::Shared::Ask(
    std::int32_t code, const Stretch& stretch,
    std::function<void(Shared&, const Result<remoting::Command>&)> then) {
  remoting::Command request = remoting::Command::Request(code);
  request.ext.Set("from", stretch.from);
  request.ext.Set("to", stretch.to);
  client.Call(leader.leader_client_address, std::move(request), kAskTimeout,
              [shared = shared_from_this(), then = std::move(then)](
                  const Result<remoting::Command>& answer) { then(*shared, answer); });
}

void LogComparison::Shared::OnDigest(const Stretch& stretch, const std::string& own_hash,
                                     const Result<remoting::Command>& answer) {
  const bool is_answer = answer.ok() && answer->code == remoting::kSuccess;
  const auto other = remoting::LogDigestBody::Decode(is_answer ? answer->body : "{}");
  const bool is_comparable = is_answer && other.ok() && other->pieces.size() == 1 &&
                             other->pieces[0].from == stretch.from &&
                             other->pieces[0].to == stretch.to;
  if (!is_comparable) {  // gone, not that far yet, or it no longer keeps it
    Later();
  } else if (other->pieces[0].hash == own_hash) {
    Same(stretch);
  } else {
    Ask(remoting::kTriadLogRecords, stretch,
        [stretch](Shared& s, const Result<remoting::Command>& records) {
          s.OnReader([stretch, records](Shared& again) { again.OnRecords(stretch, records); });
        });
  }
}

void LogComparison::Shared::OnRecords(const Stretch& stretch,
                                      const Result<remoting::Command>& answer) {
  const Result<remoting::LogRecordsBody> own = reader.Records(stretch.from, stretch.to);
  const bool is_answer = answer.ok() && answer->code == remoting::kSuccess;
  const auto other = remoting::LogRecordsBody::Decode(is_answer ? answer->body : "{}");
  if (!own.ok() || !is_answer || !other.ok()) {
    Later();
    return;
  }
  const std::string difference = DescribeDifference(*own, *other, leader.leader.value());
  difference.empty() ? Same(stretch) : Found(stretch, difference);
}

void LogComparison::Shared::Found(const Stretch& stretch, const std::string& difference) {
  const bool is_new = std::find(suspects.begin(), suspects.end(), stretch) == suspects.end();
  if (is_new && suspects.size() < kSuspectsMax) suspects.push_back(stretch);
  if (!difference.empty()) alarm.Raise(stretch.from, difference);
  Later();
}

void LogComparison::Shared::Same(const Stretch& stretch) {
  std::erase(suspects, stretch);
  alarm.EndIn(stretch.from, stretch.to);
  Later();
}

LogComparison::LogComparison(const BrokerConfig& config, TimerQueue& timers,
                             remoting::Client& client, MessageStore& store, LogReader& reader,
                             LogAlarm& alarm)
    : shared_(std::make_shared<Shared>(config, timers, client, store, reader, alarm)) {}

LogComparison::~LogComparison() = default;

void LogComparison::Start() {
  if (shared_->rate > 0) shared_->Later();
}

}  // namespace triad::broker
