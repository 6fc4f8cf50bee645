#include "broker/process/store_check.h"

#include <array>

namespace triad::broker {

Status CheckStoreRoot(FileSystem& fs, const std::string& root, const std::string& peer_id) {
  const std::array<std::string, 4> java = {"commitlog", "config/topics.json",
                                           "dledger-" + peer_id + "/data",
                                           "dledger-" + peer_id + "/currterm"};
  for (const std::string& name : java) {
    const std::string path = root + "/" + name;
    if (!fs.Exists(path)) continue;
    return Status::InvalidArgument(
        path +
        " belongs to a store of the Java broker, whose format is another one; nothing was "
        "touched. Set storePathRootDir to an empty directory");
  }
  return Status::Ok();
}

}  // namespace triad::broker
