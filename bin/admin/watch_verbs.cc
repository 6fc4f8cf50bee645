// clusterRT, startMonitoring: what goes on until it is stopped.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bin/admin/messages.h"
#include "bin/admin/monitor.h"
#include "bin/admin/number_text.h"
#include "bin/admin/rounds.h"
#include "bin/admin/time_text.h"
#include "bin/admin/verbs.h"
#include "common/clock.h"
#include "remoting/json.h"
#include "triad/producer.h"

namespace triad::admin {
namespace {

constexpr std::chrono::milliseconds kSendTimeout{3000};

std::string TimeNow() {
  return FormatTime(WallNowMs());
}

// ---- clusterRT ---------------------------------------------------------------------------------

struct Timing {
  double rt_ms = 0;  // on average, without the first send, which opens the connection
  std::int64_t sent = 0;
  std::int64_t failed = 0;
};

// To the topic that is named like the broker. Ends early when `rounds` is stopped.
Timing TimeBroker(const std::string& broker_name, const Given& given, client::Producer* producer,
                  Rounds* rounds) {
  using Clock = std::chrono::steady_clock;
  client::Message message;
  message.topic = broker_name;
  message.body = std::string(static_cast<std::size_t>(given.Number("size")), 'a');
  const std::int64_t amount = given.Number("amount");
  Timing timing;
  double total_ms = 0;
  for (std::int64_t i = 0; i < amount && !rounds->Stopped(); ++i) {
    const auto begin = Clock::now();
    const bool sent = producer->Send(message).ok();
    const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
    ++(sent ? timing.sent : timing.failed);
    if (i > 0 || amount == 1) total_ms += took.count();
  }
  timing.rt_ms =
      amount > 0 ? total_ms / static_cast<double>(std::max<std::int64_t>(amount - 1, 1)) : 0;
  return timing;
}

void PrintTiming(const client::BrokerGroup& group, const Timing& timing, const Given& given) {
  if (given.Is("print-log")) {
    std::printf("%s|%s|%s|%s|%lld\n", TimeNow().substr(0, 19).c_str(),
                given.Text("machine-room").c_str(), group.cluster.c_str(),
                group.broker_name.c_str(), std::llround(timing.rt_ms));
  } else {
    std::printf("%-24s  %-24s  %-8s  %-16lld  %lld\n", group.cluster.c_str(),
                group.broker_name.c_str(), Decimal(timing.rt_ms).c_str(),
                static_cast<long long>(timing.sent), static_cast<long long>(timing.failed));
  }
  std::fflush(stdout);
}

// One object on a line of its own.
void PrintRound(const char* name, const Table& table) {
  remoting::JsonWriter writer;
  writer.BeginObject();
  writer.Key("time").String(TimeNow()).Key(name).Raw(table.Json());
  writer.EndObject();
  std::printf("%s\n", writer.text().c_str());
}

// The broker groups that are asked for.
Result<std::vector<client::BrokerGroup>> Wanted(const std::string& cluster, Session* session) {
  auto groups = session->admin().ClusterList();
  if (!groups.ok() || cluster.empty()) return groups;
  std::erase_if(*groups, [&](const client::BrokerGroup& one) { return one.cluster != cluster; });
  if (groups->empty()) return Status::NotFound("cluster " + cluster + " does not exist");
  return groups;
}

int TimeOnce(const Given& given, client::Producer* producer, Rounds* rounds, Session* session) {
  const auto groups = Wanted(given.Text("cluster"), session);
  if (!groups.ok()) return Fail(groups.status());
  Table table({"#Cluster Name", "#Broker Name", "#RT", "#successCount", "#failCount"});
  int code = kDone;
  for (const client::BrokerGroup& group : *groups) {
    const Timing timing = TimeBroker(group.broker_name, given, producer, rounds);
    if (rounds->Stopped()) return code;
    if (timing.failed > 0) code = kRefused;
    table.Add({group.cluster, group.broker_name, Decimal(timing.rt_ms), std::to_string(timing.sent),
               std::to_string(timing.failed)});
    if (!given.json()) PrintTiming(group, timing, given);
  }
  if (given.json()) PrintRound("brokers", table);
  return code;
}

int ClusterRt(const Given& given, Session* session) {
  const auto groups = Wanted(given.Text("cluster"), session);
  if (!groups.ok()) return Fail(groups.status());
  client::ProducerOptions options = ProducerOptionsOf(session);
  options.send_timeout = kSendTimeout;
  client::Producer producer(options);
  const Status started = producer.Start();
  if (!started.ok()) return Fail(started);
  if (!given.json() && !given.Is("print-log")) {
    std::printf("%-24s  %-24s  %-8s  %-16s  %s\n", "#Cluster Name", "#Broker Name", "#RT",
                "#successCount", "#failCount");
  }
  Rounds rounds(given);
  int code = kDone;
  do {
    code = std::max(code, TimeOnce(given, &producer, &rounds, session));
  } while (rounds.Next());
  return code;
}

// ---- startMonitoring ---------------------------------------------------------------------------

std::string QueueText(const client::MessageQueue& queue) {
  return "MessageQueue [topic=" + queue.topic + ", brokerName=" + queue.broker_name +
         ", queueId=" + std::to_string(queue.queue_id) + "]";
}

// The lines that the original writes.
void PrintLines(const MonitorRound& round) {
  const auto line = [](const std::string& text) { std::printf("[MONITOR] %s\n", text.c_str()); };
  line("=========================================beginRound " + TimeNow());
  for (const UndoneMessages& one : round.undone) {
    line("reportUndoneMsgs: UndoneMsgs [consumerGroup=" + one.group + ", topic=" + one.topic +
         ", undoneMsgsTotal=" + std::to_string(one.total) +
         ", undoneMsgsSingleMQ=" + std::to_string(one.single_queue) +
         ", undoneMsgsDelayTimeMills=" + std::to_string(one.delay_ms) + "]");
  }
  for (const Notice& one : round.notices) {
    line(" [NOTIFY] reportConsumerRunningInfo: ConsumerGroup: " + one.group +
         (one.client_id.empty() ? "" : ", ClientId: " + one.client_id) + ", " + one.text);
  }
  for (const DeletedMessages& one : round.deleted) {
    line(
        "reportDeleteMsgsEvent: DeleteMsgsEvent [offsetMovedEvent=OffsetMovedEvent "
        "[consumerGroup=" +
        one.group + ", messageQueue=" + QueueText(one.queue) + ", offsetRequest=" +
        std::to_string(one.asked_offset) + ", offsetNew=" + std::to_string(one.new_offset) +
        "], eventTimestamp=" + std::to_string(one.time_ms) + "]");
  }
  line("=========================================endRound");
}

void WriteDeleted(const DeletedMessages& one, remoting::JsonWriter* writer) {
  writer->BeginObject().Key("offsetMovedEvent").BeginObject();
  writer->Key("consumerGroup").String(one.group);
  writer->Key("messageQueue").BeginObject();
  writer->Key("brokerName").String(one.queue.broker_name);
  writer->Key("queueId").Int(one.queue.queue_id);
  writer->Key("topic").String(one.queue.topic).EndObject();
  writer->Key("offsetRequest").Int(one.asked_offset);
  writer->Key("offsetNew").Int(one.new_offset).EndObject();
  writer->Key("eventTimestamp").Int(one.time_ms).EndObject();
}

void PrintJson(const MonitorRound& round) {
  remoting::JsonWriter writer;
  writer.BeginObject().Key("time").String(TimeNow()).Key("undoneMsgs").BeginArray();
  for (const UndoneMessages& one : round.undone) {
    writer.BeginObject().Key("consumerGroup").String(one.group).Key("topic").String(one.topic);
    writer.Key("undoneMsgsTotal").Int(one.total);
    writer.Key("undoneMsgsSingleMQ").Int(one.single_queue);
    writer.Key("undoneMsgsDelayTimeMills").Int(one.delay_ms).EndObject();
  }
  writer.EndArray().Key("deleteMsgsEvents").BeginArray();
  for (const DeletedMessages& one : round.deleted) WriteDeleted(one, &writer);
  writer.EndArray().Key("notices").BeginArray();
  for (const Notice& one : round.notices) {
    writer.BeginObject().Key("consumerGroup").String(one.group);
    writer.Key("clientId").String(one.client_id).Key("text").String(one.text).EndObject();
  }
  writer.EndArray().EndObject();
  std::printf("%s\n", writer.text().c_str());
}

int StartMonitoring(const Given& given, Session* session) {
  Monitor monitor(session);
  const Status started = monitor.Start();
  if (!started.ok()) return Fail(started);
  Rounds rounds(given);
  int code = kDone;
  do {
    const MonitorRound round = monitor.Look([&rounds] { return rounds.Stopped(); });
    for (const Status& error : round.errors) code = std::max(code, Fail(error));
    if (rounds.Stopped()) break;
    given.json() ? PrintJson(round) : PrintLines(round);
  } while (rounds.Next());
  return code;
}

}  // namespace

std::vector<Verb> WatchVerbs() {
  return {
      {"clusterRT", "send messages to every broker and show how long that takes, again and again",
       "-c DefaultCluster -a 10 -s 128 --rounds 1",
       WithRounds({{"-a,--amount", "how many a round and broker", "100", kCount},
                   {"-s,--size", "bytes of each", "128", kCount},
                   {"-c,--cluster", "only brokers of this cluster", ""},
                   {"-p,--print-log", "lines time|room|cluster|broker|ms", "false", kText, kYesNo},
                   {"-m,--machine-room", "the room in such a line", "noname"}},
                  "10"),
       ClusterRt, true},
      {"startMonitoring",
       "watch every group: undone messages, messages deleted in front of it, members in trouble",
       "--rounds 1", WithRounds({}, "60"), StartMonitoring, true},
  };
}

}  // namespace triad::admin
