// StoreGuard: the store is this peer's, and this process is its only user.
//
// `lock` is held while the guard lives. `stamp` names group, peer and format; it is written last
// when a store is made, so a store without one was never finished. Refuses a foreign store, a log
// without its stamp, and a store of Java RocketMQ, each with a way out. Thread: the opening one.

#pragma once

#include <memory>
#include <string>

#include "common/file_system.h"
#include "common/status.h"
#include "dledger/log/log_store.h"

namespace triad::dledger {

class StoreGuard {
 public:
  // Makes `dir` if need be and locks it. Errors: kPermissionDenied naming directory and pid.
  static Result<std::unique_ptr<StoreGuard>> Lock(FileSystem& fs, const std::string& dir);

  // True: the store is `stamp`'s. False: nothing of ours is here yet, so it may be made.
  // Errors: kInvalidArgument (foreign: whose; Java), kCorruption (damaged or missing stamp).
  Result<bool> CheckStamp(const StoreStamp& stamp) const;
  // The last step of making a store.
  Status WriteStamp(const StoreStamp& stamp);

 private:
  StoreGuard(FileSystem& fs, std::string dir, std::unique_ptr<File> lock)
      : fs_(fs), dir_(std::move(dir)), lock_(std::move(lock)) {}
  Status CheckVirgin() const;

  FileSystem& fs_;
  const std::string dir_;
  const std::unique_ptr<File> lock_;
};

}  // namespace triad::dledger
