#include "dledger/log/segment_file.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <utility>
#include <vector>

#include "common/byte_order.h"
#include "common/zeroed_file.h"

namespace triad::dledger {
namespace {

constexpr std::size_t kNameDigits = 20;

const std::string& ZeroChunk() {
  static const std::string zeros(kZeroChunkBytes, '\0');
  return zeros;
}

}  // namespace

std::string SegmentName(PhysicalOffset base) {
  std::array<char, kNameDigits + 1> name;
  std::snprintf(name.data(), name.size(), "%020lld", static_cast<long long>(base.value()));
  return std::string(name.data(), kNameDigits);
}

std::optional<PhysicalOffset> ParseSegmentName(std::string_view name) {
  if (name.size() != kNameDigits) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return std::nullopt;
    if (__builtin_mul_overflow(value, 10, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, c - '0', &value)) return std::nullopt;
  }
  return PhysicalOffset(value);
}

Result<std::shared_ptr<SegmentFile>> SegmentFile::Create(FileSystem& fs, const std::string& dir,
                                                         PhysicalOffset base) {
  std::string path = dir + "/" + SegmentName(base);
  Result<std::unique_ptr<File>> file = fs.Open(path, OpenFlags{.create = true, .exclusive = true});
  if (!file.ok()) return file.status();
  std::shared_ptr<SegmentFile> segment(
      new SegmentFile(base, std::move(path), std::move(file).value()));
  TRIAD_RETURN_IF_ERROR(segment->windows_.Clear());
  TRIAD_RETURN_IF_ERROR(segment->file_->SyncAll());
  return segment;
}

Result<std::shared_ptr<SegmentFile>> SegmentFile::Open(FileSystem& fs, const std::string& dir,
                                                       PhysicalOffset base) {
  std::string path = dir + "/" + SegmentName(base);
  Result<std::unique_ptr<File>> file = fs.Open(path, OpenFlags{});
  if (!file.ok()) return file.status();
  std::shared_ptr<SegmentFile> segment(
      new SegmentFile(base, std::move(path), std::move(file).value()));
  segment->windows_.Load();
  return segment;
}

Result<PhysicalOffset> SegmentFile::FileEnd() const {
  const Result<std::uint64_t> size = file_->Size();
  if (!size.ok()) return size.status();
  const std::uint64_t behind_head = *size > kSegmentHeadBytes ? *size - kSegmentHeadBytes : 0;
  return base_ + static_cast<std::int64_t>(behind_head);
}

Status SegmentFile::Write(PhysicalOffset at, std::span<const std::string_view> parts) {
  CHECK_GE(at, base_);
  return file_->Write(FileOffset(at), parts);
}

// Whole blocks past the page cache where that can be.
Status SegmentFile::WriteZeros(PhysicalOffset begin, PhysicalOffset end) {
  CHECK_GE(begin, base_);
  auto* const uncached = dynamic_cast<ZeroedFile*>(file_.get());
  const std::uint64_t to = FileOffset(std::max(begin, end));
  std::uint64_t at = FileOffset(begin);
  bool is_past_cache = uncached != nullptr;
  while (at < to) {
    const std::uint64_t rest = at % kZeroAlign;
    std::uint64_t size = std::min<std::uint64_t>(to - at, kZeroChunkBytes);
    if (is_past_cache && rest == 0 && size >= kZeroAlign) {
      size -= size % kZeroAlign;
      const Status written = uncached->WriteZerosUncached(at, size);
      is_past_cache = written.code() != StatusCode::kUnsupported;
      if (!is_past_cache) continue;
      if (!written.ok()) return written;
    } else {
      if (is_past_cache) size = std::min(size, kZeroAlign - rest);
      const auto zeros = std::string_view(ZeroChunk()).substr(0, static_cast<std::size_t>(size));
      TRIAD_RETURN_IF_ERROR(file_->Write(at, zeros));
    }
    at += size;
  }
  return {};
}

Result<std::size_t> SegmentFile::Read(PhysicalOffset at, std::span<char> buffer) const {
  CHECK_GE(at, base_);
  return file_->Read(FileOffset(at), buffer);
}

std::optional<SyncWindow> SegmentFile::window() const {
  if (!windows_.valid() || windows_.content().size() != 16) return std::nullopt;
  const char* at = windows_.content().data();
  return SyncWindow{.begin = PhysicalOffset(static_cast<std::int64_t>(LoadBe64(at))),
                    .end = PhysicalOffset(static_cast<std::int64_t>(LoadBe64(at + 8)))};
}

Status SegmentFile::WriteWindow(const SyncWindow& window) {
  std::array<char, 16> content;
  StoreBe64(content.data(), static_cast<std::uint64_t>(window.begin.value()));
  StoreBe64(content.data() + 8, static_cast<std::uint64_t>(window.end.value()));
  return windows_.Write(std::string_view(content.data(), content.size()));
}

Result<SegmentMap> OpenSegments(FileSystem& fs, const std::string& dir) {
  const Result<std::vector<DirEntry>> names = fs.List(dir);
  if (!names.ok()) return names.status();
  SegmentMap segments;
  for (const DirEntry& name : *names) {
    const std::optional<PhysicalOffset> base = ParseSegmentName(name.name);
    if (!base || name.is_directory) continue;
    Result<std::shared_ptr<SegmentFile>> segment = SegmentFile::Open(fs, dir, *base);
    if (!segment.ok()) return segment.status();
    segments.emplace(*base, std::move(segment).value());
  }
  return segments;
}

Status ZeroRange(FileSystem& fs, const std::string& dir, PhysicalOffset from, PhysicalOffset to,
                 SegmentMap* segments) {
  if (segments->empty()) return {};
  auto behind = segments->lower_bound(from);
  if (behind == segments->begin()) ++behind;
  const auto holder = std::prev(behind);
  SegmentFile& segment = *holder->second;
  const Result<PhysicalOffset> file_end = segment.FileEnd();
  if (!file_end.ok()) return file_end.status();
  TRIAD_RETURN_IF_ERROR(segment.ClearWindows());
  TRIAD_RETURN_IF_ERROR(
      segment.WriteZeros(std::max(from, segment.base()), std::min(to, *file_end)));
  TRIAD_RETURN_IF_ERROR(segment.Sync());
  while (std::next(holder) != segments->end()) {
    const auto last = std::prev(segments->end());
    TRIAD_RETURN_IF_ERROR(fs.Remove(last->second->path()));
    segments->erase(last);
  }
  return fs.SyncDir(dir);
}

}  // namespace triad::dledger
