#include "broker/service/delay_topic.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace triad::broker {
namespace {

constexpr std::string_view kDelay = "DELAY";
constexpr std::string_view kRealTopic = "REAL_TOPIC";
constexpr std::string_view kRealQueue = "REAL_QID";

std::optional<std::int32_t> ParseInt(std::string_view text) {
  std::int32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [ptr, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || ptr != end || text.empty()) return std::nullopt;
  return value;
}

}  // namespace

std::int32_t DelayLevelOf(std::string_view properties, std::int32_t level_count) {
  const std::int32_t level = ParseInt(FindProperty(properties, kDelay)).value_or(0);
  return std::clamp(level, 0, level_count);
}

bool ParkIfDelayed(std::int32_t level_count, MessageDraft* draft) {
  const std::int32_t level = DelayLevelOf(draft->properties, level_count);
  if (level == 0) return false;
  SetProperty(&draft->properties, kRealTopic, draft->topic.value());
  SetProperty(&draft->properties, kRealQueue, std::to_string(draft->queue_id.value()));
  draft->topic = Topic(std::string(kScheduleTopic));
  draft->queue_id = QueueId(level - 1);
  return true;
}

Result<MessageDraft> Unpark(const MessageView& parked) {
  const std::string_view topic = FindProperty(parked.properties, kRealTopic);
  const auto queue = ParseInt(FindProperty(parked.properties, kRealQueue));
  if (topic.empty() || topic == kScheduleTopic || !queue || *queue < 0) {
    return Status::Corruption("a delayed message without REAL_TOPIC or REAL_QID");
  }
  MessageDraft draft = DraftFrom(parked);
  draft.topic = Topic(std::string(topic));
  draft.queue_id = QueueId(*queue);
  return draft;
}

}  // namespace triad::broker
