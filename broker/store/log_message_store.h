// LogMessageStore: MessageStore on a dledger::Node. Private to broker/store.
//
// message_store_open.cc: open, replay, stop; message_store.cc: apply and repair;
// message_store_reads.cc: reads.

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "broker/store/entry_dispatcher.h"
#include "broker/store/key_index.h"
#include "broker/store/message_store.h"
#include "broker/store/queue_repair.h"
#include "broker/store/store_flusher.h"
#include "broker/store/store_scrub.h"
#include "broker/store/unwritten_entries.h"

namespace triad::broker {

class LogMessageStore final : public MessageStore, private dledger::Application {
 public:
  LogMessageStore(FileSystem& fs, const Clock& clock, MessageStoreOptions options,
                  Listener listener)
      : fs_(fs),
        clock_(clock),
        options_(std::move(options)),
        listener_(std::move(listener)),
        appender_(options_.appender, clock) {}
  ~LogMessageStore() override { Stop(); }

  Status Open();

  Status Start() override { return node_->Start(); }
  void Stop() override;

  dledger::Node& node() override { return *node_; }
  Appender& appender() override { return appender_; }
  const ReplicatedState& state() const override { return *state_; }
  const ConsumeQueueStore& queues() const override { return *queues_; }

  QueueRange RangeOf(const TopicQueue& queue) const override;
  LoadedMessage CachedMessage(const QueueUnit& unit) const override;
  Result<LoadedMessage> ReadMessage(const QueueUnit& unit) override;
  Result<LoadedMessage> ReadMessageAt(PhysicalOffset offset) override;
  Result<QueueOffset> OffsetByTime(const TopicQueue& queue, std::int64_t time_ms,
                                   bool upper) override;
  Result<std::vector<LoadedMessage>> FindMessages(KeyQuery query) override;
  KeyIndex::Newest NewestKey() const override { return keys_->newest(); }

 private:
  // ---- dledger::Application ----
  dledger::BuildResult Build(const dledger::BuildContext& context, std::string* payload) override {
    return appender_.Build(context, payload);
  }
  void OnLeaderChange(const dledger::LeaderInfo& info) override;
  void Apply(std::span<const dledger::EntryRef> entries) override;
  void OnApplyIdle() override;
  LogIndex DurableIndex() const override;
  Result<dledger::StateImage> TakeImage() override;
  Status InstallImage(dledger::StoredPieces* pieces, LogIndex applied, LogIndex first) override;

  // ---- Open ----
  Status OpenState();
  Status InstallState(dledger::StoredPieces* pieces, LogIndex applied);
  Status FinishInstall(dledger::ReadySnapshot* snapshot);
  Status OpenFromLog();
  Status OpenNode();
  Status OpenKeys();
  Status OpenQueues(QueueCheckpoint checkpoint);
  Result<std::vector<dledger::EntryRef>> ReadLog(LogIndex from, LogIndex behind);
  Status ReplayDerived(LogIndex behind);
  Status CompleteQueues();
  Status CheckUnapplied();
  std::string LogDir() const {
    return options_.root_dir + "/dledger-" + options_.node.self.value();
  }
  std::string QueueDir() const { return options_.root_dir + "/consumequeue"; }
  std::string KeyDir() const { return options_.root_dir + "/keyindex"; }

  // ---- apply thread ----
  Status ReplayWhenWritten(LogIndex behind);
  void CatchQueuesUp();
  void FinishCatchingUp();
  void CatchKeysUp();
  void SetKeysBehind(bool behind);
  bool queues_behind() const { return dispatched_ < state_->applied_index(); }
  bool ApplyEntry(const dledger::Entry& entry);
  void TellArrivals(const std::vector<EntryDispatcher::Arrived>& arrivals);
  void FollowLogBegin();
  void ProposeDelayLevels();
  Result<dledger::EntryRef> EntryAt(PhysicalOffset inside);
  Result<std::int64_t> StoreTimeOf(const TopicQueue& queue, QueueOffset offset);

  FileSystem& fs_;
  const Clock& clock_;
  const MessageStoreOptions options_;
  const Listener listener_;
  Appender appender_;
  Term open_term_;       // log thread; 0 = none
  LogIndex dispatched_;  // apply thread (Open before it starts): the queues hold entries up to it
  PhysicalOffset keys_begin_;    // apply thread: where the log began when the key index was told
  bool replays_whole_ = false;   // apply thread: the queues' replay began with the log
  bool log_is_damaged_ = false;  // apply thread: as ReadLog found it last
  TimePoint keys_due_;           // apply thread: not tried before
  // Odd: the key index lacks entries. Grows with each change, so that a reader sees one.
  std::atomic<std::uint64_t> keys_state_{0};
  bool stopped_ = false;
  UnwrittenEntries unwritten_;

  std::unique_ptr<ReplicatedState> state_;
  std::unique_ptr<ConsumeQueueStore> queues_;
  std::unique_ptr<KeyIndex> keys_;
  std::unique_ptr<EntryDispatcher> dispatcher_;
  std::unique_ptr<StoreFlusher> flusher_;
  std::unique_ptr<QueueRepair> repair_;
  std::unique_ptr<StoreScrub> scrub_;
  std::unique_ptr<dledger::Node> node_;  // its threads use all of the above
};

}  // namespace triad::broker
