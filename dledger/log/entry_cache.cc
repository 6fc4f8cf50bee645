#include "dledger/log/entry_cache.h"

#include <glog/logging.h>

#include <iterator>

namespace triad::dledger {

std::size_t EntryCache::Charge(const Entry& entry) {
  constexpr std::size_t kOverhead = 256;  // table node, Entry, string
  return entry.size() + kOverhead;
}

std::uint64_t EntryCache::generation() const {
  const std::lock_guard hold(mutex_);
  return generation_;
}

std::size_t EntryCache::bytes() const {
  const std::lock_guard hold(mutex_);
  return bytes_;
}

void EntryCache::Insert(std::span<const EntryRef> entries) {
  const std::lock_guard hold(mutex_);
  for (const EntryRef& entry : entries) InsertLocked(entry);
}

void EntryCache::InsertIf(std::uint64_t generation, std::span<const EntryRef> entries) {
  const std::lock_guard hold(mutex_);
  if (generation != generation_) return;
  for (const EntryRef& entry : entries) InsertLocked(entry);
}

void EntryCache::InsertLocked(const EntryRef& entry) {
  const Key key{.position = entry->position, .index = entry->index};
  const auto it = table_.try_emplace(table_.end(), key);
  Node& node = it->second;
  if (node.entry) {  // two readers loaded it, or it was appended before
    Unlink(&node);
    bytes_ -= Charge(*node.entry);
  }
  node.entry = entry;
  bytes_ += Charge(*entry);
  Link(&node);
  while (bytes_ > bytes_max_ && oldest_ != nullptr) {
    EraseLocked(table_.find(oldest_->entry->position));
  }
}

void EntryCache::EraseLocked(Table::iterator it) {
  CHECK(it != table_.end());
  Unlink(&it->second);
  bytes_ -= Charge(*it->second.entry);
  table_.erase(it);
}

void EntryCache::DropFrom(LogIndex from) {
  const std::lock_guard hold(mutex_);
  ++generation_;
  for (auto it = table_.lower_bound(from); it != table_.end();) {
    const auto next = std::next(it);
    EraseLocked(it);
    it = next;
  }
}

void EntryCache::DropBefore(LogIndex before) {
  const std::lock_guard hold(mutex_);
  while (!table_.empty() && table_.begin()->first.index < before) EraseLocked(table_.begin());
}

EntryRef EntryCache::FindAt(PhysicalOffset inside) {
  const std::lock_guard hold(mutex_);
  auto it = table_.upper_bound(inside);
  if (it == table_.begin()) return nullptr;
  --it;
  if (inside >= it->second.entry->end()) return nullptr;
  return Touch(&it->second);
}

EntryRef EntryCache::FindIndex(LogIndex index) {
  const std::lock_guard hold(mutex_);
  const auto it = table_.find(index);
  return it == table_.end() ? nullptr : Touch(&it->second);
}

EntryRef EntryCache::Touch(Node* node) {
  if (node != newest_) {
    Unlink(node);
    Link(node);
  }
  return node->entry;
}

void EntryCache::Link(Node* node) {
  node->older = newest_;
  node->newer = nullptr;
  if (newest_ != nullptr) newest_->newer = node;
  newest_ = node;
  if (oldest_ == nullptr) oldest_ = node;
}

void EntryCache::Unlink(Node* node) {
  (node->newer != nullptr ? node->newer->older : newest_) = node->older;
  (node->older != nullptr ? node->older->newer : oldest_) = node->newer;
}

}  // namespace triad::dledger
