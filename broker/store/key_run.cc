#include "broker/store/key_run.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "common/byte_order.h"
#include "common/crc32c.h"

namespace triad::broker {
namespace {

constexpr std::uint32_t kMagic = 0x54524B32;  // "TRK2"
constexpr std::size_t kHeaderCrcAt = kRunHeaderBytes - 4;
constexpr std::uint32_t kBucketBitsMax = 24;
constexpr std::uint32_t kRecordsPerBucket = 8;

// Folds the 128-bit product: every bit of both factors reaches every bit of the result.
std::uint64_t Fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::size_t BucketOf(std::uint64_t hash, std::uint32_t bits) {
  return bits == 0 ? 0 : static_cast<std::size_t>(hash >> (64 - bits));
}

std::uint32_t CrcOfBucket(std::uint32_t begin, std::uint32_t end, std::string_view records) {
  std::string bound;
  bound.reserve(8 + records.size());
  AppendBe32(&bound, begin);
  AppendBe32(&bound, end);
  bound.append(records);
  return Crc32c(bound);
}

std::string EncodeHeader(const KeyRun& run) {
  std::string header;
  header.reserve(run.size_bytes());
  AppendBe32(&header, kMagic);
  AppendBe32(&header, run.bucket_bits);
  AppendBe64(&header, run.sequence);
  AppendBe64(&header, run.before.value());
  AppendBe64(&header, run.last.value());
  AppendBe64(&header, static_cast<std::uint64_t>(run.begin.value()));
  AppendBe64(&header, static_cast<std::uint64_t>(run.end.value()));
  AppendBe64(&header, static_cast<std::uint64_t>(run.first_time_ms));
  AppendBe64(&header, static_cast<std::uint64_t>(run.last_time_ms));
  AppendBe32(&header, run.count);
  header.resize(kHeaderCrcAt, '\0');
  AppendBe32(&header, Crc32c(header));
  return header;
}

}  // namespace

std::uint64_t KeyHash(std::uint64_t seed, std::string_view bytes) {
  constexpr std::uint64_t kOdd1 = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  constexpr std::uint64_t kOdd2 = 0xC2B2AE3D27D4EB4F;
  std::uint64_t hash = seed ^ Fold(bytes.size() + kOdd2, kOdd1);
  while (bytes.size() >= 8) {
    hash = Fold(hash ^ LoadBe64(bytes.data()) ^ kOdd2, kOdd1);
    bytes.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  for (const char c : bytes) rest = rest << 8 | static_cast<std::uint8_t>(c);
  return Fold(hash ^ rest ^ kOdd1, kOdd2);
}

std::string EncodeKeyRun(std::span<const KeyRecord> records, KeyRun* run) {
  run->count = static_cast<std::uint32_t>(records.size());
  run->bucket_bits = static_cast<std::uint32_t>(std::bit_width(run->count / kRecordsPerBucket));
  CHECK_LE(run->bucket_bits, kBucketBitsMax);
  std::vector<std::uint32_t> next(std::size_t{1} << run->bucket_bits);
  for (const KeyRecord& record : records) ++next[BucketOf(record.hash, run->bucket_bits)];
  std::string bytes = EncodeHeader(*run);
  std::uint32_t end = 0;
  for (std::uint32_t& bucket : next) {
    const std::uint32_t count = bucket;
    bucket = end;
    end += count;
    AppendBe32(&bytes, end);
    AppendBe32(&bytes, 0);  // below
  }
  bytes.resize(run->size_bytes());
  char* const to = bytes.data() + kRunHeaderBytes + run->table_bytes();
  for (const KeyRecord& record : records) {
    char* const at = to + kKeyRecordBytes * next[BucketOf(record.hash, run->bucket_bits)]++;
    StoreBe64(at, record.hash);
    StoreBe64(at + 8, static_cast<std::uint64_t>(record.position));
  }
  std::uint32_t begin = 0;
  for (std::size_t bucket = 0; bucket < next.size(); ++bucket) {
    char* const entry = bytes.data() + kRunHeaderBytes + bucket * 8;
    end = LoadBe32(entry);
    const std::string_view records_of(to + begin * kKeyRecordBytes,
                                      (end - begin) * kKeyRecordBytes);
    StoreBe32(entry + 4, CrcOfBucket(begin, end, records_of));
    begin = end;
  }
  return bytes;
}

Result<KeyRun> DecodeKeyRunHeader(std::string_view header) {
  CHECK_EQ(header.size(), kRunHeaderBytes);
  const char* const from = header.data();
  if (LoadBe32(from) != kMagic) return Status::Corruption("no run of the key index");
  if (LoadBe32(from + kHeaderCrcAt) != Crc32c(header.substr(0, kHeaderCrcAt))) {
    return Status::Corruption("a run's header does not match its CRC");
  }
  KeyRun run;
  run.bucket_bits = LoadBe32(from + 4);
  run.sequence = LoadBe64(from + 8);
  run.before = LogIndex{LoadBe64(from + 16)};
  run.last = LogIndex{LoadBe64(from + 24)};
  run.begin = PhysicalOffset{static_cast<std::int64_t>(LoadBe64(from + 32))};
  run.end = PhysicalOffset{static_cast<std::int64_t>(LoadBe64(from + 40))};
  run.first_time_ms = static_cast<std::int64_t>(LoadBe64(from + 48));
  run.last_time_ms = static_cast<std::int64_t>(LoadBe64(from + 56));
  run.count = LoadBe32(from + 64);
  if (run.bucket_bits > kBucketBitsMax || run.last < run.before || run.end < run.begin) {
    return Status::Corruption("a run's header says what cannot be");
  }
  return run;
}

ByteRange BucketEnds(const KeyRun& run, std::uint64_t hash) {
  const std::size_t bucket = BucketOf(hash, run.bucket_bits);
  if (bucket == 0) return {kRunHeaderBytes, 8};
  return {kRunHeaderBytes + (bucket - 1) * 8, 16};
}

Result<ByteRange> BucketRecords(const KeyRun& run, std::string_view ends) {
  CHECK(ends.size() == 8 || ends.size() == 16);
  const std::uint32_t begin = ends.size() == 8 ? 0 : LoadBe32(ends.data());
  const std::uint32_t end = LoadBe32(ends.data() + ends.size() - 8);
  if (begin > end || end > run.count) {
    return Status::Corruption("run " + std::to_string(run.sequence) +
                              " of the key index has a damaged table");
  }
  return ByteRange{kRunHeaderBytes + run.table_bytes() + begin * kKeyRecordBytes,
                   (end - begin) * kKeyRecordBytes};
}

Status CheckBucket(std::string_view ends, std::string_view records) {
  const std::uint32_t begin = ends.size() == 8 ? 0 : LoadBe32(ends.data());
  const std::uint32_t end = LoadBe32(ends.data() + ends.size() - 8);
  if (LoadBe32(ends.data() + ends.size() - 4) == CrcOfBucket(begin, end, records)) return {};
  return Status::Corruption("a bucket of the key index does not match its CRC");
}

Status CheckRun(const KeyRun& run, std::string_view bytes) {
  CHECK_EQ(bytes.size() + kRunHeaderBytes, run.size_bytes());
  const std::string_view records = bytes.substr(run.table_bytes());
  for (std::size_t at = 0; at < run.table_bytes(); at += 8) {
    const std::string_view ends = at == 0 ? bytes.substr(0, 8) : bytes.substr(at - 8, 16);
    const Result<ByteRange> where = BucketRecords(run, ends);
    if (!where.ok()) return where.status();
    const std::size_t skip = where->offset - kRunHeaderBytes - run.table_bytes();
    TRIAD_RETURN_IF_ERROR(CheckBucket(ends, records.substr(skip, where->bytes)));
  }
  return {};
}

KeyRecord DecodeKeyRecord(const char* bytes) {
  return {LoadBe64(bytes), static_cast<std::int64_t>(LoadBe64(bytes + 8))};
}

}  // namespace triad::broker
