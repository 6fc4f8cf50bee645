// Trace: what happened, as a hash (for the determinism test) and as the last events in words (for
// the failure block).
//
// Bounds: the last kKept events. With `print` every event goes to stdout as it happens.

#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "dledger/raft/types.h"
#include "tests/sim/options.h"

namespace triad::sim {

enum class EventKind : std::uint8_t {
  kTick,
  kDeliver,
  kDiskDone,
  kStorageNotice,
  kLoaded,
  kPropose,
  kNoop,
  kRead,
  kTransfer,
  kDisconnected,
  kRestart,
  kNemesis,
  kSend,
  kCrash,
  kWipe,
  kCommit,
  kRole,
  kCut,
  kHeal,
  kChange,
  kPurge,
  kSnapshot,
  kSnapshotSent,
  kFate,
};

struct TraceEvent {
  Micros at = 0;
  EventKind kind = EventKind::kTick;
  int node = -1;
  int peer = -1;
  char what = ' ';  // of a message: V v P p A a T (request, answer), or a detail
  std::uint64_t a = 0, b = 0, c = 0, d = 0;
};

class Trace {
 public:
  static constexpr std::size_t kKept = 200;

  explicit Trace(bool print) : print_(print) {}

  void Add(const TraceEvent& event);
  std::uint64_t hash() const { return hash_; }
  std::uint64_t count() const { return count_; }
  std::string LastEvents() const;

 private:
  const bool print_;
  std::uint64_t hash_ = 0;
  std::uint64_t count_ = 0;
  std::array<TraceEvent, kKept> last_;
};

// A message in the four numbers of an event.
TraceEvent Describe(Micros at, EventKind kind, int node, int peer, const dledger::Message& message);
std::string ToString(const TraceEvent& event);

}  // namespace triad::sim
