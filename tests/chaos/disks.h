// Disks: a crashfs for each peer, where power can be cut and the disk can fail.
//
// Starts one triad-crashfs per peer and gives it orders through its control file; unmounts and ends
// them in the destructor. Thread: one at a time. Needs /dev/fuse.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"

namespace triad::chaos {

class Disks {
 public:
  // `program`: triad-crashfs; `work_dir`: absolute. Errors: kIoError (no FUSE: the message says
  // so).
  static Result<std::unique_ptr<Disks>> Mount(const std::string& program,
                                              const std::string& work_dir, std::size_t count);
  ~Disks();
  Disks(const Disks&) = delete;
  Disks& operator=(const Disks&) = delete;

  // Where the peer's store goes, and where the files of a store on its disk really are.
  std::string StoreOf(std::size_t i) const { return disks_[i].mount + "/store"; }
  std::string BackingOf(std::size_t i, const std::string& store) const {
    return disks_[i].backing + "/files" + store.substr(disks_[i].mount.size());
  }

  // `words`: an order of crashfs_main.cc. Returns what it reports.
  Result<std::string> Order(std::size_t i, const std::string& words);

 private:
  struct Disk {
    std::string backing, mount, log;
    pid_t pid = 0;
  };
  Disks() = default;
  static bool IsMounted(const Disk& disk);

  std::vector<Disk> disks_;
};

}  // namespace triad::chaos
