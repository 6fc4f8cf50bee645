// What a SimFileSystem does wrong when it is told to.

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "tests/sim/sim_file_system.h"

namespace triad::sim {
bool SimFileSystem::IsArmed(SimFault fault) const {
  const auto armed = faults_.find(fault);
  return armed != faults_.end() && !armed->second.empty();
}

Status SimFileSystem::NoSpace(const std::string& what) {
  ++met_.no_space;
  return Status::NoSpace(what + ": ENOSPC");
}

// To another sector of the file, at the same place inside it.
bool SimFileSystem::Misdirect(const std::string& path, DiskOp* op) {
  if (!IsArmed(SimFault::kMisdirect)) return false;
  const std::uint64_t size = disk_.Bytes(op->inode).size();
  if (size < op->bytes.size()) return false;
  const std::uint64_t inside = op->offset % kSectorBytes;
  const std::uint64_t last = size - op->bytes.size();
  if (last < inside) return false;
  const std::uint64_t target =
      inside + random_.Below((last - inside) / kSectorBytes + 1) * kSectorBytes;
  if (target == op->offset || !TakeFault(SimFault::kMisdirect, path)) return false;
  op->meant = std::exchange(op->offset, target);
  return true;
}

bool SimFileSystem::TakeFault(SimFault fault, const std::string& path) {
  std::vector<ArmedFault>& armed = faults_[fault];
  const auto it = std::find_if(armed.begin(), armed.end(), [&path](const ArmedFault& one) {
    return path.find(one.part) != std::string::npos;
  });
  if (it == armed.end() || (it->skip > 0 && it->skip-- > 0)) return false;
  armed.erase(it);
  if (fault != SimFault::kMisdirect && fault != SimFault::kLie) ++met_.errors;
  return true;
}

bool SimFileSystem::TakeNth() {
  if (fail_after_ == kNever) return false;
  if (fail_after_-- > 0) return false;
  fail_after_ = kNever;
  has_failed_ = true;
  ++met_.errors;
  return true;
}

void SimFileSystem::FailNext(SimFault fault, std::string part, std::uint64_t skip) {
  const std::lock_guard hold(mutex_);
  faults_[fault].push_back({std::move(part), skip});
}

void SimFileSystem::ClearFaults() {
  const std::lock_guard hold(mutex_);
  faults_.clear();
  fail_after_ = kNever;
}

void SimFileSystem::FailAfter(std::uint64_t count) {
  const std::lock_guard hold(mutex_);
  fail_after_ = count;
  has_failed_ = false;
}

bool SimFileSystem::has_failed() const {
  const std::lock_guard hold(mutex_);
  return has_failed_;
}

void SimFileSystem::set_capacity(std::uint64_t bytes) {
  const std::lock_guard hold(mutex_);
  capacity_ = bytes;
}

void SimFileSystem::set_short_writes(bool on) {
  const std::lock_guard hold(mutex_);
  short_writes_ = on;
}

void SimFileSystem::set_total_bytes(std::uint64_t bytes) {
  const std::lock_guard hold(mutex_);
  total_bytes_ = bytes;
}

void SimFileSystem::set_names_full(bool on) {
  const std::lock_guard hold(mutex_);
  names_full_ = on;
}

void SimFileSystem::set_reads_old_after_failed_sync(bool on) {
  const std::lock_guard hold(mutex_);
  reads_old_ = on;
}

std::uint64_t SimFileSystem::InodeOf(const std::string& path) const {
  const std::optional<std::uint64_t> inode = disk_.Lookup(path);
  CHECK(inode) << path;
  return *inode;
}

void SimFileSystem::Rot(const std::string& path, std::uint64_t offset, char mask) {
  const std::lock_guard hold(mutex_);
  disk_.Rot(InodeOf(path), offset, mask);
}

void SimFileSystem::ZeroSector(const std::string& path, std::uint64_t sector) {
  const std::lock_guard hold(mutex_);
  disk_.ZeroSector(InodeOf(path), sector);
}

void SimFileSystem::CopySector(const std::string& path, std::uint64_t from, std::uint64_t to) {
  const std::lock_guard hold(mutex_);
  disk_.CopySector(InodeOf(path), from, to);
}

void SimFileSystem::BreakSector(const std::string& path, std::uint64_t sector) {
  const std::lock_guard hold(mutex_);
  disk_.BreakSector(InodeOf(path), sector);
}

void SimFileSystem::MendSectors() {
  const std::lock_guard hold(mutex_);
  disk_.MendSectors();
}

bool SimFileSystem::IsSick() const {
  const std::lock_guard hold(mutex_);
  return disk_.has_broken_sectors() || IsArmed(SimFault::kMisdirect) || IsArmed(SimFault::kLie);
}

void SimFileSystem::Wipe() {
  const std::lock_guard hold(mutex_);
  CHECK(locks_.empty());
  disk_ = FileDisk();
}

SimFaultsMet SimFileSystem::met() const {
  const std::lock_guard hold(mutex_);
  return met_;
}

}  // namespace triad::sim
