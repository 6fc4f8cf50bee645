#include "broker/store/message_store.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "broker/store/log_message_store.h"
#include "broker/store/state_transfer.h"
#include "common/broken_ground.h"
#include "common/log_rate_limiter.h"

namespace triad::broker {
namespace {

constexpr std::size_t kQueuesPerStep = 256;  // that follow the log's begin
constexpr std::chrono::milliseconds kReplayStep{50};
constexpr std::chrono::milliseconds kRepairStep{20};
constexpr std::chrono::milliseconds kKeysRetry{5000};

}  // namespace

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
  const PhysicalOffset written = node_->end_position();
  unwritten_.DropWritten(written);
  for (const dledger::EntryRef& entry : entries) {
    if (entry->index <= state_->applied_index()) continue;  // the replay below takes it
    if (entry->end() > written) unwritten_.Add(entry);
    if (dispatched_ + 1 < entry->index) {
      // The log of this peer was behind its state at the start (it lost its end and got it back).
      const Status replayed = ReplayWhenWritten(entry->index);
      if (!replayed.ok()) {
        DieOfBrokenGround(
            "cannot bring the consume queues up to the state: " + replayed.ToString() +
            ". Remove " + QueueDir() + " and start again: they are rebuilt from the log.");
      }
      FinishCatchingUp();
    }
    topics_changed = ApplyEntry(*entry) || topics_changed;
  }
  TellArrivals(dispatcher_->TakeArrivals());
  if (topics_changed && listener_.on_topics_changed) listener_.on_topics_changed();
  FollowLogBegin();
  flusher_->Tick();
  appender_.ExpireWaiters();
}

void LogMessageStore::TellArrivals(const std::vector<EntryDispatcher::Arrived>& arrivals) {
  for (auto at = arrivals.begin(); listener_.on_put && at != arrivals.end();) {
    const Topic& topic = at->queue.topic;  // sorted: a topic's queues stand together
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
    for (; at != arrivals.end() && at->queue.topic == topic; ++at) {
      messages += at->messages;
      bytes += at->bytes;
    }
    listener_.on_put(topic, messages, bytes);
  }
  if (!listener_.on_arrival) return;
  for (const EntryDispatcher::Arrived& arrived : arrivals) {
    listener_.on_arrival(arrived.queue, arrived.max);
  }
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
  if (keys_->last() < dispatched_) SetKeysBehind(true);
  flusher_->NoteEntry(entry.size());
  if (!outcome->settings.empty() && listener_.on_settings) listener_.on_settings(outcome->settings);
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

Status LogMessageStore::InstallImage(dledger::StoredPieces* pieces, LogIndex applied,
                                     LogIndex first) {
  flusher_->ForgetQueues();
  TRIAD_RETURN_IF_ERROR(InstallState(pieces, applied));
  TRIAD_RETURN_IF_ERROR(queues_->Clear());
  dispatched_ = first - 1;
  replays_whole_ = true;
  keys_->SkipTo(first - 1, node_->begin_position());
  appender_.OnSkipped(applied);
  flusher_->set_queues_behind(queues_behind());
  unwritten_.DropWritten(PhysicalOffset(std::numeric_limits<std::int64_t>::max()));
  if (listener_.on_settings) listener_.on_settings(state_->settings());
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
  const Status completed = CompleteQueues();
  if (!completed.ok()) {
    DieOfBrokenGround("the consume queues do not fit the state: " + completed.ToString() +
                      ". Check the disk and start again.");
  }
  flusher_->set_queues_behind(false);
  for (const auto& [queue, next] : state_->NextOffsets()) {
    if (listener_.on_arrival) listener_.on_arrival(queue, next);
  }
}

// Behind a rebuild of the key index, of all of it or of what was damaged or found no room.
void LogMessageStore::CatchKeysUp() {
  if (keys_->damaged()) {
    SetKeysBehind(true);  // before anything is missing
    keys_->DropDamaged();
  }
  const TimePoint now = clock_.MonoNow();
  SetKeysBehind(keys_->last() < dispatched_);
  if (keys_->last() >= dispatched_ || now < keys_due_) return;
  while (keys_->last() < dispatched_ && clock_.MonoNow() < now + kRepairStep) {
    if (keys_->last() + 1 < node_->status().first_index) {
      keys_->SkipTo(node_->status().first_index - 1, node_->begin_position());
    }
    const auto entries = node_->ReadRange(keys_->last() + 1, dispatched_ + 1, kRepairBytes);
    if (!entries.ok()) return;  // not on this peer's disk yet, or damaged and soon repaired
    for (const dledger::EntryRef& entry : *entries) {
      if (keys_->last() + 1 != entry->index) break;  // a full disk took it back
      const Status replayed = dispatcher_->Replay(*entry, {.queues = false});
      LOG_IF(FATAL, !replayed.ok()) << "a committed entry cannot be read: " << replayed;
    }
    if (!keys_->waits_for_room()) continue;
    keys_due_ = now + kKeysRetry;
    return;
  }
  SetKeysBehind(keys_->last() < dispatched_);
}

void LogMessageStore::SetKeysBehind(bool behind) {
  const bool is_behind = keys_state_.load(std::memory_order_relaxed) % 2 != 0;
  if (behind != is_behind) keys_state_.fetch_add(1);
}

// Retention moved the log's begin: the queues' minimum offsets and the key index follow.
void LogMessageStore::FollowLogBegin() {
  const PhysicalOffset begin = node_->begin_position();
  if (begin != keys_begin_) {
    const Status dropped = keys_->SetLogBegin(begin);
    LOG_IF(WARNING, !dropped.ok()) << "old files of the key index stay: " << dropped;
    keys_begin_ = begin;
  }
  const Result<bool> stepped = queues_->StepLogBegin(begin, kQueuesPerStep);
  if (stepped.ok()) return;
  static LogRateLimiter limiter(std::chrono::seconds(10));
  if (const auto suppressed = limiter.Allow(clock_.MonoNow())) {
    LOG(WARNING) << "the minimum offset of a queue does not follow the log's begin yet: "
                 << stepped.status() << SuppressedNote(*suppressed);
  }
}

void LogMessageStore::OnApplyIdle() {
  CatchQueuesUp();
  if (!queues_behind()) repair_->Step(dispatched_, clock_.MonoNow() + kRepairStep);
  CatchKeysUp();
  scrub_->Tick();
  FollowLogBegin();
  unwritten_.DropWritten(node_->end_position());
  flusher_->Tick();
  appender_.ExpireWaiters();
}

}  // namespace triad::broker
