// LifeFileSystem: the disk as one life of a process sees it. When the life is over, what is left of
// it in memory may go on calling: nothing reaches the disk any more, and nobody complains, so that
// its destructors run to their end.
//
// Thread: the simulator's only one.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/file_system.h"

namespace triad::sim {

// One life of a peer's process.
struct Life {
  bool over = false;
};
using LifePtr = std::shared_ptr<Life>;

class LifeFileSystem final : public FileSystem {
 public:
  LifeFileSystem(FileSystem& fs, LifePtr life) : fs_(fs), life_(std::move(life)) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status CreateDirs(const std::string& path) override;
  Status SyncDir(const std::string& path) override;
  Result<std::vector<DirEntry>> List(const std::string& path) override;
  Result<Space> GetSpace(const std::string& path) override;
  bool Exists(const std::string& path) override;

 private:
  FileSystem& fs_;
  const LifePtr life_;
};

}  // namespace triad::sim
