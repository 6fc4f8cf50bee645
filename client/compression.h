// Compression: message bodies as RocketMQ's clients pack them (zlib, LZ4 frames, ZSTD).
//
// Pure. Bounds: an unpacked body has at most kMaxInflatedBytes. Source: wire.md §4.6.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace triad::client {

inline constexpr std::int32_t kCompressed = 0x1;             // bits of a message's sysFlag
inline constexpr std::int32_t kCompressionTypeMask = 0x700;  // 0 (old clients) and 0x300: zlib
inline constexpr std::int32_t kCompressedLz4 = 0x100;
inline constexpr std::int32_t kCompressedZstd = 0x200;
inline constexpr std::int32_t kCompressedZlib = 0x300;
inline constexpr std::size_t kMaxInflatedBytes = 32u << 20;

// zlib.
std::string Deflate(std::string_view bytes);

// Whether a body with this sysFlag is plain or packed with what Unpack knows.
bool CanUnpack(std::int32_t sys_flag);
// The plain body of one with this sysFlag; as it is when CanUnpack says no.
// Errors: kCorruption, also beyond kMaxInflatedBytes.
Result<std::string> Unpack(std::int32_t sys_flag, std::string_view body);

}  // namespace triad::client
