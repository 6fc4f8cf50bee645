#include "broker/service/dedup_watch.h"

#include <glog/logging.h>

#include <utility>

namespace triad::broker {

void DedupWatch::Look(const std::vector<ReplicatedState::DedupUse>& uses) {
  std::map<std::string, std::uint64_t> now;
  for (const ReplicatedState::DedupUse& use : uses) {
    now[use.topic] = use.evicted;
    LOG_IF(WARNING, use.evicted > evicted_[use.topic])
        << "topic " << use.topic << " has more than " << kDedupKeysMax
        << " message keys within dedupWindowSec: " << use.evicted - evicted_[use.topic]
        << " were forgotten early, a late retry of theirs is stored again; shorten dedupWindowSec";
  }
  evicted_ = std::move(now);
}

void ShowDedup(const std::vector<ReplicatedState::DedupUse>& uses,
               std::map<std::string, std::string>* table) {
  std::size_t keys = 0;
  std::uint64_t evicted = 0;
  for (const ReplicatedState::DedupUse& use : uses) {
    keys += use.keys;
    evicted += use.evicted;
  }
  (*table)["triadDedupKeys"] = std::to_string(keys);
  (*table)["triadDedupKeysEvicted"] = std::to_string(evicted);
}

}  // namespace triad::broker
