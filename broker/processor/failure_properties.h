// FailureProperties: what a message that a consumer failed on carries through its retries into the
// dead letters: where it came from, when it failed first, and why.
//
// Pure. RETRY_TOPIC and ORIGIN_MESSAGE_ID are the original's names (wire.md §8.2), DLQ_ORIGIN_* are
// RocketMQ 5's; the others are ours. Each is set once and kept, but the reason: the last one
// counts.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "broker/store/message.h"

namespace triad::broker {

inline constexpr std::string_view kRetryTopicProperty = "RETRY_TOPIC";
inline constexpr std::string_view kOriginIdProperty = "ORIGIN_MESSAGE_ID";
inline constexpr std::string_view kOriginQueueProperty = "ORIGIN_QUEUE_ID";
inline constexpr std::string_view kOriginOffsetProperty = "ORIGIN_QUEUE_OFFSET";
inline constexpr std::string_view kFirstFailureProperty = "FIRST_FAILURE_TIME";  // log time, ms
inline constexpr std::string_view kReasonProperty = "FAILURE_REASON";
inline constexpr std::string_view kDlqTopicProperty = "DLQ_ORIGIN_TOPIC";
inline constexpr std::string_view kDlqIdProperty = "DLQ_ORIGIN_MESSAGE_ID";
// Of CONSUMER_SEND_MSG_BACK, by our own client: why its listener failed.
inline constexpr std::string_view kReasonField = "failureReason";
inline constexpr std::size_t kReasonBytesMax = 1024;

// A send-back of `message`: `properties` are those of the new copy.
void NoteFailure(const MessageView& message, std::int64_t now_ms, std::string_view reason,
                 std::string* properties);
// The copy is a dead letter.
void NoteDeadLetter(std::int64_t now_ms, std::string* properties);
// Drops what can be missed, least important first, until the properties are legal again: a message
// whose own properties fill the limit must still be able to fail.
void MakeRoom(std::size_t bytes_max, std::string* properties);
// A dead letter's copy that begins anew. `keep_origin`: it goes back to its own group.
void ForgetFailure(bool keep_origin, std::string* properties);

}  // namespace triad::broker
