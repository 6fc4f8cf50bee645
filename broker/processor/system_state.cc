#include "broker/processor/system_state.h"

#include <array>
#include <charconv>
#include <utility>

#include "broker/processor/names.h"

namespace triad::broker {
namespace {

constexpr std::int32_t kPermTemplate = 7;  // new topics inherit from it
constexpr std::int32_t kUnitSubscription = 2;

constexpr std::array<std::string_view, 8> kSystemGroups = {
    "TOOLS_CONSUMER",  "FILTERSRV_CONSUMER",    "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER",  "CID_RMQ_SYS_TRANS"};

TopicConfig MakeTopic(std::string name, std::int32_t queues, std::int32_t perm) {
  TopicConfig topic;
  topic.name = Topic(std::move(name));
  topic.read_queues = queues;
  topic.write_queues = queues;
  topic.perm = perm;
  return topic;
}

std::vector<TopicConfig> WantedTopics(const BrokerConfig& config) {
  std::vector<TopicConfig> wanted;
  if (config.auto_create_topic) {
    wanted.push_back(
        MakeTopic(std::string(kDefaultTopic), config.default_topic_queues, kPermTemplate));
  }
  wanted.push_back(MakeTopic("SELF_TEST_TOPIC", 1, kPermReadWrite));
  wanted.push_back(MakeTopic("BenchmarkTest", 1024, kPermReadWrite));
  if (config.cluster_topic) wanted.push_back(MakeTopic(config.cluster_name, 16, kPermTemplate));
  // One queue, and never larger than the cluster's when both have one name.
  if (config.broker_topic && config.broker_name != config.cluster_name) {
    wanted.push_back(MakeTopic(config.broker_name, 1, kPermTemplate));
  }
  const auto levels = ParseDelayLevels(config.delay_levels);
  const std::size_t level_count = levels.ok() ? levels->size() : 18;
  wanted.push_back(
      MakeTopic("SCHEDULE_TOPIC_XXXX", static_cast<std::int32_t>(level_count), kPermReadWrite));
  wanted.push_back(MakeTopic("OFFSET_MOVED_EVENT", 1, kPermReadWrite));
  wanted.push_back(MakeTopic("RMQ_SYS_TRANS_HALF_TOPIC", 1, kPermReadWrite));
  wanted.push_back(MakeTopic("RMQ_SYS_TRANS_OP_HALF_TOPIC", 1, kPermReadWrite));
  if (config.trace_topic) wanted.push_back(MakeTopic(config.trace_topic_name, 1, kPermReadWrite));
  wanted.push_back(MakeTopic(config.cluster_name + "_REPLY_TOPIC", 1, kPermReadWrite));
  return wanted;
}

// TBW102 as the group was told to have it; empty when it is so, or was told nothing.
StateCommand TemplateAsTold(const ReplicatedState& state) {
  StateCommand command;
  const Settings settings = state.settings();
  const auto told = settings.find("defaultTopicQueueNums");
  auto topic = state.FindTopic(Topic(std::string(kDefaultTopic)));
  if (told == settings.end() || !topic) return command;
  std::int32_t queues = 0;
  const std::string& text = told->second;
  std::from_chars(text.data(), text.data() + text.size(), queues);
  if (queues <= 0 || (topic->read_queues == queues && topic->write_queues == queues)) {
    return command;
  }
  topic->read_queues = queues;
  topic->write_queues = queues;
  command.put_topics.push_back(*std::move(topic));
  return command;
}

}  // namespace

StateCommand MissingSystemState(const BrokerConfig& config, const ReplicatedState& state) {
  StateCommand command;
  command.create_only = true;
  command.create_groups_only = true;
  for (TopicConfig& topic : WantedTopics(config)) {
    if (!state.FindTopic(topic.name)) command.put_topics.push_back(std::move(topic));
  }
  for (const std::string_view name : kSystemGroups) {
    GroupConfig group;
    group.name = GroupName(std::string(name));
    if (!state.FindGroup(group.name)) command.put_groups.push_back(std::move(group));
  }
  return command;
}

std::vector<StateCommand> DueSystemState(const BrokerConfig& config, const ReplicatedState& state) {
  std::vector<StateCommand> due;
  for (StateCommand command : {TemplateAsTold(state), MissingSystemState(config, state)}) {
    if (!command.empty()) due.push_back(std::move(command));
  }
  return due;
}

StateCommand UnreadableDeadLetters(const ReplicatedState& state) {
  StateCommand command;
  for (TopicConfig& topic : state.Topics()) {
    if (!topic.name.value().starts_with(kDlqPrefix) || (topic.perm & kPermRead) != 0) continue;
    topic.perm |= kPermRead;
    command.put_topics.push_back(std::move(topic));
  }
  return command;
}

StateCommand MissingGroupState(const BrokerConfig& config, const ReplicatedState& state,
                               const GroupName& group, bool order, bool unit_mode) {
  StateCommand command;
  command.create_only = true;
  command.create_groups_only = true;
  GroupConfig wanted;
  wanted.name = group;
  if (const auto known = state.FindGroup(group)) {
    wanted = *known;
  } else if (config.auto_create_group) {
    command.put_groups.push_back(wanted);
  } else {
    return command;
  }
  const std::string retry = RetryTopicOf(group.value());
  if (wanted.retry_queue_nums > 0 && !state.FindTopic(Topic(retry))) {
    TopicConfig topic = MakeTopic(retry, wanted.retry_queue_nums, kPermReadWrite);
    topic.order = order;
    topic.sys_flag = unit_mode ? kUnitSubscription : 0;
    command.put_topics.push_back(std::move(topic));
  }
  return command;
}

}  // namespace triad::broker
