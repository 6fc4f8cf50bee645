// FileDisk: a disk that remembers what was promised: durable bytes, and what is still pending.
//
// A plain value: copy it to try many crashes of one moment. Every change is a DiskOp; a recorded
// list of them replays the same disk, which is how crash images are made. A file's writes become
// durable by kSync of that file, names by kSyncDir of their directory; directories themselves are
// durable at once. Pure: no clock, no thread, no randomness but the caller's.
// Source: testing.md §1.3, fault table.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/random.h"

namespace triad::sim {

inline constexpr std::size_t kSectorBytes = 512;

struct DiskOp {
  enum class Kind {
    kWrite,      // bytes at offset of inode
    kTruncate,   // inode to `offset` bytes
    kSync,       // inode
    kLink,       // path -> inode
    kUnlink,     // path
    kRename,     // path -> to, which is inode
    kRenameDir,  // path -> to, with all in it; names in it are durable from then on
    kSyncDir,    // path
    kMakeDir,    // path
    kRemoveDir,  // path, empty; what was removed in it stays removed
    kMark,       // nothing; `offset` is the test's
  };
  Kind kind = Kind::kMark;
  std::uint64_t inode = 0;
  std::uint64_t offset = 0;
  std::string path{};
  std::string to{};
  std::string bytes{};
  std::optional<std::uint64_t> meant{};  // where it was meant to go, when that is not `offset`
};

enum class CrashMode {
  kKeepAll,       // the process died, or everything reached the disk in time
  kDropAll,       // nothing pending did
  kPrefix,        // per file the first few
  kTorn,          // as kPrefix, and the next one in part, torn at a sector
  kSubset,        // any sectors
  kGrownZeros,    // the size grew, the bytes there are zeros
  kGrownGarbage,  // the size grew, the bytes there are somebody's old ones
};
inline constexpr int kCrashModes = 7;

class FileDisk {
 public:
  FileDisk() { dirs_.insert("/"); }

  void Apply(const DiskOp& op);

  // ---- what a process sees ----
  std::optional<std::uint64_t> Lookup(const std::string& path) const;
  bool IsDir(const std::string& path) const { return dirs_.contains(path); }
  const std::string& Bytes(std::uint64_t inode) const { return inodes_.at(inode).visible; }
  const std::string& DurableBytes(std::uint64_t inode) const { return inodes_.at(inode).durable; }
  // Whether after the worst crash the file holds `bytes` at `offset`.
  bool HoldsDurably(const std::string& path, std::uint64_t offset, std::string_view bytes) const;
  // Direct children: name -> inode, 0 for a directory.
  std::map<std::string, std::uint64_t> List(const std::string& dir) const;
  std::uint64_t TotalBytes() const;
  std::uint64_t next_inode() const { return next_inode_; }

  // ---- power loss: afterwards nothing is pending ----
  void Crash(CrashMode mode, Random* random);  // names: each kept or lost, except kKeepAll
  void CrashRandomly(Random* random);          // a mode for each file
  std::size_t pending_count() const { return pending_.size(); }
  bool HasPending(std::uint64_t inode) const;  // writes of that file
  const DiskOp& pending(std::size_t i) const { return pending_[i]; }
  void CrashLosing(std::size_t lost);                        // all but one
  void CrashTearing(std::size_t torn, std::size_t sectors);  // of one write only the first sectors
  void CrashKeepingFirst(std::size_t count);

  // ---- faults ----
  // A failed sync: each pending write of the file is kept or lost, and the next sync says OK.
  // `reads_old`: readers see at once what was lost (btrfs), else as late as after a crash (ext4).
  void LoseInSync(std::uint64_t inode, Random* random, bool reads_old);
  // A sync that lies: nothing pending of the file becomes durable, and nobody is told.
  void LieInSync(std::uint64_t inode);
  // Damage, durable and visible: a bit; a sector that is zeros; one that is a copy of another.
  void Rot(std::uint64_t inode, std::uint64_t offset, char mask);
  void ZeroSector(std::uint64_t inode, std::uint64_t sector);
  void CopySector(std::uint64_t inode, std::uint64_t from, std::uint64_t to);
  // A latent sector error: it can be neither read nor written in part until all of it is
  // overwritten or given back.
  void BreakSector(std::uint64_t inode, std::uint64_t sector);
  bool has_broken_sectors() const { return !broken_.empty(); }
  void MendSectors() { broken_.clear(); }
  bool CanRead(std::uint64_t inode, std::uint64_t offset, std::uint64_t size) const;
  bool CanWrite(std::uint64_t inode, std::uint64_t offset, std::uint64_t size) const;
  // Bytes that silent faults took or put elsewhere, until a durable write takes their place.
  void Spoil(std::uint64_t inode, std::uint64_t offset, std::uint64_t size);
  bool IsSpoiled(const std::string& path, std::uint64_t offset, std::uint64_t size) const;

 private:
  struct Inode {
    std::string durable;
    std::string visible;
  };
  using Names = std::map<std::string, std::uint64_t>;
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  static std::string DirOf(const std::string& path);
  static void ApplyName(const DiskOp& op, Names* names);
  static void MoveNames(const DiskOp& op, Names* names);
  void RenameDir(const DiskOp& op);
  static void ApplyBytes(const DiskOp& op, std::string* bytes);
  static bool IsName(const DiskOp& op);
  void ApplySectors(const DiskOp& op, std::size_t sectors);
  void KeepDurably(const DiskOp& op);
  void CrashFile(std::uint64_t inode, CrashMode mode, Random* random);
  void Settle();
  void Mend(const DiskOp& op);
  void Unspoil(const DiskOp& op);

  std::map<std::uint64_t, Inode> inodes_;
  Names names_;
  Names durable_names_;
  std::set<std::string> dirs_;
  std::vector<DiskOp> pending_;  // in order, of all files and directories
  std::uint64_t next_inode_ = 1;
  std::map<std::uint64_t, std::set<std::uint64_t>> broken_;  // sectors, by inode
  std::map<std::uint64_t, std::vector<Range>> spoiled_;      // by inode
};

}  // namespace triad::sim
