#include "broker/state/state_image.h"

#include "broker/state/state_keys.h"
#include "common/byte_order.h"

namespace triad::broker {
namespace {

constexpr std::size_t kLengthsBytes = 8;

}  // namespace

Result<bool> NextImagePiece(StateRecords* records, std::string* piece) {
  piece->clear();
  std::string_view key;
  std::string_view value;
  while (piece->size() < kImagePieceBytes && records->Next(&key, &value)) {
    if (key.substr(0, kExtraPrefix.size()) == kExtraPrefix) continue;
    AppendBe32(piece, static_cast<std::uint32_t>(key.size()));
    AppendBe32(piece, static_cast<std::uint32_t>(value.size()));
    piece->append(key);
    piece->append(value);
  }
  TRIAD_RETURN_IF_ERROR(records->status());
  return !piece->empty();
}

bool ImageRecords::Next(std::string_view* key, std::string_view* value) {
  while (status_.ok()) {
    const Result<bool> taken = TakeRecord(key, value);
    status_ = taken.status();
    if (!taken.ok()) return false;
    if (*taken) return true;
    bytes_.erase(0, std::exchange(at_, 0));
    const Result<bool> more = next_(&piece_);
    status_ = more.status();
    if (more.ok() && !*more) {
      if (!bytes_.empty()) status_ = Status::Corruption("state image: its last record is cut");
      return false;
    }
    if (more.ok()) bytes_ += piece_;
  }
  return false;
}

// False: not all of it is here yet.
Result<bool> ImageRecords::TakeRecord(std::string_view* key, std::string_view* value) {
  const std::string_view left = std::string_view(bytes_).substr(at_);
  if (left.size() < kLengthsBytes) return false;
  const std::size_t key_bytes = LoadBe32(left.data());
  const std::size_t value_bytes = LoadBe32(left.data() + 4);
  if (key_bytes == 0 || key_bytes + value_bytes > kImageRecordBytesMax) {
    return Status::Corruption("state image: a record of impossible size");
  }
  if (left.size() - kLengthsBytes < key_bytes + value_bytes) return false;
  *key = left.substr(kLengthsBytes, key_bytes);
  *value = left.substr(kLengthsBytes + key_bytes, value_bytes);
  at_ += kLengthsBytes + key_bytes + value_bytes;
  return true;
}

}  // namespace triad::broker
