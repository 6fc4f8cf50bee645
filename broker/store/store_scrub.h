// StoreScrub: reads the derived stores once after a start, slowly, so that what rotted in them is
// found and rebuilt before somebody asks for it.
//
// Reading is all it does: the stores themselves notice damage. Owner: the apply thread (Tick); the
// reading is done on a reader thread, one step at a time. Size: the names of all queues.

#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "broker/store/consume_queue_store.h"
#include "broker/store/key_index.h"
#include "dledger/node.h"

namespace triad::broker {

inline constexpr std::size_t kScrubUnits =
    16384;  // of one step: 10 MiB/s when a step takes no time

class StoreScrub {
 public:
  // All outlive its steps: the node's readers end before them.
  StoreScrub(const ConsumeQueueStore& queues, const KeyIndex& keys, dledger::Node& node)
      : queues_(queues), keys_(keys), node_(node), left_(queues.Queues()) {}

  // Begins the next step, unless one runs or all is read.
  void Tick();

 private:
  void Run();
  // False: all is read.
  bool Step();

  const ConsumeQueueStore& queues_;
  const KeyIndex& keys_;
  dledger::Node& node_;
  std::atomic<bool> is_running_{false};
  std::atomic<bool> is_done_{false};

  // Of the step that runs.
  std::vector<TopicQueue> left_;  // the last one is being read
  QueueOffset next_;
  std::size_t run_ = 0;
};

}  // namespace triad::broker
