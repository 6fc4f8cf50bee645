// EventLoop: simulated time, and what happens when.
//
// Thread: the simulator's only one. Events of one moment run in the order they were made.

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace triad::sim {

using Micros = std::int64_t;
inline constexpr Micros kMs = 1000;
inline constexpr Micros kSecond = 1000 * kMs;

class EventLoop {
 public:
  using Task = std::function<void()>;

  Micros now() const { return now_; }
  std::uint64_t steps() const { return steps_; }

  void At(Micros at, Task task) {
    events_.push_back(Event{std::max(at, now_), ++sequence_, std::move(task)});
    std::push_heap(events_.begin(), events_.end());
  }
  void After(Micros delay, Task task) { At(now_ + delay, std::move(task)); }

  // The next event. False: there is none.
  bool RunOne() {
    if (events_.empty()) return false;
    std::pop_heap(events_.begin(), events_.end());
    Event event = std::move(events_.back());
    events_.pop_back();
    now_ = event.at;
    ++steps_;
    event.task();
    return true;
  }

 private:
  struct Event {
    Micros at;
    std::uint64_t sequence;
    Task task;
    bool operator<(const Event& other) const {  // for a heap with the earliest on top
      return at != other.at ? at > other.at : sequence > other.sequence;
    }
  };

  Micros now_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t steps_ = 0;
  std::vector<Event> events_;
};

}  // namespace triad::sim
