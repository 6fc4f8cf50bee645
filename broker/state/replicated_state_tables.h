// What ReplicatedState holds, and what of it has changed since the last flush.
//
// Private to broker/state/replicated_state*.cc. Owner: the apply thread changes everything here,
// the tables under `mutex` held exclusively; other threads read the tables under it held shared.
// `dirty` and `store` belong to the apply thread alone.

#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <set>
#include <shared_mutex>
#include <unordered_map>

#include "broker/state/replicated_state.h"
#include "broker/state/state_records.h"

namespace triad::broker {

using SendBackId = std::pair<GroupName, PhysicalOffset>;
using DlqQueue = std::pair<GroupName, QueueId>;

struct ReplicatedState::Tables {
  struct NextOffset {
    QueueOffset next;
    bool dirty = false;
  };
  struct Dirty {
    std::set<Topic> topics;
    std::set<GroupName> groups;
    std::set<GroupQueue> offsets;
    std::set<GroupQueue> locks;
    std::vector<TopicQueue> next_offsets;  // a queue may stand here twice
    std::set<std::int32_t> delays;
    std::set<SendBackId> send_backs;
    std::set<DlqQueue> dlq;
    std::vector<std::pair<std::string, std::string>> keys;  // topic, key; one may stand here twice
    bool delay_levels = false;
    std::set<std::string> settings;
  };

  // Keys of recent messages of one topic.
  struct Dedup {
    DedupRule rule;
    std::unique_ptr<DedupTable> table;
  };

  mutable std::shared_mutex mutex;               // a leaf: never held across IO or a callback
  std::atomic<std::uint64_t> topics_version{1};  // of `topics`; changes with the mutex held
  std::map<Topic, TopicConfig> topics;
  std::map<GroupName, GroupConfig> groups;
  std::map<GroupName, std::map<TopicQueue, OffsetRecord>> offsets;
  std::map<GroupQueue, LockRecord> locks;
  std::unordered_map<TopicQueue, NextOffset> next_offsets;
  std::map<std::int32_t, QueueOffset> delays;
  std::map<SendBackId, std::int64_t> send_backs;                    // log time of the mark
  std::deque<std::pair<std::int64_t, SendBackId>> send_back_order;  // by log time
  std::string delay_levels;
  std::map<DlqQueue, DlqRecord> dlq;
  Settings settings;
  std::map<std::string, Dedup, std::less<>> dedup;  // of topics with a rule
  std::size_t dedup_keys_max = 0;
  std::size_t install_batch_bytes = 0;
  AppliedRecord applied;
  LogIndex flushed_index;

  std::unique_ptr<StateStore> store;
  Dirty dirty;
  std::map<std::string, std::string, std::less<>> loaded_extras;

  // ---- parts of Apply; exclusively locked ----
  void PutTopics(const StateCommand& command, const ApplyContext& context, CommandResult* result);
  void DeleteTopics(const StateCommand& command, const ApplyContext& context,
                    CommandResult* result);
  void PutGroups(const StateCommand& command);
  void DeleteGroups(const StateCommand& command);
  CommitFate CommitOffset(const OffsetCommit& commit);
  bool ApplyLock(const LockOutcome& outcome);
  void DropTopicData(const Topic& topic);
  void ExpireSendBacks(std::int64_t now_ms);
  void MarkDlq(const DlqMark& mark);
  void PutSettings(const Settings& put);
  // The topic's rule is what its attributes say now; a changed mode forgets the keys.
  void FollowDedupRule(const Topic& topic);
  void DropDedup(const std::string& topic);
  void ExpireKeys(std::int64_t now_ms);

  // ---- parts of Load, Flush and Install ----
  void TakeContent(Tables* from);  // all that Load fills
  struct BatchNumbers {            // of the batches that left one
    std::set<std::uint64_t> flushes;
    std::set<std::uint64_t> installs;
    std::optional<InstalledRecord> installed;
  };
  Status LoadRecord(std::string_view key, std::string_view value, BatchNumbers* numbers);
  Status LoadTyped(std::string_view key, std::string_view value);
  Status CheckFlushes(const std::set<std::uint64_t>& numbers) const;
  Status CheckInstalls(const BatchNumbers& numbers) const;
  void CollectDirty(StateBatch* batch) const;
};

}  // namespace triad::broker
