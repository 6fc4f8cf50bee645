// EntryCache: whole entries in memory: the hot tail and whatever readers loaded.
//
// Thread: any; one leaf mutex. Bounds: `bytes_max` of entries (with an overhead for each); the
// least recently used leave first. One ordered table serves lookups by position and by index,
// since both grow together. Source: architecture.md §3, "entry cache".

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "common/ids.h"
#include "dledger/raft/entry.h"

namespace triad::dledger {

class EntryCache {
 public:
  explicit EntryCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  ~EntryCache() = default;
  EntryCache(const EntryCache&) = delete;
  EntryCache& operator=(const EntryCache&) = delete;

  // Grows with each DropFrom. A reader takes it before it reads, so that what was cut meanwhile
  // does not come back.
  std::uint64_t generation() const;
  void Insert(std::span<const EntryRef> entries);
  // Nothing happens when `generation` has passed.
  void InsertIf(std::uint64_t generation, std::span<const EntryRef> entries);
  // Forgets entries with index >= from.
  void DropFrom(LogIndex from);
  // Forgets entries with index < before.
  void DropBefore(LogIndex before);

  // The entry whose bytes cover `inside`, or null.
  EntryRef FindAt(PhysicalOffset inside);
  EntryRef FindIndex(LogIndex index);
  std::size_t bytes() const;

 private:
  struct Key {
    PhysicalOffset position;
    LogIndex index;
  };
  struct Less {
    using is_transparent = void;
    bool operator()(const Key& a, const Key& b) const { return a.position < b.position; }
    bool operator()(const Key& a, PhysicalOffset b) const { return a.position < b; }
    bool operator()(PhysicalOffset a, const Key& b) const { return a < b.position; }
    bool operator()(const Key& a, LogIndex b) const { return a.index < b; }
    bool operator()(LogIndex a, const Key& b) const { return a < b.index; }
  };
  struct Node {
    EntryRef entry;
    Node* newer = nullptr;
    Node* older = nullptr;
  };
  using Table = std::map<Key, Node, Less>;

  static std::size_t Charge(const Entry& entry);
  void InsertLocked(const EntryRef& entry);
  void EraseLocked(Table::iterator it);
  void Link(Node* node);  // as the newest
  void Unlink(Node* node);
  EntryRef Touch(Node* node);

  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  Table table_;
  Node* newest_ = nullptr;
  Node* oldest_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t generation_ = 0;
};

}  // namespace triad::dledger
