// consumerConnection, producerConnection, producer, consumerStatus: which clients are there, and
// what they do.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bin/admin/ask.h"
#include "bin/admin/time_text.h"
#include "bin/admin/verbs.h"
#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "remoting/version_text.h"

namespace triad::admin {
namespace {

Table Connections(const std::vector<remoting::ConnectionInfo>& connections) {
  Table table({"#ClientId", "#ClientAddr", "#Language", "#Version"});
  for (const remoting::ConnectionInfo& one : connections) {
    table.Add({one.client_id, one.client_addr, one.language, remoting::VersionName(one.version)});
  }
  return table;
}

// The members of a group, and a broker that knows them.
struct Members {
  std::string address;
  remoting::ConsumerConnection group;
};
Result<Members> MembersOf(const Given& given, Session* session) {
  const std::string& group = given.Text("consumerGroup");
  Members members{given.Text("brokerAddr"), {}};
  if (members.address.empty()) {
    const auto leaders = LeadersOf(RetryTopic(group), session);
    if (!leaders.ok()) return leaders.status();
    members.address = leaders->front().address;
  }
  const auto answer = AskOk(members.address, remoting::kGetConsumerConnectionList,
                            {{"consumerGroup", group}}, "", session);
  if (!answer.ok()) return answer.status();
  auto body = remoting::ConsumerConnection::Decode(answer->body);
  if (!body.ok()) return body.status();
  members.group = std::move(body).value();
  return members;
}

int ConsumerConnection(const Given& given, Session* session) {
  const auto members = MembersOf(given, session);
  if (!members.ok()) return Fail(members.status());
  const remoting::ConsumerConnection& group = members->group;
  Table topics({"#Topic", "#SubExpression"});
  for (const auto& [topic, subscription] : group.subscription_table) {
    topics.Add({topic, subscription.sub_string});
  }
  Table kind({"#ConsumeType", "#MessageModel", "#ConsumeFromWhere"});
  kind.Add({std::string(remoting::ConsumeTypeName(group.consume_type)),
            std::string(remoting::MessageModelName(group.message_model)),
            std::string(remoting::ConsumeFromWhereName(group.consume_from_where))});
  Print(
      {{"connections", Connections(group.connections)}, {"subscriptions", topics}, {"group", kind}},
      given);
  return kDone;
}

int ProducerConnection(const Given& given, Session* session) {
  const auto leaders = LeadersOf(given.Text("topic"), session);
  if (!leaders.ok()) return Fail(leaders.status());
  const auto answer = AskOk(leaders->front().address, remoting::kGetProducerConnectionList,
                            {{"producerGroup", given.Text("producerGroup")}}, "", session);
  if (!answer.ok()) return Fail(answer.status());
  const auto group = remoting::ProducerConnection::Decode(answer->body);
  if (!group.ok()) return Fail(group.status());
  Print(Connections(group->connections), given);
  return kDone;
}

int Producer(const Given& given, Session* session) {
  const auto answer = AskOk(given.Text("broker"), remoting::kGetAllProducerInfo, {}, "", session);
  if (!answer.ok()) return Fail(answer.status());
  const auto json = remoting::Json::Parse(answer->body);
  if (!json.ok()) return Fail(json.status());
  Table table({"#Group", "#ClientId", "#Remote", "#Language", "#Version", "#LastUpdate"});
  for (const auto& group : (*json)["data"].members()) {
    for (const remoting::Json& one : group.value.items()) {
      table.Add({group.key, one["clientId"].AsString(), one["remoteIP"].AsString(),
                 one["language"].AsString(),
                 remoting::VersionName(static_cast<std::int32_t>(one["version"].AsInt64())),
                 FormatTime(one["lastUpdateTimestamp"].AsInt64())});
    }
  }
  Print(table, given);
  return kDone;
}

void AddClient(const std::string& id, const remoting::Json& info, Table* clients, Table* queues) {
  const remoting::Json& properties = info["properties"];
  clients->Add({id, properties["PROP_CLIENT_VERSION"].AsString(),
                properties["PROP_CONSUME_TYPE"].AsString(),
                properties["PROP_CONSUMEORDERLY"].AsString(),
                FormatTime(properties["PROP_CONSUMER_START_TIMESTAMP"].AsInt64()),
                std::to_string(info["mqTable"].members().size())});
  for (const auto& queue : info["mqTable"].members()) {
    queues->Add({id, queue.key_object["topic"].AsString(),
                 queue.key_object["brokerName"].AsString(), queue.key_object["queueId"].AsString(),
                 queue.value["commitOffset"].AsString(), queue.value["cachedMsgCount"].AsString(),
                 queue.value["locked"].AsBool() ? "true" : "false",
                 queue.value["droped"].AsBool() ? "true" : "false",
                 FormatTime(queue.value["lastPullTimestamp"].AsInt64())});
  }
}

int ConsumerStatus(const Given& given, Session* session) {
  const auto members = MembersOf(given, session);
  if (!members.ok()) return Fail(members.status());
  const std::string& group = given.Text("consumerGroup");
  Table clients({"#ClientId", "#Version", "#ConsumeType", "#Orderly", "#Started", "#Queues"});
  Table queues({"#ClientId", "#Topic", "#Broker Name", "#QID", "#Consumer Offset", "#Cached",
                "#Locked", "#Dropped", "#LastPull"});
  std::string stacks;
  for (const remoting::ConnectionInfo& one : members->group.connections) {
    if (given.Has("clientId") && given.Text("clientId") != one.client_id) continue;
    const auto answer = AskOk(members->address, remoting::kGetConsumerRunningInfo,
                              {{"consumerGroup", group},
                               {"clientId", one.client_id},
                               {"jstackEnable", given.Text("jstack")}},
                              "", session);
    if (!answer.ok()) return Fail(answer.status());
    const auto info = remoting::Json::Parse(answer->body);
    if (!info.ok()) return Fail(info.status());
    AddClient(one.client_id, *info, &clients, &queues);
    if ((*info).Has("jstack")) stacks += "\n" + one.client_id + "\n" + (*info)["jstack"].AsString();
  }
  if (clients.rows() == 0) return Fail(Status::NotFound("group " + group + " has no such client"));
  Print({{"clients", clients}, {"queues", queues}}, given);
  if (!stacks.empty()) Note(stacks, given);
  return kDone;
}

}  // namespace

std::vector<Verb> ClientVerbs() {
  const Option group = {"-g,--consumerGroup", "consumer group"};
  const Option broker = {"-b,--brokerAddr", "ask this broker", ""};
  return {
      {"consumerConnection",
       "list the members of a group and what they subscribe to",
       "-g my_group",
       {group, broker},
       ConsumerConnection},
      {"producerConnection",
       "list the producers of a group",
       "-g my_producers -t Orders",
       {{"-g,--producerGroup", "producer group"}, {"-t,--topic", "a topic that they send to"}},
       ProducerConnection},
      {"producer",
       "list all producers that a broker knows",
       "-b 127.0.0.1:10911",
       {{"-b,--broker", "address"}},
       Producer},
      {"consumerStatus",
       "ask the members of a group which queues they have and how far they are",
       "-g my_group",
       {group,
        broker,
        {"-i,--clientId", "only this member", ""},
        {"-s,--jstack", "with the stacks of its threads (Java clients)", "", kSwitch}},
       ConsumerStatus},
  };
}

}  // namespace triad::admin
