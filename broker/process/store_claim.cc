#include "broker/process/store_claim.h"

#include <unistd.h>

#include <array>
#include <utility>

namespace triad::broker {
namespace {

constexpr const char* kWayOut = "set storePathRootDir to a directory of this peer's own";

Status RefuseJavaStore(FileSystem& fs, const std::string& root, const std::string& peer_id) {
  const std::array<std::string, 4> files = {"commitlog", "config/topics.json",
                                            "dledger-" + peer_id + "/data",
                                            "dledger-" + peer_id + "/currterm"};
  for (const std::string& name : files) {
    const std::string path = root + "/" + name;
    if (!fs.Exists(path)) continue;
    return Status::InvalidArgument(path +
                                   " belongs to a store of the Java broker, whose format is "
                                   "another one; nothing was touched. " +
                                   kWayOut);
  }
  return Status::Ok();
}

Status WriteWhole(File* file, const std::string& text) {
  TRIAD_RETURN_IF_ERROR(file->Truncate(0));
  return file->Write(0, std::string_view(text));
}

}  // namespace

Result<std::unique_ptr<StoreClaim>> StoreClaim::Make(FileSystem& fs, const std::string& root,
                                                     const std::string& group,
                                                     const std::string& peer_id) {
  TRIAD_RETURN_IF_ERROR(RefuseJavaStore(fs, root, peer_id));
  TRIAD_RETURN_IF_ERROR(fs.CreateDirs(root));
  auto lock = fs.Open(root + "/lock", OpenFlags{.create = true});
  if (!lock.ok()) return lock.status();
  const Status locked = (*lock)->Lock();
  if (!locked.ok()) {
    auto holder = ReadFile(fs, root + "/lock");
    const std::string pid = holder.ok() && !holder->empty() ? *holder : "of unknown number";
    return Status::PermissionDenied(root + " is in use by process " + pid + "; " + kWayOut +
                                    ", or stop that process");
  }
  TRIAD_RETURN_IF_ERROR(WriteWhole(lock->get(), std::to_string(::getpid())));

  const std::string mine = "group=" + group + "\npeer=" + peer_id + "\n";
  auto owner = ReadFile(fs, root + "/owner");
  if (owner.status().code() == StatusCode::kNotFound) {
    TRIAD_RETURN_IF_ERROR(WriteFileAtomically(fs, root + "/owner", mine));
  } else if (!owner.ok()) {
    return owner.status();
  } else if (*owner != mine) {
    std::string theirs = *owner;
    for (char& c : theirs) c = c == '\n' ? ' ' : c;
    return Status::InvalidArgument(root + " is the store of " + theirs + "and this is group=" +
                                   group + " peer=" + peer_id + "; " + kWayOut);
  }
  return std::unique_ptr<StoreClaim>(new StoreClaim(std::move(*lock)));
}

}  // namespace triad::broker
