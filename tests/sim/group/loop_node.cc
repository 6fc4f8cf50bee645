#include "tests/sim/group/loop_node.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "common/broken_ground.h"

namespace triad::sim {
namespace {

using dledger::EntryRef;

constexpr std::chrono::milliseconds kTick{dledger::kTickMs};
constexpr std::int64_t kCatchUpTicksMax = 3;
constexpr Micros kHandOverMax = 150;
constexpr Micros kReaderMax = 2 * kMs;
constexpr Micros kNotWrittenRetry = 10 * kMs;
constexpr Micros kFullRetry = 100 * kMs;
constexpr Micros kCheckpointEvery = 700 * kMs;
constexpr Micros kIdleEvery = 100 * kMs;
constexpr std::size_t kApplyBatchBytesMax = 4u << 20;

void DieUnless(const Status& status) {
  if (!status.ok()) DieOfBrokenGround(status.ToString());
}

}  // namespace

LoopNode::LoopNode(NodeHost& host, FileSystem& fs, const Clock& clock, dledger::NodeOptions options,
                   dledger::OpenedLog log, dledger::Application* application)
    : host_(host),
      clock_(clock),
      options_(std::move(options)),
      log_(std::move(log.store)),
      application_(application),
      driver_(options_, clock,
              dledger::LogDriver::Found{.recovered = std::move(log.recovered),
                                        .lost_unsynced = log_->lost_unsynced(),
                                        .tail = log_->tail()},
              application, this),
      writer_(*log_, [this] { return InstallSnapshot(); }),
      desk_(fs, options_.dir, clock, *log_, *application, options_.snapshot_bytes_per_second,
            LinksOfDesk()),
      cleaner_(*log_, clock, options_.retention, [this](LogIndex first) { OnDropped(first); }),
      checkpoint_at_(log_->end_position()),
      committed_(options_.applied),
      applied_(options_.applied) {
  log_time_ms_ = driver_.LogTimeMs();
}

void LoopNode::Post(Micros delay_max, std::function<void()> task) {
  host_.Post(host_.dice().Between(0, delay_max), std::move(task));
}

// An event of the log thread.
void LoopNode::Turn(Micros delay_max, std::function<void()> task) {
  Post(delay_max, [this, task = std::move(task)] {
    task();
    EndTurn();
  });
}

// ---- log thread ----

Status LoopNode::Start() {
  ticked_at_ = clock_.MonoNow();
  host_.SetPeers(options_.peers);
  driver_.Begin();
  EndTurn();
  Post(kHandOverMax, [this] {
    OnTick();
    Prepare();
    IdleApply();
  });
  host_.Post(kCheckpointEvery, [this] { Checkpoint(); });
  if (host_.CleanEvery() > 0) host_.Post(host_.CleanEvery(), [this] { Clean(); });
  return Status::Ok();
}

void LoopNode::EndTurn() {
  driver_.EndTurn();
  if (turn_ops_.empty()) return;
  std::move(turn_ops_.begin(), turn_ops_.end(), std::back_inserter(disk_queue_));
  turn_ops_.clear();
  StartDisk();
}

void LoopNode::OnTick() {
  const TimePoint now = clock_.MonoNow();
  const std::int64_t due = (now - ticked_at_) / kTick;
  const std::int64_t count = std::clamp<std::int64_t>(due, 0, kCatchUpTicksMax);
  ticked_at_ = due > kCatchUpTicksMax ? now : ticked_at_ + count * kTick;
  driver_.OnTicks(static_cast<int>(count));
  desk_.OnTick();
  EndTurn();
  log_time_ms_ = driver_.LogTimeMs();
  host_.Post(10 * kMs, [this] { OnTick(); });
}

void LoopNode::WakeProposer() {
  if (std::exchange(is_wake_posted_, true)) return;
  Turn(kHandOverMax, [this] {
    is_wake_posted_ = false;
    driver_.OnWake();
  });
}

void LoopNode::ReadIndex(std::chrono::milliseconds timeout, std::function<void(Status)> done) {
  Turn(kHandOverMax, [this, deadline = clock_.MonoNow() + timeout, done = std::move(done)] {
    driver_.OnRead({.deadline = deadline, .done = done});
  });
}

void LoopNode::TransferLeadership(PeerId to, std::chrono::milliseconds timeout,
                                  std::function<void(Status)> done) {
  Turn(kHandOverMax, [this, to = std::move(to), deadline = clock_.MonoNow() + timeout,
                      done = std::move(done)] { driver_.OnTransfer(to, deadline, done); });
}

void LoopNode::ChangeMembership(dledger::MembershipOp op, dledger::PeerAddress peer,
                                std::chrono::milliseconds timeout,
                                std::function<void(Status)> done) {
  Turn(kHandOverMax, [this, op, peer = std::move(peer), deadline = clock_.MonoNow() + timeout,
                      done = std::move(done)] { driver_.OnChange(op, peer, deadline, done); });
}

dledger::NodeStatus LoopNode::status() const {
  dledger::NodeStatus status;
  driver_.FillStatus(applied_, &status);
  for (dledger::NodeStatus::Peer& peer : status.peers) peer.connected = host_.IsConnected(peer.id);
  status.first_index = log_->base().tail.next_index;
  status.applied_index = applied_;
  status.begin_position = begin_position();
  status.end_position = end_position();
  return status;
}

void LoopNode::OnHello(const dledger::Hello& hello) {
  driver_.OnHello(hello);
  EndTurn();
}

void LoopNode::OnMessage(const PeerId& from, dledger::Message message, std::int64_t wall_ms) {
  driver_.OnMessage(from, std::move(message), wall_ms);
  EndTurn();
}

void LoopNode::OnSnapshot(const PeerId& from, dledger::SnapshotMessage message) {
  desk_.OnMessage(from, std::move(message), driver_.Follows(from), driver_.term());
  EndTurn();
}

void LoopNode::OnDisconnected(const PeerId& peer) {
  driver_.OnDisconnected(peer);
  EndTurn();
}

void LoopNode::Send(const PeerId& to, dledger::Message message) {
  host_.SendToPeer(to, std::move(message));
}

void LoopNode::Publish(const dledger::LeaderInfo& info) {
  if (info.role != dledger::Role::kLeader) desk_.StopSending();
  info_ = info;
}

// ---- state for other peers ----

dledger::SnapshotDesk::Links LoopNode::LinksOfDesk() {
  dledger::SnapshotDesk::Links links;
  links.send = [this](const PeerId& to, dledger::SnapshotMessage message) {
    host_.SendToPeer(to, std::move(message));
  };
  links.connected = [this](const PeerId& peer) { return host_.IsConnected(peer); };
  links.post_reader = [this](std::function<void()> task) { return PostReader(std::move(task)); };
  links.post_apply = [this](std::function<void()> task) {
    if (is_installing_) {
      // The disk thread waits. What the apply thread had to do before comes first.
      WorkOfApplyThread();
      return task();
    }
    Post(kHandOverMax, std::move(task));
  };
  links.post_log = [this](std::function<void()> task) { Turn(kHandOverMax, std::move(task)); };
  links.random = [this] { return Random(); };
  links.on_sent = [this](const PeerId& peer, Term term, bool ok, LogIndex base_index) {
    Turn(kHandOverMax, [this, sent = dledger::SnapshotSent{peer, term, ok, base_index}] {
      driver_.OnSnapshotSent(sent);
    });
  };
  links.install = [this](const dledger::SnapshotHead& head) { driver_.OnSnapshotReady(head); };
  return links;
}

Status LoopNode::InstallSnapshot() {
  is_installing_ = true;
  const Status installed = desk_.InstallPending([this](LogIndex applied) {
    committed_ = applied_ = applied;
    to_apply_.clear();
    Turn(kHandOverMax, [this] { driver_.OnApplied(applied_); });
    host_.OnInstalled(applied);
  });
  is_installing_ = false;
  WorkOfApplyThread();
  if (installed.ok()) host_.OnDropped(log_->base().tail.next_index);
  return installed;
}

// ---- disk thread ----

void LoopNode::StartDisk() {
  if (std::exchange(is_disk_busy_, true)) return;
  Post(kHandOverMax, [this] { WriteBatch(); });
}

void LoopNode::WriteBatch() {
  disk_batch_ = std::exchange(disk_queue_, {});
  DieUnless(writer_.Write(disk_batch_));
  host_.Post(host_.SyncLatency(), [this] { FinishBatch(); });
}

void LoopNode::FinishBatch() {
  DieUnless(writer_.Sync());
  const dledger::Token token = disk_batch_.empty() ? 0 : disk_batch_.back().token;
  disk_batch_.clear();
  Turn(kHandOverMax, [this, token] { driver_.OnStorageDone(token); });
  if (log_->prepared_bytes() <= options_.prepare_bytes / 2 && !is_full_) {
    Post(kHandOverMax, [this] { Prepare(); });
  }
  is_disk_busy_ = false;
  if (!disk_queue_.empty()) StartDisk();
}

// ---- background thread ----

void LoopNode::Prepare() {
  if (log_->prepared_bytes() > options_.prepare_bytes / 2 && !is_full_) return;
  const Status status = log_->Prepare();
  is_full_ = status.code() == StatusCode::kNoSpace;
  if (!is_full_) return DieUnless(status);
  host_.Post(kFullRetry, [this] { Prepare(); });
}

void LoopNode::Checkpoint() {
  if (log_->end_position() != checkpoint_at_) {
    const PhysicalOffset end = log_->end_position();
    if (log_->WriteCheckpoint().ok()) checkpoint_at_ = end;
  }
  host_.Post(kCheckpointEvery, [this] { Checkpoint(); });
}

void LoopNode::Clean() {
  host_.Post(host_.CleanEvery(), [this] { Clean(); });
  if (info_.recovering) return;
  const LogIndex durable =
      std::min({application_->DurableIndex(), applied_, driver_.settled_index()});
  host_.CleansByTheRule() ? CleanByTheRule(durable) : CleanAnything(durable);
}

void LoopNode::CleanByTheRule(LogIndex durable) {
  const std::optional<LogIndex> wanted = dledger::WantedByPeers(status());
  const std::vector<dledger::SegmentFacts> segments = log_->segments();
  const bool may_go = segments.size() > 1 && segments[1].first <= durable;
  if (may_go && wanted && *wanted < segments[1].first) host_.OnHeld();
  DieUnless(cleaner_.Clean({.durable = durable, .log_time_ms = log_time_ms_, .wanted = wanted}));
}

// Drops what it may, and not only what is old.
void LoopNode::CleanAnything(LogIndex durable) {
  const std::vector<dledger::SegmentFacts> segments = log_->segments();
  if (segments.size() < 2 || segments[1].first > durable || host_.dice().OneIn(2)) return;
  const Result<std::size_t> dropped = log_->DropBefore(segments[1].first);
  if (dropped.status().code() == StatusCode::kIoError) DieUnless(dropped.status());
  if (dropped.ok()) OnDropped(segments[1].first);
}

void LoopNode::OnDropped(LogIndex first) {
  host_.OnDropped(first);
  Turn(kHandOverMax, [this, first] { driver_.OnPurged(first); });
}

void LoopNode::Replace(EntryRef entry, std::function<void(Status)> done) {
  Post(kHandOverMax, [this, entry = std::move(entry), done = std::move(done)] {
    Status replaced = log_->raw().Replace(entry);
    if (replaced.code() == StatusCode::kIoError) DieUnless(replaced);
    done(std::move(replaced));
  });
}

// ---- reader threads ----

void LoopNode::Load(dledger::LoadRequest request) {
  Post(kReaderMax, [this, request] {
    dledger::Loaded loaded{
        .peer = request.peer, .term = request.term, .from = request.from, .entries = {}};
    auto entries = log_->ReadRange(request.from, request.to, request.max_bytes);
    if (entries.ok()) loaded.entries = std::move(entries).value();
    Turn(kHandOverMax, [this, loaded] { driver_.OnLoaded(loaded); });
  });
}

void LoopNode::LoadTail(LogIndex last_index) {
  Post(kReaderMax, [this, last_index] {
    const auto entries = log_->ReadRange(last_index, last_index + 1, 1);
    EntryRef last = entries.ok() && !entries->empty() ? entries->front() : nullptr;
    Turn(kHandOverMax, [this, last] { driver_.OnTailLoaded(last); });
  });
}

void LoopNode::LoadAt(PhysicalOffset inside, std::function<void(Result<EntryRef>)> done) {
  Post(kReaderMax, [this, inside, done = std::move(done)] { done(log_->ReadAt(inside)); });
}

bool LoopNode::PostReader(std::function<void()> task) {
  Post(kReaderMax, std::move(task));
  return true;
}

// ---- apply thread ----

void LoopNode::Commit(LogIndex upto, std::vector<EntryRef> entries, LogIndex /*durable*/) {
  committed_ = std::max(committed_, upto);
  for (EntryRef& entry : entries) {
    if (entry->index > applied_) to_apply_.push_back(std::move(entry));
  }
  if (std::exchange(is_apply_posted_, true)) return;
  Post(kHandOverMax, [this] { ApplySome(); });
}

void LoopNode::ApplySome() {
  is_apply_posted_ = false;
  if (committed_ <= applied_) return;
  const LogIndex next = applied_ + 1;
  std::erase_if(to_apply_, [next](const EntryRef& entry) { return entry->index < next; });
  std::vector<EntryRef> batch;
  for (const EntryRef& entry : to_apply_) {
    if (entry->index != next + batch.size()) break;
    batch.push_back(entry);
  }
  if (batch.empty()) {
    const LogIndex to = to_apply_.empty() ? committed_ + 1 : to_apply_.front()->index;
    auto read = log_->ReadRange(next, to, kApplyBatchBytesMax);
    if (read.status().code() == StatusCode::kNotFound) {
      // Committed by the others before this peer's own disk has it.
      is_apply_posted_ = true;
      return host_.Post(kNotWrittenRetry, [this] { ApplySome(); });
    }
    if (!read.ok()) {
      DieOfBrokenGround("committed entry " + std::to_string(next.value()) +
                        " cannot be read: " + read.status().ToString());
    }
    batch = std::move(read).value();
  }
  host_.OnApply(batch);
  application_->Apply(batch);
  applied_ = batch.back()->index;
  Turn(kHandOverMax, [this] { driver_.OnApplied(applied_); });
  if (committed_ > applied_ && !std::exchange(is_apply_posted_, true)) {
    Post(kHandOverMax, [this] { ApplySome(); });
  }
}

// While another thread is in the middle of something: as much as the dice say.
void LoopNode::WorkOfApplyThread() {
  if (host_.dice().OneIn(2)) application_->OnApplyIdle();
  for (std::uint64_t turns = host_.dice().Below(4); turns > 0 && is_apply_posted_; --turns) {
    ApplySome();
  }
}

void LoopNode::IdleApply() {
  application_->OnApplyIdle();
  host_.Post(kIdleEvery, [this] { IdleApply(); });
}

// ---- the end ----

void LoopNode::Stop() {
  if (std::exchange(is_stopped_, true)) return;
  driver_.Fail(Status::Unavailable("this peer is stopping"));
  std::move(turn_ops_.begin(), turn_ops_.end(), std::back_inserter(disk_queue_));
  Status status = writer_.Write(disk_queue_);
  if (status.ok()) status = log_->Close();
  LOG_IF(ERROR, !status.ok()) << "closing the log: " << status;
}

}  // namespace triad::sim
