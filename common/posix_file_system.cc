#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/file_system.h"
#include "common/zeroed_file.h"

namespace triad {
namespace {

constexpr std::size_t kPartsPerWrite = 64;  // far below IOV_MAX; the loop continues

Status FromErrno(int error, const char* action, const std::string& path) {
  std::string message =
      std::string(action) + " " + path + ": " + std::generic_category().message(error);
  switch (error) {
    case ENOENT: return Status::NotFound(std::move(message));
    case EEXIST: return Status::AlreadyExists(std::move(message));
    case ENOSPC:
    case EDQUOT: return Status::NoSpace(std::move(message));
    default: return Status::IoError(std::move(message));
  }
}

// Repeats a call that a signal interrupted. close() is never repeated (its outcome is unknown).
template <typename Call>
auto Uninterrupted(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

// Where O_DIRECT is known to be coherent beside writes through the cache.
bool MayBypassCache(int fd) {
  struct statfs info {};
  if (::fstatfs(fd, &info) != 0) return false;
  return info.f_type == EXT4_SUPER_MAGIC || info.f_type == XFS_SUPER_MAGIC;
}

class PosixFile final : public File, public ZeroedFile {
 public:
  PosixFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;
  ~PosixFile() override {
    ::close(fd_);
    if (direct_fd_ >= 0) ::close(direct_fd_);
  }

  Status Write(std::uint64_t offset, std::span<const std::string_view> parts) override;
  Result<std::size_t> Read(std::uint64_t offset, std::span<char> buffer) const override;

  Status WriteZerosUncached(std::uint64_t offset, std::uint64_t size) override;

  Status Sync() override {
    return Check(Uninterrupted([this] { return ::fdatasync(fd_); }), "fdatasync");
  }
  Status SyncAll() override {
    return Check(Uninterrupted([this] { return ::fsync(fd_); }), "fsync");
  }
  Status Truncate(std::uint64_t size_bytes) override {
    const auto size = static_cast<off_t>(size_bytes);
    return Check(Uninterrupted([this, size] { return ::ftruncate(fd_, size); }), "truncate");
  }
  Result<std::uint64_t> Size() const override {
    struct stat info {};
    if (::fstat(fd_, &info) != 0) return FromErrno(errno, "stat", path_);
    return static_cast<std::uint64_t>(info.st_size);
  }
  Status Lock() override {
    if (Uninterrupted([this] { return ::flock(fd_, LOCK_EX | LOCK_NB); }) == 0) return {};
    if (errno == EWOULDBLOCK) return Status::PermissionDenied("locked elsewhere: " + path_);
    return FromErrno(errno, "lock", path_);
  }

 private:
  Status Check(int result, const char* action) const {
    return result == 0 ? Status::Ok() : FromErrno(errno, action, path_);
  }

  const int fd_;
  const std::string path_;
  // Of the thread that writes zeros.
  int direct_fd_ = -1;
  bool is_direct_tried_ = false;
};

Status PosixFile::WriteZerosUncached(std::uint64_t offset, std::uint64_t size) {
  constexpr std::size_t kPieceBytes = 1u << 20;
  alignas(kZeroAlign) static std::array<char, kPieceBytes> zeros{};  // never written: .bss
  if (!std::exchange(is_direct_tried_, true) && MayBypassCache(fd_)) {
    // By the descriptor: the name may be another file's by now.
    const std::string same = "/proc/self/fd/" + std::to_string(fd_);
    direct_fd_ = ::open(same.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  }
  if (direct_fd_ < 0) return Status::Unsupported("no way past the page cache for " + path_);
  while (size > 0) {
    const std::size_t piece = std::min<std::uint64_t>(size, kPieceBytes);
    const ssize_t n = Uninterrupted(
        [&] { return ::pwrite(direct_fd_, zeros.data(), piece, static_cast<off_t>(offset)); });
    // Larger blocks than ours, or a file system that has its reasons: by the cache, then.
    if (n < 0 && errno == EINVAL) {
      ::close(std::exchange(direct_fd_, -1));
      return Status::Unsupported("no zeros past the page cache for " + path_);
    }
    if (n < 0) return FromErrno(errno, "write zeros to", path_);
    if (n == 0) return Status::IoError("write zeros to " + path_ + ": nothing was written");
    offset += static_cast<std::uint64_t>(n);
    size -= static_cast<std::uint64_t>(n);
  }
  return Status::Ok();
}

Status PosixFile::Write(std::uint64_t offset, std::span<const std::string_view> parts) {
  std::size_t part = 0;     // the first part that is not yet wholly written
  std::size_t written = 0;  // of that part
  auto position = static_cast<off_t>(offset);
  while (true) {
    std::array<struct iovec, kPartsPerWrite> vectors;
    std::size_t count = 0;
    std::size_t skip = written;
    for (std::size_t i = part; i < parts.size() && count < kPartsPerWrite; ++i) {
      const std::string_view rest = parts[i].substr(skip);
      skip = 0;
      if (rest.empty()) continue;
      vectors[count++] = {const_cast<char*>(rest.data()), rest.size()};
    }
    if (count == 0) return Status::Ok();
    const ssize_t n = Uninterrupted(
        [&] { return ::pwritev(fd_, vectors.data(), static_cast<int>(count), position); });
    if (n < 0) return FromErrno(errno, "write", path_);
    if (n == 0) return Status::IoError("write " + path_ + ": nothing was written");
    position += n;
    auto left = static_cast<std::size_t>(n);
    while (part < parts.size() && left >= parts[part].size() - written) {
      left -= parts[part].size() - written;
      written = 0;
      ++part;
    }
    written += left;
  }
}

Result<std::size_t> PosixFile::Read(std::uint64_t offset, std::span<char> buffer) const {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const auto position = static_cast<off_t>(offset + done);
    const ssize_t n = Uninterrupted(
        [&] { return ::pread(fd_, buffer.data() + done, buffer.size() - done, position); });
    if (n < 0) return FromErrno(errno, "read", path_);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

class MachineFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) override;
  Status Rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return FromErrno(errno, "rename", from);
    return Status::Ok();
  }
  Status Remove(const std::string& path) override {
    if (::remove(path.c_str()) != 0) return FromErrno(errno, "remove", path);
    return Status::Ok();
  }
  Status CreateDirs(const std::string& path) override;
  Status SyncDir(const std::string& path) override {
    return SyncOpened(path, "fsync directory", ::fsync);
  }
  Status SyncEverything(const std::string& path) override {
    return SyncOpened(path, "syncfs of", ::syncfs);
  }
  Result<std::vector<DirEntry>> List(const std::string& path) override;
  Result<Space> GetSpace(const std::string& path) override;
  bool Exists(const std::string& path) override { return ::access(path.c_str(), F_OK) == 0; }

 private:
  static Status SyncOpened(const std::string& path, const char* what, int (*sync)(int fd));
};

Result<std::unique_ptr<File>> MachineFileSystem::Open(const std::string& path, OpenFlags flags) {
  int mode = O_CLOEXEC | (flags.read_only ? O_RDONLY : O_RDWR);
  if (flags.create) mode |= O_CREAT;
  if (flags.create && flags.exclusive) mode |= O_EXCL;
  if (flags.truncate && !flags.read_only) mode |= O_TRUNC;
  const int fd = Uninterrupted([&] { return ::open(path.c_str(), mode, 0644); });
  if (fd < 0) return FromErrno(errno, "open", path);
  return std::unique_ptr<File>(std::make_unique<PosixFile>(fd, path));
}

Status MachineFileSystem::CreateDirs(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return FromErrno(error.value(), "create directory", path);
  return Status::Ok();
}

Status MachineFileSystem::SyncOpened(const std::string& path, const char* what,
                                     int (*sync)(int fd)) {
  const std::string name = path.empty() ? "." : path;
  const int fd =
      Uninterrupted([&] { return ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0) return FromErrno(errno, "open directory", name);
  const int result = Uninterrupted([fd, sync] { return sync(fd); });
  const int error = errno;
  ::close(fd);
  return result == 0 ? Status::Ok() : FromErrno(error, what, name);
}

Result<std::vector<DirEntry>> MachineFileSystem::List(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::directory_iterator it(path, error);
  if (error) return FromErrno(error.value(), "list", path);
  std::vector<DirEntry> entries;
  for (; it != fs::directory_iterator(); it.increment(error)) {
    DirEntry entry{.name = it->path().filename().string(), .is_directory = it->is_directory(error)};
    if (!entry.is_directory) {
      const auto size = it->file_size(error);
      entry.size_bytes =
          error ? 0 : static_cast<std::uint64_t>(size);  // gone meanwhile, or no file
    }
    entries.push_back(std::move(entry));
  }
  if (error) return FromErrno(error.value(), "list", path);
  std::sort(entries.begin(), entries.end(),
            [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });
  return entries;
}

Result<Space> MachineFileSystem::GetSpace(const std::string& path) {
  struct statvfs info {};
  if (Uninterrupted([&] { return ::statvfs(path.c_str(), &info); }) != 0) {
    return FromErrno(errno, "statvfs", path);
  }
  const std::uint64_t block = info.f_frsize;
  // As df counts: what is kept back for root belongs to neither.
  const std::uint64_t used = info.f_blocks - info.f_bfree;
  return Space{.total_bytes = block * (used + info.f_bavail),
               .available_bytes = block * info.f_bavail};
}

}  // namespace

FileSystem& PosixFileSystem() {
  static MachineFileSystem file_system;
  return file_system;
}

}  // namespace triad
