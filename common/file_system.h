// FileSystem: the seam between the store and a disk, so that a simulated disk can lie, tear and
// die.
//
// Bindings: PosixFileSystem (production), SimFileSystem and RecordingFileSystem (tests).
// Thread: a File is used by one thread at a time for writes; Read may run on any thread beside
// them. Errors: kNotFound, kAlreadyExists, kNoSpace (ENOSPC, EDQUOT), kIoError (all else); the
// message names path and errno.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace triad {

struct OpenFlags {
  bool create = false;     // create when absent
  bool exclusive = false;  // with create: kAlreadyExists when present
  bool truncate = false;
  bool read_only = false;
};

class File {
 public:
  virtual ~File() = default;

  // Writes all of `parts`, back to back, at `offset`; short writes are continued inside.
  virtual Status Write(std::uint64_t offset, std::span<const std::string_view> parts) = 0;
  Status Write(std::uint64_t offset, std::string_view bytes) {
    return Write(offset, std::span<const std::string_view>(&bytes, 1));
  }
  // Reads up to buffer.size() bytes; fewer only at the end of the file. Returns the count.
  virtual Result<std::size_t> Read(std::uint64_t offset, std::span<char> buffer) const = 0;
  // fdatasync. A failure is fatal to the caller's process: never repeat it.
  virtual Status Sync() = 0;
  // Data and metadata (size).
  virtual Status SyncAll() = 0;
  virtual Status Truncate(std::uint64_t size_bytes) = 0;
  virtual Result<std::uint64_t> Size() const = 0;
  // An exclusive lock that dies with this handle or its process. kPermissionDenied: held elsewhere.
  virtual Status Lock() { return Status::Unsupported("this file cannot be locked"); }
};

struct DirEntry {
  std::string name;  // without the directory
  bool is_directory = false;
  std::uint64_t size_bytes = 0;
};

struct Space {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) = 0;
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status Remove(const std::string& path) = 0;  // a file or an empty directory
  virtual Status CreateDirs(const std::string& path) = 0;
  virtual Status SyncDir(const std::string& path) = 0;
  // All files and directories of the file system that holds `path`, in one go: cheaper than
  // hundreds of syncs, each of which may write the file system's journal. kUnsupported: one by one.
  virtual Status SyncEverything(const std::string& /*path*/) {
    return Status::Unsupported("this file system syncs one file at a time");
  }
  // Sorted by name.
  virtual Result<std::vector<DirEntry>> List(const std::string& path) = 0;
  virtual Result<Space> GetSpace(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
};

// The machine's file system. Lives for ever.
FileSystem& PosixFileSystem();

// Whole small files. ReadFile: kNotFound when absent.
Result<std::string> ReadFile(FileSystem& fs, const std::string& path);
// Temporary file, sync, rename, directory sync: after a crash there is the old content or the new,
// never a mixture.
Status WriteFileAtomically(FileSystem& fs, const std::string& path, std::string_view content);

}  // namespace triad
