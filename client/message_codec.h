// Message codec: what producers put on the wire and what consumers read from it.
//
// Pure, but for NewUniqueKey (process id, own address, a counter). Bounds: compression.h's.
// Source: wire.md §4.6-§4.10, §5.9, §5.10.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "triad/message.h"

namespace triad::client {

inline constexpr std::int32_t kBornHostIsV6 = 0x10;
inline constexpr std::int32_t kStoreHostIsV6 = 0x20;
// Of a consumer group: %RETRY% and %DLQ% in front of it must stay a topic (docs/decisions.md).
inline constexpr std::size_t kMaxGroupBytes = 248;
inline constexpr std::string_view kRetryPrefix = "%RETRY%";

using Properties = std::map<std::string, std::string>;
Properties ParseProperties(std::string_view text);
std::string JoinProperties(const Properties& properties);

// The properties of `message` as they travel: its own, TAGS, KEYS, DELAY, UNIQ_KEY, WAIT.
Properties WireProperties(const Message& message, const std::string& unique_key);

// Topic and group names: 1..max characters of [%|a-zA-Z0-9_-]. Errors: kInvalidArgument.
Status CheckName(std::string_view what, std::string_view name, std::size_t max_bytes);
// Whether a broker would take it. Errors: kInvalidArgument saying what is wrong.
Status CheckMessage(const Message& message, std::size_t max_body_bytes);

// Records back to back, as a pull answers. `broker_name` goes into the queues.
// Errors: kCorruption: nothing of the answer may be used, or messages would be skipped silently.
Result<std::vector<ReceivedMessage>> DecodeMessages(std::string_view records,
                                                    const std::string& broker_name);

// The body of a batch send.
void AppendBatchItem(const Message& message, const std::string& properties, std::string* out);

// In the shape of the Java client's: 32 hex digits, unique per process and month.
std::string NewUniqueKey();

// `ip` of 4 or 16 raw bytes.
std::string OffsetMessageId(std::string_view ip, std::int32_t port, std::int64_t physical_offset);
// "ip:port" and physical offset. Errors: kInvalidArgument.
Result<std::pair<std::string, std::int64_t>> ParseOffsetMessageId(std::string_view id);

// Java's String.hashCode of UTF-8 text.
std::int32_t JavaHash(std::string_view utf8);

// The tags of "A || B"; empty = all. Errors: kInvalidArgument when only separators are there.
Result<std::vector<std::string>> ParseTags(std::string_view expression);

}  // namespace triad::client
