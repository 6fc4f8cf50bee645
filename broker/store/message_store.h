// MessageStore: the broker's side of the replicated log: appender, state, consume queues and key
// index wired to one dledger::Node.
//
// Implements dledger::Application: builds entries (log thread), applies committed ones (apply
// thread): command, messages, derived stores, waiters, wake-ups, flushes. The one place where
// message positions become bytes again. Open replays what the derived stores have not seen.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/state/replicated_state.h"
#include "broker/state/state_store.h"
#include "broker/store/appender.h"
#include "broker/store/consume_queue_store.h"
#include "broker/store/key_query.h"
#include "common/clock.h"
#include "common/file_system.h"
#include "dledger/node.h"

namespace triad::broker {

struct MessageStoreOptions {
  dledger::NodeOptions node;  // dir is set from root_dir
  AppenderOptions appender;
  // storePathRootDir: dledger-<id>/, state/, consumequeue/, keyindex/ stand below it
  std::string root_dir;
  std::string delay_levels;  // messageDelayLevel, used when this peer is the first leader
  std::chrono::milliseconds state_flush_interval{1000};
  std::uint64_t state_flush_bytes = 64u << 20;
  std::chrono::milliseconds queue_checkpoint_interval{10000};
  std::uint64_t queue_checkpoint_bytes = 256u << 20;
  bool queue_sync_in_background = true;
  std::size_t install_batch_bytes = kInstallBatchBytes;  // of another peer's state
  // Where the state lives; default: LevelDB.
  std::function<Result<std::unique_ptr<StateStore>>(const std::string& dir)> open_state_store =
      OpenLevelDbStateStore;
  // What carries the log; default: a peer with threads and sockets.
  std::function<Result<std::unique_ptr<dledger::Node>>(
      FileSystem& fs, const Clock& clock, dledger::NodeOptions options, dledger::Application*)>
      open_node = dledger::Node::Open;
};

class MessageStore {
 public:
  struct Listener {
    // Apply thread. The queue's max moved (one call per queue and apply batch). Must not block.
    std::function<void(const TopicQueue& queue, QueueOffset max)> on_arrival;
    // Apply thread, beside it: how much was put.
    std::function<void(const Topic& topic, std::int64_t messages, std::int64_t bytes)> on_put;
    // Apply thread. Topics or groups changed.
    std::function<void()> on_topics_changed;
    // Apply thread, before whoever asked for it is answered. These settings of the group were put;
    // all of them when the state was replaced. Must not block.
    std::function<void(const Settings& put)> on_settings;
    // Log thread. Every change; ready = may serve as leader.
    std::function<void(const dledger::LeaderInfo&)> on_leader_change;
  };
  // Errors: those of dledger::Node::Open and the stores; kInvalidArgument: delay_levels;
  // kCorruption: state, log and queues do not belong together. `fs` and `clock` outlive it.
  static Result<std::unique_ptr<MessageStore>> Open(FileSystem& fs, const Clock& clock,
                                                    MessageStoreOptions options, Listener listener);
  virtual ~MessageStore() = default;
  virtual Status Start() = 0;
  // Answers every waiter, flushes, closes. Idempotent.
  virtual void Stop() = 0;

  virtual dledger::Node& node() = 0;
  virtual Appender& appender() = 0;
  virtual const ReplicatedState& state() const = 0;
  virtual const ConsumeQueueStore& queues() const = 0;

  // [min, max) of a queue as clients may see it: 0,0 for a queue never written; max = the applied
  // next offset.
  virtual QueueRange RangeOf(const TopicQueue& queue) const = 0;
  // The message of a unit. Memory only; null record when its entry is not cached.
  virtual LoadedMessage CachedMessage(const QueueUnit& unit) const = 0;
  // May read files: reader threads only (node().PostReader). Checks record, CRC and position.
  // kNotFound: retention dropped it, nothing else; kUnavailable: not in this peer's log (yet).
  virtual Result<LoadedMessage> ReadMessage(const QueueUnit& unit) = 0;
  // By physical offset alone (message ids, send-back). Committed only. kNotFound when no message
  // starts there.
  virtual Result<LoadedMessage> ReadMessageAt(PhysicalOffset offset) = 0;
  // Smallest offset whose store time is >= time_ms (LOWER), or largest with <= (UPPER); wire.md
  // §6.3. Reader threads only.
  virtual Result<QueueOffset> OffsetByTime(const TopicQueue& queue, std::int64_t time_ms,
                                           bool upper) = 0;
  // Messages of an existing topic by key, of what is applied here; topic_begin and applied_end are
  // filled in. Reader threads only. Errors: kNotFound: no such topic; kUnavailable: the key index
  // is being rebuilt.
  virtual Result<std::vector<LoadedMessage>> FindMessages(KeyQuery query) = 0;
  virtual KeyIndex::Newest NewestKey() const = 0;
};

}  // namespace triad::broker
