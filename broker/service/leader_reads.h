// LeaderReads: one ReadIndex for everybody who asks while the one before is on its way.
//
// `done(OK)` means: this peer was the leader after the call, and everything committed before the
// call is applied. Bounds: max_waiting; beyond it kBusy. Thread: safe on every thread; `done` runs
// on the node's apply or log thread (or the caller's on immediate refusal) and must not block.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "common/status.h"
#include "dledger/node.h"

namespace triad::broker {

class LeaderReads {
 public:
  explicit LeaderReads(dledger::Node& node, std::size_t max_waiting = 100000);
  ~LeaderReads();

  // Errors for `done`: kNotLeader, kTimedOut, kUnavailable, kBusy.
  void Confirm(std::chrono::milliseconds timeout, std::function<void(Status)> done);

 private:
  struct Shared;
  static void StartRound(const std::shared_ptr<Shared>& shared);
  std::shared_ptr<Shared> shared_;
};

}  // namespace triad::broker
