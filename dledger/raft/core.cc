#include "dledger/raft/core.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "dledger/raft/parts.h"

namespace triad::dledger {
namespace {

CoreConfig Checked(CoreConfig config) {
  CHECK(!config.self.empty());
  CHECK(IsWellFormed(config.initial_membership));
  CHECK_GT(config.heartbeat_ticks, 0);
  CHECK_LT(config.heartbeat_ticks, config.election_ticks_min);
  CHECK_LT(config.election_ticks_min, config.election_ticks_max);
  CHECK_GT(config.preferred_wait_ticks, 0);
  return config;
}

}  // namespace

Core::Parts::Parts(CoreConfig core_config, Recovered recovered, std::uint64_t seed)
    : config(Checked(std::move(core_config))),
      life(seed),
      hard(std::move(recovered.hard_state)),
      log(recovered.first_index, recovered.base_term, recovered.last_index,
          std::move(recovered.term_runs), config.max_window_bytes),
      storage(log.last()),
      members(recovered.base_membership.value_or(config.initial_membership),
              std::move(recovered.memberships)),
      election(config.election_ticks_min, config.election_ticks_max, seed),
      recovery(recovered.recovering, recovered.recovery_nonce),
      replication(config),
      preferred(config.preferred_leader, config.preferred_wait_ticks) {
  CHECK(!recovered.recovering || recovered.recovery_nonce != 0);
  CHECK(recovered.applied + 1 >= log.first()) << "a gap between the state and the log";
  // A wiped log may be shorter than what the state machine holds.
  commit = std::min(recovered.applied, log.last());
  announced = commit;
  last_soft =
      SoftState{.role = role, .term = hard.term, .leader = {}, .recovering = recovery.active()};
}

Core::Core(CoreConfig config, Recovered recovered, std::uint64_t seed)
    : parts_(std::make_unique<Parts>(std::move(config), std::move(recovered), seed)) {}
Core::~Core() = default;

void Core::Step(const Input& input, Output* output) {
  Parts& parts = *parts_;
  parts.out = output;
  struct Visitor {
    Parts& p;
    void operator()(const MessageIn& in) { p.OnMessage(in); }
    void operator()(const Tick&) { p.OnTick(); }
    void operator()(const StorageDone& in) { p.OnStorageDone(in); }
    void operator()(const Propose& in) { p.OnPropose(in); }
    void operator()(const ReadIndexRequest& in) { p.OnReadIndex(in); }
    void operator()(const TransferLeadership& in) { p.OnTransfer(in); }
    void operator()(const Disconnected& in) { p.OnDisconnected(in); }
    void operator()(const Loaded& in) { p.OnLoaded(in); }
    void operator()(const ChangeMembership& in) { p.OnChangeMembership(in); }
    void operator()(const SnapshotSent& in) { p.OnSnapshotSent(in); }
    void operator()(const InstallSnapshot& in) { p.OnInstallSnapshot(in); }
    void operator()(const Purged& in) { p.OnPurged(in); }
  };
  std::visit(Visitor{parts}, input);
  parts.FinishStep();
  parts.out = nullptr;
}

void Core::set_membership_decoder(MembershipDecoder decoder) {
  parts_->decode_membership = decoder;
}

Role Core::role() const {
  return parts_->role;
}
Term Core::term() const {
  return parts_->hard.term;
}
PeerId Core::leader() const {
  return parts_->leader;
}
LogIndex Core::last_index() const {
  return parts_->log.last();
}
Term Core::last_term() const {
  return parts_->log.last_term();
}
LogIndex Core::commit_index() const {
  return parts_->commit;
}
LogIndex Core::durable_index() const {
  return parts_->storage.durable_index();
}
bool Core::recovering() const {
  return parts_->recovery.active();
}
bool Core::leader_ready() const {
  return parts_->LeaderReady();
}
bool Core::transferring() const {
  return !parts_->successor.empty();
}
const Membership& Core::membership() const {
  return parts_->membership();
}
bool Core::membership_committed() const {
  return parts_->MembershipCommitted();
}
LogIndex Core::first_index() const {
  return parts_->log.first();
}
LogBase Core::BaseAt(LogIndex first) const {
  CHECK(first > LogIndex{0});
  CHECK(parts_->log.KnowsTermAt(first - 1));
  return LogBase{.first_index = first,
                 .term = parts_->log.TermAt(first - 1),
                 .membership = parts_->members.Before(first)};
}
Term Core::TermAt(LogIndex index) const {
  return parts_->log.TermAt(index);
}
HardState Core::hard_state() const {
  return parts_->hard;
}

std::vector<PeerProgress> Core::progress() const {
  std::vector<PeerProgress> result;
  for (const Progress& peer : parts_->replication.peers()) {
    result.push_back(
        PeerProgress{.peer = peer.peer,
                     .match = peer.match,
                     .recently_active = parts_->replication.IsActive(peer),
                     .recovering = peer.recovering,
                     .learner = peer.learner,
                     .leaving = peer.leaving,
                     .snapshot = peer.snapshot_pending,
                     .caught_up = parts_->replication.IsCaughtUp(peer),
                     .lag_ticks = static_cast<int>(parts_->replication.LagTicks(peer)),
                     .silent_ticks = static_cast<int>(parts_->replication.SilentTicks(peer))});
  }
  return result;
}

}  // namespace triad::dledger
