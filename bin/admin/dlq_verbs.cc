// dlq list, view, replay, drop: the dead letters of a consumer group.
//
// What is settled (replayed or dropped) is known to the brokers; list and view show the rest. A
// replay is one step of the broker's log per dead letter, so it can be killed and run again.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bin/admin/ask.h"
#include "bin/admin/messages.h"
#include "bin/admin/time_text.h"
#include "bin/admin/verbs.h"
#include "remoting/codes.h"
#include "remoting/json.h"
#include "triad/pull_consumer.h"

namespace triad::admin {
namespace {

using client::MessageQueue;
using client::ReceivedMessage;

constexpr int kPullBatch = 32;
constexpr std::chrono::milliseconds kPause{100};  // before a request is repeated
constexpr int kTriesMax = 100;

struct DeadLetter {
  MessageQueue queue;  // of %DLQ%group
  std::int64_t offset = 0;
  ReceivedMessage message;

  std::string Property(const std::string& name) const {
    const auto found = message.properties.find(name);
    return found == message.properties.end() ? "" : found->second;
  }
  std::string origin_topic() const { return Property("RETRY_TOPIC"); }
  std::int64_t failed_at_ms() const {
    const std::string text = Property("FIRST_FAILURE_TIME");
    return text.empty() ? message.store_time_ms : std::atoll(text.c_str());
  }
};

std::string DlqTopic(const std::string& group) {
  return "%DLQ%" + group;
}

// Where the leaders of the broker groups that hold dead letters are, by broker name.
Result<std::map<std::string, std::string>> Leaders(const std::string& topic, Session* session) {
  const Result<client::TopicRoute> route = session->admin().Route(topic);
  if (!route.ok()) return route.status();
  std::map<std::string, std::string> leaders;
  for (const client::BrokerGroup& group : route->brokers) {
    if (group.addresses.empty()) continue;
    leaders[group.broker_name] = group.addresses.begin()->second;  // id 0, or one that forwards
  }
  return leaders;
}

// The same for a group's dead letters; none for a group that has no dead letter yet.
Result<std::map<std::string, std::string>> LeadersOfDeadLetters(const std::string& group,
                                                                Session* session) {
  auto leaders = Leaders(DlqTopic(group), session);
  if (leaders.status().code() != StatusCode::kNotFound) return leaders;
  const auto consumed = Leaders(RetryTopic(group), session);  // made by its first consumer
  if (consumed.ok()) return std::map<std::string, std::string>{};
  if (consumed.status().code() != StatusCode::kNotFound) return consumed.status();
  return Status::NotFound("consumer group '" + group +
                          "' has no dead letters and never had a consumer: is its name right?");
}

// Asks a broker, again while it says "not now" or does not answer: every request may be repeated.
Result<client::Admin::Answer> AskPatiently(const std::string& broker_name, int code,
                                           const std::map<std::string, std::string>& fields,
                                           const std::string& topic, Session* session) {
  Status last = Status::Unavailable("broker group " + broker_name + " is not in the route");
  for (int i = 0; i < kTriesMax; ++i) {
    const auto leaders = Leaders(topic, session);
    if (!leaders.ok()) return leaders.status();
    const auto found = leaders->find(broker_name);
    if (found == leaders->end()) return last;
    Result<client::Admin::Answer> answer = session->admin().Ask(found->second, code, fields);
    if (answer.ok() && answer->code != remoting::kSystemBusy &&
        answer->code != remoting::kServiceNotAvailable) {
      return answer;
    }
    last = answer.ok() ? Status::Unavailable(answer->remark) : answer.status();
    std::this_thread::sleep_for(kPause);
  }
  return last;
}

// What is open in one queue.
struct OpenRange {
  std::int64_t begin = 0, end = 0;
  std::set<std::int64_t> settled;
};

Result<std::map<MessageQueue, OpenRange>> OpenRanges(const std::string& group, Session* session) {
  const std::string topic = DlqTopic(group);
  const auto leaders = LeadersOfDeadLetters(group, session);
  if (!leaders.ok()) return leaders.status();
  std::map<MessageQueue, OpenRange> ranges;
  for (const auto& [broker_name, address] : *leaders) {
    const auto answer =
        AskPatiently(broker_name, remoting::kDlqProgress, {{"group", group}}, topic, session);
    if (!answer.ok()) return answer.status();
    if (answer->code != remoting::kSuccess) {
      return Status::Internal(broker_name + ": " + answer->remark);
    }
    const Result<remoting::Json> json = remoting::Json::Parse(answer->body);
    if (!json.ok()) return json.status();
    for (const remoting::Json& queue : (*json)["queues"].items()) {
      OpenRange range{queue["floor"].AsInt64(0), queue["maxOffset"].AsInt64(0), {}};
      for (const remoting::Json& one : queue["settled"].items()) {
        range.settled.insert(one.AsInt64(-1));
      }
      const auto id = static_cast<std::int32_t>(queue["queueId"].AsInt64(0));
      ranges[MessageQueue{topic, broker_name, id}] = range;
    }
  }
  return ranges;
}

bool Wanted(const Given& given, std::int64_t since_ms, const DeadLetter& letter) {
  if (given.Has("topic") && letter.origin_topic() != given.Text("topic")) return false;
  if (letter.failed_at_ms() < since_ms) return false;
  const std::string& wanted = given.Text("key");
  if (wanted.empty()) return true;
  for (const std::string& key : letter.message.keys) {
    if (key == wanted) return true;
  }
  return letter.message.message_id == wanted || letter.Property("ORIGIN_MESSAGE_ID") == wanted;
}

// What was found, and where a queue could not be read to its end; empty: everywhere.
struct Found {
  std::vector<DeadLetter> letters;
  std::string stopped;
};

// The open dead letters that the options ask for, oldest first in each queue.
Result<Found> Find(const Given& given, Session* session) {
  const Result<std::int64_t> since_ms = TimeOrZero(given.Text("since"));
  if (!since_ms.ok()) return since_ms.status();
  const std::int64_t limit = given.Number("limit");
  const auto ranges = OpenRanges(given.Text("group"), session);
  if (!ranges.ok()) return ranges.status();
  client::PullConsumerOptions consumer_options;
  consumer_options.client = session->client_options();
  client::PullConsumer consumer(consumer_options);
  TRIAD_RETURN_IF_ERROR(consumer.Start());
  Found found;
  const auto full = [&] {
    return limit > 0 && found.letters.size() >= static_cast<std::size_t>(limit);
  };
  for (const auto& [queue, range] : *ranges) {
    for (std::int64_t next = range.begin; next < range.end && !full();) {
      const auto pulled = consumer.Pull(queue, "*", next, kPullBatch);
      if (!pulled.ok()) return pulled.status();
      if (pulled->next_begin_offset <= next) {
        found.stopped += (found.stopped.empty() ? "" : ", ") + queue.broker_name + " queue " +
                         std::to_string(queue.queue_id) + " at " + std::to_string(next) + " of " +
                         std::to_string(range.end);
        break;
      }
      next = pulled->next_begin_offset;
      for (const ReceivedMessage& message : pulled->messages) {
        if (full() || message.queue_offset >= range.end) break;
        if (range.settled.contains(message.queue_offset)) continue;
        DeadLetter letter{queue, message.queue_offset, message};
        if (Wanted(given, *since_ms, letter)) found.letters.push_back(std::move(letter));
      }
    }
  }
  return found;
}

// What a verb ends with: kRefused when there may be more than it saw.
int End(const Found& found, const Given& given, int code = kDone) {
  if (found.stopped.empty()) return code;
  Note("not everything could be read (" + found.stopped + "); run it again", given);
  return kRefused;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

int List(const Given& given, Session* session) {
  const auto found = Find(given, session);
  if (!found.ok()) return Fail(found.status());
  Table table({"#Broker Name", "#QID", "#Offset", "#Origin Topic", "#First Failure", "#Times",
               "#Keys", "#MsgId", "#Reason"});
  for (const DeadLetter& letter : found->letters) {
    table.Add({letter.queue.broker_name, std::to_string(letter.queue.queue_id),
               std::to_string(letter.offset), letter.origin_topic(),
               FormatTime(letter.failed_at_ms()), std::to_string(letter.message.reconsume_times),
               Joined(letter.message.keys), letter.message.message_id,
               letter.Property("FAILURE_REASON")});
  }
  Print(table, given);
  Note(std::to_string(found->letters.size()) + " dead letters are open", given);
  return End(*found, given);
}

// As it is: values may hold zeros.
void PrintField(const std::string& name, const std::string& value) {
  std::printf("%-20s ", (name + ":").c_str());
  std::fwrite(value.data(), 1, value.size(), stdout);
  std::printf("\n");
}

void PrintWhole(const DeadLetter& letter) {
  PrintField("Dead Letter", letter.queue.broker_name + ":" + std::to_string(letter.queue.queue_id) +
                                ":" + std::to_string(letter.offset));
  PrintField("Message Id", letter.message.message_id);
  for (const auto& [name, value] : letter.message.properties) PrintField(name, value);
  PrintField("Message Body", letter.message.body);
  std::printf("\n");
}

std::string WholeJson(const std::vector<DeadLetter>& letters) {
  remoting::JsonWriter writer;
  writer.BeginArray();
  for (const DeadLetter& letter : letters) {
    writer.BeginObject();
    writer.Key("body").String(letter.message.body);
    writer.Key("brokerName").String(letter.queue.broker_name);
    writer.Key("msgId").String(letter.message.message_id);
    writer.Key("offset").Int(letter.offset);
    writer.Key("properties").BeginObject();
    for (const auto& [name, value] : letter.message.properties) writer.Key(name).String(value);
    writer.EndObject();
    writer.Key("queueId").Int(letter.queue.queue_id);
    writer.Key("reconsumeTimes").Int(letter.message.reconsume_times);
    writer.EndObject();
  }
  writer.EndArray();
  return writer.Take();
}

int View(const Given& given, Session* session) {
  const auto found = Find(given, session);
  if (!found.ok()) return Fail(found.status());
  if (given.json()) {
    std::printf("%s\n", WholeJson(found->letters).c_str());
  } else {
    for (const DeadLetter& letter : found->letters) PrintWhole(letter);
  }
  return End(*found, given);
}

// Keeps to so many a second.
class Pace {
 public:
  explicit Pace(std::int64_t rate) : rate_(rate), next_(std::chrono::steady_clock::now()) {}
  void Wait() {
    if (rate_ <= 0) return;
    std::this_thread::sleep_until(next_);
    next_ += std::chrono::nanoseconds(1000000000LL / rate_);
  }

 private:
  const std::int64_t rate_;
  std::chrono::steady_clock::time_point next_;
};

std::string Field(const client::Admin::Answer& answer, const std::string& name) {
  const auto found = answer.fields.find(name);
  return found == answer.fields.end() ? "" : found->second;
}

// Replays or drops what is open, one after another; a line for each.
int Settle(const Given& given, bool replay, Session* session) {
  const std::string to = replay ? given.Text("to") : "";
  const std::string& group = given.Text("group");
  const auto found = Find(given, session);
  if (!found.ok()) return Fail(found.status());
  Table table({"#Broker Name", "#QID", "#Offset", "#MsgId", "#Result", "#Topic", "#New MsgId"});
  Pace pace(given.Number("rate"));
  std::map<std::string, int> outcomes;
  int failed = 0;
  for (const DeadLetter& letter : found->letters) {
    std::vector<std::string> row = {letter.queue.broker_name, std::to_string(letter.queue.queue_id),
                                    std::to_string(letter.offset), letter.message.message_id};
    if (given.Is("dry-run")) {
      row.insert(row.end(), {replay ? "would be replayed" : "would be dropped",
                             replay ? (to.empty() ? RetryTopic(group) : to) : "", ""});
      table.Add(std::move(row));
      continue;
    }
    pace.Wait();
    std::map<std::string, std::string> fields = {
        {"group", group}, {"queueId", row[1]}, {"queueOffset", row[2]}};
    if (!to.empty()) fields["to"] = to;
    const auto answer =
        AskPatiently(letter.queue.broker_name, replay ? remoting::kDlqReplay : remoting::kDlqDrop,
                     fields, letter.queue.topic, session);
    if (!answer.ok() || answer->code != remoting::kSuccess) {
      ++failed;
      row.insert(row.end(), {"failed: " + (answer.ok() ? answer->remark
                                                       : std::string(answer.status().message())),
                             "", ""});
    } else {
      ++outcomes[Field(*answer, "outcome")];
      row.insert(row.end(),
                 {Field(*answer, "outcome"), Field(*answer, "topic"), Field(*answer, "msgId")});
    }
    table.Add(std::move(row));
    if (!answer.ok()) break;  // nobody answers any more: run it again later
  }
  Print(table, given);
  for (const auto& [outcome, count] : outcomes) Note(std::to_string(count) + " " + outcome, given);
  if (failed > 0) Note(std::to_string(failed) + " failed and stay open; run it again", given);
  return End(*found, given, failed == 0 ? kDone : kRefused);
}

std::vector<Option> WithChoice(std::vector<Option> more) {
  std::vector<Option> options = {
      {"-g,--group", "consumer group"},
      {"-t,--topic", "only of messages that came from this topic", ""},
      {"--since",
       "only what failed first at this time or later: milliseconds or yyyy-MM-dd#HH:mm:ss:SSS", ""},
      {"--key", "only with this key, message id or origin message id", ""},
      {"--limit", "at most so many, oldest first; 0: all", "0", kCount}};
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

}  // namespace

std::vector<Verb> DlqVerbs() {
  const Option rate = {"--rate", "at most so many a second; 0: as fast as it goes", "0", kCount};
  const Option dry_run = {"--dry-run", "only say what would be done", "", kSwitch};
  return {
      {"dlq list", "one line per dead letter that is not replayed or dropped yet",
       "-g my_group --since 2026-11-30#08:00:00:000", WithChoice({}), List},
      {"dlq view", "the same with all properties and the body", "-g my_group --key order-17",
       WithChoice({}), View},
      {"dlq replay",
       "send them again: to the group's own retry topic, so that no other group gets them. May be "
       "killed and run again: nothing is sent twice",
       "-g my_group --topic Orders --rate 100",
       WithChoice(
           {{"--to", "send them to this topic instead, for all of its groups", ""}, rate, dry_run}),
       [](const Given& given, Session* session) { return Settle(given, true, session); }},
      {"dlq drop", "give them up: they are not listed or replayed any more",
       "-g my_group --key order-17 --dry-run", WithChoice({rate, dry_run}),
       [](const Given& given, Session* session) { return Settle(given, false, session); }},
  };
}

}  // namespace triad::admin
