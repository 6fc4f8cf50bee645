#include "broker/processor/names.h"

#include <algorithm>
#include <array>

namespace triad::broker {
namespace {

constexpr std::array<std::string_view, 6> kSendForbidden = {
    "SCHEDULE_TOPIC_XXXX",        "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC",          "OFFSET_MOVED_EVENT"};
constexpr std::string_view kSystemPrefix = "rmq_sys_";

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
  return {std::string(kDefaultTopic),
          "SCHEDULE_TOPIC_XXXX",
          "BenchmarkTest",
          "RMQ_SYS_TRANS_HALF_TOPIC",
          "RMQ_SYS_TRACE_TOPIC",
          "RMQ_SYS_TRANS_OP_HALF_TOPIC",
          "TRANS_CHECK_MAX_TIME_TOPIC",
          "SELF_TEST_TOPIC",
          "OFFSET_MOVED_EVENT",
          "CHECKPOINT_TOPIC",
          config.cluster_name,
          config.broker_name,
          config.cluster_name + "_REPLY_TOPIC"};
}

bool IsSystemTopic(const BrokerConfig& config, std::string_view topic) {
  if (topic.starts_with(kSystemPrefix)) return true;
  const auto all = SystemTopics(config);
  return std::find(all.begin(), all.end(), topic) != all.end();
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
