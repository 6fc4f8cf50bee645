// DiskGuard: says whether messages may still be written to the store's file system.
//
// Full means: used percent >= diskSpaceWarningLevelRatio AND fewer free bytes than
// diskSpaceFreeFloorBytes; then only messages are refused (14); pulls and offset commits go on. It
// recovers by itself. Thread: Refresh on a timer; Writable anywhere.

#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "common/file_system.h"
#include "common/status.h"

namespace triad::broker {

class DiskGuard {
 public:
  DiskGuard(FileSystem& fs, std::string path, std::int32_t limit_percent,
            std::uint64_t free_floor_bytes);

  void Refresh();
  // kNoSpace with path, use, limit and the option that sets it.
  Status Writable() const {
    return full_.load(std::memory_order_relaxed) ? FullStatus() : Status::Ok();
  }
  double used_ratio() const { return used_ratio_.load(std::memory_order_relaxed); }
  Space space() const;

 private:
  Status FullStatus() const;

  FileSystem& fs_;
  const std::string path_;
  const std::int32_t limit_percent_;
  const std::uint64_t free_floor_bytes_;
  std::atomic<bool> full_{false};
  std::atomic<double> used_ratio_{0};
  mutable std::mutex mutex_;
  Space space_;
};

}  // namespace triad::broker
