// DedupTail: keys of messages that are in the log's tail, where the state does not know them yet.
//
// Pure. Owner: the log thread. Bounds: the messages between the last applied entry and the last one
// built. And what makes a message's key: both the leader that decides and apply, which remembers,
// take it from here.

#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "broker/state/replicated_state.h"
#include "common/ids.h"

namespace triad::broker {

// The key in a message's properties; empty: it takes no part.
std::string_view DedupKeyOf(DedupMode mode, std::string_view properties);
// The topic that a record counts for: of a parked message its target, of one that was parked
// before, none (it was counted then).
struct DedupTarget {
  std::string_view topic;  // empty: none
  QueueId queue_id;
};
DedupTarget DedupTargetOf(std::string_view topic, QueueId queue_id, std::string_view properties);

class DedupTail {
 public:
  struct Entry {
    LogIndex index;  // 0: applied
    DedupRecord record;
  };
  void set_state(const ReplicatedState* state) { state_ = state; }
  void Clear();
  // The state holds everything up to `applied`.
  void DropApplied(LogIndex applied);
  void DropTopic(const std::string& topic);
  // In the tail, or among what is applied and within its window at `now_ms`.
  std::optional<Entry> Find(const std::string& topic, const std::string& key,
                            std::int64_t now_ms) const;
  void Add(const std::string& topic, const std::string& key, const Entry& entry);

 private:
  static std::string Id(const std::string& topic, const std::string& key);

  const ReplicatedState* state_ = nullptr;
  std::unordered_map<std::string, Entry> by_id_;
  std::deque<std::pair<LogIndex, std::string>> order_;  // by index
};

}  // namespace triad::broker
