#include "tests/sim/group/life_file_system.h"

#include <utility>

namespace triad::sim {
namespace {

class LifeFile final : public File {
 public:
  LifeFile(std::unique_ptr<File> file, LifePtr life)
      : file_(std::move(file)), life_(std::move(life)) {}

  Status Write(std::uint64_t offset, std::span<const std::string_view> parts) override {
    return over() ? Status::Ok() : file_->Write(offset, parts);
  }
  Result<std::size_t> Read(std::uint64_t offset, std::span<char> buffer) const override {
    if (over()) return std::size_t{0};
    return file_->Read(offset, buffer);
  }
  Status Sync() override { return over() ? Status::Ok() : file_->Sync(); }
  Status SyncAll() override { return over() ? Status::Ok() : file_->SyncAll(); }
  Status Truncate(std::uint64_t size_bytes) override {
    return over() ? Status::Ok() : file_->Truncate(size_bytes);
  }
  Result<std::uint64_t> Size() const override {
    if (over()) return std::uint64_t{0};
    return file_->Size();
  }
  Status Lock() override { return over() ? Status::Ok() : file_->Lock(); }

 private:
  bool over() const { return life_->over; }

  const std::unique_ptr<File> file_;  // null when opened after the end
  const LifePtr life_;
};

}  // namespace

Result<std::unique_ptr<File>> LifeFileSystem::Open(const std::string& path, OpenFlags flags) {
  if (life_->over) return std::unique_ptr<File>(std::make_unique<LifeFile>(nullptr, life_));
  Result<std::unique_ptr<File>> file = fs_.Open(path, flags);
  if (!file.ok()) return file;
  return std::unique_ptr<File>(std::make_unique<LifeFile>(std::move(file).value(), life_));
}

Status LifeFileSystem::Rename(const std::string& from, const std::string& to) {
  return life_->over ? Status::Ok() : fs_.Rename(from, to);
}
Status LifeFileSystem::Remove(const std::string& path) {
  return life_->over ? Status::Ok() : fs_.Remove(path);
}
Status LifeFileSystem::CreateDirs(const std::string& path) {
  return life_->over ? Status::Ok() : fs_.CreateDirs(path);
}
Status LifeFileSystem::SyncDir(const std::string& path) {
  return life_->over ? Status::Ok() : fs_.SyncDir(path);
}
Result<std::vector<DirEntry>> LifeFileSystem::List(const std::string& path) {
  if (life_->over) return std::vector<DirEntry>();
  return fs_.List(path);
}
Result<Space> LifeFileSystem::GetSpace(const std::string& path) {
  return fs_.GetSpace(path);
}
bool LifeFileSystem::Exists(const std::string& path) {
  return !life_->over && fs_.Exists(path);
}

}  // namespace triad::sim
