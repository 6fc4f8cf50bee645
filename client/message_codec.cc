#include "client/message_codec.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "client/compression.h"
#include "common/java_crc32.h"

namespace triad::client {

namespace {

constexpr char kNameSeparator = '\x01';
constexpr char kPropertySeparator = '\x02';
constexpr std::uint32_t kMagicV1 = 0xDAA320A7u;
constexpr std::uint32_t kMagicV2 = 0xDAA320ABu;
constexpr std::size_t kMaxPropertiesBytes = 32767;
constexpr std::size_t kMaxTopicBytes = 127;
constexpr std::size_t kMaxRetryTopicBytes = 255;

// Big-endian reads of one record; ok() is false once something did not fit.
class RecordReader {
 public:
  explicit RecordReader(std::string_view bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  std::size_t left() const { return bytes_.size(); }

  std::string_view Bytes(std::int64_t count) {
    if (!ok_ || count < 0 || static_cast<std::size_t>(count) > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = bytes_.substr(0, static_cast<std::size_t>(count));
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  std::int64_t Int64() { return static_cast<std::int64_t>(Unsigned(8)); }
  std::int32_t Int32() {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(Unsigned(4)));
  }
  std::uint32_t Uint32() { return static_cast<std::uint32_t>(Unsigned(4)); }
  std::uint32_t Uint16() { return static_cast<std::uint32_t>(Unsigned(2)); }
  std::uint32_t Uint8() { return static_cast<std::uint32_t>(Unsigned(1)); }

 private:
  std::uint64_t Unsigned(int count) {
    std::uint64_t value = 0;
    for (const char byte : Bytes(count)) {
      value = value << 8 | static_cast<std::uint8_t>(byte);
    }
    return value;
  }
  std::string_view bytes_;
  bool ok_ = true;
};

void AppendBig(std::uint64_t value, int bytes, std::string* out) {
  for (int i = bytes - 1; i >= 0; --i) {
    out->push_back(static_cast<char>(static_cast<std::uint8_t>(value >> (8 * i))));
  }
}

std::string IpText(std::string_view raw) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = raw.size() == 16 ? AF_INET6 : AF_INET;
  inet_ntop(family, raw.data(), text.data(), text.size());
  return text.data();
}

std::string HostText(std::string_view ip, std::int32_t port) {
  const std::string text = IpText(ip);
  return (ip.size() == 16 ? "[" + text + "]" : text) + ":" + std::to_string(port);
}

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

void FillFromProperties(ReceivedMessage* message) {
  const auto find = [&](const char* name) {
    const auto found = message->properties.find(name);
    return found == message->properties.end() ? std::string() : found->second;
  };
  message->tag = find("TAGS");
  const std::string keys = find("KEYS");
  for (std::size_t begin = 0; begin < keys.size();) {
    const std::size_t end = std::min(keys.find(' ', begin), keys.size());
    if (end > begin) message->keys.push_back(keys.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::string unique = find("UNIQ_KEY");
  message->message_id = unique.empty() ? message->offset_message_id : unique;
  const std::string original = find("RETRY_TOPIC");
  if (!original.empty() && message->topic.starts_with(kRetryPrefix)) message->topic = original;
}

Status DecodeRecord(std::string_view record, const std::string& broker_name,
                    ReceivedMessage* message) {
  RecordReader in(record);
  in.Uint32();  // total size, checked by the caller
  const std::uint32_t magic = in.Uint32();
  if (magic != kMagicV1 && magic != kMagicV2) return Status::Corruption("bad magic code");
  const std::uint32_t crc = in.Uint32();
  message->queue.queue_id = in.Int32();
  message->flag = in.Int32();
  message->queue_offset = in.Int64();
  message->physical_offset = in.Int64();
  message->sys_flag = in.Int32();
  message->born_time_ms = in.Int64();
  const std::string_view born_ip = in.Bytes((message->sys_flag & kBornHostIsV6) != 0 ? 16 : 4);
  const std::int32_t born_port = in.Int32();
  message->store_time_ms = in.Int64();
  const std::string_view store_ip = in.Bytes((message->sys_flag & kStoreHostIsV6) != 0 ? 16 : 4);
  const std::int32_t store_port = in.Int32();
  message->reconsume_times = in.Int32();
  in.Int64();  // prepared transaction offset
  const std::string_view body = in.Bytes(in.Int32());
  const std::string_view topic = in.Bytes(magic == kMagicV1 ? in.Uint8() : in.Uint16());
  const std::string_view properties = in.Bytes(in.Uint16());
  if (!in.ok()) return Status::Corruption("a length points beyond the record");
  if (!body.empty() && (JavaCrc32(body) & 0x7FFFFFFFu) != (crc & 0x7FFFFFFFu)) {
    return Status::Corruption("the body does not match its CRC");
  }
  message->topic = std::string(topic);
  message->queue.topic = message->topic;
  message->queue.broker_name = broker_name;
  message->born_host = HostText(born_ip, born_port);
  message->store_host = HostText(store_ip, store_port);
  message->offset_message_id = OffsetMessageId(store_ip, store_port, message->physical_offset);
  message->properties = ParseProperties(properties);
  FillFromProperties(message);
  Result<std::string> plain = Unpack(message->sys_flag, body);
  if (!plain.ok()) return plain.status();
  message->body = std::move(*plain);
  return Status::Ok();
}

}  // namespace

Properties ParseProperties(std::string_view text) {
  Properties properties;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kPropertySeparator), text.size());
    const std::string_view piece = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t separator = piece.find(kNameSeparator);
    if (separator == std::string_view::npos || separator == 0 || separator + 1 == piece.size()) {
      continue;
    }
    properties[std::string(piece.substr(0, separator))] = std::string(piece.substr(separator + 1));
  }
  return properties;
}

std::string JoinProperties(const Properties& properties) {
  std::string text;
  for (const auto& [name, value] : properties) {
    if (name.empty() || value.empty()) continue;
    text += name;
    text += kNameSeparator;
    text += value;
    text += kPropertySeparator;
  }
  return text;
}

Properties WireProperties(const Message& message, const std::string& unique_key) {
  Properties properties = message.properties;
  if (!message.tag.empty()) properties["TAGS"] = message.tag;
  std::string keys;
  for (const std::string& key : message.keys) {
    if (!keys.empty()) keys += ' ';
    keys += key;
  }
  if (!keys.empty()) properties["KEYS"] = keys;
  if (message.delay_level > 0) properties["DELAY"] = std::to_string(message.delay_level);
  properties["UNIQ_KEY"] = unique_key;
  properties["WAIT"] = "true";
  return properties;
}

Status CheckName(std::string_view what, std::string_view name, std::size_t max_bytes) {
  const std::string quoted = std::string(what) + " '" + std::string(name) + "'";
  if (name.empty()) return Status::InvalidArgument("the " + std::string(what) + " is empty");
  if (name.size() > max_bytes) {
    return Status::InvalidArgument(quoted + " is longer than " + std::to_string(max_bytes) +
                                   " characters");
  }
  for (const char c : name) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '%' || c == '|' || c == '_' || c == '-';
    if (!allowed) {
      return Status::InvalidArgument(quoted + " may hold letters, digits, % | _ and - only");
    }
  }
  return Status::Ok();
}

Status CheckMessage(const Message& message, std::size_t max_body_bytes) {
  const bool retry = message.topic.starts_with(kRetryPrefix);
  TRIAD_RETURN_IF_ERROR(
      CheckName("topic", message.topic, retry ? kMaxRetryTopicBytes : kMaxTopicBytes));
  if (message.body.empty()) return Status::InvalidArgument("the body is empty");
  if (message.body.size() > max_body_bytes) {
    return Status::InvalidArgument("the body has " + std::to_string(message.body.size()) +
                                   " bytes; at most " + std::to_string(max_body_bytes) +
                                   " may be sent");
  }
  std::size_t properties_bytes = message.tag.size() + 64;
  for (const std::string& key : message.keys) {
    if (key.find(' ') != std::string::npos) {
      return Status::InvalidArgument("the key '" + key + "' holds a blank");
    }
    properties_bytes += key.size() + 1;
  }
  const auto reserved = [](const std::string& text) {
    return text.find(kNameSeparator) != std::string::npos ||
           text.find(kPropertySeparator) != std::string::npos;
  };
  bool bad = reserved(message.tag);
  for (const std::string& key : message.keys) bad = bad || reserved(key);
  for (const auto& [name, value] : message.properties) {
    bad = bad || name.empty() || reserved(name) || reserved(value);
    properties_bytes += name.size() + value.size() + 2;
  }
  if (bad) {
    return Status::InvalidArgument(
        "a property has no name, or a tag, key or property holds U+0001 or U+0002");
  }
  if (properties_bytes > kMaxPropertiesBytes) {
    return Status::InvalidArgument("the properties need more than 32767 bytes");
  }
  return Status::Ok();
}

Result<std::vector<ReceivedMessage>> DecodeMessages(std::string_view records,
                                                    const std::string& broker_name) {
  std::vector<ReceivedMessage> messages;
  while (!records.empty()) {
    RecordReader in(records);
    const std::int32_t size = in.Int32();
    if (!in.ok() || size < 4 || static_cast<std::size_t>(size) > records.size()) {
      return Status::Corruption("a record's size does not fit the answer");
    }
    const std::size_t bytes = static_cast<std::size_t>(size);
    messages.emplace_back();
    TRIAD_RETURN_IF_ERROR(DecodeRecord(records.substr(0, bytes), broker_name, &messages.back()));
    records.remove_prefix(bytes);
  }
  return messages;
}

void AppendBatchItem(const Message& message, const std::string& properties, std::string* out) {
  AppendBig(22 + message.body.size() + properties.size(), 4, out);
  AppendBig(0, 4, out);  // magic
  AppendBig(0, 4, out);  // body CRC: the broker computes it
  AppendBig(static_cast<std::uint32_t>(message.flag), 4, out);
  AppendBig(message.body.size(), 4, out);
  out->append(message.body);
  AppendBig(properties.size(), 2, out);
  out->append(properties);
}

std::string OffsetMessageId(std::string_view ip, std::int32_t port, std::int64_t physical_offset) {
  std::string bytes(ip);
  AppendBig(static_cast<std::uint32_t>(port), 4, &bytes);
  AppendBig(static_cast<std::uint64_t>(physical_offset), 8, &bytes);
  return Hex(bytes);
}

Result<std::pair<std::string, std::int64_t>> ParseOffsetMessageId(std::string_view id) {
  std::string bytes;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  bool good = id.size() == 32 || id.size() == 56;
  for (std::size_t i = 0; good && i < id.size(); i += 2) {
    const int high = digit(id[i]);
    const int low = digit(id[i + 1]);
    good = high >= 0 && low >= 0;
    bytes.push_back(static_cast<char>(static_cast<std::uint8_t>((high & 15) << 4 | (low & 15))));
  }
  if (!good) {
    return Status::InvalidArgument("'" + std::string(id) +
                                   "' is no offset message id (32 or 56 hex digits)");
  }
  RecordReader in(bytes);
  const std::string_view ip = in.Bytes(id.size() == 32 ? 4 : 16);
  const std::int32_t port = in.Int32();
  return std::pair(HostText(ip, port), in.Int64());
}

std::int32_t JavaHash(std::string_view utf8) {
  std::uint32_t hash = 0;
  const auto add = [&hash](std::uint32_t unit) { hash = hash * 31 + unit; };
  for (std::size_t i = 0; i < utf8.size();) {
    const auto lead = static_cast<std::uint8_t>(utf8[i]);
    const int extra = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    std::uint32_t point = extra == 0 ? lead : lead & (0x3Fu >> extra);
    ++i;
    for (int k = 0; k < extra && i < utf8.size(); ++k, ++i) {
      point = point << 6 | (static_cast<std::uint8_t>(utf8[i]) & 0x3Fu);
    }
    if (point >= 0x10000) {
      add(0xD800 + ((point - 0x10000) >> 10));
      add(0xDC00 + ((point - 0x10000) & 0x3FF));
    } else {
      add(point);
    }
  }
  return static_cast<std::int32_t>(hash);
}

Result<std::vector<std::string>> ParseTags(std::string_view expression) {
  std::vector<std::string> tags;
  const auto trim = [](std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
  };
  expression = trim(expression);
  if (expression.empty() || expression == "*") return tags;
  for (std::size_t begin = 0; begin <= expression.size();) {
    const std::size_t end = std::min(expression.find("||", begin), expression.size());
    const std::string_view tag = trim(expression.substr(begin, end - begin));
    if (!tag.empty()) tags.emplace_back(tag);
    begin = end + 2;
  }
  if (tags.empty()) {
    return Status::InvalidArgument("'" + std::string(expression) + "' names no tag");
  }
  return tags;
}

}  // namespace triad::client
