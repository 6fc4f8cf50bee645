#include "broker/state/leveldb_log_check.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "common/byte_order.h"
#include "common/crc32c.h"

namespace triad::broker {
namespace {

constexpr std::size_t kBlockBytes = 32u << 10;
constexpr std::size_t kHeaderBytes = 7;
constexpr std::size_t kTypeAt = 6;
constexpr std::uint32_t kMaskDelta = 0xa282ead8;

enum class FragmentType : std::uint8_t { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

struct Fragment {
  FragmentType type;
  std::size_t end = 0;

  bool begins() const { return type == FragmentType::kFull || type == FragmentType::kFirst; }
  bool ends() const { return type == FragmentType::kFull || type == FragmentType::kLast; }
};

// Little-endian, as this machine (byte_order.h).
template <typename T>
T LoadLe(const char* from) {
  T v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

// Nothing unless a whole fragment begins at `at`.
std::optional<Fragment> FragmentAt(std::string_view log, std::size_t at) {
  const std::size_t block_end = std::min(log.size(), (at / kBlockBytes + 1) * kBlockBytes);
  if (at + kHeaderBytes > block_end) return std::nullopt;
  const char* header = log.data() + at;
  const auto type = static_cast<std::uint8_t>(header[kTypeAt]);
  if (type < 1 || type > 4) return std::nullopt;
  const std::size_t length = LoadLe<std::uint16_t>(header + 4);
  const std::size_t end = at + kHeaderBytes + length;
  if (end > block_end) return std::nullopt;
  const std::uint32_t crc = Crc32c(log.substr(at + kTypeAt, 1 + length));
  const std::uint32_t masked = ((crc >> 15) | (crc << 17)) + kMaskDelta;
  if (LoadLe<std::uint32_t>(header) != masked) return std::nullopt;
  return Fragment{static_cast<FragmentType>(type), end};
}

}  // namespace

Result<std::size_t> WholeRecordsEnd(std::string_view log) {
  std::size_t at = 0;
  std::size_t whole_end = 0;
  bool in_record = false;
  while (true) {
    const std::size_t left = kBlockBytes - at % kBlockBytes;
    if (left < kHeaderBytes) at += left;
    const std::optional<Fragment> fragment = FragmentAt(log, at);
    if (!fragment || fragment->begins() == in_record) break;
    at = fragment->end;
    in_record = !fragment->ends();
    if (!in_record) whole_end = at;
  }
  // A damaged length says nothing of where the next one begins. Middles and a last may be what a
  // power loss left of the same record; a beginning is another's.
  for (std::size_t behind = at; behind < log.size(); ++behind) {
    const std::optional<Fragment> fragment = FragmentAt(log, behind);
    if (fragment && fragment->begins()) {
      return Status::Corruption("damaged behind byte " + std::to_string(whole_end) +
                                ", and a later record begins at byte " + std::to_string(behind));
    }
  }
  return whole_end;
}

}  // namespace triad::broker
