#include "bin/admin/user_state.h"

#include <set>
#include <string_view>
#include <utility>

#include "bin/admin/ask.h"
#include "remoting/codes.h"

namespace triad::admin {
namespace {

// Groups that every broker has, or that tools use.
const std::set<std::string_view> kToolGroups = {
    "CID_ONS-HTTP-PROXY", "CID_ONSAPI_OWNER",  "CID_ONSAPI_PERMISSION", "CID_ONSAPI_PULL",
    "DEFAULT_CONSUMER",   "DEFAULT_PRODUCER",  "FILTERSRV_CONSUMER",    "SCHEDULE_CONSUMER",
    "SELF_TEST_C_GROUP",  "SELF_TEST_P_GROUP", "TOOLS_CONSUMER",        "CLIENT_INNER_PRODUCER",
    "__MONITOR_CONSUMER"};

Result<remoting::Json> AskJson(const std::string& address, int code, Session* session) {
  const auto answer = AskOk(address, code, {}, "", session);
  if (!answer.ok()) return answer.status();
  return remoting::Json::Parse(answer->body);
}

}  // namespace

Result<Descriptions> UserTopics(const std::string& address, bool special, Session* session) {
  const auto all = AskJson(address, remoting::kGetAllTopicConfig, session);
  if (!all.ok()) return all.status();
  const auto system = AskJson(address, remoting::kGetSystemTopicListFromBroker, session);
  if (!system.ok()) return system.status();
  std::set<std::string> hidden;
  for (const remoting::Json& name : (*system)["topicList"].items()) hidden.insert(name.AsString());
  Descriptions topics;
  for (const auto& topic : (*all)["topicConfigTable"].members()) {
    const bool of_a_group = topic.key.starts_with("%RETRY%") || topic.key.starts_with("%DLQ%");
    if (hidden.contains(topic.key) || topic.key.starts_with("rmq_sys_")) continue;
    if (special || !of_a_group) topics.emplace(topic.key, topic.value);
  }
  return topics;
}

Result<Descriptions> UserGroups(const std::string& address, Session* session) {
  const auto all = AskJson(address, remoting::kGetAllSubscriptionGroupConfig, session);
  if (!all.ok()) return all.status();
  Descriptions groups;
  for (const auto& group : (*all)["subscriptionGroupTable"].members()) {
    if (kToolGroups.contains(group.key) || group.key.starts_with("CID_RMQ_SYS_")) continue;
    groups.emplace(group.key, group.value);
  }
  return groups;
}

}  // namespace triad::admin
