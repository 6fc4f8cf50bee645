// DelayService: delivers delayed messages when their time has come; on the leader only.
//
// Each level's queue of SCHEDULE_TOPIC_XXXX is in order of delivery time. A step of a level takes
// what is due (bounded), and proposes the messages at their targets together with the level's new
// progress as ONE entry: after a failover the next leader goes on exactly there. A level has one
// step in flight; levels do not wait for each other. Time is log time. Bounds: kStepMessages and
// kStepBytes per step. Thread: safe on every thread; steps run on reader threads. Source: wire.md
// §8.4, architecture.md §3.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "broker/service/timer_queue.h"
#include "broker/store/message_store.h"
#include "common/clock.h"

namespace triad::broker {

class DelayService {
 public:
  static constexpr std::size_t kStepMessages = 256;
  static constexpr std::size_t kStepBytes = 512u << 10;

  // `store` and `timers` outlive the service, or Stop() ends it before.
  DelayService(const Clock& clock, TimerQueue& timers, MessageStore& store);
  ~DelayService();

  // This peer serves term `term` as leader from now on; 0: it does not lead any more.
  void OnLeaderTerm(Term term);
  // From the store's arrival listener; any queue.
  void OnArrival(const TopicQueue& queue);
  void Stop();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace triad::broker
