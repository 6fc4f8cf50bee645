#include "broker/store/queue_unit_codec.h"

#include <cstring>

#include "common/byte_order.h"
#include "common/crc32c.h"

namespace triad::broker {
namespace {

constexpr std::size_t kCrcAt = kUnitBytes - 4;

// Also of the offset, which is not in the unit: one that stands elsewhere is none.
std::uint32_t CrcOf(std::int64_t offset, std::string_view content) {
  char bound[kUnitBytes + 4];
  std::memcpy(bound, content.data(), kCrcAt);
  StoreBe64(bound + kCrcAt, static_cast<std::uint64_t>(offset));
  return Crc32c(std::string_view(bound, sizeof(bound)));
}

}  // namespace

std::optional<QueueUnit> DecodeUnit(std::int64_t offset, std::string_view bytes) {
  if (LoadBe32(bytes.data() + kCrcAt) != CrcOf(offset, bytes.substr(0, kCrcAt))) {
    return std::nullopt;
  }
  QueueUnit unit;
  unit.position = PhysicalOffset{static_cast<std::int64_t>(LoadBe64(bytes.data()))};
  unit.size_bytes = static_cast<std::int32_t>(LoadBe32(bytes.data() + 8));
  unit.tag_code = static_cast<std::int64_t>(LoadBe64(bytes.data() + 12));
  return IsUnit(unit) ? std::optional(unit) : std::nullopt;
}

void EncodeUnit(std::int64_t offset, const QueueUnit& unit, std::string* out) {
  const std::size_t at = out->size();
  AppendBe64(out, static_cast<std::uint64_t>(unit.position.value()));
  AppendBe32(out, static_cast<std::uint32_t>(unit.size_bytes));
  AppendBe64(out, static_cast<std::uint64_t>(unit.tag_code));
  AppendBe32(out, CrcOf(offset, std::string_view(*out).substr(at)));
}

}  // namespace triad::broker
