// QueueUnitCodec: a unit of a consume queue as it stands in a file.
//
// 24 bytes, big-endian: position i64, size i32, tag code i64, CRC32C of these 20 bytes and of the
// unit's offset, which is not written: a unit that rotted or stands elsewhere is none. Pure.
// Source: docs/dledger.md, "Byte by byte".

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "broker/store/consume_queue_store.h"

namespace triad::broker {

inline constexpr std::size_t kUnitBytes = 24;

inline bool IsUnit(const QueueUnit& unit) {
  return unit.position.value() >= 0 && unit.size_bytes > 0;
}

void EncodeUnit(std::int64_t offset, const QueueUnit& unit, std::string* out);
// kUnitBytes of `bytes`. Nothing: not the unit at `offset`.
std::optional<QueueUnit> DecodeUnit(std::int64_t offset, std::string_view bytes);

}  // namespace triad::broker
