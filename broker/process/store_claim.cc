#include "broker/process/store_claim.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/crc32c.h"

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

std::string OneLine(std::string text) {
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return text;
}

// `owner` without its checksum: "group=G\npeer=P\n".
std::string Sealed(const std::string& owner) {
  return owner + "crc32c=" + std::to_string(Crc32c(owner)) + "\n";
}

// kInvalidArgument: another's; kCorruption: the file says nothing that can be believed. Files of
// older versions have no checksum.
Status CheckOwner(const std::string& path, const std::string& root, const std::string& found,
                  const std::string& mine) {
  if (found == Sealed(mine) || found == mine) return Status::Ok();
  const std::string theirs = found.substr(0, found.find("crc32c="));
  const bool is_old = theirs == found && std::ranges::count(found, '\n') == 2;
  if (is_old || found == Sealed(theirs)) {
    return Status::InvalidArgument(root + " is the store of " + OneLine(theirs) + "and this is " +
                                   OneLine(mine) + "; " + kWayOut);
  }
  return Status::Corruption(path +
                            " is damaged and does not tell whose store this is. If it is of " +
                            OneLine(mine) + "remove that file and start again; else " + kWayOut);
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
  const std::string path = root + "/owner";
  auto owner = ReadFile(fs, path);
  if (owner.status().code() == StatusCode::kNotFound) {
    TRIAD_RETURN_IF_ERROR(WriteFileAtomically(fs, path, Sealed(mine)));
  } else if (!owner.ok()) {
    return owner.status();
  } else {
    TRIAD_RETURN_IF_ERROR(CheckOwner(path, root, *owner, mine));
  }
  return std::unique_ptr<StoreClaim>(new StoreClaim(std::move(*lock)));
}

}  // namespace triad::broker
