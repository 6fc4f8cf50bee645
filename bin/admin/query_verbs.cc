// queryMsgById, queryMsgByKey, queryMsgByUniqueKey, queryMsgByOffset, queryMsgTraceById, queryCq:
// single messages.

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "bin/admin/ask.h"
#include "bin/admin/charset.h"
#include "bin/admin/messages.h"
#include "bin/admin/time_text.h"
#include "bin/admin/tracks.h"
#include "bin/admin/verbs.h"
#include "client/message_codec.h"
#include "remoting/codes.h"
#include "remoting/json.h"
#include "triad/producer.h"
#include "triad/pull_consumer.h"

namespace triad::admin {
namespace {

using client::ReceivedMessage;

struct Query {
  std::string topic;
  std::string key;
  bool unique = false;
  std::string count = "64";
  std::string begin_ms = "0";
  std::string end_ms = std::to_string(std::numeric_limits<std::int64_t>::max());
  std::string cluster = {};  // only there; of a light queue the topic that it belongs to
};

// Of every group that serves the topic. Errors: kNotFound when there is none.
Result<std::vector<ReceivedMessage>> Find(const Query& query, Session* session) {
  const Fields fields = {
      {"topic", query.topic},         {"key", query.key},
      {"maxNum", query.count},        {"beginTimestamp", query.begin_ms},
      {"endTimestamp", query.end_ms}, {"_UNIQUE_KEY_QUERY", query.unique ? "true" : "false"}};
  const bool by_parent = query.topic.starts_with("%LMQ%") && !query.cluster.empty();
  const auto leaders = LeadersOf(by_parent ? query.cluster : query.topic, session);
  if (!leaders.ok()) return leaders.status();
  std::vector<ReceivedMessage> found;
  for (const Leader& leader : *leaders) {
    if (!by_parent && !query.cluster.empty() && leader.cluster != query.cluster) continue;
    const auto answer = AskOk(leader.address, remoting::kQueryMessage, fields, "", session);
    if (answer.status().code() == StatusCode::kNotFound) continue;
    if (!answer.ok()) return answer.status();
    const auto messages = client::DecodeMessages(answer->body, leader.broker_name);
    if (!messages.ok()) return messages.status();
    found.insert(found.end(), messages->begin(), messages->end());
  }
  if (!found.empty()) return found;
  const std::string where = query.cluster.empty() ? "" : " in " + query.cluster;
  return Status::NotFound("topic " + query.topic + " has no message with key " + query.key + where);
}

// Whether -g and -d name a member of a group that shall consume it now.
bool ToAClient(const Given& given) {
  return given.Has("consumerGroup") && given.Has("clientId");
}

Status ConsumeNow(const ReceivedMessage& message, const Given& given, Record* record,
                  Session* session) {
  const auto answer = AskOk(message.store_host, remoting::kConsumeMessageDirectly,
                            {{"consumerGroup", given.Text("consumerGroup")},
                             {"clientId", given.Text("clientId")},
                             {"topic", message.queue.topic},
                             {"msgId", message.offset_message_id}},
                            "", session);
  if (!answer.ok()) return answer.status();
  record->emplace_back("Consumed", answer->body);
  return Status::Ok();
}

int Show(const std::vector<ReceivedMessage>& messages, const Given& given, Session* session) {
  if (!ToAClient(given)) return PrintWithTracks(messages, given, session);
  std::vector<Record> records;
  for (const ReceivedMessage& message : messages) {
    Record record = Describe(message);
    const Status consumed = ConsumeNow(message, given, &record, session);
    if (!consumed.ok()) return Fail(consumed);
    records.push_back(std::move(record));
  }
  Print(records, given);
  return kDone;
}

std::vector<std::string> Split(const std::string& text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == by) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// By offset message id, or, with the topic, by unique key: the two look much the same.
Result<std::vector<ReceivedMessage>> Lookup(const std::string& id, const Given& given,
                                            Session* session) {
  const auto message = session->admin().ViewMessage(id);
  if (message.ok()) return std::vector<ReceivedMessage>{*message};
  if (given.Has("topic")) {
    Query query{given.Text("topic"), id, true};
    query.cluster = given.Text("cluster");
    auto found = Find(query, session);
    if (found.ok()) return found;
  }
  return message.status();
}

// Sends each once more, to its own topic, as it is: also its unique key stays.
int SendAgain(const std::vector<ReceivedMessage>& messages, const Given& given, Session* session) {
  client::ProducerOptions options = ProducerOptionsOf(session);
  options.group = "ReSendMsgById";
  client::Producer producer(options);
  const Status started = producer.Start();
  if (!started.ok()) return Fail(started);
  Table table({"#Original OffsetMsgId", "#Send Result", "#MsgId", "#OffsetMsgId", "#Broker Name",
               "#QID", "#Queue Offset"});
  int code = kDone;
  for (const ReceivedMessage& message : messages) {
    client::Message again;
    again.topic = message.queue.topic;
    again.body = message.body;
    again.flag = message.flag;
    again.properties = message.properties;  // tag, keys and delay are among them
    const auto sent = producer.Send(again);
    if (!sent.ok()) {
      code = Fail(sent.status());
      continue;
    }
    table.Add({message.offset_message_id, "SEND_OK", sent->message_id, sent->offset_message_id,
               sent->queue.broker_name, std::to_string(sent->queue.queue_id),
               std::to_string(sent->queue_offset)});
  }
  Print(table, given);
  return code;
}

int ById(const Given& given, Session* session) {
  const std::string& charset = given.Text("bodyFormat");
  const auto known = ToUtf8("", charset);
  if (!known.ok()) return WrongUse(known.status());
  std::vector<ReceivedMessage> messages;
  for (const std::string& id : Split(given.Text("msgId"), ',')) {
    if (id.empty()) continue;
    const auto found = Lookup(id, given, session);
    if (!found.ok()) return Fail(found.status());
    messages.insert(messages.end(), found->begin(), found->end());
  }
  if (given.Is("sendMessage") && !ToAClient(given)) return SendAgain(messages, given, session);
  for (ReceivedMessage& message : messages) message.body = ToUtf8(message.body, charset).value();
  return Show(messages, given, session);
}

int ByUniqueKey(const Given& given, Session* session) {
  Query query{given.Text("topic"), given.Text("msgId"), true};
  query.cluster = given.Text("cluster");
  const auto found = Find(query, session);
  if (!found.ok()) return Fail(found.status());
  if (given.Is("showAll")) return Show(*found, given, session);
  return Show({found->front()}, given, session);
}

int ByKey(const Given& given, Session* session) {
  Query query{given.Text("topic"), given.Text("msgKey"), false, given.Text("maxNum")};
  query.cluster = given.Text("cluster");
  if (given.Number("beginTimestamp") > 0) query.begin_ms = given.Text("beginTimestamp");
  if (given.Number("endTimestamp") > 0) query.end_ms = given.Text("endTimestamp");
  const auto found = Find(query, session);
  if (!found.ok()) return Fail(found.status());
  Table table({"#Message ID", "#QID", "#Offset"});
  for (const ReceivedMessage& message : *found) {
    table.Add({message.message_id, std::to_string(message.queue.queue_id),
               std::to_string(message.queue_offset)});
  }
  Print(table, given);
  return kDone;
}

int ByOffset(const Given& given, Session* session) {
  const std::string& charset = given.Text("bodyFormat");
  const auto known = ToUtf8("", charset);
  if (!known.ok()) return WrongUse(known.status());
  client::PullConsumerOptions options;
  options.client = session->client_options();
  client::PullConsumer consumer(options);
  const Status started = consumer.Start();
  if (!started.ok()) return Fail(started);
  Range range;
  range.topic = given.Text("topic");
  range.broker_name = given.Text("brokerName");
  range.queue_id = given.Number("queueId");
  range.from_offset = given.Number("offset");
  range.count = 1;
  std::vector<ReceivedMessage> found;
  const Status done = ForEach(range, &consumer, [&](const ReceivedMessage& message) {
    if (message.queue_offset == range.from_offset) found.push_back(message);
  });
  if (!done.ok()) return Fail(done);
  if (!found.empty()) {
    found.front().body = ToUtf8(found.front().body, charset).value();
    return PrintWithTracks(found, given, session);
  }
  return Fail(Status::NotFound("queue " + given.Text("queueId") + " of " + range.topic +
                               " has no message at offset " + given.Text("offset")));
}

// One line of a trace message, as the original's clients write it; kinds that are not known are
// left out.
void AddTrace(const std::string& line, const std::string& id, Table* table) {
  const std::vector<std::string> f = Split(line, '\x01');
  const auto time = [](const std::string& ms) { return FormatTime(std::atoll(ms.c_str())); };
  if (f[0] == "Pub" && f.size() > 13 && f[5] == id) {
    table->Add({"Pub", f[3], f[4], time(f[1]), f[10], f[13] == "true" ? "success" : "failed"});
  } else if (f[0] == "SubBefore" && f.size() > 5 && f[5] == id) {
    table->Add({"SubBefore", f[3], "", time(f[1]), "", "begun"});
  } else if (f[0] == "SubAfter" && f.size() > 8 && f[2] == id) {
    table->Add({"SubAfter", f[8], "", time(f[7]), f[3], f[4] == "true" ? "success" : "failed"});
  }
}

int TraceById(const Given& given, Session* session) {
  Query query{given.Text("traceTopic"), given.Text("msgId"), false, given.Text("maxNum")};
  if (given.Number("beginTimestamp") > 0) query.begin_ms = given.Text("beginTimestamp");
  if (given.Number("endTimestamp") > 0) query.end_ms = given.Text("endTimestamp");
  const auto found = Find(query, session);
  if (!found.ok()) return Fail(found.status());
  Table table({"#Type", "#Group", "#Topic", "#Time", "#Cost ms", "#Status"});
  for (const ReceivedMessage& message : *found) {
    for (const std::string& line : Split(message.body, '\x02')) AddTrace(line, query.key, &table);
  }
  Print(table, given);
  return table.rows() > 0 ? kDone : kRefused;
}

int QueryCq(const Given& given, Session* session) {
  std::string address = given.Text("broker");
  if (address.empty()) {
    const auto leaders = LeadersOf(given.Text("topic"), session);
    if (!leaders.ok()) return Fail(leaders.status());
    address = leaders->front().address;
  }
  const auto answer = AskOk(address, remoting::kQueryConsumeQueue,
                            {{"topic", given.Text("topic")},
                             {"queueId", given.Text("queue")},
                             {"index", given.Text("index")},
                             {"count", given.Text("count")},
                             {"consumerGroup", given.Text("consumer")}},
                            "", session);
  if (!answer.ok()) return Fail(answer.status());
  const auto json = remoting::Json::Parse(answer->body);
  if (!json.ok()) return Fail(Status::NotFound("nothing stands at that index: " + answer->remark));
  Table table({"#Index", "#PhysicOffset", "#PhysicSize", "#TagsCode"});
  std::int64_t index = given.Number("index");
  for (const remoting::Json& unit : (*json)["queueData"].items()) {
    table.Add({std::to_string(index++), unit["physicOffset"].AsString(),
               unit["physicSize"].AsString(), unit["tagsCode"].AsString()});
  }
  Print(table, given);
  Note("\nthe queue holds " + (*json)["minQueueIndex"].AsString() + " to " +
           (*json)["maxQueueIndex"].AsString(),
       given);
  return kDone;
}

}  // namespace

std::vector<Verb> QueryVerbs() {
  const Option topic = {"-t,--topic", "topic"};
  const Option group = {"-g,--consumerGroup", "with -d: has this group's client consume it now",
                        ""};
  const Option client = {"-d,--clientId", "with -g: the client", ""};
  const Option cluster = {"-c,--cluster",
                          "only in this cluster; of a light queue (%LMQ%): the topic it belongs to",
                          ""};
  const Option format = {"-f,--bodyFormat",
                         "character set of the body, as GBK; else it stands as it is", ""};
  const Option begin = {"-b,--beginTimestamp", "stored not before, milliseconds", "0", kCount};
  const Option end = {"-e,--endTimestamp", "stored not after, milliseconds; 0: any", "0", kCount};
  return {
      {"queryMsgById",
       "show one message by its offset message id, and which groups consumed it",
       "-i 7F00000100002A9F0000000000000000 -t Orders",
       {{"-i,--msgId", "offset message id, or several with commas; with -t also unique keys"},
        {"-t,--topic", "topic", ""},
        group,
        client,
        {"-s,--sendMessage", "send it again instead (without -g and -d)", "false", kText, kYesNo},
        cluster,
        format,
        {"-u,--unitName", "taken, without effect", ""}},
       ById},
      {"queryMsgByKey",
       "list the newest messages with a key",
       "-t Orders -k order-1",
       {topic,
        {"-k,--msgKey", "one of the message's keys"},
        begin,
        end,
        {"-m,--maxNum", "at most so many", "64", kCount},
        cluster},
       ByKey},
      {"queryMsgByUniqueKey",
       "show the message with a unique key, and which groups consumed it",
       "-t Orders -i 0A0000091F4C18B4AAC2092E0E480000",
       {topic,
        {"-i,--msgId", "unique key, as a send prints it"},
        {"-a,--showAll", "every message that has it", "", kSwitch},
        group,
        client,
        cluster},
       ByUniqueKey},
      {"queryMsgByOffset",
       "show the message at an offset of a queue, and which groups consumed it",
       "-t Orders -b RaftNode00 -i 0 -o 0",
       {topic,
        {"-b,--brokerName", "broker name"},
        {"-i,--queueId", "queue id", nullptr, kCount},
        {"-o,--offset", "queue offset", nullptr, kCount},
        format},
       ByOffset},
      {"queryMsgTraceById",
       "show who sent and consumed a message, and when",
       "-i 0A0000091F4C18B4AAC2092E0E480000",
       {{"-i,--msgId", "unique key"},
        {"-t,--traceTopic", "where clients write their traces", "RMQ_SYS_TRACE_TOPIC"},
        begin,
        end,
        {"-c,--maxNum", "at most so many", "64", kCount}},
       TraceById},
      {"queryCq",
       "show units of a consume queue",
       "-t Orders -q 0 -i 0",
       {topic,
        {"-q,--queue", "queue id", nullptr, kCount},
        {"-i,--index", "first unit", nullptr, kCount},
        {"-c,--count", "how many", "10", kCount},
        {"-b,--broker", "ask this address", ""},
        {"-g,--consumer", "consumer group", ""}},
       QueryCq},
  };
}

}  // namespace triad::admin
