#include "broker/store/store_flusher.h"

#include <charconv>
#include <string>
#include <utility>

#include "common/broken_ground.h"

namespace triad::broker {
namespace {

constexpr char kCheckpointName[] = "cq_checkpoint";
constexpr char kKeyRunName[] = "key_run";
constexpr std::chrono::milliseconds kRoomPoll{100};

std::string EncodeCheckpoint(const QueueCheckpoint& checkpoint) {
  return std::to_string(checkpoint.index.value()) + " " +
         std::to_string(checkpoint.position.value());
}

void DieIfFailed(const Status& status, const char* what) {
  if (status.ok()) return;
  DieOfBrokenGround(std::string(what) + " could not be made durable: " + status.ToString() +
                    ". Check the disk and its free space, then start again: nothing acknowledged "
                    "is lost, it is in the log.");
}

}  // namespace

StoreFlusher::StoreFlusher(FlushPolicy policy, const Clock& clock, ReplicatedState* state,
                           ConsumeQueueStore* queues, KeyIndex* keys)
    : policy_(policy),
      clock_(clock),
      state_(state),
      queues_(queues),
      keys_(keys),
      state_flushed_at_(clock.MonoNow()),
      queues_synced_at_(clock.MonoNow()) {
  if (policy_.sync_in_background) thread_ = std::thread([this] { RunSyncs(); });
}

StoreFlusher::~StoreFlusher() {
  {
    const std::lock_guard hold(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<QueueCheckpoint> StoreFlusher::Loaded(const ReplicatedState& state) {
  QueueCheckpoint checkpoint;
  const std::optional<std::string> text = state.LoadedExtra(kCheckpointName);
  if (!text.has_value()) return checkpoint;
  std::uint64_t index = 0;
  std::int64_t position = 0;
  const char* const end = text->data() + text->size();
  const auto first = std::from_chars(text->data(), end, index);
  if (first.ec != std::errc() || first.ptr == end) {
    return Status::Corruption("state: bad consume queue checkpoint '" + *text + "'");
  }
  const auto second = std::from_chars(first.ptr + 1, end, position);
  if (second.ec != std::errc() || second.ptr != end || index > state.applied_index().value()) {
    return Status::Corruption("state: bad consume queue checkpoint '" + *text + "'");
  }
  return QueueCheckpoint{LogIndex{index}, PhysicalOffset{position}};
}

Result<std::uint64_t> StoreFlusher::LoadedKeyRun(const ReplicatedState& state) {
  std::uint64_t run = 0;
  const std::optional<std::string> text = state.LoadedExtra(kKeyRunName);
  if (!text.has_value()) return run;
  const char* const end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, run);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return Status::Corruption("state: bad key index checkpoint '" + *text + "'");
  }
  return run;
}

void StoreFlusher::NoteEntry(std::uint64_t bytes) {
  bytes_since_flush_ += bytes;
  bytes_since_sync_ += bytes;
}

void StoreFlusher::Tick() {
  if (given_up_) return;
  FinishSync(false);
  const TimePoint now = clock_.MonoNow();
  const bool sync_due = bytes_since_sync_ >= policy_.queues_bytes ||
                        now - queues_synced_at_ >= policy_.queues_interval;
  if (sync_due && !queues_behind_ && !in_making_.has_value() &&
      state_->applied_index() != last_checkpoint_) {
    StartSync();
  }
  const bool flush_due = bytes_since_flush_ >= policy_.state_bytes ||
                         now - state_flushed_at_ >= policy_.state_interval;
  if (!flush_due || (!state_->dirty() && !to_be_saved_.has_value())) return;
  state_flushed_at_ = now;
  WriteState();
}

bool StoreFlusher::Wrote(const Status& status, const char* what) {
  if (status.code() != StatusCode::kNoSpace) {
    DieIfFailed(status, what);
    LOG_IF(INFO, waiting_.erase(what) > 0)
        << "there is room on the disk again, " << what << " are written";
    return true;
  }
  LOG_IF(ERROR, waiting_.insert(what).second) << what << " wait for room on the disk: " << status
                                              << ". Nothing is lost, it is in the log; free space";
  return false;
}

void StoreFlusher::FlushAll() {
  if (given_up_) return;
  FinishSync(true);
  keys_->Seal();
  if (!queues_behind_ && state_->applied_index() != last_checkpoint_) {
    if (!StartSync()) return;
    FinishSync(true);
  }
  if (state_->dirty() || to_be_saved_.has_value()) WriteState();
}

void StoreFlusher::ForgetQueues() {
  FinishSync(true);
  to_be_saved_.reset();
  last_checkpoint_ = LogIndex(0);
  saved_.store(0, std::memory_order_release);
}

bool StoreFlusher::StartSync() {
  queues_synced_at_ = clock_.MonoNow();
  Result<std::function<Status()>> sync = queues_->PrepareSync(state_->applied_position());
  if (!Wrote(sync.status(), "the consume queues")) return false;
  KeyIndex::PendingSync keys = keys_->PrepareSync();
  in_making_ = Checkpoints{{state_->applied_index(), state_->applied_position()}, keys.synced};
  last_checkpoint_ = state_->applied_index();
  bytes_since_sync_ = 0;
  std::function<Status()> work = [sync_queues = std::move(sync.value()),
                                  sync_keys = std::move(keys.sync)] {
    TRIAD_RETURN_IF_ERROR(sync_queues());
    return sync_keys();
  };
  if (!policy_.sync_in_background) {
    sync_result_ = work();
    return true;
  }
  {
    const std::lock_guard hold(mutex_);
    CHECK(sync_ == nullptr);
    sync_ = std::move(work);
    running_ = true;
  }
  changed_.notify_all();
  return true;
}

void StoreFlusher::FinishSync(bool wait) {
  if (!in_making_.has_value()) return;
  Status result;
  {
    std::unique_lock hold(mutex_);
    if (wait) changed_.wait(hold, [this] { return !running_; });
    if (running_) return;
    result = sync_result_;
  }
  DieIfFailed(result, "the consume queues or the key index");
  to_be_saved_ = std::exchange(in_making_, std::nullopt);
}

bool StoreFlusher::FlushState() {
  while (!given_up_ && !WriteState()) {
    std::unique_lock hold(mutex_);
    changed_.wait_for(hold, kRoomPoll, [this] { return !may_wait_; });
    given_up_ = !may_wait_;
  }
  return !given_up_;
}

void StoreFlusher::BeginStop() {
  {
    const std::lock_guard hold(mutex_);
    may_wait_ = false;
  }
  changed_.notify_all();
}

bool StoreFlusher::WriteState() {
  std::vector<std::pair<std::string, std::string>> extra;
  if (to_be_saved_.has_value()) {
    extra.emplace_back(kCheckpointName, EncodeCheckpoint(to_be_saved_->queues));
    extra.emplace_back(kKeyRunName, std::to_string(to_be_saved_->key_run));
  }
  if (!Wrote(state_->Flush(extra), "topics, groups, offsets and locks")) return false;
  if (to_be_saved_.has_value()) {
    saved_.store(to_be_saved_->queues.index.value(), std::memory_order_release);
  }
  to_be_saved_.reset();
  bytes_since_flush_ = 0;
  state_flushed_at_ = clock_.MonoNow();
  return true;
}

void StoreFlusher::RunSyncs() {
  std::unique_lock hold(mutex_);
  while (true) {
    changed_.wait(hold, [this] { return stopping_ || sync_ != nullptr; });
    if (sync_ == nullptr) return;
    const std::function<Status()> sync = std::exchange(sync_, nullptr);
    hold.unlock();
    Status result = sync();
    hold.lock();
    sync_result_ = std::move(result);
    running_ = false;
    changed_.notify_all();
  }
}

}  // namespace triad::broker
