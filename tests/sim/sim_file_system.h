// SimFileSystem: FileSystem over a FileDisk: a disk that can lie, tear, fill up and die, from a
// seed.
//
// Crash() is a power loss, Kill() the end of the process alone; after either, every open handle is
// dead (kIoError) and its locks are gone. Faults come one at a time, on command; each names where.
// Thread: any; one mutex. Determinism: the seed and the order of calls decide everything.
// Source: testing.md §1.3.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/file_system.h"
#include "tests/sim/file_disk.h"

namespace triad::sim {

enum class SimFault {
  kWrite,
  kSync,
  kRead,
  kRemove,     // of a file or a directory
  kSyncDir,    // what it was for stays pending
  kMisdirect,  // a write lands in the same file at another sector; its place keeps what it has
  kLie,        // a sync says OK, and what it was for is not there
};

// Faults that somebody met, since the beginning.
struct SimFaultsMet {
  std::uint64_t errors = 0;       // EIO that was asked for
  std::uint64_t bad_sectors = 0;  // EIO of a latent sector error
  std::uint64_t no_space = 0;
  std::uint64_t misdirected = 0;
  std::uint64_t lies = 0;
  std::uint64_t short_writes = 0;
};

class SimFileSystem final : public FileSystem {
 public:
  explicit SimFileSystem(std::uint64_t seed, FileDisk disk = {});

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status CreateDirs(const std::string& path) override;
  Status SyncDir(const std::string& path) override;
  Status SyncEverything(const std::string& path) override;
  Result<std::vector<DirEntry>> List(const std::string& path) override;
  Result<Space> GetSpace(const std::string& path) override;
  bool Exists(const std::string& path) override;

  // ---- death ----
  void Crash(CrashMode mode);
  void CrashRandomly();
  void Kill();
  // After `count` more changes (writes, syncs, names) every call fails until Crash or Kill.
  void StopAfter(std::uint64_t count);
  bool stopped() const;

  // ---- faults ----
  // The next operation of that kind on a path that contains `part`, behind `skip` others, fails
  // with kIoError. A failed
  // sync keeps or loses each pending write of the file, and the next one says OK. kMisdirect waits
  // for a write that has another place to go to, kLie for a sync that has something to lose.
  void FailNext(SimFault fault, std::string part, std::uint64_t skip = 0);
  void ClearFaults();  // those that nobody met
  // The operation after `count` more of any kind (also reads, opens, names) fails once with
  // kIoError, wherever it is.
  void FailAfter(std::uint64_t count);
  bool has_failed() const;                    // that has happened
  void set_capacity(std::uint64_t bytes);     // writes that need more: kNoSpace
  void set_total_bytes(std::uint64_t bytes);  // that GetSpace tells; writes do not care
  void set_names_full(bool on);               // new names and renames: kNoSpace
  void set_short_writes(bool on);             // a write becomes two
  // Readers see at once what a failed sync lost (btrfs); else not before a crash (ext4, XFS).
  void set_reads_old_after_failed_sync(bool on);
  void Rot(const std::string& path, std::uint64_t offset, char mask);
  void ZeroSector(const std::string& path, std::uint64_t sector);
  void CopySector(const std::string& path, std::uint64_t from, std::uint64_t to);
  // Latent: reads and partial writes of it fail, also after a crash, until it is overwritten.
  void BreakSector(const std::string& path, std::uint64_t sector);
  void MendSectors();
  bool IsSick() const;  // has a broken sector, or a silent fault still to come
  void Wipe();          // another, empty disk; between two lives
  SimFaultsMet met() const;
  void set_boot_id(const std::string& id);  // /proc/sys/kernel/random/boot_id

  // ---- inspection ----
  std::string Bytes(const std::string& path) const;         // as a process sees them
  std::string DurableBytes(const std::string& path) const;  // after the worst crash
  bool HoldsDurably(const std::string& path, std::uint64_t offset, std::string_view bytes) const;
  bool IsSpoiled(const std::string& path, std::uint64_t offset, std::uint64_t size) const;
  std::uint64_t changes() const;
  int whole_syncs() const;         // SyncEverything
  void Record(bool on);            // keep a trace from here on
  void Mark(std::uint64_t value);  // into the trace
  std::vector<DiskOp> trace() const;
  FileDisk disk() const;

 private:
  friend class SimFile;
  static constexpr std::uint64_t kNever = UINT64_MAX;
  struct ArmedFault {
    std::string part;
    std::uint64_t skip = 0;
  };
  struct Lock {
    const void* holder = nullptr;
    std::uint64_t life = 0;
  };
  Status Change(DiskOp op);  // with the mutex held
  Status Alive(std::uint64_t life) const;
  bool TakeFault(SimFault fault, const std::string& path);
  bool TakeNth();
  bool IsArmed(SimFault fault) const;
  bool Misdirect(const std::string& path, DiskOp* op);
  Status NoSpace(const std::string& what);
  std::uint64_t InodeOf(const std::string& path) const;
  Status Enter(const char* what, const std::string& path);  // of a name
  void EndLife();

  mutable std::mutex mutex_;
  Random random_;
  FileDisk disk_;
  std::uint64_t life_ = 1;
  std::uint64_t changes_ = 0;
  std::uint64_t stop_after_;
  std::uint64_t fail_after_;
  bool has_failed_ = false;
  std::uint64_t capacity_;
  std::uint64_t total_bytes_;
  bool names_full_ = false;
  bool short_writes_ = false;
  bool reads_old_ = false;
  SimFaultsMet met_;
  bool recording_ = false;
  int whole_syncs_ = 0;
  std::vector<DiskOp> trace_;
  std::map<SimFault, std::vector<ArmedFault>> faults_;
  std::map<std::uint64_t, Lock> locks_;  // by inode
};

}  // namespace triad::sim
