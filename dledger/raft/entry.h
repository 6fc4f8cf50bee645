// Entry: one record of the replicated log, as the core sees it. Immutable once made; shared between
// threads.
//
// On disk and between peers an entry is a fixed header (dledger/log/entry_codec.h) followed by its
// payload; `bytes` holds both, so that what was received is what is written, streamed and served.
// The core never looks inside.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/ids.h"

namespace triad::dledger {

enum class EntryType : std::uint8_t { kNoop = 1, kMembership = 2, kBatch = 3 };

struct Entry {
  Term term;
  LogIndex index;
  EntryType type = EntryType::kNoop;
  PhysicalOffset position;          // of the header's first byte
  PhysicalOffset segment_base;      // first position of the segment that holds it
  std::int64_t store_time_ms = 0;   // log time
  std::uint32_t header_crc = 0;     // links the chain: the next entry's header carries it
  std::uint32_t header_bytes = 0;   // length of the header inside `bytes`
  std::uint32_t padding_bytes = 0;  // zeros at the end of `bytes`, no part of the payload
  std::string bytes;                // header + payload, padded to 8

  std::string_view payload() const {
    return std::string_view(bytes).substr(header_bytes,
                                          bytes.size() - header_bytes - padding_bytes);
  }
  std::size_t size() const { return bytes.size(); }
  PhysicalOffset end() const { return position + static_cast<std::int64_t>(bytes.size()); }
  PhysicalOffset payload_position() const { return position + header_bytes; }
};
using EntryRef = std::shared_ptr<const Entry>;

}  // namespace triad::dledger
