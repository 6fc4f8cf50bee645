// StallingFileSystem: the machine's files, but a sync waits while the test holds it: a disk that
// hangs.

#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/file_system.h"

namespace triad::broker {

class StallingFileSystem final : public FileSystem {
 public:
  // Syncs of files with `part` in their names wait from now on.
  void Hold(std::string part = {}) {
    const std::lock_guard lock(mutex_);
    held_ = true;
    part_ = std::move(part);
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) override {
    Result<std::unique_ptr<File>> file = PosixFileSystem().Open(path, flags);
    if (!file.ok()) return file.status();
    return std::unique_ptr<File>(std::make_unique<StallingFile>(std::move(*file), path, *this));
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return PosixFileSystem().Rename(from, to);
  }
  Status Remove(const std::string& path) override { return PosixFileSystem().Remove(path); }
  Status CreateDirs(const std::string& path) override { return PosixFileSystem().CreateDirs(path); }
  Status SyncDir(const std::string& path) override { return PosixFileSystem().SyncDir(path); }
  Result<std::vector<DirEntry>> List(const std::string& path) override {
    return PosixFileSystem().List(path);
  }
  Result<Space> GetSpace(const std::string& path) override {
    return PosixFileSystem().GetSpace(path);
  }
  bool Exists(const std::string& path) override { return PosixFileSystem().Exists(path); }

 private:
  class StallingFile final : public File {
   public:
    StallingFile(std::unique_ptr<File> file, std::string path, StallingFileSystem& owner)
        : file_(std::move(file)), path_(std::move(path)), owner_(owner) {}
    Status Write(std::uint64_t offset, std::span<const std::string_view> parts) override {
      return file_->Write(offset, parts);
    }
    Result<std::size_t> Read(std::uint64_t offset, std::span<char> buffer) const override {
      return file_->Read(offset, buffer);
    }
    Status Sync() override {
      owner_.Wait(path_);
      return file_->Sync();
    }
    Status SyncAll() override {
      owner_.Wait(path_);
      return file_->SyncAll();
    }
    Status Truncate(std::uint64_t size_bytes) override { return file_->Truncate(size_bytes); }
    Result<std::uint64_t> Size() const override { return file_->Size(); }
    Status Lock() override { return file_->Lock(); }

   private:
    const std::unique_ptr<File> file_;
    const std::string path_;
    StallingFileSystem& owner_;
  };

  void Wait(const std::string& path) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !held_ || path.find(part_) == std::string::npos; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  std::string part_;
};

}  // namespace triad::broker
