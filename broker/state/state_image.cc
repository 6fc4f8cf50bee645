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

Status StateImageParser::Add(std::string_view piece) {
  rest_ += piece;
  std::string_view left = rest_;
  while (left.size() >= kLengthsBytes) {
    const std::size_t key_bytes = LoadBe32(left.data());
    const std::size_t value_bytes = LoadBe32(left.data() + 4);
    if (key_bytes == 0 || key_bytes + value_bytes > kImageRecordBytesMax) {
      return Status::Corruption("state image: a record of impossible size");
    }
    if (left.size() - kLengthsBytes < key_bytes + value_bytes) break;
    records_.emplace_back(left.substr(kLengthsBytes, key_bytes),
                          left.substr(kLengthsBytes + key_bytes, value_bytes));
    left.remove_prefix(kLengthsBytes + key_bytes + value_bytes);
  }
  rest_.erase(0, rest_.size() - left.size());
  return Status::Ok();
}

Result<std::vector<std::pair<std::string, std::string>>> StateImageParser::Finish() && {
  if (!rest_.empty()) return Status::Corruption("state image: its last record is cut");
  return std::move(records_);
}

}  // namespace triad::broker
