// updateTopic, updateTopicPerm, updateTopicList, deleteTopic, updateOrderConf: topics as they
// should be.

#include <string>
#include <vector>

#include "bin/admin/ask.h"
#include "bin/admin/file_text.h"
#include "bin/admin/verbs.h"
#include "remoting/bodies.h"
#include "remoting/codes.h"

namespace triad::admin {
namespace {

constexpr int kUnit = 1;     // of a topic's sysFlag
constexpr int kUnitSub = 2;  // likewise

int UpdateTopic(const Given& given, Session* session) {
  client::TopicSettings topic;
  topic.name = given.Text("topic");
  topic.read_queues = given.Int("readQueueNums");
  topic.write_queues = given.Int("writeQueueNums");
  topic.perm = given.Int("perm");
  topic.order = given.Is("order");
  topic.sys_flag = (given.Is("unit") ? kUnit : 0) | (given.Is("hasUnitSub") ? kUnitSub : 0);
  topic.attributes = ParseAttributes(given.Text("attributes"));
  const Status done =
      session->admin().UpdateTopic(topic, given.Text("clusterName"), given.Text("brokerAddr"));
  if (!done.ok()) return Fail(done);
  return Done("create topic " + topic.name + " success: readQueueNums=" +
                  given.Text("readQueueNums") + " writeQueueNums=" + given.Text("writeQueueNums") +
                  " perm=" + given.Text("perm") + " order=" + given.Text("order"),
              given);
}

// The topic keeps everything but its permission.
int UpdateTopicPerm(const Given& given, Session* session) {
  const std::string& name = given.Text("topic");
  const auto addresses = LeadersAt(given, session);
  if (!addresses.ok()) return Fail(addresses.status());
  Table table({"#Addr", "#Topic", "#Old Perm", "#Perm"});
  for (const std::string& address : *addresses) {
    const auto answer = AskOk(address, remoting::kGetTopicConfig, {{"topic", name}}, "", session);
    if (!answer.ok()) return Fail(answer.status());
    const auto config = remoting::TopicConfigBody::Decode(answer->body);
    if (!config.ok()) return Fail(config.status());
    client::TopicSettings topic;
    topic.name = name;
    topic.read_queues = config->read_queue_nums;
    topic.write_queues = config->write_queue_nums;
    topic.perm = given.Int("perm");
    topic.order = config->order;
    topic.sys_flag = config->topic_sys_flag;
    const Status done = session->admin().UpdateTopic(topic, {}, address);
    if (!done.ok()) return Fail(done);
    table.Add({address, name, std::to_string(config->perm), given.Text("perm")});
  }
  Print(table, given);
  return kDone;
}

int UpdateTopicList(const Given& given, Session* session) {
  const auto text = ReadFile(given.Text("filename"));
  if (!text.ok()) return WrongUse(text.status());
  const auto json = remoting::Json::Parse(*text);
  if (!json.ok() || !json->is_array()) {
    return WrongUse(Status::InvalidArgument(given.Text("filename") +
                                            " holds no JSON list of topic configurations"));
  }
  const auto addresses = LeadersAt(given, session);
  if (!addresses.ok()) return Fail(addresses.status());
  for (const std::string& address : *addresses) {
    const auto answer = AskOk(address, remoting::kUpdateAndCreateTopicList, {},
                              "{\"topicConfigList\":" + *text + "}", session);
    if (!answer.ok()) return Fail(answer.status());
  }
  return Done(
      "submit batch of topic config success: " + std::to_string(json->items().size()) + " topics",
      given);
}

int DeleteTopic(const Given& given, Session* session) {
  const Status done = session->admin().DeleteTopic(given.Text("topic"), given.Text("clusterName"));
  if (!done.ok()) return Fail(done);
  return Done("delete topic " + given.Text("topic") + " success", given);
}

int UpdateOrderConf(const Given& given, Session* session) {
  Fields fields = {{"namespace", "ORDER_TOPIC_CONFIG"}, {"key", given.Text("topic")}};
  const std::string& method = given.Text("method");
  if (method == "put" && !given.Has("orderConf")) {
    return WrongUse(Status::InvalidArgument("-m put needs -v, like RaftNode00:4;RaftNode01:4"));
  }
  if (method == "get") {
    const std::string address = NameServersOf(session).front();
    const auto answer = AskOk(address, remoting::kGetKvConfig, fields, "", session);
    if (!answer.ok()) return Fail(answer.status());
    const auto value = answer->fields.find("value");
    Print({Record{{"orderConf", value == answer->fields.end() ? "" : value->second}}}, given);
    return kDone;
  }
  if (method == "put") fields["value"] = given.Text("orderConf");
  const int code = method == "put" ? remoting::kPutKvConfig : remoting::kDeleteKvConfig;
  for (const std::string& address : NameServersOf(session)) {
    const auto answer = AskOk(address, code, fields, "", session);
    if (!answer.ok()) return Fail(answer.status());
  }
  return Done(method + " orderConf success: topic " + given.Text("topic"), given);
}

}  // namespace

std::vector<Verb> TopicSettingVerbs() {
  const Option topic = {"-t,--topic", "topic"};
  return {
      {"updateTopic", "create or change a topic", "-c DefaultCluster -t Orders -r 8 -w 8",
       WithPlace({topic,
                  {"-r,--readQueueNums", "read queues", "8", kCount},
                  {"-w,--writeQueueNums", "write queues", "8", kCount},
                  {"-p,--perm", "2 write, 4 read, 6 both", "6", kText, "2|4|6"},
                  {"-o,--order", "ordered topic", "false", kText, kYesNo},
                  {"-u,--unit", "is a unit topic", "false", kText, kYesNo},
                  {"-s,--hasUnitSub", "has unit subscriptions", "false", kText, kYesNo},
                  {"-a,--attributes",
                   "attributes to set and to remove, such as "
                   "+dedup=uniqKey,+dedupWindowSec=600 or -order",
                   ""}}),
       UpdateTopic},
      {"updateTopicPerm", "change who may read and write a topic",
       "-c DefaultCluster -t Orders -p 6",
       WithPlace({topic, {"-p,--perm", "2 write, 4 read, 6 both", nullptr, kText, "2|4|6"}}),
       UpdateTopicPerm},
      {"updateTopicList", "create or change the topics of a file",
       "-c DefaultCluster -f topics.json",
       WithPlace({{"-f,--filename", "a file with a JSON list of topic configurations"}}),
       UpdateTopicList},
      {"deleteTopic",
       "delete a topic everywhere",
       "-c DefaultCluster -t Orders",
       {topic, {"-c,--clusterName", "only in this cluster", ""}},
       DeleteTopic},
      {"updateOrderConf",
       "set, show or remove how many queues of an ordered topic each broker has",
       "-m put -t Orders -v RaftNode00:8",
       {topic,
        {"-m,--method", "what to do", nullptr, kText, "put|get|delete"},
        {"-v,--orderConf", "with put: brokerName:queues;brokerName:queues", ""}},
       UpdateOrderConf},
  };
}

}  // namespace triad::admin
