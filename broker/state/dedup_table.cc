#include "broker/state/dedup_table.h"

#include <charconv>
#include <utility>

namespace triad::broker {
namespace {

constexpr std::int64_t kWindowSecondsMax = 7 * 24 * 3600;

std::optional<DedupMode> ParseMode(std::string_view text) {
  if (text == "none") return DedupMode::kNone;
  if (text == "uniqKey") return DedupMode::kUniqKey;
  if (text == "keys") return DedupMode::kKeys;
  return std::nullopt;
}

std::optional<std::int64_t> ParseWindowSeconds(std::string_view text) {
  std::int64_t seconds = 0;
  const char* end = text.data() + text.size();
  const auto [parsed_to, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || parsed_to != end) return std::nullopt;
  if (seconds < 1 || seconds > kWindowSecondsMax) return std::nullopt;
  return seconds;
}

}  // namespace

DedupRule DedupRuleOf(const std::map<std::string, std::string>& attributes) {
  DedupRule rule;
  if (attributes.empty()) return rule;
  const auto mode = attributes.find(std::string(kDedupAttribute));
  if (mode == attributes.end()) return rule;
  rule.mode = ParseMode(mode->second).value_or(DedupMode::kNone);
  const auto window = attributes.find(std::string(kDedupWindowAttribute));
  if (window == attributes.end()) return rule;
  if (const auto seconds = ParseWindowSeconds(window->second)) rule.window_ms = *seconds * 1000;
  return rule;
}

Status CheckDedupAttribute(const std::string& name, const std::string& value) {
  if (name == kDedupAttribute && !ParseMode(value)) {
    return Status::InvalidArgument("attribute dedup is '" + value +
                                   "', expected none, uniqKey or keys");
  }
  if (name == kDedupWindowAttribute && !ParseWindowSeconds(value)) {
    return Status::InvalidArgument("attribute dedupWindowSec is '" + value +
                                   "', expected seconds from 1 to " +
                                   std::to_string(kWindowSecondsMax));
  }
  return Status::Ok();
}

const DedupRecord* DedupTable::Find(std::string_view key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &found->second->record;
}

void DedupTable::Put(const std::string& key, const DedupRecord& record, const OnGone& gone) {
  CHECK(items_.empty() || items_.back().record.physical_offset < record.physical_offset)
      << "keys come in log order";
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    found->second->record = record;
    items_.splice(items_.end(), items_, found->second);
    return;
  }
  while (items_.size() >= keys_max_) {
    ++evicted_;
    DropOldest(gone);
  }
  items_.push_back({key, record});
  by_key_.emplace(items_.back().key, std::prev(items_.end()));
}

void DedupTable::Load(std::string key, const DedupRecord& record) {
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    found->second->record = record;
    return;
  }
  items_.push_back({std::move(key), record});
  by_key_.emplace(items_.back().key, std::prev(items_.end()));
}

void DedupTable::FinishLoad() {
  items_.sort([](const Item& a, const Item& b) {  // in place: what by_key_ points to stays
    return a.record.physical_offset < b.record.physical_offset;
  });
  while (items_.size() > keys_max_) DropOldest([](const std::string&) {});
}

void DedupTable::Expire(std::int64_t until_ms, const OnGone& gone) {
  while (!items_.empty() && items_.front().record.store_time_ms <= until_ms) DropOldest(gone);
}

void DedupTable::Clear(const OnGone& gone) {
  while (!items_.empty()) DropOldest(gone);
}

void DedupTable::DropOldest(const OnGone& gone) {
  by_key_.erase(items_.front().key);
  gone(items_.front().key);
  items_.pop_front();
}

}  // namespace triad::broker
