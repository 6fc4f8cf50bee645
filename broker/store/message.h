// Stored messages: RocketMQ's record format (wire.md §5.9), and what a message is before it is
// stored.
//
// Pure. A record from a disk or a client is checked, never trusted.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/status.h"

namespace triad::broker {

// Message sysFlag bits (wire.md §4.6).
inline constexpr std::int32_t kSysFlagCompressed = 0x1;
inline constexpr std::int32_t kSysFlagMultiTags = 0x2;
inline constexpr std::int32_t kSysFlagTransactionMask = 0xC;
inline constexpr std::int32_t kSysFlagRollback = 0xC;
inline constexpr std::int32_t kSysFlagBornHostV6 = 0x10;
inline constexpr std::int32_t kSysFlagStoreHostV6 = 0x20;

inline constexpr std::string_view kScheduleTopic = "SCHEDULE_TOPIC_XXXX";
inline constexpr std::string_view kRetryPrefix = "%RETRY%";
inline constexpr std::string_view kDlqPrefix = "%DLQ%";

// An IP address and a port as records carry them.
struct HostPort {
  std::string ip;  // 4 or 16 raw bytes
  std::int32_t port = 0;
  bool is_v6() const { return ip.size() == 16; }
  bool operator==(const HostPort&) const = default;
};
// "1.2.3.4:5" or "[::1]:5"; an IPv4-mapped IPv6 address becomes IPv4. Errors: kInvalidArgument.
Result<HostPort> ParseHostPort(std::string_view text);
std::string FormatHostPort(const HostPort& host);

// A message on its way into the log.
struct MessageDraft {
  Topic topic;
  QueueId queue_id;
  std::int32_t flag = 0;
  std::int32_t sys_flag = 0;  // host bits are set by the encoder
  std::int64_t born_time_ms = 0;
  HostPort born_host;
  std::int32_t reconsume_times = 0;
  std::int64_t prepared_transaction_offset = 0;
  std::string properties;  // wire.md §4.7
  std::string body;
};

struct StoredPlace {
  QueueOffset queue_offset;
  PhysicalOffset physical_offset;
  std::int64_t store_time_ms = 0;
  HostPort store_host;
};

// What a record is made of, by reference. Its properties are two pieces, back to back.
struct RecordParts {
  std::string_view topic;
  std::int32_t queue_id = 0;
  std::int32_t flag = 0;
  std::int32_t sys_flag = 0;  // host bits are set by the encoder
  std::int64_t born_time_ms = 0;
  const HostPort* born_host = nullptr;
  std::int32_t reconsume_times = 0;
  std::int64_t prepared_transaction_offset = 0;
  std::string_view properties;
  std::string_view more_properties;
  std::string_view body;
};

// Whether a record can hold it: field widths, not the broker's limits (those are the processors').
// Errors: kInvalidArgument saying which field.
Status CheckEncodable(const MessageDraft& draft);
std::size_t EncodedMessageBytes(const MessageDraft& draft, const HostPort& store_host);
void EncodeMessage(const MessageDraft& draft, const StoredPlace& place,
                   std::string* out);  // appends; CHECKs CheckEncodable
std::size_t RecordBytes(const RecordParts& parts, const HostPort& store_host);
// Appends; what CheckEncodable checks is the caller's.
void AppendRecord(const RecordParts& parts, const StoredPlace& place, std::string* out);
// Of an encoded record.
std::string_view TopicOfRecord(std::string_view record);
// Gives an encoded record its place; the store host stays as encoded.
void SetPlace(QueueOffset queue_offset, PhysicalOffset physical_offset, std::int64_t store_time_ms,
              char* record);

// A record, by reference into the bytes it was parsed from.
struct MessageView {
  std::string_view record;
  std::int32_t queue_id = 0;
  std::int32_t flag = 0;
  QueueOffset queue_offset;
  PhysicalOffset physical_offset;
  std::int32_t sys_flag = 0;
  std::int64_t born_time_ms = 0;
  HostPort born_host;
  std::int64_t store_time_ms = 0;
  HostPort store_host;
  std::int32_t reconsume_times = 0;
  std::int64_t prepared_transaction_offset = 0;
  std::string_view body;
  std::string_view topic;
  std::string_view properties;
};
// The record at the start of `bytes`. Errors: kCorruption saying what is wrong. `verify_crc`: also
// the body's CRC-32.
Result<MessageView> ParseMessage(std::string_view bytes, bool verify_crc);
// Whether `record` is as long as it says and stands at `position`, as it says: the cheap check for
// bytes that were checked before.
bool IsRecordAt(std::string_view record, PhysicalOffset position);
// A draft with everything the record says (to store it again elsewhere).
MessageDraft DraftFrom(const MessageView& message);

// Property strings (wire.md §4.7). The reader yields them in order; readers drop what is
// incomplete, later duplicates win.
class PropertyReader {
 public:
  explicit PropertyReader(std::string_view properties) : rest_(properties) {}
  bool Next(std::string_view* name, std::string_view* value);

 private:
  std::string_view rest_;
};
std::map<std::string, std::string> ParseProperties(std::string_view properties);
std::string_view FindProperty(std::string_view properties,
                              std::string_view name);  // empty = absent
// What a message is found by, in one pass; empty = absent.
struct SearchProperties {
  std::string_view tags;
  std::string_view keys;        // separated by one blank each
  std::string_view unique_key;  // UNIQ_KEY
};
SearchProperties FindSearchProperties(std::string_view properties);
// Calls `visit` with each key of a KEYS property.
template <typename Visit>
void ForEachKey(std::string_view keys, const Visit& visit) {
  while (!keys.empty()) {
    const std::size_t blank = keys.find(' ');
    if (blank != 0) visit(keys.substr(0, blank));
    keys.remove_prefix(blank == std::string_view::npos ? keys.size() : blank + 1);
  }
}
// Replaces or appends. An empty value removes; U+0002 inside the value is left out.
void SetProperty(std::string* properties, std::string_view name, std::string_view value);
// The same for a name that is not there yet.
void AppendProperty(std::string* properties, std::string_view name, std::string_view value);
void RemoveProperty(std::string* properties, std::string_view name);

// Java String.hashCode over UTF-16 of the TAGS value, sign-extended; 0 without a tag (wire.md
// §5.10).
std::int64_t TagCode(std::string_view tag);

std::string OffsetMessageId(const HostPort& store_host, PhysicalOffset offset);  // wire.md §4.10
// The same for many.
class OffsetMessageIds {
 public:
  explicit OffsetMessageIds(const HostPort& store_host);
  std::string_view Of(PhysicalOffset offset);  // good until the next call

 private:
  std::string text_;
};
Result<std::pair<HostPort, PhysicalOffset>> ParseOffsetMessageId(std::string_view id);
// A message id in the shape of a Java client's UNIQ_KEY (wire.md §4.10). `counter` distinguishes
// within a ms.
std::string MakeUniqueKey(const HostPort& host, std::int32_t pid, std::int64_t now_ms,
                          std::uint32_t counter);

// A batch entry's payload: [u32 command bytes][StateCommand][pad to 8][records].
struct PayloadView {
  std::string_view command;  // encoded StateCommand, may be empty
  std::string_view records;
  std::size_t records_at = 0;  // offset of `records` in the payload
};
Result<PayloadView> ParsePayload(std::string_view payload);

// Parses a batch send's body (wire.md §4.9). Errors: kInvalidArgument when lengths do not add up.
struct BatchItem {
  std::int32_t flag = 0;
  std::string_view body;
  std::string_view properties;
};
Result<std::vector<BatchItem>> ParseBatchBody(std::string_view body);

}  // namespace triad::broker
