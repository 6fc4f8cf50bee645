#include "common/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace triad {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78u;  // reflected 0x1EDC6F41
constexpr std::size_t kSlices = 8;

using Tables = std::array<std::array<std::uint32_t, 256>, kSlices>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? kPolynomial : 0u);
    tables[0][i] = crc;
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice) {
    for (std::uint32_t i = 0; i < 256; ++i) {
      const std::uint32_t before = tables[slice - 1][i];
      tables[slice][i] = (before >> 8) ^ tables[0][before & 0xffu];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

#if defined(__x86_64__)
// Three lanes at a time: one instruction waits three cycles for its own result, so a single lane
// leaves two thirds of the unit idle.
constexpr std::size_t kLaneBytes = 1024;

// What a checksum becomes when kLaneBytes zeros follow, by each of its bytes.
using LaneShift = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr LaneShift MakeLaneShift() {
  std::array<std::uint32_t, 32> of_bit{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::uint32_t crc = std::uint32_t{1} << bit;
    for (std::size_t i = 0; i < kLaneBytes; ++i) crc = (crc >> 8) ^ kTables[0][crc & 0xffu];
    of_bit[bit] = crc;
  }
  LaneShift shift{};
  for (std::size_t byte = 0; byte < 4; ++byte) {
    for (std::size_t value = 0; value < 256; ++value) {
      for (std::size_t bit = 0; bit < 8; ++bit) {
        if ((value >> bit & 1) != 0) shift[byte][value] ^= of_bit[8 * byte + bit];
      }
    }
  }
  return shift;
}

constexpr LaneShift kLaneShift = MakeLaneShift();

std::uint64_t ShiftLane(std::uint64_t crc) {
  return kLaneShift[0][crc & 0xffu] ^ kLaneShift[1][crc >> 8 & 0xffu] ^
         kLaneShift[2][crc >> 16 & 0xffu] ^ kLaneShift[3][crc >> 24 & 0xffu];
}

std::uint64_t LoadWord(const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

__attribute__((target("sse4.2"))) std::uint32_t Hardware(std::string_view bytes,
                                                         std::uint32_t seed) {
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t crc = seed ^ 0xffffffffu;
  for (; left >= 3 * kLaneBytes; left -= 3 * kLaneBytes, at += 3 * kLaneBytes) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < kLaneBytes; i += 8) {
      crc = _mm_crc32_u64(crc, LoadWord(at + i));
      second = _mm_crc32_u64(second, LoadWord(at + kLaneBytes + i));
      third = _mm_crc32_u64(third, LoadWord(at + 2 * kLaneBytes + i));
    }
    crc = ShiftLane(ShiftLane(crc) ^ second) ^ third;
  }
  for (; left >= 8; left -= 8, at += 8) crc = _mm_crc32_u64(crc, LoadWord(at));
  auto crc32 = static_cast<std::uint32_t>(crc);
  for (; left > 0; --left, ++at) crc32 = _mm_crc32_u8(crc32, static_cast<unsigned char>(*at));
  return crc32 ^ 0xffffffffu;
}
#endif

}  // namespace

bool Crc32cHasHardware() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
#else
  return false;
#endif
}

std::uint32_t Crc32cPortable(std::string_view bytes, std::uint32_t seed) {
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  std::uint32_t crc = seed ^ 0xffffffffu;
  for (; left >= 8; left -= 8, at += 8) {
    std::uint32_t low;
    std::memcpy(&low, at, sizeof(low));
    low ^= crc;
    crc = kTables[7][low & 0xffu] ^ kTables[6][(low >> 8) & 0xffu] ^
          kTables[5][(low >> 16) & 0xffu] ^ kTables[4][low >> 24] ^ kTables[3][at[4]] ^
          kTables[2][at[5]] ^ kTables[1][at[6]] ^ kTables[0][at[7]];
  }
  for (; left > 0; --left, ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 0xffu];
  return crc ^ 0xffffffffu;
}

std::uint32_t Crc32c(std::string_view bytes, std::uint32_t seed) {
#if defined(__x86_64__)
  if (Crc32cHasHardware()) return Hardware(bytes, seed);
#endif
  return Crc32cPortable(bytes, seed);
}

}  // namespace triad
