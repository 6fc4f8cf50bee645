#include "dledger/log/checkpoint.h"

#include <span>
#include <utility>

#include "common/byte_order.h"
#include "common/crc32c.h"
#include "dledger/membership_codec.h"

namespace triad::dledger {
namespace {

constexpr std::uint32_t kMagic = 0x54524443;  // "TRDC"
constexpr std::uint32_t kVersion = 1;

class Writer {
 public:
  void U32(std::uint32_t value) { AppendBe32(&bytes_, value); }
  void U64(std::uint64_t value) { AppendBe64(&bytes_, value); }
  void I64(std::int64_t value) { U64(static_cast<std::uint64_t>(value)); }
  void Offset(PhysicalOffset value) { I64(value.value()); }
  void Count(std::size_t value) { U64(value); }
  void Bytes(std::string_view value) {
    Count(value.size());
    bytes_.append(value);
  }
  std::string Finish() && {
    U32(Crc32c(bytes_));
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

// Reads what a checked file holds. Past its end everything is zero and ok() false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  std::uint32_t U32() { return Take(4) ? LoadBe32(at_) : 0; }
  std::uint64_t U64() { return Take(8) ? LoadBe64(at_) : 0; }
  std::int64_t I64() { return static_cast<std::int64_t>(U64()); }
  PhysicalOffset Offset() { return PhysicalOffset(I64()); }
  // Of things that take at least `each` bytes.
  std::size_t Count(std::size_t each) {
    const std::uint64_t count = U64();
    if (count > bytes_.size() / each) ok_ = false;
    return ok_ ? static_cast<std::size_t>(count) : 0;
  }
  std::string_view Bytes() {
    const std::size_t size = Count(1);
    return Take(size) ? std::string_view(at_, size) : std::string_view();
  }

 private:
  bool Take(std::size_t size) {
    if (!ok_ || bytes_.size() < size) return ok_ = false;
    at_ = bytes_.data();
    bytes_.remove_prefix(size);
    return true;
  }

  std::string_view bytes_;
  const char* at_ = nullptr;
  bool ok_ = true;
};

}  // namespace

std::string EncodeCheckpoint(const LogOutline& outline) {
  Writer out;
  out.U32(kMagic);
  out.U32(kVersion);
  out.U64(outline.tail.next_index.value());
  out.Offset(outline.tail.position);
  out.Offset(outline.tail.segment_base);
  out.U32(outline.tail.header_crc);
  out.U64(outline.tail.last_term.value());
  out.I64(outline.tail.last_store_time_ms);
  out.Offset(outline.last_position);
  out.Count(outline.segment_ends.size());
  for (const auto& [base, end] : outline.segment_ends) {
    out.Offset(base);
    out.Offset(end);
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
  return std::move(out).Finish();
}

std::optional<LogOutline> DecodeCheckpoint(std::string_view bytes) {
  if (bytes.size() < 4) return std::nullopt;
  const std::string_view content = bytes.substr(0, bytes.size() - 4);
  if (LoadBe32(bytes.data() + content.size()) != Crc32c(content)) return std::nullopt;
  Reader in(content);
  if (in.U32() != kMagic || in.U32() != kVersion) return std::nullopt;
  LogOutline outline;
  outline.tail.next_index = LogIndex(in.U64());
  outline.tail.position = in.Offset();
  outline.tail.segment_base = in.Offset();
  outline.tail.header_crc = in.U32();
  outline.tail.last_term = Term(in.U64());
  outline.tail.last_store_time_ms = in.I64();
  outline.last_position = in.Offset();
  for (std::size_t n = in.Count(16); n > 0; --n) {
    const PhysicalOffset base = in.Offset();
    outline.segment_ends[base] = in.Offset();
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
  if (!in.ok() || outline.points.empty() || outline.term_runs.empty()) return std::nullopt;
  return outline;
}

bool CheckpointFits(const LogOutline& outline, const SegmentMap& segments) {
  for (const auto& [base, end] : outline.segment_ends) {
    const auto it = segments.find(base);
    if (it == segments.end()) return false;
    const Result<PhysicalOffset> file_end = it->second->FileEnd();
    if (!file_end.ok() || *file_end < end) return false;
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

}  // namespace triad::dledger
