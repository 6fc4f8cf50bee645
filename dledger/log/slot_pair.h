// SlotPair: two checked slots written in turn, so that a torn write never takes the last good one.
//
// Used for term and vote, for the synced hint with its recorded cut, and for the sync windows at
// the head of each segment. A slot: magic u32, content length u16, reserved u16, sequence u64,
// content, CRC32C at its end: 512 bytes, kSlotStride apart, so that two never share a disk block.
// The caller syncs the file. Owner: the thread that writes the file. Source: testing.md rule I.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/file_system.h"
#include "common/status.h"

namespace triad::dledger {

inline constexpr std::size_t kSlotBytes = 512;
inline constexpr std::size_t kSlotStride = 4096;
inline constexpr std::size_t kSlotPairBytes = 2 * kSlotStride;
inline constexpr std::size_t kSlotContentMax = kSlotBytes - 20;

class SlotPair {
 public:
  // The slots stand at `offset` of `file`, which outlives this.
  explicit SlotPair(File* file, std::uint64_t offset = 0) : file_(file), offset_(offset) {}

  // Reads both slots; the valid one with the higher sequence counts. One that cannot be read is
  // bad.
  void Load();
  bool valid() const { return valid_; }  // at least one slot is good
  std::string_view content() const { return content_; }

  // Writes over the older slot. Not synced. content.size() <= kSlotContentMax.
  Status Write(std::string_view content);
  // The content once more, where it stands: the same bytes, so that no crash can take them. What
  // was read after a start may not have been durable.
  Status Repeat() { return WriteTo(current_); }
  // The same record over the older slot too: a sector that rots then brings back nothing old. Only
  // when the content is durable; the next Write goes there again. Not synced.
  Status Mirror() { return WriteTo(1 - current_); }
  // Zeros over both slots: neither is valid then. Not synced. Also what a new file begins with.
  Status Clear();

 private:
  Status WriteTo(std::size_t slot);

  File* const file_;
  const std::uint64_t offset_;
  bool valid_ = false;
  std::size_t current_ = 1;  // where content_ stands; the first write goes to slot 0
  std::uint64_t sequence_ = 0;
  std::string content_;
};

}  // namespace triad::dledger
