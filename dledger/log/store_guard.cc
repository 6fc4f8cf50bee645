#include "dledger/log/store_guard.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/crc32c.h"
#include "dledger/log/segment_file.h"

namespace triad::dledger {
namespace {

constexpr std::uint64_t kJavaSegmentBytes = 1u << 30;
constexpr std::uint64_t kJavaQueueFileBytes = 300'000 * 20;

std::string ParentOf(const std::string& dir) {
  std::string path = dir;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string Checksum(std::string_view text) {
  std::array<char, 9> hex;
  std::snprintf(hex.data(), hex.size(), "%08x", Crc32c(text));
  return std::string(hex.data(), 8);
}

std::string EncodeStamp(const StoreStamp& stamp) {
  std::string text = "format=" + std::to_string(stamp.format) + "\ngroup=" + stamp.group +
                     "\npeer=" + stamp.peer_id + "\n";
  return text + "crc=" + Checksum(text) + "\n";
}

// The value of "key=value\n" at the front of `text`, which it removes.
std::optional<std::string> TakeLine(std::string_view key, std::string_view* text) {
  const auto end = text->find('\n');
  if (end == std::string_view::npos || text->substr(0, key.size()) != key) return std::nullopt;
  std::string value(text->substr(key.size(), end - key.size()));
  text->remove_prefix(end + 1);
  return value;
}

std::optional<StoreStamp> DecodeStamp(std::string_view text) {
  constexpr std::size_t kCrcLineBytes = 13;
  if (text.size() < kCrcLineBytes) return std::nullopt;
  const std::string_view body = text.substr(0, text.size() - kCrcLineBytes);
  if (text.substr(body.size()) != "crc=" + Checksum(body) + "\n") return std::nullopt;
  std::string_view rest = body;
  const auto format = TakeLine("format=", &rest);
  auto group = TakeLine("group=", &rest);
  auto peer = TakeLine("peer=", &rest);
  if (!format || !group || !peer || format->size() > 9) return std::nullopt;
  return StoreStamp{
      .group = std::move(*group),
      .peer_id = std::move(*peer),
      .format = static_cast<std::uint32_t>(std::strtoul(format->c_str(), nullptr, 10))};
}

// Whether `dir` directly holds a file named like a mapped file, of that size (0: of any size).
bool HoldsMappedFile(FileSystem& fs, const std::string& dir, std::uint64_t size_bytes) {
  const Result<std::vector<DirEntry>> names = fs.List(dir);
  if (!names.ok()) return false;
  for (const DirEntry& name : *names) {
    if (name.is_directory || !ParseSegmentName(name.name)) continue;
    if (size_bytes == 0 || name.size_bytes == size_bytes) return true;
  }
  return false;
}

std::vector<std::string> SubDirs(FileSystem& fs, const std::string& dir) {
  const Result<std::vector<DirEntry>> names = fs.List(dir);
  std::vector<std::string> dirs;
  if (!names.ok()) return dirs;
  for (const DirEntry& name : *names) {
    if (name.is_directory) dirs.push_back(dir + "/" + name.name);
  }
  return dirs;
}

bool HoldsJavaQueues(FileSystem& fs, const std::string& dir) {
  for (const std::string& topic : SubDirs(fs, dir)) {
    for (const std::string& queue : SubDirs(fs, topic)) {
      if (HoldsMappedFile(fs, queue, kJavaQueueFileBytes)) return true;
    }
  }
  return false;
}

// What of Java RocketMQ lies in `root`; empty = nothing.
std::string FindJavaStore(FileSystem& fs, const std::string& root) {
  if (fs.Exists(root + "/config/topics.json")) return root + "/config/topics.json";
  if (HoldsMappedFile(fs, root + "/commitlog", kJavaSegmentBytes)) return root + "/commitlog";
  if (HoldsJavaQueues(fs, root + "/consumequeue")) return root + "/consumequeue";
  for (const std::string& dir : SubDirs(fs, root)) {
    if (dir.starts_with(root + "/dledger-") && HoldsMappedFile(fs, dir + "/data", 0)) {
      return dir + "/data";
    }
  }
  return {};
}

// The names of directories that were just made: without them a power loss takes the whole store.
Status SyncParents(FileSystem& fs, std::string dir) {
  for (bool is_first = true;; is_first = false) {
    const auto slash = dir.rfind('/');
    if (slash == std::string::npos) return {};
    const std::string parent = slash == 0 ? "/" : dir.substr(0, slash);
    const Status synced = fs.SyncDir(parent);
    // Further up a directory may be somebody else's, and was there before.
    if (!synced.ok()) return is_first ? synced : Status::Ok();
    if (slash == 0) return {};
    dir = parent;
  }
}

std::string NameOf(const StoreStamp& stamp) {
  return "peer " + stamp.peer_id + " of group " + stamp.group;
}

}  // namespace

Result<std::unique_ptr<StoreGuard>> StoreGuard::Lock(FileSystem& fs, const std::string& dir) {
  TRIAD_RETURN_IF_ERROR(fs.CreateDirs(dir));
  Result<std::unique_ptr<File>> file = fs.Open(dir + "/lock", OpenFlags{.create = true});
  if (!file.ok()) return file.status();
  const Status locked = (*file)->Lock();
  if (locked.code() == StatusCode::kPermissionDenied) {
    std::array<char, 20> text;
    const Result<std::size_t> n = (*file)->Read(0, std::span<char>(text));
    const std::string pid = n.ok() && *n > 0 ? std::string(text.data(), *n) : "unknown";
    return Status::PermissionDenied("the store in " + dir + " is in use by process " + pid +
                                    "; stop it first, or give this peer a directory of its own");
  }
  TRIAD_RETURN_IF_ERROR(locked);
  const Status cleared = (*file)->Truncate(0);
  if (cleared.ok()) {
    IgnoreError((*file)->Write(0, std::to_string(::getpid())),
                "the pid only helps whoever is refused; the disk may be full");
  }
  return std::unique_ptr<StoreGuard>(new StoreGuard(fs, dir, std::move(file).value()));
}

Result<bool> StoreGuard::CheckStamp(const StoreStamp& stamp) const {
  const Result<std::string> text = ReadFile(fs_, dir_ + "/stamp");
  if (text.status().code() == StatusCode::kNotFound) {
    TRIAD_RETURN_IF_ERROR(CheckVirgin());
    return false;
  }
  if (!text.ok()) return text.status();
  const std::optional<StoreStamp> found = DecodeStamp(*text);
  if (!found) {
    return Status::Corruption(
        dir_ + "/stamp is damaged; it must hold, before its checksum: " + NameOf(stamp));
  }
  if (found->group != stamp.group || found->peer_id != stamp.peer_id) {
    return Status::InvalidArgument("the store in " + dir_ + " belongs to " + NameOf(*found) +
                                   ", not to " + NameOf(stamp) +
                                   "; set storePathRootDir or dLegerSelfId right");
  }
  if (found->format != stamp.format) {
    return Status::InvalidArgument("the store in " + dir_ + " has format " +
                                   std::to_string(found->format) + ", this program writes format " +
                                   std::to_string(stamp.format));
  }
  return true;
}

Status StoreGuard::CheckVirgin() const {
  for (const std::string& root : {ParentOf(dir_), dir_}) {
    const std::string java = FindJavaStore(fs_, root);
    if (java.empty()) continue;
    return Status::InvalidArgument(root + " holds a store of Java RocketMQ (" + java +
                                   "), whose format differs; give this broker another "
                                   "storePathRootDir and move the messages over with clients");
  }
  Result<SegmentMap> segments = OpenSegments(fs_, dir_);
  if (!segments.ok()) return segments.status();
  for (const auto& [base, segment] : *segments) {
    std::array<char, 8> head{};
    const Result<std::size_t> n = segment->Read(base, std::span<char>(head));
    if (!n.ok()) return n.status();
    if (head == std::array<char, 8>{}) continue;
    return Status::Corruption(segment->path() + " holds entries, but " + dir_ +
                              "/stamp is missing; restore it, or empty the directory to let this "
                              "peer copy the log from the others");
  }
  return {};
}

Status StoreGuard::WriteStamp(const StoreStamp& stamp) {
  TRIAD_RETURN_IF_ERROR(SyncParents(fs_, dir_));
  return WriteFileAtomically(fs_, dir_ + "/stamp", EncodeStamp(stamp));
}

}  // namespace triad::dledger
