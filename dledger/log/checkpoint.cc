#include "dledger/log/checkpoint.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "common/crc32c.h"
#include "dledger/log/record_codec.h"
#include "dledger/membership_codec.h"

namespace triad::dledger {
namespace {

constexpr std::uint32_t kCheckpointMagic = 0x54524443;  // "TRDC"
constexpr std::uint32_t kCheckpointVersion = 3;
constexpr std::size_t kRecordHeadBytes = 12;  // magic, version, body size
constexpr std::size_t kRecordTriesMax = 64;   // records given up before the whole log is scanned

// [magic][version][body size][body][CRC32C of the previous record's CRC and all of this one]
std::string EncodeRecord(const LogOutline& outline, std::uint32_t previous_crc,
                         std::uint32_t* crc) {
  const std::string body = EncodeOutline(outline);
  std::string chained;
  AppendBe32(&chained, previous_crc);
  AppendBe32(&chained, kCheckpointMagic);
  AppendBe32(&chained, kCheckpointVersion);
  AppendBe32(&chained, static_cast<std::uint32_t>(body.size()));
  chained += body;
  *crc = Crc32c(chained);
  AppendBe32(&chained, *crc);
  return chained.substr(4);
}

// The whole records at the front, in order.
std::vector<LogOutline> DecodeRecords(std::string_view bytes) {
  std::vector<LogOutline> records;
  std::uint32_t crc = 0;
  while (bytes.size() >= kRecordHeadBytes + 4) {
    const std::size_t size = LoadBe32(bytes.data() + 8);
    if (LoadBe32(bytes.data()) != kCheckpointMagic ||
        LoadBe32(bytes.data() + 4) != kCheckpointVersion)
      break;
    if (size > bytes.size() - kRecordHeadBytes - 4) break;
    std::string chained;
    AppendBe32(&chained, crc);
    chained.append(bytes.substr(0, kRecordHeadBytes + size));
    crc = Crc32c(chained);
    if (LoadBe32(bytes.data() + kRecordHeadBytes + size) != crc) break;
    std::optional<LogOutline> outline = DecodeOutline(bytes.substr(kRecordHeadBytes, size));
    if (!outline) break;
    records.push_back(std::move(*outline));
    bytes.remove_prefix(kRecordHeadBytes + size + 4);
  }
  return records;
}

template <typename Item>
void AddAll(const std::vector<Item>& more, std::vector<Item>* to) {
  to->insert(to->end(), more.begin(), more.end());
}

LogOutline Joined(std::span<const LogOutline> records) {
  LogOutline whole;
  for (const LogOutline& record : records) {
    whole.tail = record.tail;
    whole.last_position = record.last_position;
    AddAll(record.points, &whole.points);
    AddAll(record.term_runs, &whole.term_runs);
    AddAll(record.memberships, &whole.memberships);
    for (const auto& [base, span] : record.spans) whole.spans[base] = span;
  }
  return whole;
}

}  // namespace

std::string EncodeOutline(const LogOutline& outline) {
  RecordWriter out;
  out.U64(outline.tail.next_index.value());
  out.Offset(outline.tail.position);
  out.Offset(outline.tail.segment_base);
  out.U32(outline.tail.header_crc);
  out.U64(outline.tail.last_term.value());
  out.I64(outline.tail.last_store_time_ms);
  out.Offset(outline.last_position);
  out.Count(outline.spans.size());
  for (const auto& [base, span] : outline.spans) {
    out.Offset(base);
    out.Offset(span.end);
    out.U32(span.first_crc);
  }
  out.Count(outline.term_runs.size());
  for (const TermRun& run : outline.term_runs) {
    out.U64(run.first.value());
    out.U64(run.term.value());
  }
  out.Count(outline.memberships.size());
  for (const auto& [index, membership] : outline.memberships) {
    out.U64(index.value());
    out.Bytes(EncodeMembership(membership));
  }
  out.Count(outline.points.size());
  for (const IndexPoint& point : outline.points) {
    out.U64(point.index.value());
    out.Offset(point.position);
    out.Offset(point.segment_base);
  }
  return std::move(out).Take();
}

std::optional<LogOutline> DecodeOutline(std::string_view body) {
  RecordReader in(body);
  LogOutline outline;
  outline.tail.next_index = LogIndex(in.U64());
  outline.tail.position = in.Offset();
  outline.tail.segment_base = in.Offset();
  outline.tail.header_crc = in.U32();
  outline.tail.last_term = Term(in.U64());
  outline.tail.last_store_time_ms = in.I64();
  outline.last_position = in.Offset();
  for (std::size_t n = in.Count(20); n > 0; --n) {
    SegmentSpan& span = outline.spans[in.Offset()];
    span.end = in.Offset();
    span.first_crc = in.U32();
  }
  for (std::size_t n = in.Count(16); n > 0; --n) {
    const LogIndex first(in.U64());
    outline.term_runs.push_back({first, Term(in.U64())});
  }
  for (std::size_t n = in.Count(16); n > 0; --n) {
    const LogIndex index(in.U64());
    Result<Membership> membership = DecodeMembership(in.Bytes());
    if (!membership.ok()) return std::nullopt;
    outline.memberships.emplace_back(index, std::move(membership).value());
  }
  for (std::size_t n = in.Count(24); n > 0; --n) {
    const LogIndex index(in.U64());
    const PhysicalOffset position = in.Offset();
    outline.points.push_back({index, position, in.Offset()});
  }
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return outline;
}

namespace {

// Whether it is the segment that was written, not another group's or another life's.
bool Holds(const SegmentFile& segment, const SegmentSpan& span) {
  const Result<PhysicalOffset> file_end = segment.FileEnd();
  if (!file_end.ok() || *file_end < span.end) return false;
  std::array<char, kEntryHeaderBytes> bytes;
  const Result<std::size_t> n = segment.Read(segment.base(), bytes);
  if (!n.ok() || *n != bytes.size()) return false;
  const Result<EntryHeader> header = DecodeHeader(std::string_view(bytes.data(), bytes.size()));
  return header.ok() && header->header_crc == span.first_crc;
}

}  // namespace

bool CheckpointFits(const LogOutline& outline, const SegmentMap& segments) {
  for (const auto& [base, span] : outline.spans) {
    const auto it = segments.find(base);
    if (it == segments.end() || !Holds(*it->second, span)) return false;
  }
  const auto it = segments.find(outline.tail.segment_base);
  if (it == segments.end() || outline.last_position < it->first) return false;
  const std::int64_t size = outline.tail.position - outline.last_position;
  if (size < 0 || size > static_cast<std::int64_t>(kMaxEntryBytes)) return false;
  std::string bytes(static_cast<std::size_t>(size), '\0');
  const Result<std::size_t> n = it->second->Read(outline.last_position, std::span<char>(bytes));
  if (!n.ok() || *n != bytes.size()) return false;
  const Result<EntryHeader> header = DecodeHeader(bytes);
  return header.ok() && CheckPayload(*header, bytes).ok() &&
         header->header_crc == outline.tail.header_crc &&
         header->position == outline.last_position && header->index + 1 == outline.tail.next_index;
}

std::optional<LogOutline> CheckpointFile::Load(const StoreBase& base,
                                               const SegmentMap& segments) const {
  const Result<std::string> bytes = ReadFile(fs_, path_);
  if (!bytes.ok()) {
    LOG_IF(WARNING, bytes.status().code() != StatusCode::kNotFound)
        << path_ << ": " << bytes.status() << "; scanning the whole log";
    return std::nullopt;
  }
  const std::vector<LogOutline> records = DecodeRecords(*bytes);
  const std::size_t tries = std::min(records.size(), kRecordTriesMax);
  for (std::size_t given_up = 0; given_up < tries; ++given_up) {
    LogOutline outline =
        Joined(std::span<const LogOutline>(records).first(records.size() - given_up));
    outline.DropBefore(base);
    const bool from_base = !outline.points.empty() && !outline.term_runs.empty() &&
                           outline.points.front().index == base.tail.next_index &&
                           outline.term_runs.front().first == base.tail.next_index;
    if (from_base && CheckpointFits(outline, segments)) return outline;
  }
  LOG(WARNING) << path_ << " does not fit the log; scanning the whole log";
  return std::nullopt;
}

Status CheckpointFile::WriteWhole(const LogOutline& outline) {
  file_.reset();
  const std::string record = EncodeRecord(outline, 0, &last_crc_);
  TRIAD_RETURN_IF_ERROR(WriteFileAtomically(fs_, path_, record));
  Result<std::unique_ptr<File>> file = fs_.Open(path_, OpenFlags{});
  if (!file.ok()) return file.status();
  file_ = std::move(file).value();
  whole_bytes_ = record.size();
  appended_bytes_ = 0;
  return {};
}

Status CheckpointFile::Append(const LogOutline& since) {
  CHECK(file_ != nullptr);
  std::uint32_t crc = 0;
  const std::string record = EncodeRecord(since, last_crc_, &crc);
  Status written = file_->Write(whole_bytes_ + appended_bytes_, record);
  if (written.ok()) written = file_->SyncAll();
  if (!written.ok()) {
    file_.reset();  // whatever stands there now: the next one is written whole
    return written;
  }
  last_crc_ = crc;
  appended_bytes_ += record.size();
  return {};
}

Status CheckpointFile::Remove() {
  file_.reset();
  const Status removed = fs_.Remove(path_);
  if (removed.code() == StatusCode::kNotFound) return {};
  TRIAD_RETURN_IF_ERROR(removed);
  return fs_.SyncDir(path_.substr(0, path_.rfind('/')));
}

}  // namespace triad::dledger
