#include "broker/store/dedup_tail.h"

#include <charconv>

#include "broker/store/message.h"

namespace triad::broker {

std::string_view DedupKeyOf(DedupMode mode, std::string_view properties) {
  switch (mode) {
    case DedupMode::kNone: return {};
    case DedupMode::kUniqKey: return FindProperty(properties, "UNIQ_KEY");
    case DedupMode::kKeys: return FindProperty(properties, "KEYS");
  }
  return {};
}

DedupTarget DedupTargetOf(std::string_view topic, QueueId queue_id, std::string_view properties) {
  const std::string_view real = FindProperty(properties, "REAL_TOPIC");
  if (topic != kScheduleTopic) return {real.empty() ? topic : std::string_view(), queue_id};
  const std::string_view text = FindProperty(properties, "REAL_QID");
  std::int32_t id = 0;
  const auto [parsed_to, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || parsed_to != text.data() + text.size()) return {};
  return {real, QueueId{id}};
}

void DedupTail::Clear() {
  by_id_.clear();
  order_.clear();
}

void DedupTail::DropApplied(LogIndex applied) {
  while (!order_.empty() && order_.front().first <= applied) {
    const auto found = by_id_.find(order_.front().second);
    if (found != by_id_.end() && found->second.index <= applied) by_id_.erase(found);
    order_.pop_front();
  }
}

void DedupTail::DropTopic(const std::string& topic) {
  const std::string prefix = Id(topic, {});
  std::erase_if(by_id_, [&](const auto& item) { return item.first.starts_with(prefix); });
}

std::optional<DedupTail::Entry> DedupTail::Find(const std::string& topic, const std::string& key,
                                                std::int64_t now_ms) const {
  const auto found = by_id_.find(Id(topic, key));
  if (found != by_id_.end()) return found->second;
  if (state_ == nullptr) return std::nullopt;
  const auto applied = state_->FindDuplicate(topic, key, now_ms);
  if (!applied) return std::nullopt;
  return Entry{LogIndex{0}, *applied};
}

void DedupTail::Add(const std::string& topic, const std::string& key, const Entry& entry) {
  std::string id = Id(topic, key);
  order_.emplace_back(entry.index, id);
  by_id_.insert_or_assign(std::move(id), entry);
}

std::string DedupTail::Id(const std::string& topic, const std::string& key) {
  return std::to_string(topic.size()) + ':' + topic + key;
}

}  // namespace triad::broker
