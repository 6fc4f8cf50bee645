#include "dledger/log/raw_log.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "dledger/log/entry_codec.h"

namespace triad::dledger {
namespace {

constexpr std::size_t kPieceBytes = 256u << 10;

// Eight bytes at a time, each step a bijection: any single change shows.
class Hash {
 public:
  void Add(std::string_view bytes) {
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      std::uint64_t word;
      std::memcpy(&word, bytes.data() + i, 8);
      value_ = (value_ ^ word) * 0x9E3779B97F4A7C15u;
      value_ ^= value_ >> 29;
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325u;
};

std::uint64_t HashOf(std::string_view bytes) {
  Hash hash;
  hash.Add(bytes);
  return hash.value();
}

Status CheckRange(PhysicalOffset from, PhysicalOffset to) {
  const bool is_aligned = from.value() % 8 == 0 && to.value() % 8 == 0;
  if (is_aligned && from.value() >= 0 && from < to) return {};
  return Status::InvalidArgument("[" + std::to_string(from.value()) + ", " +
                                 std::to_string(to.value()) +
                                 ") is no stretch of the log: two multiples of 8, in order");
}

Status NotInLog(PhysicalOffset at) {
  return Status::NotFound("position " + std::to_string(at.value()) +
                          " is not in the log of this peer");
}

Result<std::string> ReadWhole(const SegmentFile& file, PhysicalOffset at, std::size_t bytes) {
  std::string buffer(bytes, '\0');
  const Result<std::size_t> n = file.Read(at, std::span<char>(buffer));
  if (!n.ok()) return n.status();
  // A file that ends too early reads as zeros there: other peers have something.
  return buffer;
}

// The record at `at` among bytes that begin there and end with its block.
RawRecord RecordAt(PhysicalOffset at, LogIndex expected, std::string_view rest) {
  RawRecord record;
  record.position = at;
  record.bytes = rest.size();
  const Result<EntryHeader> header = DecodeHeader(rest);
  if (!header.ok() || header->position != at || header->total_bytes > rest.size()) {
    record.damage =
        header.ok() ? "another entry's header stands here" : std::string(header.status().message());
    record.hash = HashOf(rest);
    return record;
  }
  const std::string_view bytes = rest.substr(0, header->total_bytes);
  record.bytes = bytes.size();
  record.index = header->index;
  record.term = header->term;
  record.hash = HashOf(bytes);
  const Status payload = CheckPayload(*header, bytes);
  if (!payload.ok()) record.damage = payload.message();
  if (header->index != expected) {
    record.damage = "index " + std::to_string(header->index.value()) + " instead of " +
                    std::to_string(expected.value());
  }
  return record;
}

}  // namespace

Status RawLog::ForEachPiece(PhysicalOffset from, PhysicalOffset to, const Take& take) const {
  TRIAD_RETURN_IF_ERROR(CheckRange(from, to));
  std::string buffer;
  bool is_anything = false;
  while (from < to) {
    const std::optional<EntryIndex::Block> stretch = index_.StretchFrom(from);
    if (!stretch || stretch->begin >= to) break;
    is_anything = true;
    from = stretch->begin;
    const PhysicalOffset end = std::min(stretch->end, to);
    while (from < end) {
      const auto bytes = std::min(kPieceBytes, static_cast<std::size_t>(end - from));
      Result<std::string> piece = ReadWhole(*stretch->file, from, bytes);
      if (!piece.ok()) return piece.status();
      take(from, *piece);
      from += static_cast<std::int64_t>(bytes);
    }
  }
  return is_anything ? Status::Ok() : NotInLog(from);
}

Result<std::uint64_t> RawLog::Digest(PhysicalOffset from, PhysicalOffset to) const {
  Hash hash;
  TRIAD_RETURN_IF_ERROR(
      ForEachPiece(from, to, [&hash](PhysicalOffset, std::string_view bytes) { hash.Add(bytes); }));
  return hash.value();
}

Result<std::vector<RawRecord>> RawLog::Records(PhysicalOffset from, PhysicalOffset to) const {
  TRIAD_RETURN_IF_ERROR(CheckRange(from, to));
  std::vector<RawRecord> records;
  while (from < to) {
    const std::optional<EntryIndex::Block> stretch = index_.StretchFrom(from);
    if (!stretch || stretch->begin >= to) break;
    const std::optional<EntryIndex::Block> block = index_.BlockAt(std::max(from, stretch->begin));
    if (!block) break;
    const Result<std::string> bytes =
        ReadWhole(*block->file, block->begin, static_cast<std::size_t>(block->end - block->begin));
    if (!bytes.ok()) return bytes.status();
    std::string_view rest = *bytes;
    LogIndex index = block->first;
    for (PhysicalOffset at = block->begin; at < block->end && at < to;) {
      RawRecord record = RecordAt(at, index, rest);
      rest.remove_prefix(static_cast<std::size_t>(record.bytes));
      at += static_cast<std::int64_t>(record.bytes);
      ++index;
      if (at <= from) continue;
      if (records.size() >= kRawRecordsMax) return Status::Busy("too many records in one answer");
      records.push_back(std::move(record));
    }
    from = block->end;
  }
  if (records.empty()) return NotInLog(from);
  return records;
}

Result<std::string> RawLog::Bytes(PhysicalOffset from, std::size_t bytes) const {
  const PhysicalOffset to = from + static_cast<std::int64_t>(bytes);
  TRIAD_RETURN_IF_ERROR(CheckRange(from, to));
  const std::optional<EntryIndex::Block> stretch = index_.StretchFrom(from);
  if (!stretch || stretch->begin > from || stretch->end < to) return NotInLog(from);
  return ReadWhole(*stretch->file, from, bytes);
}

Result<PhysicalOffset> RawLog::EndOf(LogIndex index) const {
  const std::optional<EntryIndex::Block> block = index_.BlockOf(index);
  if (!block) {
    return Status::NotFound("entry " + std::to_string(index.value()) + " is not in the log");
  }
  if (index_.tail().next_index == index + 1) return block->end;
  const Result<std::string> bytes =
      ReadWhole(*block->file, block->begin, static_cast<std::size_t>(block->end - block->begin));
  if (!bytes.ok()) return bytes.status();
  std::string_view rest = *bytes;
  PhysicalOffset at = block->begin;
  for (LogIndex i = block->first; i <= index; ++i) {
    const Result<EntryHeader> header = DecodeHeader(rest);
    if (!header.ok() || header->total_bytes > rest.size()) break;
    rest.remove_prefix(header->total_bytes);
    at += header->total_bytes;
  }
  return at;
}

std::optional<EntryHeader> RawLog::HeaderOf(LogIndex index) const {
  const std::optional<EntryIndex::Block> block = index_.BlockOf(index);
  if (!block) return std::nullopt;
  const Result<std::string> bytes =
      ReadWhole(*block->file, block->begin, static_cast<std::size_t>(block->end - block->begin));
  if (!bytes.ok()) return std::nullopt;
  std::string_view rest = *bytes;
  PhysicalOffset at = block->begin;
  for (LogIndex i = block->first;; ++i) {
    const Result<EntryHeader> header = DecodeHeader(rest);
    if (!header.ok() || header->index != i || header->position != at) return std::nullopt;
    if (i == index) return *header;
    if (header->total_bytes > rest.size()) return std::nullopt;
    rest.remove_prefix(header->total_bytes);
    at += header->total_bytes;
  }
}

Result<LogTail> RawLog::TailBefore(const SegmentFacts& segment) const {
  const std::optional<EntryHeader> next = HeaderOf(segment.first);
  const std::optional<Term> term = index_.TermAt(segment.first - 1);
  if (!next || !term) return NotInLog(segment.base);
  LogTail tail;
  tail.next_index = segment.first;
  tail.position = segment.base;
  tail.segment_base = segment.base;
  tail.header_crc = next->previous_crc;
  tail.last_term = *term;
  tail.last_store_time_ms = next->store_time_ms;
  return tail;
}

// What this peer still knows of the entry, and of those beside it in other blocks.
Status RawLog::CheckKnown(const Entry& entry, std::uint32_t previous_crc) const {
  const auto other = [](const char* what) { return Status::InvalidArgument(what); };
  if (index_.TermAt(entry.index) != entry.term) return other("this log has another term there");
  const std::optional<EntryHeader> here = HeaderOf(entry.index);
  if (here && here->header_crc != entry.header_crc) {
    return other("another entry's whole header stands there");
  }
  const LogTail base = index_.base().tail;
  const LogTail tail = index_.tail();
  const std::optional<EntryHeader> before = HeaderOf(entry.index - 1);
  if ((entry.index == base.next_index && previous_crc != base.header_crc) ||
      (before && previous_crc != before->header_crc)) {
    return other("the entry before it has another header CRC");
  }
  const std::optional<EntryHeader> behind = HeaderOf(entry.index + 1);
  if ((entry.index + 1 == tail.next_index && tail.header_crc != entry.header_crc) ||
      (behind && behind->previous_crc != entry.header_crc)) {
    return other("the entry behind it is another one's successor");
  }
  return Status::Ok();
}

Status RawLog::CheckNeighbours(const EntryIndex::Block& block, const Entry& entry) const {
  const Result<std::string> bytes =
      ReadWhole(*block.file, block.begin, static_cast<std::size_t>(block.end - block.begin));
  if (!bytes.ok()) return bytes.status();
  const std::string_view all = *bytes;
  const auto offset = [&](PhysicalOffset at) { return static_cast<std::size_t>(at - block.begin); };
  const Result<EntryHeader> own = DecodeHeader(entry.bytes);
  if (!own.ok()) return own.status();
  TRIAD_RETURN_IF_ERROR(CheckKnown(entry, own->previous_crc));
  // Before it: as far as headers can be read.
  LogIndex index = block.first;
  PhysicalOffset at = block.begin;
  while (at < entry.position) {
    const Result<EntryHeader> header = DecodeHeader(all.substr(offset(at)));
    if (!header.ok()) break;
    at += header->total_bytes;
    ++index;
    if (at == entry.position && header->header_crc != own->previous_crc) {
      return Status::InvalidArgument("the entry before it has another header CRC");
    }
  }
  if (at > entry.position || (at == entry.position && index != entry.index)) {
    return Status::InvalidArgument("no entry " + std::to_string(entry.index.value()) +
                                   " begins at position " + std::to_string(entry.position.value()));
  }
  if (entry.end() == block.end) return {};
  const Result<EntryHeader> next = DecodeHeader(all.substr(offset(entry.end())));
  const bool is_other =
      next.ok() && (next->previous_crc != entry.header_crc || next->index != entry.index + 1);
  return is_other ? Status::InvalidArgument("the entry behind it is another one's successor")
                  : Status::Ok();
}

Result<EntryRef> RawLog::Parse(std::string_view bytes) {
  Result<EntryRef> entry = DecodeEntry(bytes, /*verify_payload=*/true);
  if (entry.ok() && (*entry)->size() == bytes.size()) return entry;
  return Status::Corruption(entry.ok() ? "more than one entry" : entry.status().ToString());
}

Status RawLog::Replace(const EntryRef& entry) {
  const std::optional<EntryIndex::Block> block = index_.BlockOf(entry->index);
  const bool is_inside = block && entry->position >= block->begin && entry->end() <= block->end;
  if (!is_inside) {
    return Status::InvalidArgument("entry " + std::to_string(entry->index.value()) +
                                   " does not belong at position " +
                                   std::to_string(entry->position.value()) + " of this log");
  }
  TRIAD_RETURN_IF_ERROR(CheckNeighbours(*block, *entry));
  const std::string_view bytes = entry->bytes;
  TRIAD_RETURN_IF_ERROR(
      block->file->Write(entry->position, std::span<const std::string_view>(&bytes, 1)));
  TRIAD_RETURN_IF_ERROR(block->file->Sync());
  const Result<std::string> back = ReadWhole(*block->file, entry->position, bytes.size());
  if (!back.ok()) return back.status();
  if (*back != bytes) {
    return Status::IoError(block->file->path() +
                           " reads other bytes than were written at position " +
                           std::to_string(entry->position.value()));
  }
  cache_.Insert(std::span<const EntryRef>(&entry, 1));
  return {};
}

}  // namespace triad::dledger
