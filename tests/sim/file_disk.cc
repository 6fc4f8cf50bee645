#include "tests/sim/file_disk.h"

#include <algorithm>
#include <utility>

namespace triad::sim {

std::string FileDisk::DirOf(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

bool FileDisk::IsName(const DiskOp& op) {
  return op.kind == DiskOp::Kind::kLink || op.kind == DiskOp::Kind::kUnlink ||
         op.kind == DiskOp::Kind::kRename || op.kind == DiskOp::Kind::kRenameDir;
}

void FileDisk::MoveNames(const DiskOp& op, Names* names) {
  const std::string inside = op.path + "/";
  for (auto it = names->lower_bound(inside); it != names->end() && it->first.starts_with(inside);) {
    auto moved = names->extract(it++);
    moved.key() = op.to + "/" + moved.key().substr(inside.size());
    names->insert(std::move(moved));
  }
}

// A rename that is lost brings its directories back with the names in them (Settle).
void FileDisk::RenameDir(const DiskOp& op) {
  const std::string inside = op.path + "/";
  std::set<std::string> moved{op.to};
  for (const std::string& dir : dirs_) {
    if (dir.starts_with(inside)) moved.insert(op.to + "/" + dir.substr(inside.size()));
  }
  std::erase_if(dirs_,
                [&](const std::string& dir) { return dir == op.path || dir.starts_with(inside); });
  dirs_.merge(moved);
  for (const DiskOp& p : pending_) {
    if (IsName(p) && p.path.starts_with(inside)) ApplyName(p, &durable_names_);
  }
  std::erase_if(pending_, [&](const DiskOp& p) { return IsName(p) && p.path.starts_with(inside); });
}

void FileDisk::ApplyName(const DiskOp& op, Names* names) {
  if (op.kind == DiskOp::Kind::kRenameDir) return MoveNames(op, names);
  if (op.kind == DiskOp::Kind::kLink) {
    (*names)[op.path] = op.inode;
    return;
  }
  const auto it = names->find(op.path);
  const bool same = it != names->end() && it->second == op.inode;
  if (same) names->erase(it);
  if (op.kind == DiskOp::Kind::kRename) (*names)[op.to] = op.inode;
}

void FileDisk::ApplyBytes(const DiskOp& op, std::string* bytes) {
  if (op.kind == DiskOp::Kind::kTruncate) {
    bytes->resize(op.offset, '\0');
    return;
  }
  const std::size_t end = op.offset + op.bytes.size();
  if (bytes->size() < end) bytes->resize(end, '\0');
  bytes->replace(op.offset, op.bytes.size(), op.bytes);
}

void FileDisk::Apply(const DiskOp& op) {
  switch (op.kind) {
    case DiskOp::Kind::kWrite:
    case DiskOp::Kind::kTruncate:
      ApplyBytes(op, &inodes_[op.inode].visible);
      Mend(op);
      pending_.push_back(op);
      break;
    case DiskOp::Kind::kLink:
      inodes_[op.inode];
      next_inode_ = std::max(next_inode_, op.inode + 1);
      [[fallthrough]];
    case DiskOp::Kind::kUnlink:
    case DiskOp::Kind::kRename:
      ApplyName(op, &names_);
      pending_.push_back(op);
      break;
    case DiskOp::Kind::kRenameDir:
      RenameDir(op);
      ApplyName(op, &names_);
      pending_.push_back(op);
      break;
    case DiskOp::Kind::kSync:
      // Only what is pending: what a failed sync lost stays lost, though readers still see it.
      for (const DiskOp& p : pending_) {
        if (!IsName(p) && p.inode == op.inode) KeepDurably(p);
      }
      std::erase_if(pending_, [&op](const DiskOp& p) { return !IsName(p) && p.inode == op.inode; });
      break;
    case DiskOp::Kind::kRemoveDir: dirs_.erase(op.path); [[fallthrough]];
    case DiskOp::Kind::kSyncDir:
      for (const DiskOp& p : pending_) {
        if (IsName(p) && DirOf(p.path) == op.path) ApplyName(p, &durable_names_);
      }
      std::erase_if(pending_,
                    [&op](const DiskOp& p) { return IsName(p) && DirOf(p.path) == op.path; });
      break;
    case DiskOp::Kind::kMakeDir: dirs_.insert(op.path); break;
    case DiskOp::Kind::kMark: break;
  }
}

std::optional<std::uint64_t> FileDisk::Lookup(const std::string& path) const {
  const auto it = names_.find(path);
  if (it == names_.end()) return std::nullopt;
  return it->second;
}

bool FileDisk::HoldsDurably(const std::string& path, std::uint64_t offset,
                            std::string_view bytes) const {
  const auto it = durable_names_.find(path);
  if (it == durable_names_.end()) return false;
  const std::string& durable = inodes_.at(it->second).durable;
  return durable.size() >= offset && durable.compare(offset, bytes.size(), bytes) == 0;
}

std::map<std::string, std::uint64_t> FileDisk::List(const std::string& dir) const {
  const std::string prefix = dir == "/" ? dir : dir + "/";
  std::map<std::string, std::uint64_t> found;
  const auto add = [&](const std::string& path, std::uint64_t inode) {
    if (path.size() <= prefix.size() || path.compare(0, prefix.size(), prefix) != 0) return;
    const std::string name = path.substr(prefix.size());
    if (name.find('/') == std::string::npos) found[name] = inode;
  };
  for (const std::string& path : dirs_) add(path, 0);
  for (const auto& [path, inode] : names_) add(path, inode);
  return found;
}

std::uint64_t FileDisk::TotalBytes() const {
  std::uint64_t total = 0;
  for (const auto& [path, inode] : names_) total += inodes_.at(inode).visible.size();
  return total;
}

void FileDisk::KeepDurably(const DiskOp& op) {
  if (IsName(op)) {
    ApplyName(op, &durable_names_);
  } else {
    ApplyBytes(op, &inodes_[op.inode].durable);
    if (!spoiled_.empty()) Unspoil(op);
    if (op.meant) {
      Spoil(op.inode, op.offset, op.bytes.size());
      Spoil(op.inode, *op.meant, op.bytes.size());
    }
  }
}

// The first `sectors` sectors that the write touches.
void FileDisk::ApplySectors(const DiskOp& op, std::size_t sectors) {
  const std::uint64_t end = (op.offset / kSectorBytes + sectors) * kSectorBytes;
  if (end <= op.offset) return;
  DiskOp part = op;
  part.bytes.resize(std::min<std::uint64_t>(op.bytes.size(), end - op.offset));
  KeepDurably(part);
}

void FileDisk::Settle() {
  pending_.clear();
  names_ = durable_names_;
  std::set<std::uint64_t> linked;
  for (const auto& [path, inode] : names_) {
    linked.insert(inode);
    for (std::string dir = DirOf(path); dirs_.insert(dir).second;) dir = DirOf(dir);
  }
  std::erase_if(inodes_, [&linked](const auto& inode) { return !linked.contains(inode.first); });
  for (auto& [id, inode] : inodes_) inode.visible = inode.durable;
}

void FileDisk::CrashFile(std::uint64_t inode, CrashMode mode, Random* random) {
  std::vector<const DiskOp*> ops;
  for (const DiskOp& op : pending_) {
    if (!IsName(op) && op.inode == inode) ops.push_back(&op);
  }
  const std::size_t durable_size = inodes_[inode].durable.size();
  const std::size_t first_few = random->Below(ops.size() + 1);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const DiskOp& op = *ops[i];
    const std::size_t sectors = op.bytes.size() / kSectorBytes + 2;
    const bool torn = mode == CrashMode::kTorn && i == first_few;
    if (mode == CrashMode::kKeepAll || i < first_few) {
      const bool in_order =
          mode == CrashMode::kKeepAll || mode == CrashMode::kPrefix || mode == CrashMode::kTorn;
      if (in_order) KeepDurably(op);
    }
    if (torn && op.kind == DiskOp::Kind::kWrite) ApplySectors(op, random->Below(sectors));
    if (mode == CrashMode::kSubset && op.kind == DiskOp::Kind::kTruncate) {
      if (random->OneIn(2)) KeepDurably(op);
    } else if (mode == CrashMode::kSubset) {
      for (std::uint64_t at = op.offset; at < op.offset + op.bytes.size();) {
        const std::uint64_t next = (at / kSectorBytes + 1) * kSectorBytes;
        DiskOp part = op;
        part.offset = at;
        part.bytes = op.bytes.substr(at - op.offset, next - at);
        if (random->OneIn(2)) KeepDurably(part);
        at = next;
      }
    }
    const bool grown = mode == CrashMode::kGrownZeros || mode == CrashMode::kGrownGarbage;
    if (grown && op.kind == DiskOp::Kind::kWrite && op.offset + op.bytes.size() > durable_size) {
      DiskOp part = op;
      part.offset = std::max<std::uint64_t>(op.offset, durable_size);
      part.bytes.resize(op.offset + op.bytes.size() - part.offset);
      for (char& c : part.bytes) {
        c = mode == CrashMode::kGrownZeros ? '\0' : static_cast<char>(random->Next());
      }
      KeepDurably(part);
    }
  }
}

void FileDisk::Crash(CrashMode mode, Random* random) {
  std::set<std::uint64_t> touched;
  for (const DiskOp& op : pending_) {
    if (!IsName(op)) {
      touched.insert(op.inode);
      continue;
    }
    const bool keep =
        mode == CrashMode::kKeepAll || (mode != CrashMode::kDropAll && random->OneIn(2));
    if (keep) ApplyName(op, &durable_names_);
  }
  if (mode != CrashMode::kDropAll) {
    for (const std::uint64_t inode : touched) CrashFile(inode, mode, random);
  }
  Settle();
}

void FileDisk::CrashRandomly(Random* random) {
  std::set<std::uint64_t> touched;
  for (const DiskOp& op : pending_) {
    if (!IsName(op)) {
      touched.insert(op.inode);
    } else if (random->OneIn(2)) {
      ApplyName(op, &durable_names_);
    }
  }
  for (const std::uint64_t inode : touched) {
    const auto mode = static_cast<CrashMode>(random->Below(kCrashModes));
    if (mode != CrashMode::kDropAll) CrashFile(inode, mode, random);
  }
  Settle();
}

void FileDisk::CrashLosing(std::size_t lost) {
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (i != lost) KeepDurably(pending_[i]);
  }
  Settle();
}

void FileDisk::CrashTearing(std::size_t torn, std::size_t sectors) {
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (i != torn) {
      KeepDurably(pending_[i]);
    } else if (pending_[i].kind == DiskOp::Kind::kWrite) {
      ApplySectors(pending_[i], sectors);
    }
  }
  Settle();
}

void FileDisk::CrashKeepingFirst(std::size_t count) {
  for (std::size_t i = 0; i < std::min(count, pending_.size()); ++i) KeepDurably(pending_[i]);
  Settle();
}

}  // namespace triad::sim
