// ConsumeWatch: gives up on messages that a listener holds for too long.
//
// A concurrent listener that hangs would keep its queue's offset where it is for ever. After the
// limit its messages go back to the broker (delay level 3, as the original's), and the queue moves
// on; what the listener says later counts no more. Owns one thread, as every listener thread may
// hang. Bounds: what is with listeners. Source: wire.md §7.8.

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "client/process_queue.h"

namespace triad::client {

class ConsumeWatch {
 public:
  // Sends the messages back; the offsets of those for which that went well. May block.
  using GiveUp = std::function<std::set<std::int64_t>(const ProcessQueuePtr&, Messages)>;

  // limit > 0.
  ConsumeWatch(std::chrono::milliseconds limit, GiveUp give_up);
  ~ConsumeWatch();  // Stop
  void Stop();

  // A listener gets `batch`; it stays as it is until End.
  std::uint64_t Begin(const ProcessQueuePtr& queue, const Messages& batch);
  // It is done. The offsets that were given up meanwhile; waits while that is being decided.
  std::set<std::int64_t> End(std::uint64_t id);

 private:
  struct Running {
    ProcessQueuePtr queue;
    const Messages* batch = nullptr;
    TimePoint since;
    bool busy = false;  // is being sent back
    std::set<std::int64_t> given_up;
  };
  void Run();
  void Look();

  const std::chrono::milliseconds limit_;
  const GiveUp give_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Running> running_;
  std::uint64_t next_id_ = 1;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace triad::client
