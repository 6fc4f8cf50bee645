#include "dledger/log/log_scan.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "common/byte_order.h"
#include "common/mutant.h"
#include "dledger/membership_codec.h"

namespace triad::dledger {
namespace {

// Reads a segment front to back through a buffer.
class SegmentReader {
 public:
  explicit SegmentReader(const SegmentFile& segment) : segment_(segment) {}

  // The bytes [at, at + size), fewer at the end of the file. Valid until the next call.
  Result<std::string_view> Peek(PhysicalOffset at, std::size_t size) {
    if (!Covers(at, size)) TRIAD_RETURN_IF_ERROR(Fill(at, std::max(size, kZeroChunkBytes)));
    const auto skip = static_cast<std::size_t>(at - begin_);
    return std::string_view(buffer_).substr(0, used_).substr(skip, size);
  }

 private:
  bool Covers(PhysicalOffset at, std::size_t size) const {
    if (!filled_ || at < begin_) return false;
    const std::int64_t end = at - begin_ + static_cast<std::int64_t>(size);
    const auto used = static_cast<std::int64_t>(used_);
    return end <= used || (at_file_end_ && at - begin_ <= used);
  }
  Status Fill(PhysicalOffset at, std::size_t size) {
    const Result<PhysicalOffset> file_end = segment_.FileEnd();
    if (!file_end.ok()) return file_end.status();
    // One byte more, so that the end shows.
    const std::int64_t left = std::max<std::int64_t>(*file_end - at, 0) + 1;
    size = std::min(size, static_cast<std::size_t>(left));
    if (buffer_.size() < size) buffer_.resize(size);
    const Result<std::size_t> n = segment_.Read(at, std::span<char>(buffer_.data(), size));
    if (!n.ok()) return n.status();
    begin_ = at;
    used_ = *n;
    at_file_end_ = *n < size;
    filled_ = true;
    return {};
  }

  const SegmentFile& segment_;
  std::string buffer_;
  PhysicalOffset begin_;
  std::size_t used_ = 0;
  bool at_file_end_ = false;
  bool filled_ = false;
};

// The whole valid entry at `at`, or why there is none. OK status with no header: zeros or nothing.
struct EntryAt {
  std::optional<EntryHeader> header;
  std::string_view bytes;
  Status why;
};

EntryAt ReadEntry(SegmentReader* reader, PhysicalOffset at) {
  EntryAt found;
  Result<std::string_view> head = reader->Peek(at, kEntryHeaderBytes);
  if (!head.ok()) {
    found.why = head.status();
    return found;
  }
  if (head->find_first_not_of('\0') == std::string_view::npos) return found;
  const Result<EntryHeader> header = DecodeHeader(*head);
  if (!header.ok()) {
    found.why = Status::Corruption(std::string(header.status().message()));
    return found;
  }
  if (header->position != at) {
    found.why = Status::Corruption("entry: stands at another position than it says");
    return found;
  }
  const Result<std::string_view> all = reader->Peek(at, header->total_bytes);
  if (!all.ok()) {
    found.why = all.status();
    return found;
  }
  const Status payload = CheckPayload(*header, *all);
  if (!payload.ok()) {
    found.why = Status::Corruption(std::string(payload.message()));
    return found;
  }
  found.header = *header;
  found.bytes = *all;
  return found;
}

void AddEntry(const EntryAt& entry, LogOutline* outline) {
  outline->Add(*entry.header);
  if (entry.header->type != EntryType::kMembership) return;
  const Result<EntryRef> whole = DecodeEntry(entry.bytes, false);
  Membership membership;
  if (whole.ok() && DecodeMembershipEntry(**whole, &membership)) {
    outline->memberships.emplace_back(entry.header->index, std::move(membership));
  }
}

// Entries of one segment, from the tail on.
Status ScanSegment(SegmentReader* reader, LogOutline* outline) {
  const PhysicalOffset base = outline->tail.segment_base;
  while (true) {
    const EntryAt entry = ReadEntry(reader, outline->tail.position);
    if (!entry.header) return entry.why;
    const Status follows = CheckFollows(outline->tail, *entry.header);
    if (!follows.ok()) return follows;
    if (entry.header->segment_base != base) {
      return Status::Corruption("entry: says that it begins a segment, in the middle of another");
    }
    AddEntry(entry, outline);
  }
}

// Whether `segment` begins with the entry that follows the tail.
bool RollsInto(const SegmentFile& segment, LogOutline* outline) {
  SegmentReader reader(segment);
  const EntryAt entry = ReadEntry(&reader, segment.base());
  if (!entry.header || !CheckFollows(outline->tail, *entry.header).ok()) return false;
  AddEntry(entry, outline);
  return true;
}

// Behind the last byte of `bytes` that is not zero; 0 when all are.
std::size_t DirtyEnd(std::string_view bytes) {
  std::size_t end = bytes.size();
  while (end >= sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + end - sizeof(word), sizeof(word));
    if (word != 0) break;
    end -= sizeof(word);
  }
  while (end > 0 && bytes[end - 1] == '\0') --end;
  return end;
}

// Looks for a whole entry of a later window in [begin, end) of a segment that has dirty bytes.
bool HoldsLaterEntry(const SegmentFile& segment, PhysicalOffset begin, PhysicalOffset end,
                     const LogTail& tail) {
  SegmentReader reader(segment);
  SegmentReader whole(segment);
  for (PhysicalOffset at = begin; at + 8 <= end; at += 8) {
    const Result<std::string_view> magic = reader.Peek(at, 4);
    if (!magic.ok() || magic->size() < 4) return false;
    if (LoadBe32(magic->data()) != kEntryMagic) continue;
    const EntryAt entry = ReadEntry(&whole, at);
    if (entry.header && entry.header->segment_base == segment.base() &&
        entry.header->index >= tail.next_index && entry.header->term >= tail.last_term) {
      return true;
    }
  }
  return false;
}

PhysicalOffset RoundUp8(PhysicalOffset at) {
  return PhysicalOffset((at.value() + 7) & ~std::int64_t{7});
}

void LookIntoSegment(const SegmentFile& segment, PhysicalOffset from, const LogTail& tail,
                     PhysicalOffset window_end, Remains* remains) {
  SegmentReader reader(segment);
  PhysicalOffset dirty_end = from;
  for (PhysicalOffset at = from;;) {
    const Result<std::string_view> bytes = reader.Peek(at, kZeroChunkBytes);
    if (!bytes.ok()) {
      remains->unreadable = true;
      return;
    }
    if (bytes->empty()) break;
    const std::size_t dirty = DirtyEnd(*bytes);
    if (dirty > 0) dirty_end = at + static_cast<std::int64_t>(dirty);
    at += static_cast<std::int64_t>(bytes->size());
  }
  if (dirty_end == from) return;
  remains->end = dirty_end;
  const PhysicalOffset begin = std::max(from, RoundUp8(window_end));
  if (HoldsLaterEntry(segment, begin, RoundUp8(dirty_end), tail)) remains->later_window = true;
}

}  // namespace

Status ScanEntries(const SegmentMap& segments, LogOutline* outline) {
  while (true) {
    const auto current = segments.find(outline->tail.segment_base);
    if (current == segments.end()) {
      return Status::Corruption("segment " + SegmentName(outline->tail.segment_base) +
                                " is missing");
    }
    SegmentReader reader(*current->second);
    Status stopped = ScanSegment(&reader, outline);
    const bool rolled =
        std::any_of(std::next(current), segments.end(),
                    [outline](const auto& segment) { return RollsInto(*segment.second, outline); });
    if (!rolled) return stopped;
  }
}

Remains LookBehind(const SegmentMap& segments, const LogTail& tail, PhysicalOffset window_end) {
  Remains remains{.end = tail.position};
  for (auto it = segments.lower_bound(tail.segment_base); it != segments.end(); ++it) {
    const PhysicalOffset from = std::max(it->first, tail.position);
    LookIntoSegment(*it->second, from, tail, window_end, &remains);
  }
  return remains;
}

TailState JudgeTail(const LogTail& tail, const Remains& remains, PhysicalOffset hint,
                    const std::optional<SyncWindow>& window) {
  // Before `durable` nothing was ever un-synced.
  const PhysicalOffset durable = window ? std::max(hint, window->begin) : hint;
  if (TRIAD_MUTANT(17)) return remains.end > tail.position ? TailState::kTorn : TailState::kClean;
  if (tail.position < durable || remains.unreadable) return TailState::kCorrupt;
  // Inside the last known window: only a byte of a later one proves that it had been synced.
  const bool in_known_window = window && tail.position < window->end;
  if (in_known_window && remains.later_window) return TailState::kCorrupt;
  return remains.end > tail.position ? TailState::kTorn : TailState::kClean;
}

std::optional<SyncWindow> LastWindow(const SegmentMap& segments) {
  for (auto it = segments.rbegin(); it != segments.rend(); ++it) {
    const std::optional<SyncWindow> window = it->second->window();
    if (window) return window;
  }
  return std::nullopt;
}

}  // namespace triad::dledger
