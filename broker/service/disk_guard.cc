#include "broker/service/disk_guard.h"

#include <glog/logging.h>

#include <cstdio>
#include <utility>

namespace triad::broker {

DiskGuard::DiskGuard(FileSystem& fs, std::string path, std::int32_t limit_percent,
                     std::uint64_t free_floor_bytes)
    : fs_(fs),
      path_(std::move(path)),
      limit_percent_(limit_percent),
      free_floor_bytes_(free_floor_bytes) {}

void DiskGuard::Refresh() {
  auto space = fs_.GetSpace(path_);
  if (!space.ok()) {
    LOG_EVERY_N(WARNING, 60) << "cannot tell the space on the disk of " << path_ << ": "
                             << space.status();
    return;  // the last known answer stands
  }
  const double total = static_cast<double>(space->total_bytes);
  const double used = total > 0 ? 1.0 - static_cast<double>(space->available_bytes) / total : 0.0;
  {
    const std::lock_guard lock(mutex_);
    space_ = space.value();
  }
  used_ratio_.store(used, std::memory_order_relaxed);
  const bool full = used * 100 >= limit_percent_ && space->available_bytes < free_floor_bytes_;
  if (full_.exchange(full) == full) return;
  if (full) {
    LOG(ERROR) << "messages are refused: " << FullStatus().message();
  } else {
    LOG(WARNING) << "messages are accepted again: the disk of " << path_ << " has space";
  }
}

Space DiskGuard::space() const {
  const std::lock_guard lock(mutex_);
  return space_;
}

Status DiskGuard::FullStatus() const {
  const Space now = space();
  char text[160];
  std::snprintf(text, sizeof text,
                "%.1f%% used, limit %d%% (diskSpaceWarningLevelRatio), %llu MiB free, at least "
                "%llu MiB wanted (diskSpaceFreeFloorBytes)",
                used_ratio() * 100, limit_percent_,
                static_cast<unsigned long long>(now.available_bytes >> 20),
                static_cast<unsigned long long>(free_floor_bytes_ >> 20));
  return Status::NoSpace("the disk of " + path_ + " is full: " + text);
}

}  // namespace triad::broker
