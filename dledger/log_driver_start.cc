// The start of a LogDriver: who may vote, who recovers, before there is a core.

#include <glog/logging.h>

#include <algorithm>

#include "dledger/log_driver.h"
#include "dledger/membership_codec.h"

namespace triad::dledger {
namespace {

constexpr std::chrono::seconds kNameMissingInterval{5};
constexpr std::chrono::seconds kUnsyncedPatience{10};

std::vector<PeerId> Ids(const std::vector<PeerAddress>& peers) {
  std::vector<PeerId> ids;
  for (const PeerAddress& peer : peers) ids.push_back(peer.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<PeerId> Without(std::vector<PeerId> ids, const PeerId& self) {
  std::erase(ids, self);
  return ids;
}

int Ticks(std::chrono::milliseconds time) {
  return std::max(1, static_cast<int>(time.count() / kTickMs));
}

CoreConfig ConfigFor(const NodeOptions& options) {
  CoreConfig config;
  config.self = options.self;
  config.initial_membership.voters = Ids(options.peers);
  for (const PeerAddress& peer : options.peers) {
    if (peer.port != 0) config.initial_membership.addresses[peer.id] = HostPortText(peer);
  }
  config.heartbeat_ticks = Ticks(options.heartbeat);
  config.election_ticks_min = Ticks(options.election_min);
  config.election_ticks_max = Ticks(options.election_max);
  config.preferred_leader = options.preferred_leader;
  return config;
}

}  // namespace

std::string JoinedIds(const std::vector<PeerId>& ids) {
  std::string text;
  for (const PeerId& id : ids) text += (text.empty() ? "" : ", ") + id.value();
  return text;
}

LogDriver::LogDriver(const NodeOptions& options, const Clock& clock, Found found,
                     Application* application, Hands* hands)
    : options_(options),
      clock_(clock),
      recovered_(std::move(found.recovered)),
      application_(application),
      hands_(hands),
      first_start_(Without(Ids(options.peers), options.self), options.bootstrap_without),
      tail_(found.tail),
      applied_(options.applied) {
  CHECK(application_ != nullptr);
  CHECK(hands_ != nullptr);
  log_clock_.Raise(tail_.last_store_time_ms);
  if (found.lost_unsynced && recovered_.recovering) {
    unsynced_start_.emplace(options_.self, StartVoters(), OwnEnd());
  }
}

LogDriver::~LogDriver() = default;

std::vector<PeerId> LogDriver::StartVoters() const {
  if (!recovered_.memberships.empty()) return recovered_.memberships.back().second.voters;
  if (recovered_.base_membership) return recovered_.base_membership->voters;
  return Ids(options_.peers);
}

bool LogDriver::IsVirgin() const {
  return recovered_.last_index == LogIndex(0) && recovered_.hard_state == HardState{} &&
         !recovered_.recovering;
}

UnsyncedStart::Answer LogDriver::OwnEnd() const {
  UnsyncedStart::Answer own;
  own.lost_unsynced = true;
  own.last_index = recovered_.last_index;
  if (!recovered_.term_runs.empty()) own.last_term = recovered_.term_runs.back().term;
  return own;
}

void LogDriver::Begin() {
  begun_at_ = clock_.MonoNow();
  named_at_ = begun_at_;
  info_.recovering = recovered_.recovering;
  log_clock_.Sample(options_.self, clock_.WallNowMs(), begun_at_);
  DecideStart();
}

void LogDriver::OnStartAnswer(const Hello& hello) {
  const bool had_entries = hello.last_index > LogIndex(0) || hello.recovering;
  first_start_.OnAnswer(hello.from, had_entries, hello.term);
  if (unsynced_start_) {
    unsynced_start_->OnAnswer(hello.from,
                              UnsyncedStart::Answer{.is_whole = hello.has_log && !hello.recovering,
                                                    .lost_unsynced = hello.lost_unsynced,
                                                    .last_term = hello.last_term,
                                                    .last_index = hello.last_index});
  }
  DecideStart();
}

void LogDriver::DecideStart() {
  if (unsynced_start_) {
    DecideUnsyncedStart();
  } else if (IsVirgin() && options_.peers.size() > 1) {
    DecideFirstStart();
  } else {
    StartCore();
  }
}

bool LogDriver::IsTimeToNameMissing() {
  const TimePoint now = clock_.MonoNow();
  if (now - named_at_ < kNameMissingInterval) return false;
  named_at_ = now;
  return true;
}

void LogDriver::DecideFirstStart() {
  switch (first_start_.decision()) {
    case FirstStart::Decision::kWait:
      if (!IsTimeToNameMissing()) return;
      LOG(WARNING) << "first start of " << options_.self << ": waiting for "
                   << JoinedIds(first_start_.missing())
                   << ". An empty store may vote only when every peer has answered; when one is "
                      "gone for good, start with --bootstrap-without ID.";
      return;
    case FirstStart::Decision::kRecovering:
      LOG(WARNING) << "the store of " << options_.self
                   << " is empty, but another peer has a log: recovering from the group; no vote "
                      "until that is done";
      recovered_.recovering = true;
      break;
    case FirstStart::Decision::kMayVote:
      if (options_.applied > LogIndex(0)) {
        LOG(FATAL) << "this peer's state holds entries up to " << options_.applied
                   << ", but no peer of the group has a log. Restore the logs from a backup, or "
                      "start all peers with empty store directories.";
      }
      LOG(INFO) << "first start: no peer has a log, a new group begins";
      RefuseVotesUpTo(first_start_.term());
      break;
  }
  StartCore();
}

// A vote of an earlier life may be forgotten; whoever asked for it has seen its term.
void LogDriver::RefuseVotesUpTo(Term term) {
  if (term == Term(0)) return;
  recovered_.hard_state = HardState{.term = term, .voted_for = options_.self};
  StorageOp vote;
  vote.hard_state = recovered_.hard_state;
  hands_->Store(std::move(vote));
}

void LogDriver::DecideUnsyncedStart() {
  const bool was_patient = clock_.MonoNow() - begun_at_ >= kUnsyncedPatience;
  switch (unsynced_start_->decision(was_patient)) {
    case UnsyncedStart::Decision::kWait:
      if (!IsTimeToNameMissing()) return;
      LOG(WARNING) << options_.self << " was restarted with its machine under "
                   << "flushDiskType=ASYNC_FLUSH: waiting to hear from "
                   << JoinedIds(unsynced_start_->missing()) << " who misses nothing";
      return;
    case UnsyncedStart::Decision::kGoOn: {
      LOG(ERROR) << "machines were restarted under flushDiskType=ASYNC_FLUSH and no majority kept "
                    "its whole log: "
                 << options_.self << " goes on from entry " << recovered_.last_index
                 << "; ACKNOWLEDGED MESSAGES MAY BE MISSING. flushDiskType=SYNC_FLUSH prevents it.";
      recovered_.recovering = false;
      StorageOp unmark;
      unmark.recovering = false;
      hands_->Store(std::move(unmark));
      break;
    }
    case UnsyncedStart::Decision::kRecover: break;
  }
  unsynced_start_.reset();
  StartCore();
}

void LogDriver::StartCore() {
  CHECK(core_ == nullptr);
  if (recovered_.recovering) {
    recovered_.recovery_nonce = hands_->Random();
    // On the disk before anything that arrives from now on: the disk thread keeps the order.
    StorageOp mark;
    mark.recovering = true;
    hands_->Store(std::move(mark));
  }
  info_.recovering = recovered_.recovering;
  info_.term = recovered_.hard_state.term;
  core_ = std::make_unique<Core>(ConfigFor(options_), std::move(recovered_), hands_->Random());
  core_->set_membership_decoder(&DecodeMembershipEntry);
  WarnOfOtherMembers();
  PublishInfo();
  if (core_->membership().voters != std::vector<PeerId>{options_.self}) return;
  // The only voter has nobody to wait for.
  for (int i = 0; i < Ticks(options_.election_max) && core_->role() == Role::kFollower; ++i) {
    Step(Tick{});
  }
}

std::string LogDriver::StartReason() const {
  if (unsynced_start_)
    return "restarted machine: waiting for " + JoinedIds(unsynced_start_->missing());
  return "first start: waiting for " + JoinedIds(first_start_.missing());
}

Hello LogDriver::OwnState() const {
  Hello hello;
  hello.client_address = options_.client_address;
  if (core_ == nullptr) {
    hello.last_index = recovered_.last_index;
    hello.recovering = recovered_.recovering;
    hello.has_log = !IsVirgin();
    hello.term = recovered_.hard_state.term;
    if (!unsynced_start_) return hello;
    hello.lost_unsynced = true;
    hello.last_term = OwnEnd().last_term;
    return hello;
  }
  hello.last_index = core_->last_index();
  hello.last_term = core_->last_term();
  hello.term = core_->term();
  hello.recovering = core_->recovering();
  hello.has_log =
      core_->last_index() > LogIndex(0) || core_->term() > Term(0) || core_->recovering();
  return hello;
}

}  // namespace triad::dledger
