// HookedFileSystem: calls a test before each operation on a file system, so that the test decides
// what happens at that very moment.
//
// Threads: as many as the hook and the file system below can stand.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/file_system.h"

namespace triad::dledger {

class HookedFileSystem : public FileSystem {
 public:
  enum class Operation { kRead, kOther };
  using Hook = std::function<void(Operation)>;

  // `fs` outlives it.
  HookedFileSystem(FileSystem& fs, Hook before) : fs_(fs), before_(std::move(before)) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) override {
    before_(Operation::kOther);
    Result<std::unique_ptr<File>> file = fs_.Open(path, flags);
    if (!file.ok()) return file.status();
    return std::unique_ptr<File>(std::make_unique<HookedFile>(std::move(*file), before_));
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return Hooked().Rename(from, to);
  }
  Status Remove(const std::string& path) override { return Hooked().Remove(path); }
  Status CreateDirs(const std::string& path) override { return Hooked().CreateDirs(path); }
  Status SyncDir(const std::string& path) override { return Hooked().SyncDir(path); }
  Result<std::vector<DirEntry>> List(const std::string& path) override {
    return Hooked().List(path);
  }
  Result<Space> GetSpace(const std::string& path) override { return Hooked().GetSpace(path); }
  bool Exists(const std::string& path) override { return Hooked().Exists(path); }

 private:
  class HookedFile : public File {
   public:
    HookedFile(std::unique_ptr<File> file, const Hook& before)
        : file_(std::move(file)), before_(before) {}
    Status Write(std::uint64_t offset, std::span<const std::string_view> parts) override {
      return Hooked().Write(offset, parts);
    }
    Result<std::size_t> Read(std::uint64_t offset, std::span<char> buffer) const override {
      before_(Operation::kRead);
      return file_->Read(offset, buffer);
    }
    Status Sync() override { return Hooked().Sync(); }
    Status SyncAll() override { return Hooked().SyncAll(); }
    Status Truncate(std::uint64_t size) override { return Hooked().Truncate(size); }
    Result<std::uint64_t> Size() const override { return Hooked().Size(); }
    Status Lock() override { return Hooked().Lock(); }

   private:
    File& Hooked() const {
      before_(Operation::kOther);
      return *file_;
    }
    const std::unique_ptr<File> file_;
    const Hook& before_;
  };

  FileSystem& Hooked() {
    before_(Operation::kOther);
    return fs_;
  }
  FileSystem& fs_;
  const Hook before_;
};

}  // namespace triad::dledger
