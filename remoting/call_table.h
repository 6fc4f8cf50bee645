// CallTable: the requests of one connection that wait for an answer.
//
// Pure: the caller passes the time. Owner: whoever guards it (the connection's leaf mutex).
// Bounds: at most `capacity` calls; Add refuses beyond that. No allocation per call: an open table
// indexed by the low bits of the opaque, which grows by doubling. An opaque comes again only after
// 2^32 calls, so a late answer never meets a younger call.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "remoting/command.h"

namespace triad::remoting {

using CallDone = std::function<void(Result<Command>)>;

class CallTable {
 public:
  explicit CallTable(std::size_t capacity) : capacity_(capacity) {}

  std::size_t size() const { return size_; }
  bool full() const { return size_ >= capacity_; }

  // A number for a oneway request: it takes part in the sequence and leaves no entry.
  std::int32_t NextOpaque() { return static_cast<std::int32_t>(next_++); }

  // Must not be full. Returns the opaque of the request.
  std::int32_t Add(TimePoint deadline, CallDone done);

  // Removes the call; null when there is none (answered, expired, or never ours).
  CallDone Take(std::int32_t opaque);

  // Moves the calls whose deadline is at or before `now` to `expired`. Returns the earliest
  // deadline that is left, TimePoint::max() when none. O(table).
  TimePoint Expire(TimePoint now, std::vector<CallDone>* expired);

  // Empties the table, in the order of the calls as far as the opaque tells it.
  std::vector<CallDone> TakeAll();

 private:
  struct Slot {
    bool used = false;
    std::uint32_t opaque = 0;
    TimePoint deadline{};
    CallDone done;
  };
  Slot& SlotOf(std::uint32_t opaque) { return slots_[opaque & (slots_.size() - 1)]; }
  void Grow();
  CallDone Free(Slot* slot);

  const std::size_t capacity_;
  std::size_t size_ = 0;
  std::uint32_t next_ = 1;
  std::vector<Slot> slots_;  // empty or a power of two, at most half full
};

}  // namespace triad::remoting
