#include "dledger/log_driver.h"

#include <glog/logging.h>

#include <algorithm>

#include "common/mutant.h"
#include "dledger/membership_codec.h"
#include "dledger/raft/membership.h"

namespace triad::dledger {
namespace {

constexpr std::size_t kFirstBytesMax = 64u << 10;  // of a membership entry, or a no-op
constexpr LogIndex kLonelyTermsMax{64};            // entries that are looked at for the group's id
constexpr const char* kNoRoom = "no disk space for the log";

}  // namespace

void LogDriver::OnTicks(int count) {
  const TimePoint now = clock_.MonoNow();
  log_clock_.Sample(options_.self, clock_.WallNowMs(), now);
  reads_.Expire(now);
  ExpireTransfers();
  ExpireChanges();
  if (core_ == nullptr) {
    DecideStart();
    return;
  }
  for (int i = 0; i < count; ++i) Step(Tick{});
  UpdatePeers();
}

void LogDriver::OnHello(const Hello& hello) {
  if (Caller* caller = CallerOf(hello.from, clock_.MonoNow())) {
    caller->client_address = hello.client_address;
    caller->peer_address = hello.peer_address;
  }
  if (core_ == nullptr) {
    OnStartAnswer(hello);
    return;
  }
  PublishInfo();
}

void LogDriver::OnMessage(const PeerId& from, Message message, std::int64_t wall_ms) {
  const TimePoint now = clock_.MonoNow();
  if (Caller* caller = CallerOf(from, now)) caller->heard_at = now;
  log_clock_.Sample(from, wall_ms, now);
  if (core_ == nullptr || !Fits(message)) return;
  Step(MessageIn{.from = from, .message = std::move(message)});
}

// An append that a full disk cannot take is lost on the way: heartbeats say how far this log goes,
// and it is sent again with each.
bool LogDriver::Fits(const Message& message) const {
  const auto* append = std::get_if<AppendRequest>(&message.body);
  if (append == nullptr || append->entries.empty() || !hands_->IsDiskFull()) return true;
  std::size_t bytes = 0;
  bool is_rolling = false;
  for (const EntryRef& entry : append->entries) {
    bytes += entry->size();
    is_rolling = is_rolling || entry->segment_base != tail_.segment_base;
  }
  return HasRoomFor(bytes, is_rolling);
}

// Strangers speak too. When they are too many, the silent ones are forgotten; null: still too many.
LogDriver::Caller* LogDriver::CallerOf(const PeerId& peer, TimePoint now) {
  const auto found = callers_.find(peer);
  if (found != callers_.end()) return &found->second;
  if (callers_.size() >= kMembersMax) {
    std::erase_if(callers_, [now](const auto& item) { return !item.second.IsHeard(now); });
  }
  return callers_.size() < kMembersMax ? &callers_[peer] : nullptr;
}

void LogDriver::OnDisconnected(const PeerId& peer) {
  if (core_ != nullptr) Step(Disconnected{peer});
}

void LogDriver::OnStorageDone(Token token) {
  if (core_ == nullptr || token == 0) return;
  while (!unsynced_.empty() && unsynced_.front().first <= token) {
    unsynced_bytes_ -= unsynced_.front().second;
    unsynced_.pop_front();
  }
  Step(StorageDone{token});
}

void LogDriver::OnLoaded(Loaded loaded) {
  Step(std::move(loaded));
}

void LogDriver::OnTailLoaded(EntryRef last) {
  is_tail_loading_ = false;
  if (last == nullptr || is_tail_known_ || last->index != core_->last_index()) return;
  if (last->term != core_->last_term()) return;
  tail_ = TailAfter(*last);
  is_tail_known_ = true;
}

void LogDriver::OnSnapshotSent(const SnapshotSent& sent) {
  if (core_ != nullptr) Step(sent);
}

void LogDriver::OnSnapshotReady(const SnapshotHead& head) {
  CHECK(core_ != nullptr);
  ready_tail_ = head.base.tail;
  Step(InstallSnapshot{.base = {.first_index = head.base.tail.next_index,
                                .term = head.base.tail.last_term,
                                .membership = head.base.membership},
                       .applied = head.applied});
}

void LogDriver::OnPurged(LogIndex first_index) {
  if (core_ != nullptr) Step(Purged{first_index});
}

LogIndex LogDriver::settled_index() const {
  if (core_ == nullptr) return LogIndex(0);
  return std::min(core_->commit_index(), core_->durable_index());
}

bool LogDriver::Follows(const PeerId& peer) const {
  return core_ != nullptr && core_->role() == Role::kFollower && core_->leader() == peer;
}

void LogDriver::OnApplied(LogIndex applied) {
  applied_ = std::max(applied_, applied);
  MaybeReady();
  reads_.OnApplied(applied_);
}

void LogDriver::OnRead(PendingRead read) {
  if (!is_leader()) {
    read.done(Status::NotLeader(info_.leader.value()));
    return;
  }
  reads_.Add(std::move(read));
}

void LogDriver::OnTransfer(const PeerId& to, TimePoint deadline, std::function<void(Status)> done) {
  if (!is_leader()) {
    done(Status::NotLeader(info_.leader.value()));
    return;
  }
  if (to == options_.self) {
    done(Status::Ok());
  } else if (transfers_.size() >= kTransfersMax) {
    done(Status::Busy("too many transfers wait"));
  } else {
    const std::uint64_t context = next_transfer_++;
    transfers_.push_back(
        PendingTransfer{.context = context, .deadline = deadline, .done = std::move(done)});
    Step(TransferLeadership{.to = to, .context = context});
  }
}

void LogDriver::OnTransferFailed(const TransferFailed& failed) {
  const auto found =
      std::find_if(transfers_.begin(), transfers_.end(),
                   [&](const PendingTransfer& t) { return t.context == failed.context; });
  if (found == transfers_.end()) return;  // the core's own wish, or past its deadline
  const std::function<void(Status)> done = std::move(found->done);
  transfers_.erase(found);
  const std::string why(Describe(failed.why));
  switch (failed.why) {
    case TransferFailure::kNotLeader: return done(Status::NotLeader(info_.leader.value()));
    case TransferFailure::kInProgress: return done(Status::Busy(why));
    case TransferFailure::kNotVoter: return done(Status::InvalidArgument(why));
    case TransferFailure::kTimedOut: return done(Status::TimedOut(why));
    case TransferFailure::kNotReachable:
    case TransferFailure::kNotCaughtUp:
    case TransferFailure::kNobody: return done(Status::Unavailable(why));
  }
}

void LogDriver::ExpireTransfers() {
  if (transfers_.empty()) return;
  const TimePoint now = clock_.MonoNow();
  std::vector<PendingTransfer> waiting = std::exchange(transfers_, {});
  for (PendingTransfer& transfer : waiting) {
    if (transfer.deadline > now) {
      transfers_.push_back(std::move(transfer));
    } else {
      transfer.done(Status::TimedOut("no other peer leads yet"));
    }
  }
}

// ---- the core's words ----

void LogDriver::Step(Input input) {
  core_->Step(input, &output_);
  Execute();
}

void LogDriver::Execute() {
  Output output = std::exchange(output_, Output{});
  for (StorageOp& op : output.storage) {
    Record(op);
    hands_->Store(std::move(op));
  }
  for (Envelope& envelope : output.messages) {
    hands_->Send(envelope.to, std::move(envelope.message));
  }
  for (LoadRequest& load : output.loads) hands_->Load(std::move(load));
  for (const SnapshotNeeded& needed : output.snapshots) hands_->SendSnapshot(needed);
  if (output.snapshot_refused) hands_->RefuseSnapshot();
  if (output.committed) {
    hands_->Commit(*output.committed, window_.Commit(*output.committed), core_->durable_index());
  }
  if (output.soft) OnSoftState(*output.soft);
  for (const ReadReady& read : output.reads) reads_.OnReady(read.context, read.index);
  if (!output.reads.empty()) reads_.OnApplied(applied_);
  for (const std::uint64_t context : output.reads_failed) {
    reads_.OnFailed(context, Status::NotLeader(info_.leader.value()));
  }
  wants_first_ = wants_first_ || output.want_noop;
  for (const TransferFailed& failed : output.transfers_failed) OnTransferFailed(failed);
  if (output.propose_membership) ProposeMembership(*output.propose_membership);
  for (const ChangeFate& fate : output.changes) OnChangeFate(fate);
}

void LogDriver::Record(const StorageOp& op) {
  if (op.reset) {
    window_.TruncateFrom(LogIndex(0));
    tail_ = ready_tail_;
    is_tail_known_ = true;
    log_clock_.Raise(tail_.last_store_time_ms);
  }
  if (op.truncate_from) {
    window_.TruncateFrom(*op.truncate_from);
    const EntryRef last = window_.last();
    is_tail_known_ = last != nullptr;
    if (last != nullptr) tail_ = TailAfter(*last);
  }
  if (op.append.empty()) return;
  std::size_t bytes = 0;
  for (const EntryRef& entry : op.append) {
    bytes += entry->size();
    window_.Append(entry);
  }
  unsynced_.emplace_back(op.token, bytes);
  unsynced_bytes_ += bytes;
  tail_ = TailAfter(*op.append.back());
  is_tail_known_ = true;
  log_clock_.Raise(tail_.last_store_time_ms);
}

void LogDriver::OnSoftState(const SoftState& soft) {
  const bool goes_on =
      soft.role == Role::kLeader && soft.term == info_.term && info_.role == Role::kLeader;
  info_.role = soft.role;
  info_.term = soft.term;
  info_.leader = soft.leader;
  info_.recovering = soft.recovering;
  if (!goes_on) {
    info_.ready = false;
    first_index_ = LogIndex(0);
    wants_first_ = false;
  }
  if (soft.role != Role::kLeader) {
    reads_.FailFresh(Status::NotLeader(info_.leader.value()));
    if (!soft.leader.empty()) {
      for (PendingTransfer& transfer : std::exchange(transfers_, {})) transfer.done(Status::Ok());
    }
  }
  PublishInfo();
}

void LogDriver::PublishInfo() {
  info_.leader_client_address.clear();
  if (info_.leader == options_.self) {
    info_.leader_client_address = options_.client_address;
  } else if (const auto found = callers_.find(info_.leader); found != callers_.end()) {
    info_.leader_client_address = found->second.client_address;
  }
  if (info_ == published_) return;
  published_ = info_;
  hands_->Publish(info_);
  application_->OnLeaderChange(info_);
}

// ---- leading ----

bool LogDriver::is_leader() const {
  return core_ != nullptr && core_->role() == Role::kLeader;
}

void LogDriver::EndTurn() {
  if (!is_leader()) return;
  if (wants_first_) ProposeFirst();
  while (MayBuild()) {
    if (!BuildOne()) is_awake_ = false;
  }
  StartReads();
}

void LogDriver::ProposeFirst() {
  if (!is_tail_known_) {
    if (!is_tail_loading_) hands_->LoadTail(core_->last_index());
    is_tail_loading_ = true;
    return;
  }
  CHECK_EQ(tail_.next_index, core_->last_index() + 1);
  const std::int64_t left =
      tail_.segment_base - tail_.position + static_cast<std::int64_t>(options_.segment_bytes);
  if (!HasRoomFor(kFirstBytesMax, left < static_cast<std::int64_t>(kFirstBytesMax))) {
    // Without room for one entry somebody else must lead, if there is somebody.
    if (!core_->transferring()) Step(TransferLeadership{});
    return;
  }
  wants_first_ = false;
  EntryRef entry = MakeFirst();
  first_index_ = entry->index;
  Step(Propose{std::move(entry)});
}

EntryRef LogDriver::MakeFirst() {
  std::string payload;
  EntryType type = EntryType::kNoop;
  if (core_->last_index() == LogIndex(0)) {
    type = EntryType::kMembership;
    Membership membership = core_->membership();
    membership.group_id = hands_->Random();
    payload = EncodeMembership(membership);
    LOG(INFO) << "group '" << options_.group << "' begins with id " << membership.group_id
              << " and voters " << JoinedIds(membership.voters);
  }
  RollIfNeeded(EntryBytes(payload.size()), options_.segment_bytes, &tail_);
  return MakeEntry(core_->term(), type, LogTimeMs(), std::move(payload), &tail_);
}

bool LogDriver::MayBuild() const {
  return is_awake_ && info_.ready && is_leader() && !core_->transferring() &&
         unsynced_bytes_ < kUnsyncedBytesMax && unsynced_.size() < kUnsyncedWritesMax &&
         window_.uncommitted_bytes() < kUncommittedBytesMax &&
         window_.uncommitted() < kUncommittedEntriesMax && !hands_->IsDiskFull();
}

// On a full disk only what is prepared can be written, and no segment can begin.
bool LogDriver::HasRoomFor(std::size_t bytes, bool is_rolling) const {
  if (!hands_->IsDiskFull()) return true;
  return !is_rolling && unsynced_bytes_ + bytes <= hands_->PreparedBytes();
}

BuildContext LogDriver::ContextAt(const LogTail& tail) {
  BuildContext context;
  context.term = core_->term();
  context.index = tail.next_index;
  context.payload_position = tail.position + static_cast<std::int64_t>(kEntryHeaderBytes);
  context.at_segment_start = tail.position == tail.segment_base;
  context.store_time_ms = LogTimeMs();
  context.head_bytes = kEntryHeaderBytes;
  std::size_t rest = kMaxEntryBytes;
  if (!context.at_segment_start) {
    const std::int64_t left =
        tail.segment_base - tail.position + static_cast<std::int64_t>(options_.segment_bytes);
    rest = std::min(rest, static_cast<std::size_t>(std::max<std::int64_t>(left, 0)));
  }
  rest &= ~std::size_t{7};
  context.room_bytes = rest > kEntryHeaderBytes ? rest - kEntryHeaderBytes : 0;
  return context;
}

bool LogDriver::BuildOne() {
  LogTail tail = tail_;
  BuildContext context = ContextAt(tail);
  std::string bytes(context.head_bytes, '\0');
  BuildResult result = BuildResult::kDoesNotFit;
  if (context.room_bytes > 0) result = application_->Build(context, &bytes);
  if (result == BuildResult::kDoesNotFit && !context.at_segment_start) {
    RollIfNeeded(options_.segment_bytes, options_.segment_bytes, &tail);
    context = ContextAt(tail);
    bytes.resize(context.head_bytes);
    result = application_->Build(context, &bytes);
  }
  CHECK(result != BuildResult::kDoesNotFit)
      << "an entry may have " << context.room_bytes << " bytes, the application wants more";
  if (result == BuildResult::kNothing) return false;
  CHECK_LE(bytes.size() - context.head_bytes, context.room_bytes);
  tail_ = tail;
  EntryRef entry = MakeEntryFrom(context.term, EntryType::kBatch, context.store_time_ms,
                                 std::move(bytes), &tail_);
  CHECK_EQ(entry->payload_position(), context.payload_position);
  if (TRIAD_MUTANT(23)) hands_->Commit(entry->index, {entry}, entry->index);
  Step(Propose{std::move(entry)});
  return true;
}

void LogDriver::StartReads() {
  // Before the no-op is applied there is nothing this leader may say about the log.
  while (info_.ready && is_leader() && reads_.wants_round()) {
    Step(ReadIndexRequest{reads_.StartRound()});
  }
}

void LogDriver::MaybeReady() {
  if (!is_leader() || info_.ready || first_index_ == LogIndex(0) || applied_ < first_index_) return;
  info_.ready = true;
  is_awake_ = true;
  PublishInfo();
}

// ---- answers ----

void LogDriver::Fail(const Status& why) {
  reads_.FailAll(why);
  for (PendingTransfer& transfer : std::exchange(transfers_, {})) transfer.done(why);
  for (PendingChange& change : std::exchange(changes_, {})) change.done(why);
}

// The id of a first entry that nobody is known to have committed is no group's yet: this peer may
// have led alone, once or several times, and another one founded the group. With that id it would
// be refused for ever. Such leaders leave one entry each: they build nothing before they have
// committed it. Two entries of one term were written by somebody who had.
std::uint64_t LogDriver::group_id() const {
  constexpr LogIndex kFirst{1};
  if (core_ != nullptr) {
    if (core_->commit_index() >= kFirst) return core_->membership().group_id;
    bool is_open = core_->last_index() <= kLonelyTermsMax;
    for (LogIndex i = kFirst; is_open && i < core_->last_index(); ++i) {
      is_open = core_->TermAt(i) != core_->TermAt(i + 1);
    }
    return is_open ? 0 : core_->membership().group_id;
  }
  const bool is_committed = recovered_.applied >= kFirst || recovered_.first_index > kFirst;
  const bool has_more = recovered_.last_index > LogIndex(recovered_.term_runs.size());
  if (!is_committed && !has_more) return 0;
  if (!recovered_.memberships.empty()) return recovered_.memberships.back().second.group_id;
  return recovered_.base_membership ? recovered_.base_membership->group_id : 0;
}

std::int64_t LogDriver::LogTimeMs() {
  const std::vector<PeerId>& voters = core_ != nullptr ? core_->membership().voters : StartVoters();
  return log_clock_.Now(voters, clock_.MonoNow());
}

std::string LogDriver::NotReadyReason(LogIndex applied) const {
  if (info_.ready) return hands_->IsDiskFull() ? kNoRoom : "";
  if (core_ == nullptr) return StartReason();
  if (core_->recovering() && info_.leader.empty()) {
    return "recovering: no leader sends the log yet; a new peer must be added: mqadmin addPeer";
  }
  if (core_->recovering()) return "recovering: fetching the log from the group";
  const bool is_full = hands_->IsDiskFull();
  if (is_leader()) return is_full ? kNoRoom : "new leader: applying the log";
  if (info_.leader.empty()) return is_full ? std::string("no leader; ") + kNoRoom : "no leader";
  if (core_->last_index() < applied) {
    return "fetching the log behind its state: it has entries up to " +
           std::to_string(core_->last_index().value()) + ", the state is of " +
           std::to_string(applied.value());
  }
  return "follower of " + info_.leader.value() + (is_full ? std::string("; ") + kNoRoom : "");
}

void LogDriver::FillStatus(LogIndex applied, NodeStatus* status) const {
  status->leader = info_;
  status->group_id = group_id();
  status->not_ready_reason = NotReadyReason(applied);
  FillPeers(status);
  if (core_ == nullptr) {  // not started: what the disk held
    status->last_index = recovered_.last_index;
    status->commit_index = recovered_.applied;
    status->voters = StartVoters();
    return;
  }
  status->last_index = core_->last_index();
  status->commit_index = core_->commit_index();
  status->log_behind_state = core_->last_index() < applied;
  status->voters = core_->membership().voters;
  status->learners = core_->membership().learners;
  for (const PeerProgress& progress : core_->progress()) {
    for (NodeStatus::Peer& peer : status->peers) {
      if (peer.id != progress.peer) continue;
      peer.match = progress.match;
      peer.recovering = progress.recovering;
    }
  }
}

}  // namespace triad::dledger
