// A run of the key index: the keys of some consecutive entries, as a hash table in a file.
//
// Pure. Layout: header (kRunHeaderBytes), of each bucket its end (u32) and a CRC32C of where it
// stands and of its records, then the records by bucket (8-byte hash, 8-byte position; in a bucket
// in order of position). A bucket is the hash's first bits, so a lookup reads and checks two small
// ranges. Big-endian.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/ids.h"
#include "common/status.h"

namespace triad::broker {

// Of (topic, key): the key's hash starts from the topic's.
std::uint64_t KeyHash(std::uint64_t seed, std::string_view bytes);
inline constexpr std::uint64_t kTopicSeed = 0x7472696164;

struct KeyRecord {
  std::uint64_t hash = 0;
  std::int64_t position = 0;
};

inline constexpr std::size_t kRunHeaderBytes = 96;
inline constexpr std::size_t kKeyRecordBytes = 16;

struct KeyRun {
  std::uint64_t sequence = 0;  // 1, 2, ... over all files of an index
  LogIndex before;             // the run holds the entries (before, last]
  LogIndex last;
  PhysicalOffset begin;  // of the log that it covers
  PhysicalOffset end;
  std::int64_t first_time_ms = 0;  // store times of its records; first > last: none
  std::int64_t last_time_ms = -1;
  std::uint32_t count = 0;
  std::uint32_t bucket_bits = 0;
  std::uint64_t file_offset = 0;  // not in the header

  std::size_t table_bytes() const { return (std::size_t{1} << bucket_bits) * 8; }
  std::size_t size_bytes() const {
    return kRunHeaderBytes + table_bytes() + count * kKeyRecordBytes;
  }
};

// The bytes of a run with `records`; sets run->count and run->bucket_bits. Records come in order of
// position.
std::string EncodeKeyRun(std::span<const KeyRecord> records, KeyRun* run);
// From the first kRunHeaderBytes of a run. Errors: kCorruption.
Result<KeyRun> DecodeKeyRunHeader(std::string_view header);

// Where the table speaks of the bucket of `hash`, from the run's first byte: `bytes` 8 or 16.
struct ByteRange {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};
ByteRange BucketEnds(const KeyRun& run, std::uint64_t hash);
// Where the bucket's records stand. Errors: kCorruption when `ends` cannot be.
Result<ByteRange> BucketRecords(const KeyRun& run, std::string_view ends);
// Errors: kCorruption when the records are not those of the table.
Status CheckBucket(std::string_view ends, std::string_view records);
// All of a run behind its header. Errors: kCorruption.
Status CheckRun(const KeyRun& run, std::string_view bytes);
KeyRecord DecodeKeyRecord(const char* bytes);

}  // namespace triad::broker
