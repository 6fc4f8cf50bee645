// Crc32c: the Castagnoli checksum that guards log entries and state files.
//
// Pure; safe on every thread. The SSE4.2 instruction is used where the machine has it (chosen once
// at run time), a table elsewhere; both give the same value.

#pragma once

#include <cstdint>
#include <string_view>

namespace triad {

// The checksum of `bytes`; with `seed` = the checksum of what comes before, that of the whole:
// Crc32c("ab") == Crc32c("b", Crc32c("a")).
std::uint32_t Crc32c(std::string_view bytes, std::uint32_t seed = 0);

// The two ways, for tests that compare them.
std::uint32_t Crc32cPortable(std::string_view bytes, std::uint32_t seed = 0);
bool Crc32cHasHardware();

}  // namespace triad
