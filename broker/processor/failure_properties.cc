#include "broker/processor/failure_properties.h"

#include <array>

namespace triad::broker {
namespace {

void SetOnce(std::string_view name, std::string_view value, std::string* properties) {
  if (FindProperty(*properties, name).empty()) SetProperty(properties, name, value);
}

// The longest prefix of at most `bytes_max` that does not end inside a UTF-8 character.
std::string_view Cut(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

void NoteFailure(const MessageView& message, std::int64_t now_ms, std::string_view reason,
                 std::string* properties) {
  if (FindProperty(*properties, kRetryTopicProperty).empty()) {
    SetProperty(properties, kRetryTopicProperty, message.topic);
    SetProperty(properties, kOriginQueueProperty, std::to_string(message.queue_id));
    SetProperty(properties, kOriginOffsetProperty, std::to_string(message.queue_offset.value()));
  }
  SetOnce(kOriginIdProperty, OffsetMessageId(message.store_host, message.physical_offset),
          properties);
  SetOnce(kFirstFailureProperty, std::to_string(now_ms), properties);
  if (!reason.empty()) SetProperty(properties, kReasonProperty, Cut(reason, kReasonBytesMax));
}

void NoteDeadLetter(std::int64_t now_ms, std::string* properties) {
  SetOnce(kFirstFailureProperty, std::to_string(now_ms), properties);
  const std::string topic(FindProperty(*properties, kRetryTopicProperty));
  const std::string id(FindProperty(*properties, kOriginIdProperty));
  if (!topic.empty()) SetOnce(kDlqTopicProperty, topic, properties);
  if (!id.empty()) SetOnce(kDlqIdProperty, id, properties);
}

void MakeRoom(std::size_t bytes_max, std::string* properties) {
  static constexpr std::array<std::string_view, 11> kInOrder = {kReasonProperty,
                                                                kDlqIdProperty,
                                                                kDlqTopicProperty,
                                                                kOriginQueueProperty,
                                                                kOriginOffsetProperty,
                                                                "WAIT",
                                                                "TRACE_ON",
                                                                "MSG_REGION",
                                                                "CLUSTER",
                                                                kFirstFailureProperty,
                                                                kOriginIdProperty};
  for (const std::string_view name : kInOrder) {
    if (properties->size() <= bytes_max) return;
    RemoveProperty(properties, name);
  }
}

void ForgetFailure(bool keep_origin, std::string* properties) {
  for (const std::string_view name :
       {std::string_view("DELAY"), std::string_view("REAL_TOPIC"), std::string_view("REAL_QID"),
        kReasonProperty, kFirstFailureProperty, kDlqTopicProperty, kDlqIdProperty}) {
    RemoveProperty(properties, name);
  }
  if (keep_origin) return;
  for (const std::string_view name :
       {kRetryTopicProperty, kOriginIdProperty, kOriginQueueProperty, kOriginOffsetProperty}) {
    RemoveProperty(properties, name);
  }
}

}  // namespace triad::broker
