// Core::Parts: the classes that make up the core, and the rules that join them. Private to raft/.
//
// core.cc            the front: Step, views, recovered state
// parts_common.cc    terms, roles, commit, what an output owes
// parts_election.cc  campaigns and votes
// parts_follower.cc  appends received
// parts_leader.cc    proposals, answers, heartbeats, reads
// parts_transfer.cc  leadership handed over, also to the preferred leader
// parts_membership.cc  changes of the membership
// parts_snapshot.cc  snapshots sent and installed, the log's old end purged
// Pure. Owner: as Core. `out` is valid during one Step only.

#pragma once

#include <optional>

#include "dledger/raft/core.h"
#include "dledger/raft/election.h"
#include "dledger/raft/follower.h"
#include "dledger/raft/log_view.h"
#include "dledger/raft/membership.h"
#include "dledger/raft/outbox.h"
#include "dledger/raft/preferred_leader.h"
#include "dledger/raft/read_index.h"
#include "dledger/raft/recovery.h"
#include "dledger/raft/replication.h"
#include "dledger/raft/storage_queue.h"

namespace triad::dledger {

struct Core::Parts {
  Parts(CoreConfig core_config, Recovered recovered, std::uint64_t seed);

  // ---- parts_common.cc ----
  const Membership& membership() const { return members.current(); }
  void SetHardState(const HardState& state);  // and persists it
  void BecomeFollower(Term term, const PeerId& of);
  void LeaveLeadership();
  void AdvanceCommit(LogIndex index);
  bool TakeMembership(const Entry& entry);  // false: it is one and cannot be read
  void Send(const PeerId& to, Message message);
  void SendWhenTermDurable(const PeerId& to, Message message);
  void CheckInvariants() const;
  void FinishStep();
  void OnTick();
  void OnStorageDone(const StorageDone& done);
  void OnDisconnected(const Disconnected& input);
  void OnMessage(const MessageIn& input);

  // ---- parts_election.cc ----
  bool MayCampaign() const;
  bool LeaderIsAlive() const;
  bool IsUpToDate(const VoteRequest& request) const;
  void StartPreVote();
  void Campaign(bool by_transfer);
  void AskForVotes();  // own vote is durable
  void OnVoteRequest(const PeerId& from, const VoteRequest& request);
  void OnPreVoteRequest(const PeerId& from, const VoteRequest& request);
  void OnVoteResponse(const PeerId& from, const VoteResponse& response);
  void OnTimeoutNow(const PeerId& from, const TimeoutNow& request);
  void AnswerVote(const PeerId& to, const VoteRequest& request, Term with_term, bool granted);

  // ---- parts_follower.cc ----
  void OnAppendRequest(const PeerId& from, const AppendRequest& request);
  bool FollowSender(const PeerId& from, const AppendRequest& request);
  bool PrevMatches(const PeerId& from, const AppendRequest& request);
  bool TakeEntries(const AppendRequest& request);
  void Refuse(const PeerId& to, const AppendRequest& request, LogIndex conflict_index,
              Term conflict_term);
  LogIndex HeldOfLeader() const;  // matches the leader's log and is durable here
  void AnswerLeader();
  void MaybeEndRecovery();

  // ---- parts_leader.cc ----
  LeaderState leader_state() const;
  bool LeaderReady() const;
  void BecomeLeader();
  void OnPropose(const Propose& input);
  void OnAppendResponse(const PeerId& from, const AppendResponse& response);
  bool CountsAsHeard(Progress& peer, const AppendResponse& response);
  void OnReadIndex(const ReadIndexRequest& input);
  void OnLoaded(const Loaded& input);
  void TickLeader();
  void MaybeCommit();
  void MaybeConfirmReads();
  void HeartbeatAll();
  void SendCommitToAll();
  void SendEntriesToAll();

  // ---- parts_transfer.cc ----
  std::optional<TransferFailure> WhyNotTo(const Progress* peer) const;
  const Progress* BestSuccessor() const;  // null: nobody is fit
  void OnTransfer(const TransferLeadership& input);
  void MaybeHandOver();
  void EndTransfer(TransferFailure why);
  void TickTransfer();

  // ---- parts_membership.cc ----
  bool MembershipCommitted() const;
  bool MajorityAnswers(const Membership& after) const;
  ChangeRefusal WhyNotChange(const ChangeMembership& input) const;
  void OnChangeMembership(const ChangeMembership& input);
  void MembershipProposed(LogIndex index);
  void AbandonChange();
  void SettleChange();

  // ---- parts_snapshot.cc ----
  void OnSnapshotSent(const SnapshotSent& input);
  bool HasUseFor(const InstallSnapshot& snapshot) const;
  void OnInstallSnapshot(const InstallSnapshot& input);
  void OnPurged(const Purged& input);

  const CoreConfig config;
  const std::uint64_t life;
  HardState hard;
  Role role = Role::kFollower;
  PeerId leader;
  LogIndex commit;
  LogIndex announced;  // given out as committed
  LogView log;
  StorageQueue storage;
  Outbox outbox;
  MembershipHistory members;
  Election election;
  Follower follower;
  Recovery recovery;
  Replication replication;
  ReadIndex reads;
  MembershipDecoder decode_membership = nullptr;

  // Candidate: its own vote, not yet on disk.
  std::optional<Token> own_vote;
  bool campaign_by_transfer = false;
  // Leader.
  LogIndex first_own_index;  // of this leadership; everything before is an earlier term's
  int ticks_to_heartbeat = 0;
  PeerId successor;  // of a transfer under way
  std::uint64_t transfer_context = 0;
  int transfer_ticks = 0;
  int damaged_loads = 0;
  PreferredLeader preferred;
  struct PendingChange {
    std::uint64_t context;
    Membership membership;
    LogIndex index;  // 0: not proposed yet
  };
  std::optional<PendingChange> change;

  SoftState last_soft;
  Output* out = nullptr;
};

}  // namespace triad::dledger
