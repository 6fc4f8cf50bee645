#include "tests/unit/dledger/raft_core_fixture.h"

// Logs that do not begin at 1: purged, replaced by a snapshot, caught up by one.

namespace triad::dledger {
namespace {

const Membership kThree{.group_id = 0, .voters = {kN0, kN1, kN2}, .learners = {}};

InstallSnapshot SnapshotAt(std::uint64_t first, std::uint64_t base_term, std::uint64_t applied,
                           Membership membership = kThree) {
  return InstallSnapshot{.base = {.first_index = LogIndex{first},
                                  .term = Term{base_term},
                                  .membership = std::move(membership)},
                         .applied = LogIndex{applied}};
}

// A log on disk that begins behind `first - 1` entries of term 1.
Recovered RecoveredFrom(std::uint64_t first, std::uint64_t last, std::uint64_t applied) {
  Recovered recovered;
  recovered.hard_state.term = Term{1};
  recovered.first_index = LogIndex{first};
  recovered.base_term = Term{1};
  recovered.last_index = LogIndex{last};
  if (last >= first) recovered.term_runs.push_back({.first = LogIndex{first}, .term = Term{1}});
  recovered.applied = LogIndex{applied};
  return recovered;
}

// n2 is alive and has nothing.
AppendResponse Refusal(const CoreUnderTest& t) {
  AppendResponse refusal;
  refusal.term = t.core.term();
  refusal.conflict_index = LogIndex{1};
  refusal.rejected_prev = t.core.last_index();
  refusal.read_round = 1;
  return refusal;
}

// ---- the leader's side ----

// n0 leads with entries 1..5, of which 1..3 are purged; n1 holds all, n2 was never heard.
class RaftPurgedLeader : public testing::Test {
 protected:
  void SetUp() override {
    t.BecomeLeader();
    for (int i = 0; i < 5; ++i) t.Propose();
    t.Sync();
    t.Acknowledge(kN1, 5);
    ASSERT_EQ(t.core.commit_index(), LogIndex{5});
    t.Step(Purged{.first_index = LogIndex{4}});
    t.Receive(kN2, Refusal(t));
    t.Clear();
  }
  CoreUnderTest t;
};

TEST_F(RaftPurgedLeader, AsksForASnapshotForAPeerThatNeedsWhatIsGone) {
  t.Tick(5);
  ASSERT_EQ(t.out.snapshots.size(), 1u);
  EXPECT_EQ(t.out.snapshots[0].peer, kN2);
  EXPECT_EQ(t.out.snapshots[0].term, t.core.term());
}

TEST_F(RaftPurgedLeader, AsksForNoneForAPeerThatIsAway) {
  t.Step(Disconnected{.peer = kN2});
  t.Tick(10);
  EXPECT_TRUE(t.out.snapshots.empty());
  t.Receive(kN2, Refusal(t));
  t.Tick(5);
  EXPECT_EQ(t.out.snapshots.size(), 1u);
}

TEST_F(RaftPurgedLeader, AsksOnceAndSendsHeartbeatsMeanwhile) {
  t.Tick(5);
  t.Clear();
  t.Propose();
  t.Tick(10);
  EXPECT_TRUE(t.out.snapshots.empty());
  const auto sent = t.SentTo<AppendRequest>(kN2);
  EXPECT_EQ(sent.size(), 2u);
  for (const AppendRequest& request : sent) EXPECT_TRUE(request.entries.empty());
}

TEST_F(RaftPurgedLeader, GoesOnBehindTheSnapshotWhenItIsThere) {
  t.Tick(5);
  t.Clear();
  t.Step(SnapshotSent{.peer = kN2, .term = t.core.term(), .ok = true, .base_index = LogIndex{3}});
  const auto sent = t.SentTo<AppendRequest>(kN2);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].prev_index, LogIndex{3});
  EXPECT_EQ(sent[0].prev_term, Term{1});
  EXPECT_EQ(sent[0].entries.size(), 2u);
}

TEST_F(RaftPurgedLeader, AFailedSnapshotIsAskedForAgainWithTheNextHeartbeat) {
  t.Tick(5);
  t.Clear();
  t.Step(SnapshotSent{.peer = kN2, .term = t.core.term(), .ok = false, .base_index = {}});
  EXPECT_TRUE(t.out.snapshots.empty());
  t.Tick(5);
  EXPECT_EQ(t.out.snapshots.size(), 1u);
}

TEST_F(RaftPurgedLeader, WhenMoreWasPurgedMeanwhileAnotherSnapshotIsNeeded) {
  t.Tick(5);
  t.Clear();
  t.Step(Purged{.first_index = LogIndex{6}});
  t.Step(SnapshotSent{.peer = kN2, .term = t.core.term(), .ok = true, .base_index = LogIndex{3}});
  EXPECT_TRUE(t.SentTo<AppendRequest>(kN2).empty());
  EXPECT_EQ(t.out.snapshots.size(), 1u);
}

TEST_F(RaftPurgedLeader, AnswersOfAnEarlierTermMeanNothing) {
  t.Tick(5);
  t.Clear();
  t.Step(SnapshotSent{.peer = kN2, .term = Term{0}, .ok = true, .base_index = LogIndex{3}});
  EXPECT_TRUE(t.SentTo<AppendRequest>(kN2).empty());
}

// Found by the simulator: the probe was lost, then purged away.
TEST(RaftPurge, AProbeThatCanNoLongerBeAnsweredIsNotWaitedFor) {
  CoreUnderTest t;
  t.BecomeLeader();
  t.Propose();
  ASSERT_EQ(t.SentTo<AppendRequest>(kN2).size(), 1u) << "the probe";
  t.Propose();
  t.Propose();
  t.Sync();
  t.Acknowledge(kN1, 3);
  ASSERT_EQ(t.core.commit_index(), LogIndex{3});
  t.Step(Purged{.first_index = LogIndex{3}});
  t.Receive(kN2, Refusal(t));
  t.Propose();
  ASSERT_EQ(t.out.snapshots.size(), 1u);
  EXPECT_EQ(t.out.snapshots[0].peer, kN2);
}

TEST(RaftPurge, WhatThePeersNeedIsStillThereWithoutASnapshot) {
  CoreUnderTest t(ThreeVoters(), RecoveredFrom(4, 6, 5));
  t.BecomeLeader();
  t.Propose();
  AppendResponse refusal;
  refusal.term = t.core.term();
  refusal.conflict_index = LogIndex{4};
  refusal.rejected_prev = LogIndex{6};
  refusal.read_round = 1;
  t.Clear();
  t.Receive(kN2, refusal);
  EXPECT_TRUE(t.out.snapshots.empty());
  ASSERT_EQ(t.out.loads.size(), 1u) << "from the disk: the window does not go back that far";
  EXPECT_EQ(t.out.loads[0].from, LogIndex{4});
}

TEST(RaftPurge, TellsWhatALogMustKnowOfItsBeginning) {
  const Membership two{.group_id = 0, .voters = {kN0, kN1}, .learners = {kN2}};
  CoreUnderTest t;
  AppendRequest request = t.Append(2, 0, 0, {1});
  request.entries.push_back(MembershipEntry(2, 2, two));
  request.entries.push_back(MakeEntry(2, 3));
  request.commit_index = LogIndex{3};
  t.Receive(kN1, request);
  t.Sync();
  EXPECT_EQ(t.core.BaseAt(LogIndex{1}),
            (LogBase{.first_index = LogIndex{1}, .term = Term{0}, .membership = kThree}));
  EXPECT_EQ(t.core.BaseAt(LogIndex{2}).membership, kThree);
  const LogBase base = t.core.BaseAt(LogIndex{3});
  EXPECT_EQ(base.term, Term{2});
  EXPECT_EQ(base.membership, two);
  t.Step(Purged{.first_index = LogIndex{3}});
  EXPECT_EQ(t.core.first_index(), LogIndex{3});
  EXPECT_EQ(t.core.membership(), two);
  EXPECT_EQ(t.core.BaseAt(LogIndex{3}), base);
}

TEST(RaftPurge, AStartKnowsTheMembershipThatIsNoLongerInItsLog) {
  const Membership two{.group_id = 0, .voters = {kN0, kN1}, .learners = {}};
  Recovered recovered = RecoveredFrom(4, 3, 3);
  recovered.base_membership = two;
  CoreUnderTest t(ThreeVoters(), std::move(recovered));
  EXPECT_EQ(t.core.membership(), two);
  EXPECT_EQ(t.core.last_index(), LogIndex{3});
  EXPECT_EQ(t.core.last_term(), Term{1});
  EXPECT_EQ(t.core.commit_index(), LogIndex{3});
}

// ---- the receiver's side ----

TEST(RaftInstall, ReplacesALogThatIsBehind) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(2, {1, 1}));
  t.Step(SnapshotAt(11, 2, 14));
  ASSERT_EQ(t.out.storage.size(), 1u);
  ASSERT_TRUE(t.out.storage[0].reset.has_value());
  EXPECT_EQ(t.out.storage[0].reset->first_index, LogIndex{11});
  EXPECT_FALSE(t.out.snapshot_refused);
  EXPECT_EQ(t.core.first_index(), LogIndex{11});
  EXPECT_EQ(t.core.last_index(), LogIndex{10});
  EXPECT_EQ(t.core.last_term(), Term{2});
  EXPECT_EQ(t.core.commit_index(), LogIndex{10});
}

TEST(RaftInstall, TheLogGoesOnBehindItsBase) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(2, {1, 1}));
  t.Step(SnapshotAt(11, 2, 14));
  t.Sync();
  t.Clear();
  t.Receive(kN1, t.Append(2, 10, 2, {2, 2}, /*commit=*/12));
  t.Sync();
  const auto answers = t.SentTo<AppendResponse>(kN1);
  ASSERT_FALSE(answers.empty());
  EXPECT_TRUE(answers.back().ok);
  EXPECT_EQ(answers.back().match_index, LogIndex{12});
  EXPECT_EQ(t.core.commit_index(), LogIndex{12});
}

TEST(RaftInstall, AcknowledgesNothingOfTheNewLogBeforeItIsInstalled) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(2, {1, 1}));
  t.Receive(kN1, t.Append(2, 0, 0, {1, 1}));
  t.Clear();
  t.Step(SnapshotAt(11, 2, 14));
  t.Receive(kN1, t.Append(2, 10, 2, {}));
  for (const AppendResponse& answer : t.SentTo<AppendResponse>(kN1)) {
    EXPECT_LE(answer.match_index, LogIndex{2});
  }
  t.Clear();
  t.Sync();
  t.Receive(kN1, t.Append(2, 10, 2, {}));
  EXPECT_EQ(t.SentTo<AppendResponse>(kN1).back().match_index, LogIndex{10});
}

TEST(RaftInstall, WritesFromBeforeItVouchForNothing) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(3, 0, 0, {1, 1, 1, 1, 1, 1, 1, 1}));
  t.Step(SnapshotAt(5, 2, 4));
  EXPECT_EQ(t.core.last_index(), LogIndex{4});
  t.Sync();
  EXPECT_EQ(t.core.durable_index(), LogIndex{4});
}

TEST(RaftInstall, AnOlderOneIsOfNoUse) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {1, 1, 1}, /*commit=*/3));
  t.Sync();
  t.Clear();
  for (const std::uint64_t first : {2u, 3u, 4u}) {
    t.Step(SnapshotAt(first, 1, 3));
    EXPECT_TRUE(t.out.snapshot_refused) << first;
    EXPECT_TRUE(t.out.storage.empty()) << first;
    t.Clear();
  }
  EXPECT_EQ(t.core.last_index(), LogIndex{3});
}

// It may have acknowledged what comes behind that entry, and the group may count on it.
TEST(RaftInstall, ALogThatHoldsTheEntryBeforeTheBaseIsKept) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {1, 1, 1, 1, 1}));
  t.Sync();
  t.Clear();
  t.Step(SnapshotAt(4, 1, 4));
  EXPECT_TRUE(t.out.snapshot_refused);
  EXPECT_EQ(t.core.last_index(), LogIndex{5});
}

TEST(RaftInstall, ALogThatHoldsAnotherEntryThereIsReplaced) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {1, 1, 1, 1, 1}));
  t.Sync();
  t.Step(SnapshotAt(4, 2, 4));
  EXPECT_FALSE(t.out.snapshot_refused);
  EXPECT_EQ(t.core.last_index(), LogIndex{3});
}

TEST(RaftInstall, ALeaderKeepsItsLog) {
  CoreUnderTest t;
  t.BecomeLeader();
  t.Step(SnapshotAt(9, 1, 9));
  EXPECT_TRUE(t.out.snapshot_refused);
  EXPECT_EQ(t.core.role(), Role::kLeader);
}

TEST(RaftInstall, ACandidateGivesUp) {
  CoreUnderTest t;
  t.TickUntil(Role::kPreCandidate);
  t.Receive(kN1, VoteResponse{.term = Term{1}, .pre_vote = true, .granted = true, .life = kLife});
  t.Sync();
  ASSERT_EQ(t.core.role(), Role::kCandidate);
  t.Step(SnapshotAt(9, 1, 9));
  EXPECT_EQ(t.core.role(), Role::kFollower);
  t.Receive(kN1, VoteResponse{.term = Term{1}, .pre_vote = false, .granted = true, .life = kLife});
  EXPECT_EQ(t.core.role(), Role::kFollower);
}

TEST(RaftInstall, RaisesATermThatIsBehindTheLogs) {
  CoreUnderTest t;
  t.Step(SnapshotAt(9, 5, 9));
  EXPECT_EQ(t.core.term(), Term{5});
  ASSERT_FALSE(t.out.storage.empty());
  ASSERT_TRUE(t.out.storage[0].hard_state.has_value()) << "before the log that needs it";
  EXPECT_EQ(t.out.storage[0].hard_state->term, Term{5});
}

TEST(RaftInstall, WhatCannotBeIsRefused) {
  CoreUnderTest t;
  t.Step(SnapshotAt(1, 0, 0));
  EXPECT_TRUE(std::exchange(t.out.snapshot_refused, false));
  t.Step(SnapshotAt(9, 0, 9));
  EXPECT_TRUE(std::exchange(t.out.snapshot_refused, false));
  t.Step(SnapshotAt(9, 1, 7));
  EXPECT_TRUE(std::exchange(t.out.snapshot_refused, false)) << "a gap between state and log";
  t.Step(SnapshotAt(9, 1, 9, Membership{}));
  EXPECT_TRUE(std::exchange(t.out.snapshot_refused, false));
}

TEST(RaftInstall, BringsTheMembershipWithIt) {
  const Membership two{.group_id = 0, .voters = {kN1, kN2}, .learners = {kN0}};
  CoreUnderTest t;
  t.Step(SnapshotAt(9, 1, 9, two));
  EXPECT_EQ(t.core.membership(), two);
}

TEST(RaftInstall, AnAppendWithAnotherEntryBeforeTheBaseIsDropped) {
  CoreUnderTest t;
  t.Step(SnapshotAt(4, 3, 3));
  t.Sync();
  t.Receive(kN1, t.Append(3, 1, 1, {1, 2, 2}));
  EXPECT_EQ(t.core.last_index(), LogIndex{3});
  t.Receive(kN1, t.Append(3, 1, 1, {1, 3, 3}));
  EXPECT_EQ(t.core.last_index(), LogIndex{4});
}

TEST(RaftInstall, APurgeOfTheLogThatWasReplacedMeansNothing) {
  CoreUnderTest t;
  t.Step(SnapshotAt(9, 1, 9));
  t.Step(Purged{.first_index = LogIndex{3}});
  EXPECT_EQ(t.core.first_index(), LogIndex{9});
}

}  // namespace
}  // namespace triad::dledger
