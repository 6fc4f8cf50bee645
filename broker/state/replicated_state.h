// ReplicatedState: what a failover must not forget: topics, groups, consumer offsets, queue locks,
// next queue offsets, delay progress, send-back marks, settled dead letters, keys of recent
// messages, settings of the whole group. Changed only by applied entries; the same on every peer.
//
// All of it is held in memory; dirty records are written to the StateStore in ONE synced batch per
// flush. Owner: the apply thread (Load, Apply*, Flush). Reads are safe on every thread: a leaf
// shared_mutex, never held across IO. Deterministic: no clock, configuration or randomness in
// Apply. What belongs to a topic (offsets, grants, dead-letter marks) is not taken while the topic
// is not there: a command that was on its way when it was deleted leaves nothing for the next one
// of that name. Source: architecture.md §4.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/state/dedup_table.h"
#include "broker/state/state_store.h"
#include "common/ids.h"
#include "common/status.h"

namespace triad::broker {

// The bits of TopicConfig::perm.
inline constexpr std::int32_t kPermWrite = 2;
inline constexpr std::int32_t kPermRead = 4;
inline constexpr std::int32_t kPermReadWrite = 6;

struct TopicConfig {
  Topic name;
  std::int32_t read_queues = 0;
  std::int32_t write_queues = 0;
  std::int32_t perm = kPermReadWrite;
  std::int32_t sys_flag = 0;
  bool order = false;
  bool multi_tag = false;
  std::map<std::string, std::string> attributes;
  PhysicalOffset created_position;
  bool operator==(const TopicConfig&) const = default;
};

struct GroupConfig {  // defaults: wire.md 8.5
  GroupName name;
  bool consume_enable = true;
  bool consume_from_min_enable = true;
  bool consume_broadcast_enable = true;
  bool consume_message_orderly = false;
  std::int32_t retry_queue_nums = 1;
  std::int32_t retry_max_times = 16;
  std::int64_t broker_id = 0;
  std::int64_t which_broker_when_consume_slowly = 1;
  bool notify_consumer_ids_changed_enable = true;
  std::int32_t group_sys_flag = 0;
  std::int32_t consume_timeout_minute = 15;
  std::map<std::string, std::string> attributes;
  std::string group_retry_policy_json;
  bool operator==(const GroupConfig&) const = default;
};

struct GroupQueue {
  GroupName group;
  TopicQueue queue;
  auto operator<=>(const GroupQueue&) const = default;
};

struct OffsetCommit {
  GroupQueue key;
  QueueOffset offset;
  std::uint64_t fence_token = 0;  // 0 = none given
};

struct LockOutcome {  // grant when client is set, else release
  GroupQueue key;
  ClientId client;
  std::uint64_t token = 0;
};

// A dead letter that was replayed or dropped.
struct DlqMark {
  GroupName group;
  QueueId queue_id;  // of %DLQ%group
  QueueOffset offset;
  QueueOffset min_offset;  // of the queue, as the leader sees it
};

// Keys of the configuration that the group has one value of, as their table prints it.
using Settings = std::map<std::string, std::string>;

inline constexpr std::size_t kInstallBatchBytes = 1u << 20;

// A command in C++ terms; EncodeStateCommand makes the bytes that go into the log. Its parts are
// applied in the order of the fields. The encodings of commands that hold only offsets, locks,
// delays, send-backs and dead-letter marks may be concatenated: the result is one command that does
// all of it in order.
struct StateCommand {
  std::vector<TopicConfig> put_topics;
  bool create_only = false;
  std::vector<Topic> delete_topics;
  std::vector<GroupConfig> put_groups;
  bool create_groups_only = false;
  std::vector<GroupName> delete_groups;
  bool clean_offsets = false;
  std::vector<OffsetCommit> offsets;
  std::vector<LockOutcome> locks;
  std::vector<std::pair<std::int32_t, QueueOffset>>
      delays;  // level, next offset in its schedule queue
  std::vector<std::pair<GroupName, PhysicalOffset>> send_backs;
  std::string set_delay_levels;
  std::vector<DlqMark> dlq_marks;
  Settings put_settings;
  bool empty() const;
};
std::string EncodeStateCommand(const StateCommand& command);
Result<StateCommand> DecodeStateCommand(std::string_view bytes);

struct ApplyContext {
  LogIndex index;
  Term term;
  PhysicalOffset position;      // of the entry's header
  PhysicalOffset end_position;  // behind the entry
  std::int64_t store_time_ms = 0;
};

struct DataVersion {  // of the topic table
  std::int64_t counter = 0;
  std::int64_t timestamp_ms = 0;
};

class ReplicatedState {
 public:
  // `dedup_keys_max` has to be the same on every peer; tests take fewer.
  explicit ReplicatedState(std::unique_ptr<StateStore> store,
                           std::size_t dedup_keys_max = kDedupKeysMax,
                           std::size_t install_batch_bytes = kInstallBatchBytes);
  ~ReplicatedState();

  // ---- apply thread ----
  // Once, before anything else but Install. Errors: kCorruption when a flush or a part of an
  // installed image is missing (gap) or a record does not parse.
  Status Load();
  enum class CommitFate : std::uint8_t { kStored, kStale, kNoTopic };  // kStale: fencing token
  // What a command did that its sender wants to know.
  struct CommandResult {
    std::vector<CommitFate> offsets;   // one per OffsetCommit
    std::vector<bool> locks_accepted;  // one per LockOutcome: false = not a newer token or no such
                                       // topic (grant), or not of the present grant (release)
    std::vector<std::string> topics_changed;
  };
  CommandResult Apply(const StateCommand& command, const ApplyContext& context);
  // A message was applied: its queue continues at `next`.
  void NoteMessage(const TopicQueue& queue, QueueOffset next);
  bool has_dedup() const;  // some topic has a rule
  // What messages of `topic` are known by.
  DedupMode DedupModeOf(std::string_view topic) const;
  // A message of a topic with a rule was applied.
  void NoteKey(std::string_view topic, const std::string& key, const DedupRecord& record);
  // Called once per entry, after its command and messages.
  void FinishEntry(const ApplyContext& context);
  bool dirty() const;
  // One synced batch. Extra records (checkpoints of derived stores) go with it.
  Status Flush(const std::vector<std::pair<std::string, std::string>>& extra);
  std::optional<std::string> LoadedExtra(std::string_view key) const;  // as of Load
  // What is durable (flushed_index()), for another peer.
  Result<std::unique_ptr<StateRecords>> NewImage() const;
  // Another peer's image takes the place of everything, also of what Load refuses. It is read
  // twice, and written in synced batches: ended half-way, it has to be installed again, which is
  // what Load says. Bounds: a batch and a record beside the tables. Errors: kCorruption (the image
  // is none: nothing was changed), and those of the store, after which nothing is certain.
  Status Install(const OpenRecords& open);

  // ---- any thread ----
  LogIndex applied_index() const;
  LogIndex flushed_index() const;           // durable
  PhysicalOffset applied_position() const;  // behind the last applied entry
  std::int64_t log_time_ms() const;         // of the last applied entry
  DataVersion data_version() const;
  // Grows whenever FindTopic may answer something else than before.
  std::uint64_t topics_version() const;
  std::optional<TopicConfig> FindTopic(const Topic& topic) const;
  std::vector<TopicConfig> Topics() const;  // sorted by name
  std::optional<GroupConfig> FindGroup(const GroupName& group) const;
  std::vector<GroupConfig> Groups() const;
  std::optional<QueueOffset> FindOffset(const GroupQueue& key) const;
  std::vector<std::pair<TopicQueue, QueueOffset>> OffsetsOf(const GroupName& group) const;
  std::vector<GroupName> GroupsWithOffsets(const Topic& topic) const;
  struct Lock {
    GroupQueue key;
    ClientId client;  // empty = released
    std::uint64_t token = 0;
  };
  std::vector<Lock> Locks() const;
  std::uint64_t LockToken(const GroupQueue& key) const;  // also of a released one; 0 = never locked
  std::uint64_t next_fence_token() const;
  QueueOffset NextOffset(const TopicQueue& queue) const;  // 0 for a queue never written
  std::vector<std::pair<TopicQueue, QueueOffset>> NextOffsets() const;
  QueueOffset DelayProgress(std::int32_t level) const;  // 0 = from the beginning
  std::string delay_levels() const;                     // empty = not set yet
  bool SentBack(const GroupName& group,
                PhysicalOffset offset) const;  // within 10 minutes of log time
  // Of a queue of %DLQ%group. `settled`: replayed or dropped, at or above `floor`; below it all
  // are.
  struct DlqProgress {
    QueueOffset floor;
    std::vector<QueueOffset> settled;  // ascending
  };
  DlqProgress DlqProgressOf(const GroupName& group, QueueId queue) const;
  bool DlqSettled(const GroupName& group, QueueId queue, QueueOffset offset) const;
  // The first message of `topic` with this key, unless its window is over at `now_ms`.
  std::optional<DedupRecord> FindDuplicate(const std::string& topic, std::string_view key,
                                           std::int64_t now_ms) const;
  struct DedupUse {
    std::string topic;
    std::size_t keys = 0;
    std::uint64_t evicted = 0;  // since the start of this process
  };
  std::vector<DedupUse> DedupUses() const;
  // What the group was told since it was founded; a peer's own configuration has the rest.
  Settings settings() const;
  // The group has a queue lock that was not released: it consumes in order.
  bool HoldsLock(const GroupName& group) const;

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace triad::broker
