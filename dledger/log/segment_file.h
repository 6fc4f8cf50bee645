// SegmentFile: one file of the log: two slots for the last sync windows, then the entries.
//
// The byte at log position P stands at file offset kSegmentHeadBytes + (P - base). The head is this
// peer's own; everything behind it is the same on every replica up to the committed end. A *window*
// is what one sync covers: its slot is written before that sync, into the same file, so that
// whoever finds a byte of a later window on disk knows that this window was synced whole
// (testing.md rule G). Writes: one thread, except that zeros ahead of the log may be written beside
// it. Reads: any thread.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/file_system.h"
#include "common/ids.h"
#include "common/status.h"
#include "dledger/log/slot_pair.h"

namespace triad::dledger {

inline constexpr std::size_t kSegmentHeadBytes = kSlotPairBytes;
inline constexpr std::size_t kZeroChunkBytes = 1u << 20;

// What one sync covers: [begin, end). Everything before `begin` was synced before it was written.
struct SyncWindow {
  PhysicalOffset begin;
  PhysicalOffset end;
};

// "00000000001073741824"
std::string SegmentName(PhysicalOffset base);
// The base; nothing for a name of another kind.
std::optional<PhysicalOffset> ParseSegmentName(std::string_view name);

class SegmentFile {
 public:
  // Makes the file with an empty head and syncs it. The caller syncs the directory before use.
  // Errors: kAlreadyExists; nothing that is there is ever overwritten.
  static Result<std::shared_ptr<SegmentFile>> Create(FileSystem& fs, const std::string& dir,
                                                     PhysicalOffset base);
  // Opens what is there and reads the window slots.
  static Result<std::shared_ptr<SegmentFile>> Open(FileSystem& fs, const std::string& dir,
                                                   PhysicalOffset base);

  PhysicalOffset base() const { return base_; }
  const std::string& path() const { return path_; }
  // Behind the last byte of the file; `base` when it holds no more than the head.
  Result<PhysicalOffset> FileEnd() const;

  Status Write(PhysicalOffset at, std::span<const std::string_view> parts);
  Status WriteZeros(PhysicalOffset begin, PhysicalOffset end);
  // Fewer bytes only at the end of the file.
  Result<std::size_t> Read(PhysicalOffset at, std::span<char> buffer) const;
  Status Sync() { return file_->Sync(); }

  // The last window whose slot is good.
  std::optional<SyncWindow> window() const;
  Status WriteWindow(const SyncWindow& window);  // not synced
  Status ClearWindows() { return windows_.Clear(); }

 private:
  SegmentFile(PhysicalOffset base, std::string path, std::unique_ptr<File> file)
      : base_(base), path_(std::move(path)), file_(std::move(file)), windows_(file_.get()) {}
  std::uint64_t FileOffset(PhysicalOffset at) const {
    return kSegmentHeadBytes + static_cast<std::uint64_t>(at - base_);
  }

  const PhysicalOffset base_;
  const std::string path_;
  const std::unique_ptr<File> file_;
  SlotPair windows_;
};

using SegmentMap = std::map<PhysicalOffset, std::shared_ptr<SegmentFile>>;  // by base

// Opens every segment in `dir`.
Result<SegmentMap> OpenSegments(FileSystem& fs, const std::string& dir);
// Zeros [from, to) for good: clears the windows of the segment that holds `from`, writes zeros,
// syncs, removes every segment that begins at or behind `from` (but for the first), syncs the
// directory. Safe to repeat.
Status ZeroRange(FileSystem& fs, const std::string& dir, PhysicalOffset from, PhysicalOffset to,
                 SegmentMap* segments);

}  // namespace triad::dledger
