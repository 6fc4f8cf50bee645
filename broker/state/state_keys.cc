#include "broker/state/state_keys.h"

#include <charconv>

#include "common/byte_order.h"

namespace triad::broker {
namespace {

constexpr std::size_t kDigits = 20;

void AppendName(std::string_view name, std::string* key) {
  AppendBe32(key, static_cast<std::uint32_t>(name.size()));
  key->append(name);
}

std::string GroupQueueKey(char kind, const GroupQueue& key) {
  std::string out(1, kind);
  AppendName(key.group.value(), &out);
  AppendName(key.queue.topic.value(), &out);
  AppendBe32(&out, static_cast<std::uint32_t>(key.queue.queue_id.value()));
  return out;
}

// Takes the parts of a key from its front, behind the kind.
class KeyReader {
 public:
  explicit KeyReader(std::string_view key) : rest_(key.substr(key.empty() ? 0 : 1)) {}

  std::string Name() {
    const std::string_view length = Take(4);
    return length.empty() ? std::string() : std::string(Take(LoadBe32(length.data())));
  }
  std::int32_t Int32() {
    const std::string_view field = Take(4);
    return field.empty() ? 0 : static_cast<std::int32_t>(LoadBe32(field.data()));
  }
  std::int64_t Int64() {
    const std::string_view field = Take(8);
    return field.empty() ? 0 : static_cast<std::int64_t>(LoadBe64(field.data()));
  }
  bool complete() const { return ok_ && rest_.empty(); }

 private:
  std::string_view Take(std::size_t bytes) {
    if (bytes > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view field = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return field;
  }

  std::string_view rest_;
  bool ok_ = true;
};

Status BadKey(const char* kind) {
  return Status::Corruption(std::string("state: a malformed key of kind ") + kind);
}

std::string NumberedKey(std::string_view prefix, std::uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(prefix) + std::string(kDigits - digits.size(), '0') + digits;
}

Result<std::uint64_t> ParseNumberedKey(std::string_view prefix, std::string_view key,
                                       const char* kind) {
  if (key.size() != prefix.size() + kDigits) return BadKey(kind);
  std::uint64_t number = 0;
  const char* end = key.data() + key.size();
  const auto [parsed_to, error] = std::from_chars(key.data() + prefix.size(), end, number);
  if (error != std::errc() || parsed_to != end) return BadKey(kind);
  return number;
}

}  // namespace

std::string FlushKey(std::uint64_t number) {
  return NumberedKey(kFlushPrefix, number);
}

std::string InstallKey(std::uint64_t number) {
  return NumberedKey(kInstallPrefix, number);
}

std::string TopicKey(const Topic& topic) {
  return kTopicKind + topic.value();
}

std::string GroupKey(const GroupName& group) {
  return kGroupKind + group.value();
}

std::string OffsetKey(const GroupQueue& key) {
  return GroupQueueKey(kOffsetKind, key);
}

std::string LockKey(const GroupQueue& key) {
  return GroupQueueKey(kLockKind, key);
}

std::string NextOffsetKey(const TopicQueue& queue) {
  std::string key(1, kNextOffsetKind);
  AppendName(queue.topic.value(), &key);
  AppendBe32(&key, static_cast<std::uint32_t>(queue.queue_id.value()));
  return key;
}

std::string DelayKey(std::int32_t level) {
  std::string key(1, kDelayKind);
  AppendBe32(&key, static_cast<std::uint32_t>(level));
  return key;
}

std::string SendBackKey(const GroupName& group, PhysicalOffset offset) {
  std::string key(1, kSendBackKind);
  AppendName(group.value(), &key);
  AppendBe64(&key, static_cast<std::uint64_t>(offset.value()));
  return key;
}

std::string DlqKey(const GroupName& group, QueueId queue) {
  std::string key(1, kDlqKind);
  AppendName(group.value(), &key);
  AppendBe32(&key, static_cast<std::uint32_t>(queue.value()));
  return key;
}

std::string DedupKey(std::string_view topic, std::string_view message_key) {
  std::string key(1, kDedupKind);
  AppendName(topic, &key);
  AppendName(message_key, &key);
  return key;
}

std::string SettingKey(std::string_view name) {
  return kSettingKind + std::string(name);
}

Result<std::uint64_t> ParseFlushKey(std::string_view key) {
  return ParseNumberedKey(kFlushPrefix, key, "flush");
}

Result<std::uint64_t> ParseInstallKey(std::string_view key) {
  return ParseNumberedKey(kInstallPrefix, key, "install");
}

Result<GroupQueue> ParseGroupQueueKey(std::string_view key) {
  KeyReader reader(key);
  GroupQueue parsed;
  parsed.group = GroupName(reader.Name());
  parsed.queue.topic = Topic(reader.Name());
  parsed.queue.queue_id = QueueId{reader.Int32()};
  if (!reader.complete()) return BadKey("group and queue");
  return parsed;
}

Result<TopicQueue> ParseNextOffsetKey(std::string_view key) {
  KeyReader reader(key);
  TopicQueue queue;
  queue.topic = Topic(reader.Name());
  queue.queue_id = QueueId{reader.Int32()};
  if (!reader.complete()) return BadKey("next offset");
  return queue;
}

Result<std::int32_t> ParseDelayKey(std::string_view key) {
  KeyReader reader(key);
  const std::int32_t level = reader.Int32();
  if (!reader.complete()) return BadKey("delay progress");
  return level;
}

Result<std::pair<GroupName, PhysicalOffset>> ParseSendBackKey(std::string_view key) {
  KeyReader reader(key);
  GroupName group(reader.Name());
  const PhysicalOffset offset{reader.Int64()};
  if (!reader.complete()) return BadKey("send-back");
  return std::make_pair(std::move(group), offset);
}

Result<std::pair<GroupName, QueueId>> ParseDlqKey(std::string_view key) {
  KeyReader reader(key);
  GroupName group(reader.Name());
  const QueueId queue{reader.Int32()};
  if (!reader.complete()) return BadKey("dead letters");
  return std::make_pair(std::move(group), queue);
}

Result<std::pair<std::string, std::string>> ParseDedupKey(std::string_view key) {
  KeyReader reader(key);
  std::string topic = reader.Name();
  std::string message_key = reader.Name();
  if (!reader.complete()) return BadKey("message keys");
  return std::make_pair(std::move(topic), std::move(message_key));
}

}  // namespace triad::broker
