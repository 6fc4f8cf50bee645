// LongPolling: pulls that found nothing and wait for their queue to grow.
//
// A waiter is taken out exactly once: by an arrival behind its offset, at its deadline, by a role
// change, or in silence when its connection ends. Bounds: max_waiters. Thread: safe on every
// thread; a leaf mutex, `wake` runs outside it, on the waking thread (apply, timer, any), and must
// hand over and return. Source: wire.md §5.7.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "broker/service/timer_queue.h"
#include "common/ids.h"

namespace triad::broker {

class LongPolling {
 public:
  enum class Reason { kArrival, kDeadline, kRoleChange };
  using Wake = std::function<void(Reason)>;

  // `timers` outlives the table.
  explicit LongPolling(TimerQueue& timers, std::size_t max_waiters = 200000);
  ~LongPolling();

  // Waits for a message at `from` or behind it. The caller looks at the queue once more afterwards
  // and calls OnArrival itself when it has grown meanwhile. False when the table or the timers are
  // full; then `wake` never runs.
  bool Park(const TopicQueue& queue, QueueOffset from, std::chrono::milliseconds hold,
            std::uint64_t connection_id, Wake wake);

  // The queue holds everything below `max`.
  void OnArrival(const TopicQueue& queue, QueueOffset max);
  void OnConnectionClosed(std::uint64_t connection_id);
  void WakeAll();  // role change

  std::size_t size() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace triad::broker
