#include "tests/sim/sim_file_system.h"

#include <algorithm>
#include <set>
#include <utility>

namespace triad::sim {
namespace {

constexpr char kBootIdPath[] = "/proc/sys/kernel/random/boot_id";

std::string Parent(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

}  // namespace

class SimFile final : public File {
 public:
  SimFile(SimFileSystem& fs, std::string path, std::uint64_t inode, bool read_only)
      : fs_(fs), path_(std::move(path)), inode_(inode), life_(fs.life_), read_only_(read_only) {}
  ~SimFile() override {
    const std::lock_guard hold(fs_.mutex_);
    const auto it = fs_.locks_.find(inode_);
    if (it != fs_.locks_.end() && it->second.holder == this) fs_.locks_.erase(it);
  }

  Status Write(std::uint64_t offset, std::span<const std::string_view> parts) override {
    const std::lock_guard hold(fs_.mutex_);
    TRIAD_RETURN_IF_ERROR(fs_.Alive(life_));
    if (read_only_) return Status::IoError("write " + path_ + ": opened for reading");
    if (fs_.TakeFault(SimFault::kWrite, path_) || fs_.TakeNth())
      return Status::IoError("write " + path_ + ": EIO");
    std::string bytes;
    for (const std::string_view part : parts) bytes.append(part);
    if (bytes.empty()) return {};
    const std::uint64_t size = fs_.disk_.Bytes(inode_).size();
    const std::uint64_t end = offset + bytes.size();
    if (end > size && fs_.disk_.TotalBytes() + (end - size) > fs_.capacity_) {
      return fs_.NoSpace("write " + path_);
    }
    if (!fs_.disk_.CanWrite(inode_, offset, bytes.size())) {
      ++fs_.met_.bad_sectors;
      return Status::IoError("write " + path_ + ": EIO, a bad sector");
    }
    DiskOp op{.kind = DiskOp::Kind::kWrite, .inode = inode_, .offset = offset};
    if (fs_.short_writes_ && bytes.size() > 1) {
      ++fs_.met_.short_writes;
      const std::size_t split = 1 + fs_.random_.Below(bytes.size() - 1);
      DiskOp front = op;
      front.bytes = bytes.substr(0, split);
      TRIAD_RETURN_IF_ERROR(fs_.Change(std::move(front)));
      op.offset += split;
      bytes.erase(0, split);
    }
    op.bytes = std::move(bytes);
    if (fs_.Misdirect(path_, &op)) ++fs_.met_.misdirected;
    return fs_.Change(std::move(op));
  }

  Result<std::size_t> Read(std::uint64_t offset, std::span<char> buffer) const override {
    const std::lock_guard hold(fs_.mutex_);
    TRIAD_RETURN_IF_ERROR(fs_.Alive(life_));
    if (fs_.TakeFault(SimFault::kRead, path_) || fs_.TakeNth())
      return Status::IoError("read " + path_ + ": EIO");
    const std::string& bytes = fs_.disk_.Bytes(inode_);
    if (offset >= bytes.size()) return std::size_t{0};
    if (!fs_.disk_.CanRead(inode_, offset, std::min(buffer.size(), bytes.size() - offset))) {
      ++fs_.met_.bad_sectors;
      return Status::IoError("read " + path_ + ": EIO, a bad sector");
    }
    return bytes.copy(buffer.data(), buffer.size(), offset);
  }

  Status Sync() override {
    const std::lock_guard hold(fs_.mutex_);
    TRIAD_RETURN_IF_ERROR(fs_.Alive(life_));
    if (fs_.TakeFault(SimFault::kSync, path_) || fs_.TakeNth()) {
      fs_.disk_.LoseInSync(inode_, &fs_.random_, fs_.reads_old_);
      return Status::IoError("sync " + path_ + ": EIO");
    }
    if (fs_.IsArmed(SimFault::kLie) && fs_.disk_.HasPending(inode_) &&
        fs_.TakeFault(SimFault::kLie, path_)) {
      ++fs_.met_.lies;
      fs_.disk_.LieInSync(inode_);
      return {};
    }
    return fs_.Change(DiskOp{.kind = DiskOp::Kind::kSync, .inode = inode_});
  }
  Status SyncAll() override { return Sync(); }

  Status Truncate(std::uint64_t size_bytes) override {
    const std::lock_guard hold(fs_.mutex_);
    TRIAD_RETURN_IF_ERROR(fs_.Alive(life_));
    if (read_only_) return Status::IoError("truncate " + path_ + ": opened for reading");
    if (fs_.TakeNth()) return Status::IoError("truncate " + path_ + ": EIO");
    return fs_.Change(
        DiskOp{.kind = DiskOp::Kind::kTruncate, .inode = inode_, .offset = size_bytes});
  }

  Result<std::uint64_t> Size() const override {
    const std::lock_guard hold(fs_.mutex_);
    TRIAD_RETURN_IF_ERROR(fs_.Alive(life_));
    if (fs_.TakeNth()) return Status::IoError("size of " + path_ + ": EIO");
    return static_cast<std::uint64_t>(fs_.disk_.Bytes(inode_).size());
  }

  Status Lock() override {
    const std::lock_guard hold(fs_.mutex_);
    TRIAD_RETURN_IF_ERROR(fs_.Alive(life_));
    SimFileSystem::Lock& lock = fs_.locks_[inode_];
    if (lock.holder != nullptr && lock.holder != this && lock.life == fs_.life_) {
      return Status::PermissionDenied("locked elsewhere: " + path_);
    }
    lock = SimFileSystem::Lock{.holder = this, .life = fs_.life_};
    return {};
  }

 private:
  SimFileSystem& fs_;
  const std::string path_;
  const std::uint64_t inode_;
  const std::uint64_t life_;
  const bool read_only_;
};

SimFileSystem::SimFileSystem(std::uint64_t seed, FileDisk disk)
    : random_(seed),
      disk_(std::move(disk)),
      stop_after_(kNever),
      fail_after_(kNever),
      capacity_(kNever),
      total_bytes_(kNever) {}

Status SimFileSystem::Alive(std::uint64_t life) const {
  if (life != life_) return Status::IoError("this handle belongs to a process that is gone");
  if (changes_ >= stop_after_) return Status::IoError("the power is off");
  return {};
}

Status SimFileSystem::Change(DiskOp op) {
  TRIAD_RETURN_IF_ERROR(Alive(life_));
  ++changes_;
  disk_.Apply(op);
  if (recording_) trace_.push_back(std::move(op));
  return {};
}

Status SimFileSystem::Enter(const char* what, const std::string& path) {
  TRIAD_RETURN_IF_ERROR(Alive(life_));
  return TakeNth() ? Status::IoError(what + path + ": EIO") : Status::Ok();
}

Result<std::unique_ptr<File>> SimFileSystem::Open(const std::string& path, OpenFlags flags) {
  const std::lock_guard hold(mutex_);
  TRIAD_RETURN_IF_ERROR(Enter("open ", path));
  if (disk_.IsDir(path)) return Status::IoError("open " + path + ": is a directory");
  std::optional<std::uint64_t> inode = disk_.Lookup(path);
  if (inode && flags.create && flags.exclusive) return Status::AlreadyExists("open " + path);
  if (!inode) {
    if (!flags.create || !disk_.IsDir(Parent(path))) return Status::NotFound("open " + path);
    if (names_full_ || disk_.TotalBytes() >= capacity_) return NoSpace("open " + path);
    inode = disk_.next_inode();
    TRIAD_RETURN_IF_ERROR(
        Change(DiskOp{.kind = DiskOp::Kind::kLink, .inode = *inode, .path = path}));
  } else if (flags.truncate && !flags.read_only) {
    TRIAD_RETURN_IF_ERROR(Change(DiskOp{.kind = DiskOp::Kind::kTruncate, .inode = *inode}));
  }
  return std::unique_ptr<File>(std::make_unique<SimFile>(*this, path, *inode, flags.read_only));
}

Status SimFileSystem::Rename(const std::string& from, const std::string& to) {
  const std::lock_guard hold(mutex_);
  TRIAD_RETURN_IF_ERROR(Enter("rename ", from));
  const std::optional<std::uint64_t> inode = disk_.Lookup(from);
  const bool is_dir = !inode && disk_.IsDir(from);
  if ((!inode && !is_dir) || !disk_.IsDir(Parent(to))) return Status::NotFound("rename " + from);
  if (names_full_) return NoSpace("rename " + from);
  if (is_dir) {
    return Change(DiskOp{.kind = DiskOp::Kind::kRenameDir, .path = from, .to = to});
  }
  return Change(DiskOp{.kind = DiskOp::Kind::kRename, .inode = *inode, .path = from, .to = to});
}

Status SimFileSystem::Remove(const std::string& path) {
  const std::lock_guard hold(mutex_);
  TRIAD_RETURN_IF_ERROR(Enter("remove ", path));
  if (TakeFault(SimFault::kRemove, path)) return Status::IoError("remove " + path + ": EIO");
  const std::optional<std::uint64_t> inode = disk_.Lookup(path);
  if (!inode && disk_.IsDir(path)) {
    if (!disk_.List(path).empty()) return Status::IoError("remove " + path + ": not empty");
    return Change(DiskOp{.kind = DiskOp::Kind::kRemoveDir, .path = path});
  }
  if (!inode) return Status::NotFound("remove " + path);
  return Change(DiskOp{.kind = DiskOp::Kind::kUnlink, .inode = *inode, .path = path});
}

Status SimFileSystem::CreateDirs(const std::string& path) {
  const std::lock_guard hold(mutex_);
  TRIAD_RETURN_IF_ERROR(Enter("create directory ", path));
  for (std::size_t end = 1; end != std::string::npos && end <= path.size();) {
    end = path.find('/', end);
    const std::string dir = path.substr(0, end);
    if (disk_.Lookup(dir)) return Status::IoError("create directory " + dir + ": is a file");
    if (!disk_.IsDir(dir)) {
      if (names_full_) return NoSpace("create directory " + dir);
      TRIAD_RETURN_IF_ERROR(Change(DiskOp{.kind = DiskOp::Kind::kMakeDir, .path = dir}));
    }
    if (end != std::string::npos) ++end;
  }
  return {};
}

Status SimFileSystem::SyncDir(const std::string& path) {
  const std::lock_guard hold(mutex_);
  TRIAD_RETURN_IF_ERROR(Enter("sync directory ", path));
  if (TakeFault(SimFault::kSyncDir, path)) {
    return Status::IoError("sync directory " + path + ": EIO");
  }
  if (!disk_.IsDir(path)) return Status::NotFound("open directory " + path);
  return Change(DiskOp{.kind = DiskOp::Kind::kSyncDir, .path = path});
}

// In steps, each of which may be the last before a crash.
Status SimFileSystem::SyncEverything(const std::string& path) {
  const std::lock_guard hold(mutex_);
  TRIAD_RETURN_IF_ERROR(Enter("sync all of ", path));
  ++whole_syncs_;
  std::set<std::uint64_t> inodes;
  std::set<std::string> dirs;
  for (std::size_t i = 0; i < disk_.pending_count(); ++i) {
    const DiskOp& op = disk_.pending(i);
    if (op.inode != 0) inodes.insert(op.inode);
    if (!op.path.empty()) dirs.insert(Parent(op.path));
    if (!op.to.empty()) dirs.insert(Parent(op.to));
  }
  for (const std::uint64_t inode : inodes) {
    TRIAD_RETURN_IF_ERROR(Change(DiskOp{.kind = DiskOp::Kind::kSync, .inode = inode}));
  }
  for (const std::string& dir : dirs) {
    TRIAD_RETURN_IF_ERROR(Change(DiskOp{.kind = DiskOp::Kind::kSyncDir, .path = dir}));
  }
  return {};
}

int SimFileSystem::whole_syncs() const {
  const std::lock_guard hold(mutex_);
  return whole_syncs_;
}

Result<std::vector<DirEntry>> SimFileSystem::List(const std::string& path) {
  const std::lock_guard hold(mutex_);
  TRIAD_RETURN_IF_ERROR(Enter("list ", path));
  if (!disk_.IsDir(path)) return Status::NotFound("list " + path);
  std::vector<DirEntry> entries;
  for (const auto& [name, inode] : disk_.List(path)) {
    entries.push_back(DirEntry{.name = name,
                               .is_directory = inode == 0,
                               .size_bytes = inode == 0 ? 0 : disk_.Bytes(inode).size()});
  }
  return entries;
}

Result<Space> SimFileSystem::GetSpace(const std::string& /*path*/) {
  const std::lock_guard hold(mutex_);
  const std::uint64_t total = std::min(capacity_, total_bytes_);
  const std::uint64_t used = disk_.TotalBytes();
  return Space{.total_bytes = total, .available_bytes = total - std::min(used, total)};
}

bool SimFileSystem::Exists(const std::string& path) {
  const std::lock_guard hold(mutex_);
  return disk_.IsDir(path) || disk_.Lookup(path).has_value();
}

void SimFileSystem::EndLife() {
  ++life_;
  stop_after_ = kNever;
  fail_after_ = kNever;
  locks_.clear();
  faults_.clear();
}

void SimFileSystem::Crash(CrashMode mode) {
  const std::lock_guard hold(mutex_);
  disk_.Crash(mode, &random_);
  EndLife();
}

void SimFileSystem::CrashRandomly() {
  const std::lock_guard hold(mutex_);
  disk_.CrashRandomly(&random_);
  EndLife();
}

void SimFileSystem::Kill() {
  const std::lock_guard hold(mutex_);
  EndLife();
}

void SimFileSystem::StopAfter(std::uint64_t count) {
  const std::lock_guard hold(mutex_);
  stop_after_ = changes_ + count;
}

bool SimFileSystem::stopped() const {
  const std::lock_guard hold(mutex_);
  return changes_ >= stop_after_;
}

void SimFileSystem::set_boot_id(const std::string& id) {
  CHECK(CreateDirs(Parent(kBootIdPath)).ok());
  const std::lock_guard hold(mutex_);
  const std::uint64_t inode = disk_.next_inode();
  disk_.Apply(DiskOp{.kind = DiskOp::Kind::kLink, .inode = inode, .path = kBootIdPath});
  disk_.Apply(DiskOp{.kind = DiskOp::Kind::kWrite, .inode = inode, .bytes = id});
  disk_.Apply(DiskOp{.kind = DiskOp::Kind::kSync, .inode = inode});
  disk_.Apply(DiskOp{.kind = DiskOp::Kind::kSyncDir, .path = Parent(kBootIdPath)});
}

std::string SimFileSystem::Bytes(const std::string& path) const {
  const std::lock_guard hold(mutex_);
  const std::optional<std::uint64_t> inode = disk_.Lookup(path);
  return inode ? disk_.Bytes(*inode) : std::string();
}

std::string SimFileSystem::DurableBytes(const std::string& path) const {
  const std::lock_guard hold(mutex_);
  const std::optional<std::uint64_t> inode = disk_.Lookup(path);
  return inode ? disk_.DurableBytes(*inode) : std::string();
}

bool SimFileSystem::HoldsDurably(const std::string& path, std::uint64_t offset,
                                 std::string_view bytes) const {
  const std::lock_guard hold(mutex_);
  return disk_.HoldsDurably(path, offset, bytes);
}

bool SimFileSystem::IsSpoiled(const std::string& path, std::uint64_t offset,
                              std::uint64_t size) const {
  const std::lock_guard hold(mutex_);
  return disk_.IsSpoiled(path, offset, size);
}

std::uint64_t SimFileSystem::changes() const {
  const std::lock_guard hold(mutex_);
  return changes_;
}

void SimFileSystem::Record(bool on) {
  const std::lock_guard hold(mutex_);
  recording_ = on;
  if (on) trace_.clear();
}

void SimFileSystem::Mark(std::uint64_t value) {
  const std::lock_guard hold(mutex_);
  if (recording_) trace_.push_back(DiskOp{.kind = DiskOp::Kind::kMark, .offset = value});
}

std::vector<DiskOp> SimFileSystem::trace() const {
  const std::lock_guard hold(mutex_);
  return trace_;
}

FileDisk SimFileSystem::disk() const {
  const std::lock_guard hold(mutex_);
  return disk_;
}

}  // namespace triad::sim
