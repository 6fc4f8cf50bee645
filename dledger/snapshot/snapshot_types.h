// What a snapshot is, and what two peers say to each other about one.
//
// A snapshot is the application's state up to `applied` as an opaque run of bytes, and where the
// log that goes with it begins: the first entry that its sender still keeps. Plain values.
// Source: architecture.md §3, "Retention and snapshots".

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "common/ids.h"
#include "common/status.h"
#include "dledger/log/store_base.h"

namespace triad::dledger {

inline constexpr std::size_t kSnapshotChunkBytes = 256u << 10;

// The application's state, piece by piece. One thread at a time.
class StatePieces {
 public:
  virtual ~StatePieces() = default;
  // The next bytes, of any length but 0. False: there are no more.
  virtual Result<bool> Next(std::string* piece) = 0;
};

// Pieces of what is stored: they can be read again, so nobody need hold them all.
class StoredPieces : public StatePieces {
 public:
  virtual void Rewind() = 0;  // the first piece is the next one
};

struct SnapshotHead {
  StoreBase base;    // the log begins there; applied >= base.tail.next_index - 1
  LogIndex applied;  // the state ends here
  std::uint64_t total_bytes = 0;
  std::uint32_t crc = 0;  // CRC32C of all bytes

  bool operator==(const SnapshotHead& other) const {
    return base == other.base && applied == other.applied && total_bytes == other.total_bytes &&
           crc == other.crc;
  }
};

// Leader: there is one for you. Repeated until it is answered; also after a broken connection, so
// that the answer says where to go on.
struct SnapshotOffer {
  Term term;
  std::uint64_t id = 0;  // random
  SnapshotHead head;
};
struct SnapshotChunk {
  std::uint64_t id = 0;
  std::uint64_t offset = 0;
  std::uint32_t crc = 0;  // CRC32C of data
  std::string data;       // at most kSnapshotChunkBytes
};
struct SnapshotAnswer {
  enum class Kind : std::uint8_t {
    kSendFrom,   // `offset` is what I want next
    kInstalled,  // or I have no use for it
    kRefused,    // start over: what I got was damaged, or I do not follow you
  };
  std::uint64_t id = 0;
  Kind kind = Kind::kSendFrom;
  std::uint64_t offset = 0;
};
using SnapshotMessage = std::variant<SnapshotOffer, SnapshotChunk, SnapshotAnswer>;

}  // namespace triad::dledger
