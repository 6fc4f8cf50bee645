// triad-crashfs BACKING MOUNT: a file system whose power can be cut and whose disk can fail.
//
// Passes everything on to BACKING/files and keeps in a CrashJournal what is not synced. Orders are
// written, one per write, to MOUNT/.crashfs:
//   crash SEED        the power is gone: see crash_journal.h (kill whoever has files open before)
//   eio KIND N        from the N-th operation of KIND (sync, write, read) on: EIO
//   slow MS           every sync takes so much longer
//   full BYTES        the disk says that it is full, and is when files have grown by BYTES: ENOSPC
//   heal              none of it any more
// Reading it gives what was done. Ends with SIGTERM or when unmounted. Source: libfuse 3, high
// level.

#define FUSE_USE_VERSION 31

#include <dirent.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>

#include "tests/chaos/crash_journal.h"

namespace triad::chaos {
namespace {

constexpr char kControl[] = "/.crashfs";

// What is wrong with the disk now. Thread: safe on every thread.
class Faults {
 public:
  void Heal() {
    std::lock_guard hold(mutex_);
    after_.clear();
    slow_ = std::chrono::milliseconds(0);
    full_ = false;
    room_ = 0;
    healed_.notify_all();
  }
  void FailFrom(const std::string& kind, std::int64_t n) {
    std::lock_guard hold(mutex_);
    after_[kind] = n;
  }
  void Slow(std::chrono::milliseconds ms) {
    std::lock_guard hold(mutex_);
    slow_ = ms;
  }
  void Full(std::int64_t room) {
    std::lock_guard hold(mutex_);
    full_ = true;
    room_ = room;
  }
  // May a file grow by so much?
  bool MayGrow(std::int64_t bytes) {
    std::lock_guard hold(mutex_);
    if (!full_ || bytes <= 0) return true;
    room_ -= bytes;
    if (room_ < 0) ++full_told_;
    return room_ >= 0;
  }
  bool IsFull() {
    std::lock_guard hold(mutex_);
    return full_;
  }
  // As IsFull, for whoever asks how much room there is.
  bool SaysFull() {
    std::lock_guard hold(mutex_);
    if (full_) ++full_told_;
    return full_;
  }
  // An operation of this kind: does it fail?
  bool Fails(const std::string& kind) {
    std::lock_guard hold(mutex_);
    const auto found = after_.find(kind);
    if (found == after_.end() || --found->second > 0) return false;
    ++failed_;
    return true;
  }
  void WaitForDisk() {
    std::unique_lock hold(mutex_);
    const auto slow = slow_;
    if (slow.count() > 0) ++slowed_;
    if (slow.count() > 0) healed_.wait_for(hold, slow, [this] { return slow_.count() == 0; });
  }
  std::string Report() {
    std::lock_guard hold(mutex_);
    return "failed " + std::to_string(failed_) + " full " + std::to_string(full_told_) +
           " slowed " + std::to_string(slowed_) + "\n";
  }

 private:
  std::mutex mutex_;
  std::condition_variable healed_;
  std::map<std::string, std::int64_t> after_;
  std::chrono::milliseconds slow_{0};
  bool full_ = false;
  std::int64_t room_ = 0;
  std::int64_t failed_ = 0, full_told_ = 0, slowed_ = 0;
};

struct Disk {
  std::string root;
  std::unique_ptr<CrashJournal> journal;
  Faults faults;
  std::mutex mutex;  // of `report`
  std::string report;
};
Disk* disk = nullptr;  // libfuse's callbacks are plain functions

std::string Real(const char* path) {
  return disk->root + path;
}

bool IsControl(const char* path) {
  return std::strcmp(path, kControl) == 0;
}

int Negative(int result) {
  return result < 0 ? -errno : 0;
}

int Handle(const fuse_file_info* info) {
  return static_cast<int>(info->fh);
}

int Obey(const std::string& order) {
  std::istringstream in(order);
  std::string word;
  std::string kind;
  std::int64_t n = 0;
  in >> word;
  if (word == "crash" && in >> n) {
    const CrashJournal::Loss loss = disk->journal->Crash(static_cast<std::uint64_t>(n));
    std::lock_guard hold(disk->mutex);
    disk->report = "lost " + std::to_string(loss.pages_lost) + " torn " +
                   std::to_string(loss.pages_torn) + " kept " + std::to_string(loss.pages_kept) +
                   " names " + std::to_string(loss.names_undone) + "\n";
  } else if (word == "eio" && in >> kind >> n) {
    disk->faults.FailFrom(kind, n);
  } else if (word == "slow" && in >> n) {
    disk->faults.Slow(std::chrono::milliseconds(n));
  } else if (word == "full" && in >> n) {
    disk->faults.Full(n);
  } else if (word == "heal") {
    disk->faults.Heal();
  } else {
    return -EINVAL;
  }
  return 0;
}

int GetAttr(const char* path, struct stat* status, fuse_file_info*) {
  if (!IsControl(path)) return Negative(::lstat(Real(path).c_str(), status));
  std::memset(status, 0, sizeof *status);
  status->st_mode = S_IFREG | 0600;
  status->st_nlink = 1;
  status->st_size = 4096;
  return 0;
}

int MakeDir(const char* path, mode_t mode) {
  return -disk->journal->MakeDir(path, mode);
}
int RemoveDir(const char* path) {
  return -disk->journal->RemoveDir(path);
}
int Remove(const char* path) {
  return -disk->journal->Remove(path);
}
int Rename(const char* from, const char* to, unsigned flags) {
  return flags != 0 ? -EINVAL : -disk->journal->Rename(from, to);
}

int Open(const char* path, fuse_file_info* info) {
  if (IsControl(path)) {
    info->direct_io = 1;
    info->fh = 0;
    return 0;
  }
  // Writes need reading too: the journal keeps what they replace.
  const int flags = (info->flags & ~(O_ACCMODE | O_TRUNC | O_APPEND)) |
                    ((info->flags & O_ACCMODE) == O_RDONLY ? O_RDONLY : O_RDWR);
  const int fd = ::open(Real(path).c_str(), flags | O_CLOEXEC);
  if (fd < 0) return -errno;
  if ((info->flags & O_TRUNC) != 0) {
    const int error = disk->journal->Truncate(fd, 0);
    if (error != 0) return -error;
  }
  info->fh = static_cast<std::uint64_t>(fd);
  return 0;
}

int Create(const char* path, mode_t mode, fuse_file_info* info) {
  if (!disk->faults.MayGrow(1)) return -ENOSPC;
  const int fd =
      ::open(Real(path).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | (info->flags & O_EXCL), mode);
  if (fd < 0) return -errno;
  info->fh = static_cast<std::uint64_t>(fd);
  return -disk->journal->Created(path);
}

int Read(const char* path, char* buffer, std::size_t size, off_t offset, fuse_file_info* info) {
  if (IsControl(path)) {
    std::lock_guard hold(disk->mutex);
    const std::string text = disk->report + disk->faults.Report();
    if (static_cast<std::size_t>(offset) >= text.size()) return 0;
    return static_cast<int>(text.copy(buffer, size, static_cast<std::size_t>(offset)));
  }
  if (disk->faults.Fails("read")) return -EIO;
  const ssize_t got = ::pread(Handle(info), buffer, size, offset);
  return got < 0 ? -errno : static_cast<int>(got);
}

int Write(const char* path, const char* bytes, std::size_t size, off_t offset,
          fuse_file_info* info) {
  if (IsControl(path)) {
    const int error = Obey(std::string(bytes, size));
    return error != 0 ? error : static_cast<int>(size);
  }
  if (disk->faults.Fails("write")) return -EIO;
  if (disk->faults.IsFull()) {
    struct stat status {};
    if (::fstat(Handle(info), &status) != 0) return -errno;
    if (!disk->faults.MayGrow(offset + static_cast<off_t>(size) - status.st_size)) return -ENOSPC;
  }
  const int error =
      disk->journal->Write(Handle(info), bytes, size, static_cast<std::uint64_t>(offset));
  return error != 0 ? -error : static_cast<int>(size);
}

int Truncate(const char* path, off_t size, fuse_file_info* info) {
  if (IsControl(path)) return 0;
  const int fd = info != nullptr ? Handle(info) : ::open(Real(path).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return -errno;
  const int error = disk->journal->Truncate(fd, static_cast<std::uint64_t>(size));
  if (info == nullptr) ::close(fd);
  return -error;
}

int Sync(const char* path, int data_only, fuse_file_info* info) {
  if (IsControl(path)) return 0;
  disk->faults.WaitForDisk();
  if (disk->faults.Fails("sync")) return -EIO;
  disk->journal->Synced(Handle(info), data_only == 0);
  return 0;
}

int SyncDir(const char*, int, fuse_file_info*) {
  disk->faults.WaitForDisk();
  if (disk->faults.Fails("sync")) return -EIO;
  disk->journal->SyncedNames();
  return 0;
}

int Release(const char* path, fuse_file_info* info) {
  if (!IsControl(path)) ::close(Handle(info));
  return 0;
}

int ReadDir(const char* path, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*,
            fuse_readdir_flags) {
  DIR* const dir = ::opendir(Real(path).c_str());
  if (dir == nullptr) return -errno;
  for (const dirent* entry = ::readdir(dir); entry != nullptr; entry = ::readdir(dir)) {
    fill(buffer, entry->d_name, nullptr, 0, fuse_fill_dir_flags{});
  }
  ::closedir(dir);
  return 0;
}

int StatFs(const char* path, struct statvfs* space) {
  if (::statvfs(Real(path).c_str(), space) != 0) return -errno;
  if (disk->faults.SaysFull()) space->f_bavail = space->f_bfree = 0;
  return 0;
}

int Chmod(const char* path, mode_t mode, fuse_file_info*) {
  return Negative(::chmod(Real(path).c_str(), mode));
}
int Utimens(const char* path, const timespec times[2], fuse_file_info*) {
  return Negative(::utimensat(AT_FDCWD, Real(path).c_str(), times, AT_SYMLINK_NOFOLLOW));
}

// What the kernel knows of names and sizes must not outlive a power loss.
void* Init(fuse_conn_info* connection, fuse_config* config) {
  config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
  config->kernel_cache = config->auto_cache = 0;
  connection->max_write = 1u << 20;
  return nullptr;
}

fuse_operations Operations() {
  fuse_operations operations{};
  operations.getattr = GetAttr;
  operations.mkdir = MakeDir;
  operations.rmdir = RemoveDir;
  operations.unlink = Remove;
  operations.rename = Rename;
  operations.open = Open;
  operations.create = Create;
  operations.read = Read;
  operations.write = Write;
  operations.truncate = Truncate;
  operations.fsync = Sync;
  operations.fsyncdir = SyncDir;
  operations.release = Release;
  operations.readdir = ReadDir;
  operations.statfs = StatFs;
  operations.chmod = Chmod;
  operations.utimens = Utimens;
  operations.init = Init;
  return operations;
}

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: triad-crashfs BACKING MOUNT\n";
    return 2;
  }
  const std::string backing = std::filesystem::absolute(argv[1]);
  std::filesystem::create_directories(backing + "/files");
  std::filesystem::create_directories(backing + "/trash");
  std::filesystem::create_directories(argv[2]);
  static Disk the_disk;
  the_disk.root = backing + "/files";
  the_disk.journal = std::make_unique<CrashJournal>(the_disk.root, backing + "/trash");
  disk = &the_disk;
  std::string words[] = {argv[0], "-f", "-o", "allow_other", argv[2]};
  std::vector<char*> fuse_argv;
  for (std::string& word : words) fuse_argv.push_back(word.data());
  const fuse_operations operations = Operations();
  return fuse_main(static_cast<int>(fuse_argv.size()), fuse_argv.data(), &operations, nullptr);
}

}  // namespace
}  // namespace triad::chaos

int main(int argc, char** argv) {
  return triad::chaos::Main(argc, argv);
}
