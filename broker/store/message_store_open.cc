#include <algorithm>
#include <utility>

#include "broker/store/log_message_store.h"
#include "broker/store/state_transfer.h"

namespace triad::broker {
namespace {

constexpr std::size_t kReplayBytes = 4u << 20;
constexpr std::size_t kHolesMax = 16;  // more are rebuilt together, in one pass over the log
constexpr std::int64_t kKeysAtOnceBytes = 256 << 20;

}  // namespace

// ---- Open, Stop ---------------------------------------------------------------------------------

Status LogMessageStore::Open() {
  const Result<DelayLevels> levels = DelayLevels::Parse(options_.delay_levels);
  if (!options_.delay_levels.empty()) TRIAD_RETURN_IF_ERROR(levels.status());
  TRIAD_RETURN_IF_ERROR(OpenState());
  Status opened = OpenFromLog();
  if (log_is_damaged_) {
    // The log has noticed: opened again it is verified as a whole, ends in front of the damage, and
    // this peer gets the rest from the others, as it gets all that it lost (rule H).
    LOG(ERROR) << "entries that this start needs are damaged (" << opened.message()
               << "); the whole log is verified";
    dispatcher_.reset();
    queues_.reset();
    keys_.reset();
    node_.reset();
    log_is_damaged_ = false;
    opened = OpenFromLog();
  }
  TRIAD_RETURN_IF_ERROR(opened);
  const FlushPolicy policy{.state_interval = options_.state_flush_interval,
                           .state_bytes = options_.state_flush_bytes,
                           .queues_interval = options_.queue_checkpoint_interval,
                           .queues_bytes = options_.queue_checkpoint_bytes,
                           .sync_in_background = options_.queue_sync_in_background};
  flusher_ =
      std::make_unique<StoreFlusher>(policy, clock_, state_.get(), queues_.get(), keys_.get());
  repair_ =
      std::make_unique<QueueRepair>(clock_, *state_, queues_.get(), dispatcher_.get(), node_.get());
  scrub_ = std::make_unique<StoreScrub>(*queues_, *keys_, *node_);
  appender_.set_wake([this] { node_->WakeProposer(); }, [this] { node_->ProposeNow(); });
  appender_.set_state(state_.get());
  return Status::Ok();
}

// The log, and what is derived from it.
Status LogMessageStore::OpenFromLog() {
  TRIAD_RETURN_IF_ERROR(OpenNode());
  const Result<QueueCheckpoint> checkpoint = StoreFlusher::Loaded(*state_);
  if (!checkpoint.ok()) return checkpoint.status();
  TRIAD_RETURN_IF_ERROR(OpenKeys());
  Status opened = OpenQueues(checkpoint.value());
  if (opened.ok() && queues_->queues_with_holes() > kHolesMax) {
    opened = Status::Corruption("more than " + std::to_string(kHolesMax) + " of them are damaged");
  }
  if (opened.code() == StatusCode::kCorruption && !log_is_damaged_) {
    LOG(WARNING) << "the consume queues are rebuilt from the log: " << opened.message();
    opened = OpenQueues(QueueCheckpoint{});
  }
  TRIAD_RETURN_IF_ERROR(opened);
  keys_begin_ = node_->begin_position();
  return CheckUnapplied();
}

Status LogMessageStore::OpenState() {
  const std::string dir = options_.root_dir + "/state";
  Result<std::unique_ptr<StateStore>> store = options_.open_state_store(dir);
  if (!store.ok()) return store.status();
  state_ = std::make_unique<ReplicatedState>(std::move(store.value()), kDedupKeysMax,
                                             options_.install_batch_bytes);
  Result<std::optional<dledger::ReadySnapshot>> ready =
      dledger::Node::FindReadySnapshot(fs_, LogDir());
  if (!ready.ok()) return ready.status();
  return ready->has_value() ? FinishInstall(&**ready) : state_->Load();
}

// A snapshot that a crash stopped after it was whole: the state takes it here, the log in
// Node::Open. What the state was, or half is by now, does not count any more.
Status LogMessageStore::FinishInstall(dledger::ReadySnapshot* snapshot) {
  LOG(INFO) << "a received state up to entry " << snapshot->applied << " is installed";
  TRIAD_RETURN_IF_ERROR(InstallState(snapshot->pieces.get(), snapshot->applied));
  if (fs_.Exists(KeyDir())) TRIAD_RETURN_IF_ERROR(KeyIndex::Discard(fs_, KeyDir()));
  if (!fs_.Exists(QueueDir())) return Status::Ok();
  // The queues belonged to the log that goes.
  const Result<std::unique_ptr<ConsumeQueueStore>> queues =
      ConsumeQueueStore::Open(fs_, QueueDir(), PhysicalOffset(0));
  if (!queues.ok()) return queues.status();
  return queues.value()->Clear();
}

Status LogMessageStore::InstallState(dledger::StoredPieces* pieces, LogIndex applied) {
  TRIAD_RETURN_IF_ERROR(state_->Install(RecordsOf(pieces)));
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
      options_.open_node(fs_, clock_, std::move(options), this);
  if (node.ok()) node_ = std::move(node.value());
  return node.status();
}

Status LogMessageStore::OpenKeys() {
  const Result<std::uint64_t> synced = StoreFlusher::LoadedKeyRun(*state_);
  if (!synced.ok()) return synced.status();
  const PhysicalOffset log_begin = node_->begin_position();
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
                                                  [this] { return flusher_->FlushState(); });
  dispatched_ = checkpoint.index;
  replays_whole_ = dispatched_ + 1 <= node_->status().first_index;
  TRIAD_RETURN_IF_ERROR(
      ReplayDerived(std::min(state_->applied_index(), node_->status().last_index) + 1));
  TRIAD_RETURN_IF_ERROR(CompleteQueues());
  return queues_->SetLogBegin(node_->begin_position());
}

Result<std::vector<dledger::EntryRef>> LogMessageStore::ReadLog(LogIndex from, LogIndex behind) {
  auto entries = node_->ReadRange(from, behind, kReplayBytes);
  const StatusCode code = entries.status().code();
  log_is_damaged_ = code == StatusCode::kCorruption || code == StatusCode::kIoError;
  return entries;
}

// Gives the queues the entries (dispatched_, behind), which the state has seen. The key index goes
// along; when it lacks much, it comes later (CatchKeysUp).
Status LogMessageStore::ReplayDerived(LogIndex behind) {
  const LogIndex first_kept = node_->status().first_index;
  if (dispatched_ + 1 < first_kept) dispatched_ = first_kept - 1;
  if (keys_->last() + 1 < first_kept) {
    keys_->SkipTo(first_kept - 1, node_->begin_position());
  }
  const bool with_keys = node_->end_position() - keys_->end() <= kKeysAtOnceBytes;
  LogIndex next = with_keys ? std::min(dispatched_, keys_->last()) + 1 : dispatched_ + 1;
  while (next < behind) {
    const Result<std::vector<dledger::EntryRef>> entries = ReadLog(next, behind);
    if (!entries.ok()) return entries.status();
    CHECK(!entries.value().empty());
    for (const dledger::EntryRef& entry : entries.value()) {
      CHECK_EQ(entry->index, next);
      const EntryDispatcher::Lacking lacking{
          .queues = dispatched_ < next, .keys = keys_->last() + 1 == next, .whole = replays_whole_};
      TRIAD_RETURN_IF_ERROR(dispatcher_->Replay(*entry, lacking));
      dispatched_ = std::max(dispatched_, next);
      ++next;
    }
  }
  return Status::Ok();
}

// Behind a replay: the state says how long each queue is. What a queue lacks is a hole, which is
// filled later; but when all of the log was replayed, the log has it no more.
Status LogMessageStore::CompleteQueues() {
  if (dispatched_ < state_->applied_index()) return Status::Ok();  // see Apply
  for (const auto& [queue, next] : state_->NextOffsets()) {
    const std::optional<QueueRange> range = queues_->Range(queue);
    const QueueOffset max = range ? range->max : QueueOffset{0};
    if (range && max == next) continue;
    if (!range && replays_whole_) {
      TRIAD_RETURN_IF_ERROR(queues_->StartEmpty(queue, next));
      continue;
    }
    const std::string text = "topic " + queue.topic.value() + " queue " +
                             std::to_string(queue.queue_id.value()) + " ends at " +
                             std::to_string(max.value()) + ", the state says " +
                             std::to_string(next.value());
    if (replays_whole_ || max >= next) return Status::Corruption(text);
    LOG(WARNING) << "consume queue: " << text << "; what is missing is rebuilt from the log";
    queues_->ExtendTo(queue, next);
  }
  return Status::Ok();
}

// What apply reads soon: better to find damage here, while the log can still be opened again.
Status LogMessageStore::CheckUnapplied() {
  const LogIndex behind = node_->status().last_index + 1;
  for (LogIndex next = state_->applied_index() + 1; next < behind;) {
    const Result<std::vector<dledger::EntryRef>> entries = ReadLog(next, behind);
    if (!entries.ok()) return entries.status();
    next = entries->back()->index + 1;
  }
  return Status::Ok();
}

void LogMessageStore::Stop() {
  if (std::exchange(stopped_, true) || node_ == nullptr) return;
  if (flusher_ != nullptr) flusher_->BeginStop();
  node_->Stop();
  if (flusher_ != nullptr) flusher_->FlushAll();
  appender_.Abandon();
}

Result<std::unique_ptr<MessageStore>> MessageStore::Open(FileSystem& fs, const Clock& clock,
                                                         MessageStoreOptions options,
                                                         Listener listener) {
  auto store =
      std::make_unique<LogMessageStore>(fs, clock, std::move(options), std::move(listener));
  TRIAD_RETURN_IF_ERROR(store->Open());
  return std::unique_ptr<MessageStore>(std::move(store));
}

}  // namespace triad::broker
