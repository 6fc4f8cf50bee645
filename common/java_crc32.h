// JavaCrc32: the body checksum of RocketMQ messages and registrations: CRC-32 (zip), masked to 31
// bits.
//
// Pure; safe on every thread. Source: wire.md §3.2, §5.9.

#pragma once

#include <cstdint>
#include <string_view>

namespace triad {

std::uint32_t JavaCrc32(std::string_view bytes);

}  // namespace triad
