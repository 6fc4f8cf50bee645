#include "broker/processor/names.h"

#include <algorithm>
#include <array>

namespace triad::broker {
namespace {

constexpr std::array<std::string_view, 6> kSendForbidden = {
    "SCHEDULE_TOPIC_XXXX",        "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC",          "OFFSET_MOVED_EVENT"};
constexpr std::string_view kSystemPrefix = "rmq_sys_";
constexpr std::string_view kReplySuffix = "_REPLY_TOPIC";
constexpr std::array<std::string_view, 10> kSystemTopics = {kDefaultTopic,
                                                            "SCHEDULE_TOPIC_XXXX",
                                                            "BenchmarkTest",
                                                            "RMQ_SYS_TRANS_HALF_TOPIC",
                                                            "RMQ_SYS_TRACE_TOPIC",
                                                            "RMQ_SYS_TRANS_OP_HALF_TOPIC",
                                                            "TRANS_CHECK_MAX_TIME_TOPIC",
                                                            "SELF_TEST_TOPIC",
                                                            "OFFSET_MOVED_EVENT",
                                                            "CHECKPOINT_TOPIC"};

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '%' ||
         c == '|' || c == '_' || c == '-';
}

Status CheckName(std::string_view kind, std::string_view name, std::size_t bytes_max) {
  const std::string what(kind);
  if (name.empty()) return Status::InvalidArgument("The specified " + what + " is blank.");
  if (name.size() > bytes_max) {
    return Status::InvalidArgument("The specified " + what + " is longer than " + what +
                                   " max length " + std::to_string(bytes_max) + ".");
  }
  if (!std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return Status::InvalidArgument("The specified " + what +
                                   " contains illegal characters, allowing only "
                                   "^[%|a-zA-Z0-9_-]+$");
  }
  return Status::Ok();
}

}  // namespace

Status CheckTopicName(std::string_view topic, std::int32_t bytes_max) {
  const bool derived = topic.starts_with(kRetryPrefix) || topic.starts_with(kDlqPrefix);
  return CheckName("topic", topic,
                   derived ? kRetryTopicBytesMax : static_cast<std::size_t>(bytes_max));
}

Status CheckGroupName(std::string_view group) {
  return CheckName("group", group, kGroupBytesMax);
}

std::vector<std::string> SystemTopics(const BrokerConfig& config) {
  std::vector<std::string> topics(kSystemTopics.begin(), kSystemTopics.end());
  topics.insert(topics.end(), {config.cluster_name, config.broker_name,
                               config.cluster_name + std::string(kReplySuffix)});
  return topics;
}

// Asked for every message: no text is put together.
bool IsSystemTopic(const BrokerConfig& config, std::string_view topic) {
  if (topic.starts_with(kSystemPrefix) || topic == config.cluster_name ||
      topic == config.broker_name) {
    return true;
  }
  if (topic.ends_with(kReplySuffix)) {
    return topic.substr(0, topic.size() - kReplySuffix.size()) == config.cluster_name;
  }
  return std::find(kSystemTopics.begin(), kSystemTopics.end(), topic) != kSystemTopics.end();
}

bool IsSendForbidden(std::string_view topic) {
  return std::find(kSendForbidden.begin(), kSendForbidden.end(), topic) != kSendForbidden.end();
}

std::string RetryTopicOf(std::string_view group) {
  return std::string(kRetryPrefix) + std::string(group);
}

std::string DlqTopicOf(std::string_view group) {
  return std::string(kDlqPrefix) + std::string(group);
}

}  // namespace triad::broker
