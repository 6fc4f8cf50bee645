// What a FileDisk does wrong when it is told to.

#include <algorithm>

#include "tests/sim/file_disk.h"

namespace triad::sim {

void FileDisk::LoseInSync(std::uint64_t inode, Random* random, bool reads_old) {
  for (const DiskOp& op : pending_) {
    if (!IsName(op) && op.inode == inode && random->OneIn(2)) KeepDurably(op);
  }
  std::erase_if(pending_, [inode](const DiskOp& op) { return !IsName(op) && op.inode == inode; });
  if (reads_old) inodes_.at(inode).visible = inodes_.at(inode).durable;
}

bool FileDisk::HasPending(std::uint64_t inode) const {
  return std::any_of(pending_.begin(), pending_.end(), [inode](const DiskOp& op) {
    return op.kind == DiskOp::Kind::kWrite && op.inode == inode;
  });
}

void FileDisk::LieInSync(std::uint64_t inode) {
  for (const DiskOp& op : pending_) {
    if (op.kind == DiskOp::Kind::kWrite && op.inode == inode) {
      Spoil(inode, op.offset, op.bytes.size());
    }
  }
  std::erase_if(pending_, [inode](const DiskOp& op) { return !IsName(op) && op.inode == inode; });
}

void FileDisk::Rot(std::uint64_t inode, std::uint64_t offset, char mask) {
  for (std::string* bytes : {&inodes_.at(inode).durable, &inodes_.at(inode).visible}) {
    if (offset < bytes->size()) (*bytes)[offset] = static_cast<char>((*bytes)[offset] ^ mask);
  }
  Spoil(inode, offset, 1);
}

void FileDisk::ZeroSector(std::uint64_t inode, std::uint64_t sector) {
  const std::uint64_t begin = sector * kSectorBytes;
  for (std::string* bytes : {&inodes_.at(inode).durable, &inodes_.at(inode).visible}) {
    if (begin >= bytes->size()) continue;
    const std::uint64_t size = std::min<std::uint64_t>(kSectorBytes, bytes->size() - begin);
    bytes->replace(begin, size, size, '\0');
  }
  Spoil(inode, begin, kSectorBytes);
}

void FileDisk::CopySector(std::uint64_t inode, std::uint64_t from, std::uint64_t to) {
  const std::uint64_t begin = to * kSectorBytes;
  const std::string copy = inodes_.at(inode).durable.substr(
      std::min<std::uint64_t>(from * kSectorBytes, inodes_.at(inode).durable.size()), kSectorBytes);
  for (std::string* bytes : {&inodes_.at(inode).durable, &inodes_.at(inode).visible}) {
    if (begin >= bytes->size()) continue;
    const std::uint64_t size = std::min<std::uint64_t>(copy.size(), bytes->size() - begin);
    bytes->replace(begin, size, copy, 0, size);
  }
  Spoil(inode, begin, kSectorBytes);
}

void FileDisk::BreakSector(std::uint64_t inode, std::uint64_t sector) {
  broken_[inode].insert(sector);
}

bool FileDisk::CanRead(std::uint64_t inode, std::uint64_t offset, std::uint64_t size) const {
  const auto sectors = broken_.find(inode);
  if (sectors == broken_.end() || size == 0) return true;
  const auto first = sectors->second.lower_bound(offset / kSectorBytes);
  return first == sectors->second.end() || *first > (offset + size - 1) / kSectorBytes;
}

bool FileDisk::CanWrite(std::uint64_t inode, std::uint64_t offset, std::uint64_t size) const {
  if (size == 0) return true;
  const std::uint64_t end = offset + size;
  const bool front = offset % kSectorBytes == 0 || CanRead(inode, offset, 1);
  return front && (end % kSectorBytes == 0 || CanRead(inode, end - 1, 1));
}

// Whole sectors that are written, or cut off, are good again.
void FileDisk::Mend(const DiskOp& op) {
  const auto found = broken_.find(op.inode);
  if (found == broken_.end()) return;
  const bool cut = op.kind == DiskOp::Kind::kTruncate;
  const std::uint64_t first = (op.offset + kSectorBytes - 1) / kSectorBytes;
  const std::uint64_t end = (op.offset + op.bytes.size()) / kSectorBytes;
  std::erase_if(found->second,
                [&](std::uint64_t sector) { return sector >= first && (cut || sector < end); });
  if (found->second.empty()) broken_.erase(found);
}

void FileDisk::Spoil(std::uint64_t inode, std::uint64_t offset, std::uint64_t size) {
  spoiled_[inode].push_back(Range{.begin = offset, .end = offset + size});
}

void FileDisk::Unspoil(const DiskOp& op) {
  const auto found = spoiled_.find(op.inode);
  if (found == spoiled_.end() || op.kind != DiskOp::Kind::kWrite) return;
  const std::uint64_t begin = op.offset;
  const std::uint64_t end = op.offset + op.bytes.size();
  std::vector<Range> left;
  for (const Range& range : found->second) {
    if (range.begin < begin) left.push_back({range.begin, std::min(range.end, begin)});
    if (range.end > end) left.push_back({std::max(range.begin, end), range.end});
  }
  found->second = std::move(left);
  if (found->second.empty()) spoiled_.erase(found);
}

bool FileDisk::IsSpoiled(const std::string& path, std::uint64_t offset, std::uint64_t size) const {
  if (spoiled_.empty()) return false;
  const auto name = durable_names_.find(path);
  const auto ranges = name == durable_names_.end() ? spoiled_.end() : spoiled_.find(name->second);
  return ranges != spoiled_.end() &&
         std::any_of(ranges->second.begin(), ranges->second.end(), [&](const Range& range) {
           return range.begin < offset + size && offset < range.end;
         });
}

}  // namespace triad::sim
