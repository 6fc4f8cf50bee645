// CrashJournal: what a power loss would take back from a directory of files.
//
// Beside every change of a file system that is not synced yet it keeps what was there before: the
// old bytes of each touched page, and how to undo each creation, removal and rename. A sync forgets
// it; a power loss puts it back, all or in part: any page may have reached the disk or not, or be
// torn at a sector; of the changes of names a prefix survives, as in ext4's journal. The changes
// themselves are made at once in the backing directory, so that reading needs nothing of this.
// Paths are below `root`; what is removed waits in `trash`, on the same file system.
// Thread: safe on every thread (one mutex). Size: the un-synced bytes, in pages of 4 KiB.
// Errors: as errno values, positive; 0 = done.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/sim/random.h"

namespace triad::chaos {

class CrashJournal {
 public:
  // Both directories exist.
  CrashJournal(std::string root, std::string trash);

  // Call before the change, on an open file. `path` is only for messages and undoing.
  int Write(int fd, const char* bytes, std::size_t size, std::uint64_t offset);
  int Truncate(int fd, std::uint64_t size);
  // The file itself, and (`all`, or when its size or name changed) every change of names so far.
  void Synced(int fd, bool all);
  void SyncedNames();

  int Created(const std::string& path);  // after it was made
  int Remove(const std::string& path);
  int Rename(const std::string& from, const std::string& to);
  int MakeDir(const std::string& path, mode_t mode);
  int RemoveDir(const std::string& path);

  struct Loss {
    std::uint64_t pages_lost = 0, pages_torn = 0, pages_kept = 0, names_undone = 0;
  };
  // The power is gone: files look as the disk happened to hold them. Nobody has files open.
  Loss Crash(std::uint64_t seed);

 private:
  using FileKey = ino_t;
  struct File {
    std::uint64_t synced_size = 0;
    bool metadata = false;                       // size or name changed
    std::map<std::uint64_t, std::string> pages;  // page -> bytes when it was last synced
  };
  enum class Kind { kCreate, kRemove, kRename, kMakeDir, kRemoveDir };
  struct Change {
    Kind kind;
    std::string path, other, kept;  // kept: where the removed or replaced file waits
  };

  std::string Real(const std::string& path) const { return root_ + path; }
  std::string NewTrash() { return trash_ + "/" + std::to_string(++trash_number_); }
  File* FileOf(int fd);
  int Keep(int fd, File* file, std::uint64_t begin, std::uint64_t end);
  void MarkMetadata(const std::string& path);
  void ForgetNames(std::size_t count);
  void Undo(const Change& change);
  void Tear(const std::string& path, const File& file, sim::Random* random, Loss* loss);
  std::map<FileKey, std::string> PathsOfFiles() const;

  const std::string root_, trash_;
  std::mutex mutex_;
  std::map<FileKey, File> files_;
  std::vector<Change> names_;
  std::uint64_t trash_number_ = 0;
};

}  // namespace triad::chaos
