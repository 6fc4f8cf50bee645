// Names of topics and groups: which are well formed, and which belong to the system.
//
// Pure. Source: wire.md §9.1, §9.4; admin.md §2.8.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "broker/config/broker_config.h"
#include "broker/store/message.h"
#include "common/status.h"

namespace triad::broker {

inline constexpr std::string_view kDefaultTopic = "TBW102";
inline constexpr std::int32_t kTopicBytesMax = 127;
inline constexpr std::size_t kRetryTopicBytesMax = 255;  // %RETRY% and %DLQ% names
// Its retry topic has to be a legal name, and a directory.
inline constexpr std::size_t kGroupBytesMax = kRetryTopicBytesMax - kRetryPrefix.size();

// kInvalidArgument says what is wrong with the name.
Status CheckTopicName(std::string_view topic, std::int32_t bytes_max = kTopicBytesMax);
Status CheckGroupName(std::string_view group);

// Listed by GET_SYSTEM_TOPIC_LIST_FROM_BROKER, hidden by tools, not to be created or deleted.
std::vector<std::string> SystemTopics(const BrokerConfig& config);
bool IsSystemTopic(const BrokerConfig& config, std::string_view topic);
// Clients may not send to it.
bool IsSendForbidden(std::string_view topic);

std::string RetryTopicOf(std::string_view group);
std::string DlqTopicOf(std::string_view group);

}  // namespace triad::broker
