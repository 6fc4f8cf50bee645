// Entry codec: the fixed header in front of every log entry, and its checks.
//
// Big-endian, 8-byte aligned, kEntryHeaderBytes long: magic u32, total size u32 (header + payload +
// padding), type u8, version u8, reserved u16, payload size u32, term u64, index u64, position i64,
// segment base i64, store time i64, payload CRC32C u32, previous header's CRC u32 (the chain),
// reserved u32, CRC32C of the header before it u32. Pure. Bytes from a disk or a socket are
// checked, never CHECKed.

#pragma once

#include <cstdint>
#include <string_view>

#include "common/status.h"
#include "dledger/raft/entry.h"

namespace triad::dledger {

inline constexpr std::size_t kEntryHeaderBytes = 72;
inline constexpr std::uint32_t kEntryMagic = 0x54524431;  // "TRD1"
inline constexpr std::size_t kMaxEntryBytes =
    24u << 20;  // a 16 MiB frame's worth of messages with their headers

// Where the next entry goes. The leader keeps one and moves it with each entry it makes.
struct LogTail {
  LogIndex next_index{1};
  PhysicalOffset position{};      // of the next byte
  PhysicalOffset segment_base{};  // of the segment that holds `position`
  std::uint32_t header_crc = 0;   // of the last entry; 0 before the first
  Term last_term{};
  std::int64_t last_store_time_ms = 0;
};

// What an entry with a payload of this size takes in the log: header + payload, padded to 8.
std::size_t EntryBytes(std::size_t payload_bytes);

// The header alone, as it stands at the start of an entry's bytes.
struct EntryHeader {
  EntryType type = EntryType::kNoop;
  std::uint32_t total_bytes = 0;    // header + payload + padding
  std::uint32_t payload_bytes = 0;  // without padding
  Term term{};
  LogIndex index{};
  PhysicalOffset position{};
  PhysicalOffset segment_base{};
  std::int64_t store_time_ms = 0;
  std::uint32_t payload_crc = 0;
  std::uint32_t previous_crc = 0;  // of the previous entry's header
  std::uint32_t header_crc = 0;
};

// Builds an entry at `tail` and moves the tail behind it. `payload` is consumed. The entry must fit
// its segment: see RollIfNeeded.
EntryRef MakeEntry(Term term, EntryType type, std::int64_t store_time_ms, std::string payload,
                   LogTail* tail);
// The same for a payload that stands behind kEntryHeaderBytes of room for the header.
EntryRef MakeEntryFrom(Term term, EntryType type, std::int64_t store_time_ms, std::string bytes,
                       LogTail* tail);
// Moves the tail to a new segment when `entry_bytes` do not fit into the rest of the current one. A
// new segment begins at segment_base + segment_bytes; an entry larger than a segment gets one for
// itself, and the next one begins at its end.
void RollIfNeeded(std::size_t entry_bytes, std::uint64_t segment_bytes, LogTail* tail);
// The tail behind `entry`.
LogTail TailAfter(const Entry& entry);
LogTail TailAfter(const EntryHeader& header);

// Parses and checks one entry at the start of `bytes` (which may be longer). `verify_payload`: also
// its CRC. Errors: kCorruption saying which check failed; kUnavailable when `bytes` ends before the
// entry does.
Result<EntryRef> DecodeEntry(std::string_view bytes, bool verify_payload);
// The first step of it: magic, sizes, header CRC. `bytes` may be longer than a header.
Result<EntryHeader> DecodeHeader(std::string_view bytes);
// The second: payload CRC and zero padding. `bytes` begins with the header.
Status CheckPayload(const EntryHeader& header, std::string_view bytes);
// Whether `entry` may follow the entry that left `tail`: index, position (same segment or a legal
// roll), chain, term.
Status CheckFollows(const LogTail& tail, const Entry& entry);
Status CheckFollows(const LogTail& tail, const EntryHeader& header);

}  // namespace triad::dledger
