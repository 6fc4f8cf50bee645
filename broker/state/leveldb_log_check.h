// WholeRecordsEnd: how far a log of LevelDB's (its manifest, its *.log) can be trusted.
//
// LevelDB forgives too little in its manifest, where a last record that a power loss tore refuses
// the whole store, and too much in its *.log, where it passes over what is damaged and goes on
// behind it. The rule here is one for both: each record is synced before the next one is begun, so
// the first damaged one is a torn tail if nothing was begun behind it, and corruption if something
// was.
//
// Pure; any thread. O(bytes), and one checksum for each place behind the damage that looks like a
// beginning.
// Source: LevelDB's doc/log_format.md. Blocks of 32 KiB hold fragments: masked CRC-32C of type and
// payload (4, little-endian), length (2), type (1: full, 2: first, 3: middle, 4: last), payload. No
// fragment spans blocks; a block's last bytes are left when a header does not fit.

#pragma once

#include <cstddef>
#include <string_view>

#include "common/status.h"

namespace triad::broker {

// Of `log`, the bytes of a whole file: where its last whole record ends. What stands behind was
// never relied upon.
// Errors: kCorruption when behind a damaged record a later one was begun; says where.
Result<std::size_t> WholeRecordsEnd(std::string_view log);

}  // namespace triad::broker
