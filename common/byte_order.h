// Big-endian integers, as the wire and our files hold them.
//
// Pure. The caller guarantees that Load/Store have enough bytes; check lengths of input before.

#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

namespace triad {

static_assert(std::endian::native == std::endian::little, "a big-endian machine was never tested");

inline std::uint16_t ToBe16(std::uint16_t v) {
  return __builtin_bswap16(v);
}
inline std::uint32_t ToBe32(std::uint32_t v) {
  return __builtin_bswap32(v);
}
inline std::uint64_t ToBe64(std::uint64_t v) {
  return __builtin_bswap64(v);
}

inline void StoreBe16(char* to, std::uint16_t v) {
  v = ToBe16(v);
  std::memcpy(to, &v, sizeof(v));
}
inline void StoreBe32(char* to, std::uint32_t v) {
  v = ToBe32(v);
  std::memcpy(to, &v, sizeof(v));
}
inline void StoreBe64(char* to, std::uint64_t v) {
  v = ToBe64(v);
  std::memcpy(to, &v, sizeof(v));
}

inline std::uint16_t LoadBe16(const char* from) {
  std::uint16_t v;
  std::memcpy(&v, from, sizeof(v));
  return ToBe16(v);
}
inline std::uint32_t LoadBe32(const char* from) {
  std::uint32_t v;
  std::memcpy(&v, from, sizeof(v));
  return ToBe32(v);
}
inline std::uint64_t LoadBe64(const char* from) {
  std::uint64_t v;
  std::memcpy(&v, from, sizeof(v));
  return ToBe64(v);
}

inline void AppendBe16(std::string* out, std::uint16_t v) {
  v = ToBe16(v);
  out->append(reinterpret_cast<const char*>(&v), sizeof(v));
}
inline void AppendBe32(std::string* out, std::uint32_t v) {
  v = ToBe32(v);
  out->append(reinterpret_cast<const char*>(&v), sizeof(v));
}
inline void AppendBe64(std::string* out, std::uint64_t v) {
  v = ToBe64(v);
  out->append(reinterpret_cast<const char*>(&v), sizeof(v));
}

}  // namespace triad
