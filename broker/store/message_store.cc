#include "broker/store/message_store.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "broker/store/entry_dispatcher.h"
#include "broker/store/message_locator.h"
#include "broker/store/state_transfer.h"
#include "broker/store/store_flusher.h"
#include "broker/store/unwritten_entries.h"

namespace triad::broker {
namespace {

constexpr std::size_t kReplayBytes = 4u << 20;
constexpr std::size_t kQueuesPerStep = 256;  // that follow the log's begin
constexpr std::chrono::milliseconds kReplayStep{50};

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
  Status InstallImage(dledger::StatePieces* pieces, LogIndex applied, LogIndex first) override;

  // ---- Open ----
  Status OpenState();
  Status InstallState(dledger::StatePieces* pieces, LogIndex applied);
  Status FinishInstall();
  Status OpenNode();
  Status OpenKeys();
  Status OpenQueues(QueueCheckpoint checkpoint);
  Status ReplayDerived(LogIndex behind);
  Status ReplayWhenWritten(LogIndex behind);
  void CatchQueuesUp();
  void FinishCatchingUp();
  bool queues_behind() const { return dispatched_ < state_->applied_index(); }
  Status StartExpiredQueues();
  Status CheckQueues() const;
  std::string LogDir() const {
    return options_.root_dir + "/dledger-" + options_.node.self.value();
  }
  std::string QueueDir() const { return options_.root_dir + "/consumequeue"; }
  std::string KeyDir() const { return options_.root_dir + "/keyindex"; }

  bool ApplyEntry(const dledger::Entry& entry);
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
  PhysicalOffset keys_begin_;  // apply thread: where the log began when the key index was told
  bool stopped_ = false;
  UnwrittenEntries unwritten_;

  std::unique_ptr<ReplicatedState> state_;
  std::unique_ptr<ConsumeQueueStore> queues_;
  std::unique_ptr<KeyIndex> keys_;
  std::unique_ptr<EntryDispatcher> dispatcher_;
  std::unique_ptr<StoreFlusher> flusher_;
  std::unique_ptr<dledger::Node> node_;  // its threads use all of the above
};

// ---- Open, Stop ---------------------------------------------------------------------------------

Status LogMessageStore::Open() {
  const Result<DelayLevels> levels = DelayLevels::Parse(options_.delay_levels);
  if (!options_.delay_levels.empty()) TRIAD_RETURN_IF_ERROR(levels.status());
  TRIAD_RETURN_IF_ERROR(OpenState());
  TRIAD_RETURN_IF_ERROR(OpenNode());
  const Result<QueueCheckpoint> checkpoint = StoreFlusher::Loaded(*state_);
  if (!checkpoint.ok()) return checkpoint.status();
  TRIAD_RETURN_IF_ERROR(OpenKeys());
  Status opened = OpenQueues(checkpoint.value());
  if (opened.ok()) opened = CheckQueues();
  if (opened.code() == StatusCode::kCorruption) {
    LOG(WARNING) << "the consume queues are rebuilt from the log: " << opened.message();
    opened = OpenQueues(QueueCheckpoint{});
    if (opened.ok()) opened = StartExpiredQueues();
    if (opened.ok()) opened = CheckQueues();
  }
  TRIAD_RETURN_IF_ERROR(opened);
  TRIAD_RETURN_IF_ERROR(queues_->SetLogBegin(node_->status().begin_position));
  keys_begin_ = node_->status().begin_position;
  TRIAD_RETURN_IF_ERROR(keys_->SetLogBegin(keys_begin_));
  const FlushPolicy policy{.state_interval = options_.state_flush_interval,
                           .state_bytes = options_.state_flush_bytes,
                           .queues_interval = options_.queue_checkpoint_interval,
                           .queues_bytes = options_.queue_checkpoint_bytes};
  flusher_ =
      std::make_unique<StoreFlusher>(policy, clock_, state_.get(), queues_.get(), keys_.get());
  appender_.set_wake([this] { node_->WakeProposer(); });
  appender_.set_state(state_.get());
  return Status::Ok();
}

Status LogMessageStore::OpenState() {
  const std::string dir = options_.root_dir + "/state";
  Result<std::unique_ptr<StateStore>> store = options_.open_state_store(dir);
  if (!store.ok()) return store.status();
  state_ = std::make_unique<ReplicatedState>(std::move(store.value()));
  TRIAD_RETURN_IF_ERROR(state_->Load());
  return FinishInstall();
}

// A snapshot that a crash stopped after it was whole: the state takes it here, the log in
// Node::Open.
Status LogMessageStore::FinishInstall() {
  Result<std::optional<dledger::ReadySnapshot>> ready =
      dledger::Node::FindReadySnapshot(fs_, LogDir());
  if (!ready.ok()) return ready.status();
  if (!ready->has_value()) return Status::Ok();
  dledger::ReadySnapshot& snapshot = **ready;
  LOG(INFO) << "a received state up to entry " << snapshot.applied << " is installed";
  TRIAD_RETURN_IF_ERROR(InstallState(snapshot.pieces.get(), snapshot.applied));
  if (fs_.Exists(KeyDir())) TRIAD_RETURN_IF_ERROR(KeyIndex::Discard(fs_, KeyDir()));
  if (!fs_.Exists(QueueDir())) return Status::Ok();
  // The queues belonged to the log that goes.
  const Result<std::unique_ptr<ConsumeQueueStore>> queues =
      ConsumeQueueStore::Open(fs_, QueueDir(), PhysicalOffset(0));
  if (!queues.ok()) return queues.status();
  return queues.value()->Clear();
}

Status LogMessageStore::InstallState(dledger::StatePieces* pieces, LogIndex applied) {
  const auto records = RecordsOf(pieces);
  if (!records.ok()) return records.status();
  TRIAD_RETURN_IF_ERROR(state_->Install(records.value()));
  if (state_->applied_index() == applied) return Status::Ok();
  return Status::Corruption("the received state ends at entry " +
                            std::to_string(state_->applied_index().value()) +
                            ", but it was offered as of " + std::to_string(applied.value()));
}

Status LogMessageStore::OpenNode() {
  dledger::NodeOptions options = options_.node;
  options.dir = LogDir();
  options.applied = state_->applied_index();
  TRIAD_RETURN_IF_ERROR(fs_.CreateDirs(options.dir));
  Result<std::unique_ptr<dledger::Node>> node =
      dledger::Node::Open(fs_, clock_, std::move(options), this);
  if (node.ok()) node_ = std::move(node.value());
  return node.status();
}

Status LogMessageStore::OpenKeys() {
  const Result<std::uint64_t> synced = StoreFlusher::LoadedKeyRun(*state_);
  if (!synced.ok()) return synced.status();
  const PhysicalOffset log_begin = node_->status().begin_position;
  Result<std::unique_ptr<KeyIndex>> keys = KeyIndex::Open(fs_, KeyDir(), synced.value(), log_begin);
  if (keys.status().code() == StatusCode::kCorruption) {
    LOG(WARNING) << "the key index is rebuilt from the log: " << keys.status().message();
    TRIAD_RETURN_IF_ERROR(KeyIndex::Discard(fs_, KeyDir()));
    keys = KeyIndex::Open(fs_, KeyDir(), synced.value(), log_begin);
  }
  if (keys.ok()) keys_ = std::move(keys.value());
  return keys.status();
}

// Opens the queues as of `checkpoint` and brings them up to the state, the key index with them.
Status LogMessageStore::OpenQueues(QueueCheckpoint checkpoint) {
  dispatcher_.reset();
  queues_.reset();
  // Without their directory the checkpoint promises nothing.
  if (!fs_.Exists(QueueDir())) checkpoint = QueueCheckpoint{};
  Result<std::unique_ptr<ConsumeQueueStore>> queues =
      ConsumeQueueStore::Open(fs_, QueueDir(), checkpoint.position);
  if (!queues.ok()) return queues.status();
  queues_ = std::move(queues.value());
  dispatcher_ = std::make_unique<EntryDispatcher>(state_.get(), queues_.get(), keys_.get(),
                                                  [this] { flusher_->FlushState(); });
  dispatched_ = checkpoint.index;
  return ReplayDerived(std::min(state_->applied_index(), node_->status().last_index) + 1);
}

// Gives the queues the entries (dispatched_, behind), which the state has seen, and the key index
// those that it lacks.
Status LogMessageStore::ReplayDerived(LogIndex behind) {
  const LogIndex first_kept = node_->status().first_index;
  if (dispatched_ + 1 < first_kept) dispatched_ = first_kept - 1;
  if (keys_->last() + 1 < first_kept) {
    keys_->SkipTo(first_kept - 1, node_->status().begin_position);
  }
  for (LogIndex next = std::min(dispatched_, keys_->last()) + 1; next < behind;) {
    const Result<std::vector<dledger::EntryRef>> entries =
        node_->ReadRange(next, behind, kReplayBytes);
    if (!entries.ok()) return entries.status();
    CHECK(!entries.value().empty());
    for (const dledger::EntryRef& entry : entries.value()) {
      CHECK_EQ(entry->index, next);
      const EntryDispatcher::Lacking lacking{.queues = dispatched_ < next,
                                             .keys = keys_->last() < next};
      TRIAD_RETURN_IF_ERROR(dispatcher_->Replay(*entry, lacking));
      dispatched_ = std::max(dispatched_, next);
      ++next;
    }
    TRIAD_RETURN_IF_ERROR(queues_->WriteOut());
  }
  return Status::Ok();
}

// Behind a rebuild: a queue that the log says nothing of has lost all its messages to retention.
Status LogMessageStore::StartExpiredQueues() {
  if (dispatched_ < state_->applied_index()) return Status::Ok();
  for (const auto& [queue, next] : state_->NextOffsets()) {
    if (!queues_->Range(queue)) TRIAD_RETURN_IF_ERROR(queues_->StartEmpty(queue, next));
  }
  return Status::Ok();
}

// The state says how long each queue is.
Status LogMessageStore::CheckQueues() const {
  if (dispatched_ < state_->applied_index()) return Status::Ok();  // see Apply
  for (const auto& [queue, next] : state_->NextOffsets()) {
    const std::optional<QueueRange> range = queues_->Range(queue);
    if (range.has_value() && range->max == next) continue;
    return Status::Corruption("topic " + queue.topic.value() + " queue " +
                              std::to_string(queue.queue_id.value()) + " ends at " +
                              std::to_string(range.has_value() ? range->max.value() : 0) +
                              ", the state says " + std::to_string(next.value()));
  }
  return Status::Ok();
}

void LogMessageStore::Stop() {
  if (std::exchange(stopped_, true) || node_ == nullptr) return;
  node_->Stop();
  if (flusher_ != nullptr) flusher_->FlushAll();
  appender_.Abandon();
}

// ---- Log thread ---------------------------------------------------------------------------------

void LogMessageStore::OnLeaderChange(const dledger::LeaderInfo& info) {
  const bool may_write = info.ready && info.role == dledger::Role::kLeader;
  const Term next = may_write ? info.term : Term{0};
  if (next != open_term_) {
    if (open_term_ != Term{0}) appender_.CloseTerm();
    open_term_ = next;
    if (may_write) {
      appender_.OpenTerm(next, state_->NextOffsets());
      ProposeDelayLevels();
    }
  }
  if (listener_.on_leader_change) listener_.on_leader_change(info);
}

void LogMessageStore::ProposeDelayLevels() {
  const std::string present = state_->delay_levels();
  if (!present.empty()) {
    LOG_IF(WARNING, !options_.delay_levels.empty() && present != options_.delay_levels)
        << "messageDelayLevel here is '" << options_.delay_levels
        << "', but the group was founded with '" << present << "', which stays in force";
    return;
  }
  Proposal proposal;
  proposal.command.set_delay_levels =
      options_.delay_levels.empty() ? std::string(kDefaultDelayLevels) : options_.delay_levels;
  proposal.deadline = TimePoint::max();
  proposal.done = [](AppendOutcome outcome) {
    LOG_IF(WARNING, !outcome.status.ok())
        << "the delay levels were not stored, the next leader will: " << outcome.status;
  };
  appender_.Submit(std::move(proposal));
}

// ---- Apply thread -------------------------------------------------------------------------------

void LogMessageStore::Apply(std::span<const dledger::EntryRef> entries) {
  bool topics_changed = false;
  const PhysicalOffset written = node_->status().end_position;
  unwritten_.DropWritten(written);
  for (const dledger::EntryRef& entry : entries) {
    if (entry->index <= state_->applied_index()) continue;  // the replay below takes it
    if (entry->end() > written) unwritten_.Add(entry);
    if (dispatched_ + 1 < entry->index || keys_->last() + 1 < entry->index) {
      // The log of this peer was behind its state at the start (it lost its end and got it back).
      const Status replayed = ReplayWhenWritten(entry->index);
      LOG_IF(FATAL, !replayed.ok())
          << "cannot bring the consume queues up to the state: " << replayed << ". Remove "
          << QueueDir() << " and start again: they are rebuilt from the log.";
      FinishCatchingUp();
    }
    topics_changed = ApplyEntry(*entry) || topics_changed;
  }
  for (const EntryDispatcher::Arrived& arrived : dispatcher_->TakeArrivals()) {
    if (listener_.on_put) {
      listener_.on_put(arrived.queue.topic, arrived.messages, arrived.bytes);
    }
    if (listener_.on_arrival) listener_.on_arrival(arrived.queue, arrived.max);
  }
  if (topics_changed && listener_.on_topics_changed) listener_.on_topics_changed();
  FollowLogBegin();
  flusher_->Tick();
  appender_.ExpireWaiters();
}

// As ReplayDerived; waits a while for entries that are committed, but not yet on this peer's disk.
Status LogMessageStore::ReplayWhenWritten(LogIndex behind) {
  constexpr int kTriesMax = 1000;
  constexpr std::chrono::milliseconds kPause{10};
  Status replayed = ReplayDerived(behind);
  for (int i = 0; i < kTriesMax && replayed.code() == StatusCode::kNotFound; ++i) {
    std::this_thread::sleep_for(kPause);
    replayed = ReplayDerived(behind);
  }
  return replayed;
}

// Whether topics or groups changed.
bool LogMessageStore::ApplyEntry(const dledger::Entry& entry) {
  const Result<EntryDispatcher::Outcome> outcome = dispatcher_->Apply(entry);
  LOG_IF(FATAL, !outcome.ok()) << "a committed entry cannot be applied: " << outcome.status()
                               << ". Its log is " << options_.root_dir
                               << "; compare it with the other peers' before anything else.";
  dispatched_ = entry.index;
  flusher_->NoteEntry(entry.size());
  appender_.OnApplied(entry.index, entry.term, outcome.value().command);
  return outcome.value().topics_changed;
}

// The log's background thread may ask before Open is through.
LogIndex LogMessageStore::DurableIndex() const {
  return std::min(state_->flushed_index(), flusher_->saved_index());
}

Result<dledger::StateImage> LogMessageStore::TakeImage() {
  Result<std::unique_ptr<StateRecords>> records = state_->NewImage();
  if (!records.ok()) return records.status();
  return dledger::StateImage{.applied = state_->flushed_index(),
                             .pieces = PiecesOf(std::move(*records))};
}

Status LogMessageStore::InstallImage(dledger::StatePieces* pieces, LogIndex applied,
                                     LogIndex first) {
  flusher_->ForgetQueues();
  TRIAD_RETURN_IF_ERROR(InstallState(pieces, applied));
  TRIAD_RETURN_IF_ERROR(queues_->Clear());
  dispatched_ = first - 1;
  keys_->SkipTo(first - 1, node_->status().begin_position);
  appender_.OnSkipped(applied);
  flusher_->set_queues_behind(queues_behind());
  unwritten_.DropWritten(PhysicalOffset(std::numeric_limits<std::int64_t>::max()));
  if (listener_.on_topics_changed) listener_.on_topics_changed();
  return Status::Ok();
}

// Behind an installed snapshot, or a log that lost its end: the queues lack entries that the state
// has, and get them as they arrive.
void LogMessageStore::CatchQueuesUp() {
  if (!queues_behind()) return;
  flusher_->set_queues_behind(true);
  const LogIndex behind = std::min(state_->applied_index(), node_->status().commit_index) + 1;
  const TimePoint deadline = clock_.MonoNow() + kReplayStep;
  while (dispatched_ + 1 < behind && clock_.MonoNow() < deadline) {
    const LogIndex before = dispatched_;
    const Status replayed = ReplayDerived(std::min(behind, dispatched_ + 256));
    if (!replayed.ok() || dispatched_ == before) break;  // not on this peer's disk yet
  }
  FinishCatchingUp();
}

void LogMessageStore::FinishCatchingUp() {
  if (queues_behind()) return;
  const Status started = StartExpiredQueues();
  LOG_IF(FATAL, !started.ok()) << "cannot begin the queues whose messages have expired: " << started
                               << ". Check the disk and start again.";
  flusher_->set_queues_behind(false);
  for (const auto& [queue, next] : state_->NextOffsets()) {
    if (listener_.on_arrival) listener_.on_arrival(queue, next);
  }
}

// Retention moved the log's begin: the queues' minimum offsets and the key index follow.
void LogMessageStore::FollowLogBegin() {
  const PhysicalOffset begin = node_->status().begin_position;
  if (begin != keys_begin_) {
    const Status dropped = keys_->SetLogBegin(begin);
    LOG_IF(WARNING, !dropped.ok()) << "old files of the key index stay: " << dropped;
    keys_begin_ = begin;
  }
  const Result<bool> stepped = queues_->StepLogBegin(begin, kQueuesPerStep);
  LOG_IF(WARNING, !stepped.ok()) << "the minimum offset of a queue did not follow the log's begin: "
                                 << stepped.status();
}

void LogMessageStore::OnApplyIdle() {
  CatchQueuesUp();
  FollowLogBegin();
  unwritten_.DropWritten(node_->status().end_position);
  flusher_->Tick();
  appender_.ExpireWaiters();
}

// ---- Reads --------------------------------------------------------------------------------------

QueueRange LogMessageStore::RangeOf(const TopicQueue& queue) const {
  const QueueOffset next = state_->NextOffset(queue);
  const std::optional<QueueRange> range = queues_->Range(queue);
  if (!range.has_value()) return {next, next};
  const QueueOffset max = std::min(next, range->max);
  return {std::min(range->min, max), max};
}

LoadedMessage LogMessageStore::CachedMessage(const QueueUnit& unit) const {
  dledger::EntryRef entry = node_->CachedAt(unit.position);
  if (entry == nullptr) entry = unwritten_.FindAt(unit.position);
  if (entry == nullptr) return {};
  Result<LoadedMessage> loaded = LocateMessage(std::move(entry), unit);
  return loaded.ok() ? std::move(loaded.value()) : LoadedMessage{};
}

Result<dledger::EntryRef> LogMessageStore::EntryAt(PhysicalOffset inside) {
  if (dledger::EntryRef entry = unwritten_.FindAt(inside)) return entry;
  return node_->ReadAt(inside);
}

Result<LoadedMessage> LogMessageStore::ReadMessage(const QueueUnit& unit) {
  Result<dledger::EntryRef> entry = EntryAt(unit.position);
  if (entry.status().code() == StatusCode::kNotFound &&
      unit.position >= node_->status().begin_position) {
    // Only retention makes a message disappear; nobody may step over this one.
    return Status::Unavailable("position " + std::to_string(unit.position.value()) +
                               " is not in the log of this peer yet");
  }
  if (!entry.ok()) return entry.status();
  Result<LoadedMessage> loaded = LocateMessage(std::move(entry.value()), unit);
  if (!loaded.ok()) return loaded;
  const Result<MessageView> message = ParseMessage(loaded->record, true);
  if (!message.ok()) return message.status();
  return loaded;
}

Result<LoadedMessage> LogMessageStore::ReadMessageAt(PhysicalOffset offset) {
  if (offset.value() < 0 || offset >= state_->applied_position()) {
    return Status::NotFound("no message begins at " + std::to_string(offset.value()));
  }
  Result<dledger::EntryRef> entry = EntryAt(offset);
  if (!entry.ok()) return entry.status();
  return FindMessage(std::move(entry.value()), offset);
}

Result<std::int64_t> LogMessageStore::StoreTimeOf(const TopicQueue& queue, QueueOffset offset) {
  const Result<std::vector<QueueUnit>> units = queues_->Read(queue, offset, 1);
  if (!units.ok()) return units.status();
  if (units.value().empty()) return Status::NotFound("the queue lost the message meanwhile");
  const Result<LoadedMessage> loaded = ReadMessage(units.value().front());
  if (!loaded.ok()) return loaded.status();
  const Result<MessageView> message = ParseMessage(loaded.value().record, false);
  if (!message.ok()) return message.status();
  return message.value().store_time_ms;
}

// Store times never decrease along a queue, so this is a binary search.
Result<QueueOffset> LogMessageStore::OffsetByTime(const TopicQueue& queue, std::int64_t time_ms,
                                                  bool upper) {
  const QueueRange range = RangeOf(queue);
  QueueOffset low = range.min;
  QueueOffset high = range.max;
  while (low < high) {
    const QueueOffset middle = low + (high - low) / 2;
    const Result<std::int64_t> time = StoreTimeOf(queue, middle);
    if (!time.ok()) return time.status();
    const bool in_front = upper ? time.value() <= time_ms : time.value() < time_ms;
    if (in_front) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (!upper) return low;
  return low == range.min ? low : low - 1;
}

Result<std::vector<LoadedMessage>> LogMessageStore::FindMessages(KeyQuery query) {
  const std::optional<TopicConfig> topic = state_->FindTopic(query.topic);
  if (!topic.has_value()) return Status::NotFound("topic " + query.topic.value() + " is not here");
  query.topic_begin = topic->created_position;
  query.applied_end = state_->applied_position();
  return FindByKey(*keys_, query, [this](PhysicalOffset at) -> Result<LoadedMessage> {
    Result<LoadedMessage> loaded = ReadMessageAt(at);
    if (loaded.status().code() == StatusCode::kNotFound && at >= node_->status().begin_position) {
      return Status::Unavailable("position " + std::to_string(at.value()) +
                                 " is not in the log of this peer yet");
    }
    return loaded;
  });
}

}  // namespace

Result<std::unique_ptr<MessageStore>> MessageStore::Open(FileSystem& fs, const Clock& clock,
                                                         MessageStoreOptions options,
                                                         Listener listener) {
  auto store =
      std::make_unique<LogMessageStore>(fs, clock, std::move(options), std::move(listener));
  TRIAD_RETURN_IF_ERROR(store->Open());
  return std::unique_ptr<MessageStore>(std::move(store));
}

}  // namespace triad::broker
