// StoreClaim: the store directory is this peer's, and this process is its only user.
//
// `lock` is held while the claim lives; `owner` names group and peer, with a checksum. Refused
// before anything is written: a store of the Java broker, another peer's store, a store in use
// (cases.md OPS-1, UPG-1). Thread: the starting one.

#pragma once

#include <memory>
#include <string>

#include "common/file_system.h"
#include "common/status.h"

namespace triad::broker {

class StoreClaim {
 public:
  // Makes `root` when absent. Errors: kInvalidArgument (foreign: whose), kPermissionDenied (in use:
  // by which process), kCorruption (`owner` is damaged); all name the directory and the way out.
  static Result<std::unique_ptr<StoreClaim>> Make(FileSystem& fs, const std::string& root,
                                                  const std::string& group,
                                                  const std::string& peer_id);

 private:
  explicit StoreClaim(std::unique_ptr<File> lock) : lock_(std::move(lock)) {}
  const std::unique_ptr<File> lock_;
};

}  // namespace triad::broker
