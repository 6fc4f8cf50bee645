#include "broker/store/message.h"

#include <array>
#include <cstring>
#include <limits>

#include "common/byte_order.h"
#include "common/java_crc32.h"

namespace triad::broker {
namespace {

constexpr std::uint32_t kMagicV1 = 0xDAA320A7;  // one byte of topic length
constexpr std::uint32_t kMagicV2 = 0xDAA320AB;  // two
constexpr std::size_t kTopicBytesV1 = 127;      // the length byte is signed in Java
constexpr std::size_t kFixedBytesV1 = 91;       // with IPv4 hosts, without body, topic, properties
constexpr std::size_t kInt16Max = 32767;

constexpr std::size_t kQueueOffsetAt = 20;
constexpr std::size_t kPhysicalOffsetAt = 28;
constexpr std::size_t kSysFlagAt = 36;
constexpr std::size_t kBornHostAt = 48;
constexpr std::size_t kBodyBytesAt = 84;  // with IPv4 hosts
constexpr std::size_t kV6Extra = 12;      // an IPv6 host is this much longer

bool IsAddress(const HostPort& host) {
  return host.ip.empty() || host.ip.size() == 4 || host.ip.size() == 16;
}

// Takes fixed-width fields from the front of a record; never reads past its end.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint8_t Byte() {
    const std::string_view field = Take(1);
    return field.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(field[0]);
  }
  std::int16_t Int16() {
    const std::string_view field = Take(2);
    return field.empty() ? std::int16_t{0} : static_cast<std::int16_t>(LoadBe16(field.data()));
  }
  std::int32_t Int32() {
    const std::string_view field = Take(4);
    return field.empty() ? 0 : static_cast<std::int32_t>(LoadBe32(field.data()));
  }
  std::int64_t Int64() {
    const std::string_view field = Take(8);
    return field.empty() ? 0 : static_cast<std::int64_t>(LoadBe64(field.data()));
  }
  HostPort Host(bool v6) {
    HostPort host;
    host.ip = std::string(Take(v6 ? 16 : 4));
    host.port = Int32();
    return host;
  }
  std::string_view Take(std::int64_t count) {
    if (count < 0 || static_cast<std::uint64_t>(count) > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view field = bytes_.substr(0, static_cast<std::size_t>(count));
    bytes_.remove_prefix(field.size());
    return field;
  }
  bool ok() const { return ok_; }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

Status CheckView(const MessageView& view) {
  if (view.queue_id < 0) return Status::Corruption("record: negative queue id");
  if (view.queue_offset.value() < 0) return Status::Corruption("record: negative queue offset");
  if (view.physical_offset.value() < 0) {
    return Status::Corruption("record: negative physical offset");
  }
  if (view.topic.empty()) return Status::Corruption("record: empty topic");
  return Status::Ok();
}

}  // namespace

Status CheckEncodable(const MessageDraft& draft) {
  if (draft.topic.empty() || draft.topic.value().size() > kInt16Max) {
    return Status::InvalidArgument("topic length must be 1.." + std::to_string(kInt16Max));
  }
  if (draft.queue_id.value() < 0) return Status::InvalidArgument("negative queue id");
  if (draft.properties.size() > kInt16Max) {
    return Status::InvalidArgument("properties exceed " + std::to_string(kInt16Max) + " bytes");
  }
  if (draft.body.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max() / 2)) {
    return Status::InvalidArgument("body is too large for a record");
  }
  if (!IsAddress(draft.born_host)) {
    return Status::InvalidArgument("born host is not an IP address");
  }
  return Status::Ok();
}

namespace {

RecordParts PartsOf(const MessageDraft& draft) {
  return {.topic = draft.topic.value(),
          .queue_id = draft.queue_id.value(),
          .flag = draft.flag,
          .sys_flag = draft.sys_flag,
          .born_time_ms = draft.born_time_ms,
          .born_host = &draft.born_host,
          .reconsume_times = draft.reconsume_times,
          .prepared_transaction_offset = draft.prepared_transaction_offset,
          .properties = draft.properties,
          .more_properties = {},
          .body = draft.body};
}

// Puts fields one behind the other into room that is large enough.
class FieldWriter {
 public:
  explicit FieldWriter(char* at) : at_(at) {}
  char* at() const { return at_; }
  void Byte(std::size_t value) { *at_++ = static_cast<char>(value); }
  void Int16(std::size_t value) {
    StoreBe16(at_, static_cast<std::uint16_t>(value));
    at_ += 2;
  }
  void Int32(std::int64_t value) {
    StoreBe32(at_, static_cast<std::uint32_t>(value));
    at_ += 4;
  }
  void Int64(std::int64_t value) {
    StoreBe64(at_, static_cast<std::uint64_t>(value));
    at_ += 8;
  }
  void Text(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  void Host(const HostPort& host) {
    static constexpr std::string_view kNone("\0\0\0\0", 4);
    Text(host.ip.empty() ? kNone : std::string_view(host.ip));
    Int32(host.port);
  }

 private:
  char* at_;
};

}  // namespace

std::size_t EncodedMessageBytes(const MessageDraft& draft, const HostPort& store_host) {
  return RecordBytes(PartsOf(draft), store_host);
}

void EncodeMessage(const MessageDraft& draft, const StoredPlace& place, std::string* out) {
  const Status encodable = CheckEncodable(draft);
  CHECK(encodable.ok()) << encodable;
  AppendRecord(PartsOf(draft), place, out);
}

std::size_t RecordBytes(const RecordParts& parts, const HostPort& store_host) {
  return kFixedBytesV1 + (parts.topic.size() > kTopicBytesV1 ? 1 : 0) +
         (parts.born_host->is_v6() ? kV6Extra : 0) + (store_host.is_v6() ? kV6Extra : 0) +
         parts.body.size() + parts.topic.size() + parts.properties.size() +
         parts.more_properties.size();
}

void AppendRecord(const RecordParts& parts, const StoredPlace& place, std::string* out) {
  CHECK(IsAddress(*parts.born_host));
  CHECK(IsAddress(place.store_host));
  const std::size_t begin = out->size();
  const std::size_t total_bytes = RecordBytes(parts, place.store_host);
  const std::size_t properties_bytes = parts.properties.size() + parts.more_properties.size();
  const bool v1 = parts.topic.size() <= kTopicBytesV1;
  std::int32_t sys_flag = parts.sys_flag & ~(kSysFlagBornHostV6 | kSysFlagStoreHostV6);
  if (parts.born_host->is_v6()) sys_flag |= kSysFlagBornHostV6;
  if (place.store_host.is_v6()) sys_flag |= kSysFlagStoreHostV6;

  std::array<char, kFixedBytesV1 + 2 * kV6Extra> fields;
  FieldWriter writer(fields.data());
  writer.Int32(static_cast<std::int64_t>(total_bytes));
  writer.Int32(v1 ? kMagicV1 : kMagicV2);
  writer.Int32(JavaCrc32(parts.body));
  writer.Int32(parts.queue_id);
  writer.Int32(parts.flag);
  writer.Int64(place.queue_offset.value());
  writer.Int64(place.physical_offset.value());
  writer.Int32(sys_flag);
  writer.Int64(parts.born_time_ms);
  writer.Host(*parts.born_host);
  writer.Int64(place.store_time_ms);
  writer.Host(place.store_host);
  writer.Int32(parts.reconsume_times);
  writer.Int64(parts.prepared_transaction_offset);
  writer.Int32(static_cast<std::int64_t>(parts.body.size()));
  out->append(fields.data(), writer.at());
  out->append(parts.body);
  writer = FieldWriter(fields.data());
  v1 ? writer.Byte(parts.topic.size()) : writer.Int16(parts.topic.size());
  out->append(fields.data(), writer.at());
  out->append(parts.topic);
  writer = FieldWriter(fields.data());
  writer.Int16(properties_bytes);
  out->append(fields.data(), writer.at());
  out->append(parts.properties);
  out->append(parts.more_properties);
  CHECK_EQ(out->size() - begin, total_bytes);
}

std::string_view TopicOfRecord(std::string_view record) {
  const auto sys_flag = static_cast<std::int32_t>(LoadBe32(record.data() + kSysFlagAt));
  std::size_t at = kBodyBytesAt + ((sys_flag & kSysFlagBornHostV6) != 0 ? kV6Extra : 0) +
                   ((sys_flag & kSysFlagStoreHostV6) != 0 ? kV6Extra : 0);
  at += 4 + LoadBe32(record.data() + at);
  CHECK_LT(at + 1, record.size());
  const bool v1 = LoadBe32(record.data() + 4) == kMagicV1;
  const std::size_t bytes =
      v1 ? static_cast<std::uint8_t>(record[at]) : LoadBe16(record.data() + at);
  return record.substr(at + (v1 ? 1 : 2), bytes);
}

void SetPlace(QueueOffset queue_offset, PhysicalOffset physical_offset, std::int64_t store_time_ms,
              char* record) {
  StoreBe64(record + kQueueOffsetAt, static_cast<std::uint64_t>(queue_offset.value()));
  StoreBe64(record + kPhysicalOffsetAt, static_cast<std::uint64_t>(physical_offset.value()));
  const auto sys_flag = static_cast<std::int32_t>(LoadBe32(record + kSysFlagAt));
  const std::size_t born_host_bytes = 8 + ((sys_flag & kSysFlagBornHostV6) != 0 ? kV6Extra : 0);
  StoreBe64(record + kBornHostAt + born_host_bytes, static_cast<std::uint64_t>(store_time_ms));
}

Result<MessageView> ParseMessage(std::string_view bytes, bool verify_crc) {
  if (bytes.size() < kFixedBytesV1) return Status::Corruption("record: shorter than its header");
  const auto total_bytes = static_cast<std::int32_t>(LoadBe32(bytes.data()));
  if (total_bytes < static_cast<std::int32_t>(kFixedBytesV1) ||
      static_cast<std::size_t>(total_bytes) > bytes.size()) {
    return Status::Corruption("record: total size " + std::to_string(total_bytes) +
                              " does not fit " + std::to_string(bytes.size()) + " bytes");
  }
  MessageView view;
  view.record = bytes.substr(0, static_cast<std::size_t>(total_bytes));
  FieldReader reader(view.record.substr(4));
  const auto magic = static_cast<std::uint32_t>(reader.Int32());
  if (magic != kMagicV1 && magic != kMagicV2) return Status::Corruption("record: bad magic");
  const auto body_crc = static_cast<std::uint32_t>(reader.Int32());
  view.queue_id = reader.Int32();
  view.flag = reader.Int32();
  view.queue_offset = QueueOffset{reader.Int64()};
  view.physical_offset = PhysicalOffset{reader.Int64()};
  view.sys_flag = reader.Int32();
  view.born_time_ms = reader.Int64();
  view.born_host = reader.Host((view.sys_flag & kSysFlagBornHostV6) != 0);
  view.store_time_ms = reader.Int64();
  view.store_host = reader.Host((view.sys_flag & kSysFlagStoreHostV6) != 0);
  view.reconsume_times = reader.Int32();
  view.prepared_transaction_offset = reader.Int64();
  view.body = reader.Take(reader.Int32());
  const int topic_bytes =
      magic == kMagicV1 ? static_cast<std::int8_t>(reader.Byte()) : reader.Int16();
  view.topic = reader.Take(topic_bytes);
  view.properties = reader.Take(reader.Int16());
  if (!reader.ok()) return Status::Corruption("record: a length points outside of it");
  if (reader.left() != 0) {
    return Status::Corruption("record: " + std::to_string(reader.left()) +
                              " bytes too many for its fields");
  }
  TRIAD_RETURN_IF_ERROR(CheckView(view));
  if (verify_crc && JavaCrc32(view.body) != body_crc) {
    return Status::Corruption("record: the body does not match its CRC");
  }
  return view;
}

bool IsRecordAt(std::string_view record, PhysicalOffset position) {
  return record.size() >= kFixedBytesV1 && LoadBe32(record.data()) == record.size() &&
         LoadBe64(record.data() + kPhysicalOffsetAt) ==
             static_cast<std::uint64_t>(position.value());
}

MessageDraft DraftFrom(const MessageView& message) {
  MessageDraft draft;
  draft.topic = Topic(std::string(message.topic));
  draft.queue_id = QueueId{message.queue_id};
  draft.flag = message.flag;
  draft.sys_flag = message.sys_flag;
  draft.born_time_ms = message.born_time_ms;
  draft.born_host = message.born_host;
  draft.reconsume_times = message.reconsume_times;
  draft.prepared_transaction_offset = message.prepared_transaction_offset;
  draft.properties = std::string(message.properties);
  draft.body = std::string(message.body);
  return draft;
}

}  // namespace triad::broker
