// updateSubGroup, updateSubGroupList, deleteSubGroup, getConsumerConfig: consumer groups.

#include <string>
#include <vector>

#include "bin/admin/ask.h"
#include "bin/admin/file_text.h"
#include "bin/admin/verbs.h"
#include "remoting/bodies.h"
#include "remoting/codes.h"

namespace triad::admin {
namespace {

using remoting::SubscriptionGroupConfigBody;

int UpdateSubGroup(const Given& given, Session* session) {
  SubscriptionGroupConfigBody group;
  group.group_name = given.Text("groupName");
  group.consume_enable = given.Is("consumeEnable");
  group.consume_from_min_enable = given.Is("consumeFromMinEnable");
  group.consume_broadcast_enable = given.Is("consumeBroadcastEnable");
  group.consume_message_orderly = given.Is("consumeMessageOrderly");
  group.retry_queue_nums = given.Int("retryQueueNums");
  group.retry_max_times = given.Int("retryMaxTimes");
  group.broker_id = given.Number("brokerId");
  group.which_broker_when_consume_slowly = given.Number("whichBrokerWhenConsumeSlowly");
  group.notify_consumer_ids_changed_enable = given.Is("notifyConsumerIdsChanged");
  group.group_retry_policy_json = given.Text("groupRetryPolicy");
  group.attributes = ParseAttributes(given.Text("attributes"));
  const auto addresses = LeadersAt(given, session);
  if (!addresses.ok()) return Fail(addresses.status());
  for (const std::string& address : *addresses) {
    const auto answer =
        AskOk(address, remoting::kUpdateAndCreateSubscriptionGroup, {}, group.Encode(), session);
    if (!answer.ok()) return Fail(answer.status());
  }
  return Done("create subscription group " + group.group_name + " success: retryQueueNums=" +
                  given.Text("retryQueueNums") + " retryMaxTimes=" + given.Text("retryMaxTimes") +
                  " consumeEnable=" + given.Text("consumeEnable"),
              given);
}

int UpdateSubGroupList(const Given& given, Session* session) {
  const auto text = ReadFile(given.Text("filename"));
  if (!text.ok()) return WrongUse(text.status());
  const auto json = remoting::Json::Parse(*text);
  if (!json.ok() || !json->is_array()) {
    return WrongUse(Status::InvalidArgument(given.Text("filename") +
                                            " holds no JSON list of group configurations"));
  }
  const auto addresses = LeadersAt(given, session);
  if (!addresses.ok()) return Fail(addresses.status());
  for (const std::string& address : *addresses) {
    const auto answer = AskOk(address, remoting::kUpdateAndCreateSubscriptionGroupList, {},
                              "{\"groupConfigList\":" + *text + "}", session);
    if (!answer.ok()) return Fail(answer.status());
  }
  return Done(
      "submit batch of group config success: " + std::to_string(json->items().size()) + " groups",
      given);
}

int DeleteSubGroup(const Given& given, Session* session) {
  const std::string& group = given.Text("groupName");
  const auto addresses = LeadersAt(given, session);
  if (!addresses.ok()) return Fail(addresses.status());
  for (const std::string& address : *addresses) {
    const auto answer =
        AskOk(address, remoting::kDeleteSubscriptionGroup,
              {{"groupName", group}, {"cleanOffset", given.Text("removeOffset")}}, "", session);
    if (!answer.ok()) return Fail(answer.status());
  }
  // As the original: its retry and dead-letter topics only when a cluster is named.
  if (given.Has("clusterName") && !given.Has("brokerAddr")) {
    for (const std::string& topic : {RetryTopic(group), "%DLQ%" + group}) {
      const Status done = session->admin().DeleteTopic(topic, given.Text("clusterName"));
      if (!done.ok()) return Fail(done);
    }
  }
  return Done("delete subscription group " + group + " success", given);
}

std::string Word(bool value) {
  return value ? "true" : "false";
}

Record Describe(const std::string& broker, const SubscriptionGroupConfigBody& group) {
  return {{"brokerAddr", broker},
          {"groupName", group.group_name},
          {"consumeEnable", Word(group.consume_enable)},
          {"consumeFromMinEnable", Word(group.consume_from_min_enable)},
          {"consumeBroadcastEnable", Word(group.consume_broadcast_enable)},
          {"consumeMessageOrderly", Word(group.consume_message_orderly)},
          {"retryQueueNums", std::to_string(group.retry_queue_nums)},
          {"retryMaxTimes", std::to_string(group.retry_max_times)},
          {"brokerId", std::to_string(group.broker_id)},
          {"whichBrokerWhenConsumeSlowly", std::to_string(group.which_broker_when_consume_slowly)},
          {"notifyConsumerIdsChangedEnable", Word(group.notify_consumer_ids_changed_enable)},
          {"groupSysFlag", std::to_string(group.group_sys_flag)},
          {"consumeTimeoutMinute", std::to_string(group.consume_timeout_minute)}};
}

int GetConsumerConfig(const Given& given, Session* session) {
  const auto addresses = LeadersAt(given, session);
  if (!addresses.ok()) return Fail(addresses.status());
  std::vector<Record> records;
  for (const std::string& address : *addresses) {
    const auto answer = AskOk(address, remoting::kGetAllSubscriptionGroupConfig, {}, "", session);
    if (!answer.ok()) return Fail(answer.status());
    const auto groups = remoting::SubscriptionGroupWrapper::Decode(answer->body);
    if (!groups.ok()) return Fail(groups.status());
    const auto found = groups->groups.find(given.Text("groupName"));
    if (found != groups->groups.end()) records.push_back(Describe(address, found->second));
  }
  if (records.empty()) {
    return Fail(Status::NotFound("no broker has a group " + given.Text("groupName")));
  }
  Print(records, given);
  return kDone;
}

Option YesNo(const char* names, const char* help, const char* fallback) {
  return {names, help, fallback, kText, kYesNo};
}

}  // namespace

std::vector<Verb> GroupVerbs() {
  const Option group = {"-g,--groupName", "consumer group"};
  return {
      {"updateSubGroup", "create or change a consumer group", "-c DefaultCluster -g my_group -r 16",
       WithPlace(
           {group,
            YesNo("-s,--consumeEnable", "may consume", "true"),
            YesNo("-m,--consumeFromMinEnable", "a new group may begin at the oldest message",
                  "true"),
            YesNo("-d,--consumeBroadcastEnable", "may consume by broadcast", "false"),
            YesNo("-o,--consumeMessageOrderly", "is an orderly group", "false"),
            YesNo("-a,--notifyConsumerIdsChanged", "tell members of newcomers and leavers", "true"),
            {"-q,--retryQueueNums", "queues of the retry topic", "1", kCount},
            {"-r,--retryMaxTimes", "deliveries after the first, before a dead letter", "16",
             kCount},
            {"-i,--brokerId", "consume from this broker id", "0", kCount},
            {"-w,--whichBrokerWhenConsumeSlowly", "broker id for cold reads", "1", kCount},
            {"-p,--groupRetryPolicy", "JSON, as the original's", ""},
            {"--attributes", "attributes to set (+name=value) and to remove (-name)", ""}}),
       UpdateSubGroup},
      {"updateSubGroupList", "create or change the groups of a file",
       "-c DefaultCluster -f groups.json",
       WithPlace({{"-f,--filename", "a file with a JSON list of group configurations"}}),
       UpdateSubGroupList},
      {"deleteSubGroup", "delete a consumer group; with -c also its retry and dead-letter topics",
       "-c DefaultCluster -g my_group",
       WithPlace({group, YesNo("-r,--removeOffset", "also its offsets", "false")}), DeleteSubGroup},
      {"getConsumerConfig", "show the configuration of a consumer group", "-g my_group",
       WithPlace({group}), GetConsumerConfig},
  };
}

}  // namespace triad::admin
