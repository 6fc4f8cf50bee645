#include "dledger/node_shell.h"

#include <glog/logging.h>
#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "dledger/thread_name.h"

namespace triad::dledger {
namespace {

constexpr std::chrono::milliseconds kTick{kTickMs};
// After a pause of the process only these are made up for: it must hear what waits in its sockets
// before it believes that the leader is gone.
constexpr std::int64_t kCatchUpTicksMax = 3;

Status Stopped() {
  return Status::Unavailable("this peer is stopping");
}

}  // namespace

NodeShell::NodeShell(FileSystem& fs, const Clock& clock, NodeOptions options,
                     std::unique_ptr<LogStore> log, Recovered recovered, Application* application)
    : clock_(clock),
      options_(std::move(options)),
      log_(std::move(log)),
      driver_(options_, clock,
              LogDriver::Found{.recovered = std::move(recovered),
                               .lost_unsynced = log_->lost_unsynced(),
                               .tail = log_->tail()},
              application, this),
      disk_(*log_, options_.sync_flush,
            DiskThread::Events{.on_done =
                                   [this](Token token) {
                                     RunOrPost([this, token] { driver_.OnStorageDone(token); });
                                   },
                               .on_written = [this] { background_.OnWritten(); },
                               .on_reset =
                                   [this] {
                                     return desk_.InstallPending(
                                         [this](LogIndex applied) { apply_.TakeOver(applied); });
                                   }}),
      apply_(*log_, *application, options_.applied, [this] { OnAppliedMoved(); }),
      background_(
          *log_, clock_, options_.prepare_bytes, options_.retention,
          [this, application] { return FactsForRetention(*application); },
          [this](LogIndex first) { Post([this, first] { driver_.OnPurged(first); }); }),
      desk_(fs, options_.dir, clock_, *log_, *application, options_.snapshot_bytes_per_second,
            LinksOfDesk()) {
  log_time_ms_ = driver_.LogTimeMs();
  RefreshStatus();
}

NodeShell::~NodeShell() {
  Stop();
}

Status NodeShell::Listen() {
  if (options_.peers.size() == 1 && options_.peers[0].port == 0) return Status::Ok();
  TransportOptions transport;
  transport.group = options_.group;
  transport.self = options_.self;
  transport.peers = options_.peers;
  transport.bind_address = options_.bind_address;
  Result<std::unique_ptr<PeerTransport>> listening =
      PeerTransport::Listen(io_, clock_, std::move(transport), this);
  if (!listening.ok()) return listening.status();
  transport_ = std::move(listening).value();
  return Status::Ok();
}

Status NodeShell::Start() {
  if (is_stopped_) return Stopped();
  CHECK(!is_started_.exchange(true)) << "started twice";
  disk_.Start();
  readers_.Start();
  apply_.Start();
  background_.Start();
  log_thread_ = std::thread([this] { RunLogThread(); });
  return Status::Ok();
}

// ---- the log thread ----

void NodeShell::RunLogThread() {
  SetThreadName("dledger-log");
  const auto work = asio::make_work_guard(io_);
  {
    const auto turn = BeginTurn();
    io_runner_ = std::this_thread::get_id();
    ticked_at_ = clock_.MonoNow();
    driver_.Begin();
    log_time_ms_ = driver_.LogTimeMs();
    if (transport_ != nullptr) transport_->Start();
    EndTurn();
    ArmTick();
    takes_turns_ = true;
  }
  io_.run();
}

template <typename Task>
void NodeShell::Post(Task task) {
  asio::post(io_, [this, task = std::move(task)]() mutable {
    const auto turn = BeginTurn();
    task();
    EndTurn();
  });
}

template <typename Task>
void NodeShell::RunOrPost(Task task) {
  {
    const std::unique_lock turn(turn_mutex_, std::try_to_lock);
    if (turn && takes_turns_) {
      task();
      EndTurn();
      return;
    }
  }
  Post(std::move(task));
}

void NodeShell::EndTurn() {
  driver_.EndTurn();
  while (driver_.waits_for_apply()) {
    // Whichever of the two exchanges comes second sees what the other thread did before its own.
    is_apply_watched_.exchange(true);
    const LogIndex applied = apply_.applied();
    if (applied <= driver_.applied()) break;
    driver_.OnApplied(applied);
    driver_.EndTurn();
  }
  // The others first: their way to the disk is longer.
  if (transport_ != nullptr) transport_->Flush();
  disk_.Push(&turn_ops_);
}

void NodeShell::ArmTick() {
  tick_timer_.expires_after(kTick);
  tick_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) OnTickTimer();
  });
}

void NodeShell::OnTickTimer() {
  const auto turn = BeginTurn();
  const TimePoint now = clock_.MonoNow();
  loop_delay_.Record(now, std::chrono::steady_clock::now() - tick_timer_.expiry());
  const std::int64_t due = (now - ticked_at_) / kTick;
  const std::int64_t count = std::clamp<std::int64_t>(due, 0, kCatchUpTicksMax);
  ticked_at_ = due > kCatchUpTicksMax ? now : ticked_at_ + count * kTick;
  driver_.OnTicks(static_cast<int>(count));
  desk_.OnTick();
  EndTurn();
  log_time_ms_ = driver_.LogTimeMs();
  RefreshStatus();
  ArmTick();
}

void NodeShell::RefreshStatus() {
  settled_ = driver_.settled_index().value();
  NodeStatus status;
  driver_.FillStatus(apply_.applied(), &status);
  if (transport_ != nullptr) {
    for (NodeStatus::Peer& peer : status.peers) peer.connected = transport_->connected(peer.id);
  }
  std::lock_guard hold(snapshot_mutex_);
  status_snapshot_ = std::move(status);
}

// Background thread.
BackgroundThread::Facts NodeShell::FactsForRetention(const Application& application) {
  BackgroundThread::Facts facts;
  facts.log_time_ms = LogTimeMs();
  // A recovering peer's log may still be cut.
  if (leader_info().recovering) return facts;
  // A state that was received whole may be ahead of the log.
  facts.durable =
      std::min({application.DurableIndex(), apply_.applied(), LogIndex(settled_.load())});
  std::lock_guard hold(snapshot_mutex_);
  facts.wanted = WantedByPeers(status_snapshot_);
  return facts;
}

void NodeShell::OnAppliedMoved() {
  if (!is_apply_watched_.exchange(false)) return;
  Post([this] { driver_.OnApplied(apply_.applied()); });
}

// ---- Hands ----

void NodeShell::Send(const PeerId& to, Message message) {
  if (transport_ != nullptr) transport_->Send(to, std::move(message));
}

void NodeShell::Store(StorageOp op) {
  turn_ops_.push_back(std::move(op));
}

void NodeShell::Load(LoadRequest request) {
  const auto answer = [this, request](std::vector<EntryRef> entries, bool damaged = false) {
    Loaded loaded{.peer = request.peer,
                  .term = request.term,
                  .from = request.from,
                  .entries = std::move(entries),
                  .damaged = damaged};
    Post([this, loaded = std::move(loaded)]() mutable { driver_.OnLoaded(std::move(loaded)); });
  };
  const bool is_taken = readers_.Post([this, request, answer] {
    Result<std::vector<EntryRef>> entries =
        log_->ReadRange(request.from, request.to, request.max_bytes);
    if (!entries.ok()) {
      LOG_EVERY_N(ERROR, 100) << "entries from " << request.from << " for peer " << request.peer
                              << " cannot be read: " << entries.status().ToString();
      const StatusCode code = entries.status().code();
      answer({}, code == StatusCode::kCorruption || code == StatusCode::kIoError);
      return;
    }
    answer(std::move(entries).value());
  });
  if (!is_taken) answer({});
}

void NodeShell::LoadTail(LogIndex last_index) {
  const auto answer = [this](EntryRef last) {
    Post([this, last = std::move(last)]() mutable { driver_.OnTailLoaded(std::move(last)); });
  };
  const bool is_taken = readers_.Post([this, last_index, answer] {
    const Result<std::vector<EntryRef>> entries = log_->ReadRange(last_index, last_index + 1, 1);
    answer(entries.ok() && !entries->empty() ? entries->front() : nullptr);
  });
  if (!is_taken) answer(nullptr);
}

void NodeShell::Commit(LogIndex upto, std::vector<EntryRef> entries, LogIndex durable) {
  apply_.Commit(upto, std::move(entries), durable);
}

void NodeShell::SendSnapshot(const SnapshotNeeded& needed) {
  desk_.OnNeeded(needed.peer, needed.term);
}

void NodeShell::RefuseSnapshot() {
  desk_.OnRefused();
}

SnapshotDesk::Links NodeShell::LinksOfDesk() {
  SnapshotDesk::Links links;
  links.send = [this](const PeerId& to, SnapshotMessage message) {
    if (transport_ != nullptr) transport_->Send(to, std::move(message));
  };
  links.connected = [this](const PeerId& peer) {
    return transport_ != nullptr && transport_->connected(peer);
  };
  links.post_reader = [this](std::function<void()> task) { return readers_.Post(std::move(task)); };
  links.post_apply = [this](std::function<void()> task) { apply_.Post(std::move(task)); };
  links.post_log = [this](std::function<void()> task) { Post(std::move(task)); };
  links.random = [this] { return Random(); };
  links.on_sent = [this](const PeerId& peer, Term term, bool ok, LogIndex base_index) {
    // Not from inside the desk: the core may want the next one at once.
    Post([this, sent = SnapshotSent{peer, term, ok, base_index}] { driver_.OnSnapshotSent(sent); });
  };
  links.install = [this](const SnapshotHead& head) { driver_.OnSnapshotReady(head); };
  return links;
}

void NodeShell::Publish(const LeaderInfo& info) {
  if (info.role != Role::kLeader) desk_.StopSending();
  LOG(INFO) << "peer " << options_.self << ": term " << info.term << ", "
            << (info.role == Role::kLeader
                    ? (info.ready ? "leading" : "elected, not ready")
                    : "leader " +
                          (info.leader.empty() ? std::string("unknown") : info.leader.value()))
            << (info.recovering ? ", recovering" : "");
  std::lock_guard hold(snapshot_mutex_);
  info_snapshot_ = info;
}

std::uint64_t NodeShell::Random() {
  std::uint64_t value = 0;
  while (value == 0) {
    const ssize_t count = ::getrandom(&value, sizeof(value), 0);
    if (count != static_cast<ssize_t>(sizeof(value))) value = 0;  // interrupted by a signal
  }
  return value;
}

bool NodeShell::IsDiskFull() {
  return background_.is_full();
}

std::uint64_t NodeShell::PreparedBytes() {
  return log_->prepared_bytes();
}

// A connection is ended by the thread that may be writing to it, outside of a turn (asio goes on
// with a long write by itself).
void NodeShell::SetPeers(const std::vector<PeerAddress>& peers) {
  if (transport_ == nullptr) return;
  if (std::this_thread::get_id() == io_runner_) return transport_->SetPeers(peers);
  asio::post(io_, [this, peers] {
    const auto turn = BeginTurn();
    if (takes_turns_) transport_->SetPeers(peers);
  });
}

// ---- PeerEvents ----

Hello NodeShell::OwnState() {
  return driver_.OwnState();
}
std::uint64_t NodeShell::OwnGroupId() {
  return driver_.group_id();
}
void NodeShell::OnHello(const Hello& hello) {
  driver_.OnHello(hello);
}
void NodeShell::OnMessage(const PeerId& from, Message message, std::int64_t wall_ms) {
  driver_.OnMessage(from, std::move(message), wall_ms);
}
void NodeShell::OnSnapshot(const PeerId& from, SnapshotMessage message) {
  desk_.OnMessage(from, std::move(message), driver_.Follows(from), driver_.term());
}
void NodeShell::OnDisconnected(const PeerId& peer) {
  driver_.OnDisconnected(peer);
}
void NodeShell::OnEventsEnd() {
  EndTurn();
}

// ---- any thread ----

void NodeShell::WakeProposer() {
  if (is_wake_posted_.exchange(true)) return;
  Post([this] {
    is_wake_posted_ = false;
    driver_.OnWake();
  });
}

// With more on its way a turn of the log thread gathers more than one connection's read.
void NodeShell::ProposeNow() {
  {
    const std::unique_lock turn(turn_mutex_, std::try_to_lock);
    if (turn && takes_turns_ && driver_.is_idle()) {
      driver_.OnWake();
      EndTurn();
      return;
    }
  }
  WakeProposer();
}

LeaderInfo NodeShell::leader_info() const {
  std::lock_guard hold(snapshot_mutex_);
  return info_snapshot_;
}

NodeStatus NodeShell::status() const {
  NodeStatus status;
  {
    std::lock_guard hold(snapshot_mutex_);
    status = status_snapshot_;
    status.leader = info_snapshot_;
  }
  status.applied_index = apply_.applied();
  status.first_index = log_->base().tail.next_index;
  status.begin_position = log_->begin_position();
  status.end_position = log_->end_position();
  status.unsynced_bytes = disk_.unsynced_bytes();
  status.sync = disk_.sync_latency();
  status.loop_delay = loop_delay_.Read(clock_.MonoNow());
  return status;
}

template <typename Leave>
bool NodeShell::LeaveInInbox(Leave leave) {
  {
    std::lock_guard hold(inbox_.mutex);
    if (inbox_.is_closed) return false;
    leave();
    if (std::exchange(inbox_.is_posted, true)) return true;
  }
  Post([this] { EmptyInbox(); });
  return true;
}

void NodeShell::EmptyInbox() {
  std::vector<PendingRead> reads;
  std::vector<Transfer> transfers;
  std::vector<Change> changes;
  {
    std::lock_guard hold(inbox_.mutex);
    reads.swap(inbox_.reads);
    transfers.swap(inbox_.transfers);
    changes.swap(inbox_.changes);
    inbox_.is_posted = false;
  }
  for (PendingRead& read : reads) driver_.OnRead(std::move(read));
  for (Transfer& transfer : transfers) {
    driver_.OnTransfer(transfer.to, transfer.deadline, std::move(transfer.done));
  }
  for (Change& change : changes) {
    driver_.OnChange(change.op, change.peer, change.deadline, std::move(change.done));
  }
}

void NodeShell::CloseInbox() {
  {
    std::lock_guard hold(inbox_.mutex);
    inbox_.is_closed = true;
  }
  EmptyInbox();
}

void NodeShell::ReadIndex(std::chrono::milliseconds timeout, std::function<void(Status)> done) {
  PendingRead read{.deadline = clock_.MonoNow() + timeout, .done = std::move(done)};
  enum class Fate { kTaken, kBusy, kClosed } fate = Fate::kClosed;
  LeaveInInbox([&] {
    fate = inbox_.reads.size() < kReadsMax ? Fate::kTaken : Fate::kBusy;
    if (fate == Fate::kTaken) inbox_.reads.push_back(std::move(read));
  });
  if (fate == Fate::kClosed) read.done(Stopped());
  if (fate == Fate::kBusy) read.done(Status::Busy("too many reads wait for the log thread"));
}

void NodeShell::TransferLeadership(PeerId to, std::chrono::milliseconds timeout,
                                   std::function<void(Status)> done) {
  Transfer transfer{
      .to = std::move(to), .deadline = clock_.MonoNow() + timeout, .done = std::move(done)};
  enum class Fate { kTaken, kBusy, kClosed } fate = Fate::kClosed;
  LeaveInInbox([&] {
    fate = inbox_.transfers.size() < kTransfersMax ? Fate::kTaken : Fate::kBusy;
    if (fate == Fate::kTaken) inbox_.transfers.push_back(std::move(transfer));
  });
  if (fate == Fate::kClosed) transfer.done(Stopped());
  if (fate == Fate::kBusy) transfer.done(Status::Busy("too many transfers wait"));
}

void NodeShell::ChangeMembership(MembershipOp op, PeerAddress peer,
                                 std::chrono::milliseconds timeout,
                                 std::function<void(Status)> done) {
  Change change{.op = op,
                .peer = std::move(peer),
                .deadline = clock_.MonoNow() + timeout,
                .done = std::move(done)};
  enum class Fate { kTaken, kBusy, kClosed } fate = Fate::kClosed;
  LeaveInInbox([&] {
    fate = inbox_.changes.size() < kChangesMax ? Fate::kTaken : Fate::kBusy;
    if (fate == Fate::kTaken) inbox_.changes.push_back(std::move(change));
  });
  if (fate == Fate::kClosed) change.done(Stopped());
  if (fate == Fate::kBusy) change.done(Status::Busy("too many membership changes wait"));
}

PhysicalOffset NodeShell::begin_position() const {
  return log_->begin_position();
}

PhysicalOffset NodeShell::end_position() const {
  return log_->end_position();
}

std::int64_t NodeShell::LogTimeMs() const {
  return log_time_ms_;
}

EntryRef NodeShell::CachedAt(PhysicalOffset inside) const {
  return log_->CachedAt(inside);
}

void NodeShell::LoadAt(PhysicalOffset inside, std::function<void(Result<EntryRef>)> done) {
  const bool is_taken = readers_.Post([this, inside, done] { done(log_->ReadAt(inside)); });
  if (!is_taken) done(is_stopped_ ? Stopped() : Status::Busy("too many reads wait"));
}

Result<EntryRef> NodeShell::ReadAt(PhysicalOffset inside) {
  if (is_stopped_) return Stopped();
  return log_->ReadAt(inside);
}

bool NodeShell::PostReader(std::function<void()> task) {
  return readers_.Post(std::move(task));
}

Result<std::vector<EntryRef>> NodeShell::ReadRange(LogIndex from, LogIndex to,
                                                   std::size_t max_bytes) {
  if (is_stopped_) return Stopped();
  return log_->ReadRange(from, to, max_bytes);
}

const RawLog& NodeShell::raw_log() const {
  return log_->raw();
}

void NodeShell::Replace(EntryRef entry, std::function<void(Status)> done) {
  if (entry->index > LogIndex(settled_.load())) {
    done(Status::InvalidArgument("entry " + std::to_string(entry->index.value()) +
                                 " is not committed and durable here"));
    return;
  }
  const bool is_taken =
      disk_.PushReplacement(DiskThread::Replacement{.entry = std::move(entry), .done = done});
  if (!is_taken) done(is_stopped_ ? Stopped() : Status::Busy("another entry is being replaced"));
}

// ---- the end ----

void NodeShell::CloseLogThread() {
  const auto turn = BeginTurn();
  takes_turns_ = false;
  CloseInbox();
  driver_.Fail(Stopped());
  disk_.Push(&turn_ops_);
  tick_timer_.cancel();
  if (transport_ != nullptr) transport_->Close();
  io_.stop();
}

void NodeShell::Stop() {
  if (is_stopped_.exchange(true)) return;
  if (is_started_) {
    asio::post(io_, [this] { CloseLogThread(); });
    log_thread_.join();
  } else {
    CloseInbox();
    driver_.Fail(Stopped());
  }
  disk_.Stop();
  readers_.Stop();
  apply_.Stop();
  background_.Stop();
  const Status status = log_->Close();
  if (!status.ok()) LOG(ERROR) << "closing the log: " << status.ToString();
}

}  // namespace triad::dledger
