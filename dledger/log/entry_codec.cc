#include "dledger/log/entry_codec.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/byte_order.h"
#include "common/crc32c.h"
#include "common/mutant.h"

namespace triad::dledger {
namespace {

constexpr std::uint8_t kEntryVersion = 1;
constexpr std::int64_t kPositionMax = std::int64_t{1} << 62;  // sums cannot overflow

// Where each field of the header stands.
constexpr std::size_t kAtMagic = 0;
constexpr std::size_t kAtTotal = 4;
constexpr std::size_t kAtType = 8;
constexpr std::size_t kAtVersion = 9;
constexpr std::size_t kAtReserved16 = 10;
constexpr std::size_t kAtPayloadBytes = 12;
constexpr std::size_t kAtTerm = 16;
constexpr std::size_t kAtIndex = 24;
constexpr std::size_t kAtPosition = 32;
constexpr std::size_t kAtSegmentBase = 40;
constexpr std::size_t kAtStoreTime = 48;
constexpr std::size_t kAtPayloadCrc = 56;
constexpr std::size_t kAtPreviousCrc = 60;
constexpr std::size_t kAtReserved32 = 64;
constexpr std::size_t kAtHeaderCrc = 68;
static_assert(kAtHeaderCrc + 4 == kEntryHeaderBytes);

std::int64_t LoadSigned(const char* from) {
  return static_cast<std::int64_t>(LoadBe64(from));
}

void EncodeHeader(const EntryHeader& header, char* out) {
  StoreBe32(out + kAtMagic, kEntryMagic);
  StoreBe32(out + kAtTotal, header.total_bytes);
  out[kAtType] = static_cast<char>(header.type);
  out[kAtVersion] = static_cast<char>(kEntryVersion);
  StoreBe16(out + kAtReserved16, 0);
  StoreBe32(out + kAtPayloadBytes, header.payload_bytes);
  StoreBe64(out + kAtTerm, header.term.value());
  StoreBe64(out + kAtIndex, header.index.value());
  StoreBe64(out + kAtPosition, static_cast<std::uint64_t>(header.position.value()));
  StoreBe64(out + kAtSegmentBase, static_cast<std::uint64_t>(header.segment_base.value()));
  StoreBe64(out + kAtStoreTime, static_cast<std::uint64_t>(header.store_time_ms));
  StoreBe32(out + kAtPayloadCrc, header.payload_crc);
  StoreBe32(out + kAtPreviousCrc, header.previous_crc);
  StoreBe32(out + kAtReserved32, 0);
  StoreBe32(out + kAtHeaderCrc, Crc32c(std::string_view(out, kAtHeaderCrc)));
}

std::shared_ptr<Entry> EntryFrom(const EntryHeader& header) {
  auto entry = std::make_shared<Entry>();
  entry->term = header.term;
  entry->index = header.index;
  entry->type = header.type;
  entry->position = header.position;
  entry->segment_base = header.segment_base;
  entry->store_time_ms = header.store_time_ms;
  entry->header_crc = header.header_crc;
  entry->header_bytes = static_cast<std::uint32_t>(kEntryHeaderBytes);
  entry->padding_bytes =
      header.total_bytes - header.payload_bytes - static_cast<std::uint32_t>(kEntryHeaderBytes);
  return entry;
}

Status Damaged(const char* what) {
  return Status::Corruption(std::string("entry: ") + what);
}

// What a header may say, apart from its checksum.
Status CheckFields(const char* bytes, const EntryHeader& header) {
  if (static_cast<std::uint8_t>(bytes[kAtVersion]) != kEntryVersion)
    return Damaged("unknown version");
  const auto type = static_cast<std::uint8_t>(header.type);
  if (type < 1 || type > 3) return Damaged("unknown type");
  if (header.total_bytes > kMaxEntryBytes) return Damaged("too large");
  if (header.payload_bytes > kMaxEntryBytes ||
      header.total_bytes != EntryBytes(header.payload_bytes)) {
    return Damaged("sizes disagree");
  }
  if (header.index.value() == 0) return Damaged("index 0");
  const std::int64_t base = header.segment_base.value();
  const std::int64_t position = header.position.value();
  if (base < 0 || position < base || position > kPositionMax || base % 8 != 0 ||
      position % 8 != 0) {
    return Damaged("impossible position");
  }
  return {};
}

}  // namespace

std::size_t EntryBytes(std::size_t payload_bytes) {
  return (kEntryHeaderBytes + payload_bytes + 7) & ~std::size_t{7};
}

EntryRef MakeEntry(Term term, EntryType type, std::int64_t store_time_ms, std::string payload,
                   LogTail* tail) {
  std::string bytes;
  bytes.reserve(EntryBytes(payload.size()));
  bytes.resize(kEntryHeaderBytes);
  bytes.append(payload);
  return MakeEntryFrom(term, type, store_time_ms, std::move(bytes), tail);
}

EntryRef MakeEntryFrom(Term term, EntryType type, std::int64_t store_time_ms, std::string bytes,
                       LogTail* tail) {
  CHECK_GE(bytes.size(), kEntryHeaderBytes);
  const std::size_t payload_bytes = bytes.size() - kEntryHeaderBytes;
  const std::size_t total = EntryBytes(payload_bytes);
  CHECK_LE(total, kMaxEntryBytes);
  CHECK_GE(term, tail->last_term);
  EntryHeader header{.type = type,
                     .total_bytes = static_cast<std::uint32_t>(total),
                     .payload_bytes = static_cast<std::uint32_t>(payload_bytes),
                     .term = term,
                     .index = tail->next_index,
                     .position = tail->position,
                     .segment_base = tail->segment_base,
                     .store_time_ms = store_time_ms,
                     .payload_crc = Crc32c(std::string_view(bytes).substr(kEntryHeaderBytes)),
                     .previous_crc = tail->header_crc};
  bytes.resize(total);
  EncodeHeader(header, bytes.data());
  header.header_crc = LoadBe32(bytes.data() + kAtHeaderCrc);
  std::shared_ptr<Entry> entry = EntryFrom(header);
  entry->bytes = std::move(bytes);
  *tail = TailAfter(*entry);
  return entry;
}

void RollIfNeeded(std::size_t entry_bytes, std::uint64_t segment_bytes, LogTail* tail) {
  CHECK_GT(segment_bytes, 0u);
  CHECK_EQ(segment_bytes % 8, 0u);
  if (tail->position == tail->segment_base) return;  // empty: whatever comes gets it
  const auto size = static_cast<std::int64_t>(segment_bytes);
  const PhysicalOffset limit = tail->segment_base + size;
  if (tail->position + static_cast<std::int64_t>(entry_bytes) <= limit) return;
  tail->segment_base = std::max(limit, tail->position);
  tail->position = tail->segment_base;
}

LogTail TailAfter(const EntryHeader& header) {
  return LogTail{.next_index = header.index + 1,
                 .position = header.position + header.total_bytes,
                 .segment_base = header.segment_base,
                 .header_crc = header.header_crc,
                 .last_term = header.term,
                 .last_store_time_ms = header.store_time_ms};
}

LogTail TailAfter(const Entry& entry) {
  return LogTail{.next_index = entry.index + 1,
                 .position = entry.end(),
                 .segment_base = entry.segment_base,
                 .header_crc = entry.header_crc,
                 .last_term = entry.term,
                 .last_store_time_ms = entry.store_time_ms};
}

Result<EntryHeader> DecodeHeader(std::string_view bytes) {
  if (bytes.size() < kEntryHeaderBytes) return Status::Unavailable("entry: header cut short");
  const char* at = bytes.data();
  if (LoadBe32(at + kAtMagic) != kEntryMagic) return Damaged("bad magic");
  EntryHeader header;
  header.header_crc = LoadBe32(at + kAtHeaderCrc);
  if (header.header_crc != Crc32c(std::string_view(at, kAtHeaderCrc))) {
    return Damaged("bad header checksum");
  }
  header.total_bytes = LoadBe32(at + kAtTotal);
  header.type = static_cast<EntryType>(at[kAtType]);
  header.payload_bytes = LoadBe32(at + kAtPayloadBytes);
  header.term = Term(LoadBe64(at + kAtTerm));
  header.index = LogIndex(LoadBe64(at + kAtIndex));
  header.position = PhysicalOffset(LoadSigned(at + kAtPosition));
  header.segment_base = PhysicalOffset(LoadSigned(at + kAtSegmentBase));
  header.store_time_ms = LoadSigned(at + kAtStoreTime);
  header.payload_crc = LoadBe32(at + kAtPayloadCrc);
  header.previous_crc = LoadBe32(at + kAtPreviousCrc);
  TRIAD_RETURN_IF_ERROR(CheckFields(at, header));
  return header;
}

Status CheckPayload(const EntryHeader& header, std::string_view bytes) {
  if (bytes.size() < header.total_bytes) return Status::Unavailable("entry: payload cut short");
  const std::string_view payload = bytes.substr(kEntryHeaderBytes, header.payload_bytes);
  if (Crc32c(payload) != header.payload_crc && !TRIAD_MUTANT(26)) {
    return Damaged("bad payload checksum");
  }
  const std::size_t payload_end = kEntryHeaderBytes + header.payload_bytes;
  const std::string_view padding = bytes.substr(payload_end, header.total_bytes - payload_end);
  if (padding.find_first_not_of('\0') != std::string_view::npos) return Damaged("bad padding");
  return {};
}

Result<EntryRef> DecodeEntry(std::string_view bytes, bool verify_payload) {
  const Result<EntryHeader> header = DecodeHeader(bytes);
  if (!header.ok()) return header.status();
  if (bytes.size() < header->total_bytes) return Status::Unavailable("entry: payload cut short");
  if (verify_payload) TRIAD_RETURN_IF_ERROR(CheckPayload(*header, bytes));
  std::shared_ptr<Entry> entry = EntryFrom(*header);
  entry->bytes.assign(bytes.data(), header->total_bytes);
  return EntryRef(std::move(entry));
}

Status CheckFollows(const LogTail& tail, const EntryHeader& header) {
  if (header.index != tail.next_index) return Damaged("index does not follow");
  if (header.term < tail.last_term) return Damaged("term goes back");
  if (header.previous_crc != tail.header_crc) return Damaged("chain is broken");
  if (header.segment_base == tail.segment_base) {
    return header.position == tail.position ? Status::Ok() : Damaged("position does not follow");
  }
  const bool rolled = tail.next_index > LogIndex(1) && header.position == header.segment_base &&
                      header.segment_base > tail.segment_base &&
                      header.segment_base >= tail.position;
  return rolled ? Status::Ok() : Damaged("no legal segment roll");
}

Status CheckFollows(const LogTail& tail, const Entry& entry) {
  const Result<EntryHeader> header = DecodeHeader(entry.bytes);
  if (!header.ok()) return header.status();
  return CheckFollows(tail, *header);
}

}  // namespace triad::dledger
