// DedupWatch: says when a topic's table of known keys was full and let the oldest go.
//
// Owner: one thread. Size: a number per topic with the attribute dedup.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "broker/state/replicated_state.h"

namespace triad::broker {

class DedupWatch {
 public:
  // Now and then: a warning for every topic that forgot keys early since the last look.
  void Look(const std::vector<ReplicatedState::DedupUse>& uses);

 private:
  std::map<std::string, std::uint64_t> evicted_;  // by topic, when last looked
};

// What operators see of it: keys that are known, and those that went early since the start.
void ShowDedup(const std::vector<ReplicatedState::DedupUse>& uses,
               std::map<std::string, std::string>* table);

}  // namespace triad::broker
