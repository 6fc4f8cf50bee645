#include "dledger/log/store_base.h"

#include <glog/logging.h>

#include <memory>
#include <utility>

#include "common/crc32c.h"
#include "dledger/log/record_codec.h"
#include "dledger/membership_codec.h"

namespace triad::dledger {
namespace {

constexpr std::uint32_t kBaseMagic = 0x54524442;  // "TRDB"
constexpr std::uint32_t kBaseVersion = 1;
constexpr std::size_t kSpareBytes = 64u << 10;  // more than the largest record

std::string PathIn(const std::string& dir) {
  return dir + "/begin";
}

std::string SparePathIn(const std::string& dir) {
  return dir + "/begin.spare";
}

}  // namespace

bool StoreBase::operator==(const StoreBase& other) const {
  return tail.next_index == other.tail.next_index && tail.position == other.tail.position &&
         tail.header_crc == other.tail.header_crc && tail.last_term == other.tail.last_term;
}

std::string EncodeBegin(const BeginRecord& record) {
  const LogTail& tail = record.base.tail;
  RecordWriter out;
  out.U32(kBaseMagic);
  out.U32(kBaseVersion);
  out.U32(record.fresh ? 1 : 0);
  out.U64(tail.next_index.value());
  out.Offset(tail.position);
  out.Offset(tail.segment_base);
  out.U32(tail.header_crc);
  out.U64(tail.last_term.value());
  out.I64(tail.last_store_time_ms);
  const bool has_membership = !record.base.membership.voters.empty();
  out.Bytes(has_membership ? EncodeMembership(record.base.membership) : std::string());
  std::string bytes = std::move(out).Take();
  AppendBe32(&bytes, Crc32c(bytes));
  return bytes;
}

std::optional<BeginRecord> DecodeBegin(std::string_view bytes) {
  if (bytes.size() < 4) return std::nullopt;
  const std::string_view content = bytes.substr(0, bytes.size() - 4);
  if (LoadBe32(bytes.data() + content.size()) != Crc32c(content)) return std::nullopt;
  RecordReader in(content);
  if (in.U32() != kBaseMagic || in.U32() != kBaseVersion) return std::nullopt;
  BeginRecord record;
  record.fresh = in.U32() != 0;
  LogTail& tail = record.base.tail;
  tail.next_index = LogIndex(in.U64());
  tail.position = in.Offset();
  tail.segment_base = in.Offset();
  tail.header_crc = in.U32();
  tail.last_term = Term(in.U64());
  tail.last_store_time_ms = in.I64();
  const std::string_view membership = in.Bytes();
  if (!membership.empty()) {
    Result<Membership> decoded = DecodeMembership(membership);
    if (!decoded.ok()) return std::nullopt;
    record.base.membership = std::move(decoded).value();
  }
  const bool aligned = tail.position == tail.segment_base && tail.position.value() >= 0 &&
                       tail.position.value() % 8 == 0;
  if (!in.ok() || !in.at_end() || !aligned || tail.next_index == LogIndex(0)) return std::nullopt;
  return record;
}

Result<BeginRecord> ReadBegin(FileSystem& fs, const std::string& dir) {
  const Result<std::string> bytes = ReadFile(fs, PathIn(dir));
  if (!bytes.ok()) return bytes.status();
  std::optional<BeginRecord> record = DecodeBegin(*bytes);
  if (!record) return Status::Corruption(PathIn(dir) + " is damaged");
  return std::move(*record);
}

namespace {

Status Reserve(FileSystem& fs, const std::string& dir) {
  Result<std::unique_ptr<File>> file = fs.Open(SparePathIn(dir), OpenFlags{.create = true});
  if (!file.ok()) return file.status();
  const Result<std::uint64_t> size = (*file)->Size();
  if (!size.ok()) return size.status();
  if (*size >= kSpareBytes) return {};
  TRIAD_RETURN_IF_ERROR((*file)->Write(0, std::string(kSpareBytes, '\0')));
  return (*file)->SyncAll();
}

}  // namespace

void ReserveBegin(FileSystem& fs, const std::string& dir) {
  const Status reserved = Reserve(fs, dir);
  LOG_IF(WARNING, !reserved.ok()) << dir << ": no room is kept for dropping old segments when the "
                                  << "disk is full: " << reserved;
}

Status WriteBegin(FileSystem& fs, const std::string& dir, const BeginRecord& record) {
  const std::string bytes = EncodeBegin(record);
  CHECK_LE(bytes.size(), kSpareBytes);
  {
    Result<std::unique_ptr<File>> file = fs.Open(SparePathIn(dir), OpenFlags{.create = true});
    if (!file.ok()) return file.status();
    TRIAD_RETURN_IF_ERROR((*file)->Write(0, bytes));
    TRIAD_RETURN_IF_ERROR((*file)->Truncate(bytes.size()));
    TRIAD_RETURN_IF_ERROR((*file)->SyncAll());
  }
  TRIAD_RETURN_IF_ERROR(fs.Rename(SparePathIn(dir), PathIn(dir)));
  return fs.SyncDir(dir);
}

}  // namespace triad::dledger
