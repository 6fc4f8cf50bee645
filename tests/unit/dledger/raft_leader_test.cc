#include "tests/unit/dledger/raft_core_fixture.h"

namespace triad::dledger {
namespace {

// n1 is known to hold the whole log and entries are pipelined to it.
void LetN1Replicate(CoreUnderTest* t) {
  t->Propose();
  t->Sync();
  t->Acknowledge(kN1, t->core.last_index().value());
  ASSERT_TRUE(t->core.leader_ready());
  t->Clear();
}

TEST(RaftLeader, CountsItselfOnlyAfterItsOwnWrite) {
  CoreUnderTest t;
  t.BecomeLeader();
  t.Propose();
  t.Acknowledge(kN1, 1);
  EXPECT_EQ(t.core.commit_index(), LogIndex{0});
  t.Sync();
  EXPECT_EQ(t.core.commit_index(), LogIndex{1});
}

TEST(RaftLeader, TwoFollowersAreAMajorityWithoutItsDisk) {
  CoreUnderTest t;
  t.BecomeLeader();
  t.Propose();
  t.Acknowledge(kN1, 1);
  t.Acknowledge(kN2, 1);
  EXPECT_EQ(t.core.commit_index(), LogIndex{1});
  EXPECT_FALSE(t.out.committed.has_value()) << "applied only when durable here";
}

TEST(RaftLeader, AnEntryOfAnEarlierTermIsNotCommittedByCounting) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(2, {2, 2}));
  t.BecomeLeader();
  t.Acknowledge(kN1, 2);
  EXPECT_EQ(t.core.commit_index(), LogIndex{0});
  t.Propose();
  t.Sync();
  t.Acknowledge(kN1, 3);
  EXPECT_EQ(t.core.commit_index(), LogIndex{3}) << "with one of its own term on top";
}

TEST(RaftLeader, SendsEntriesWhileItsOwnWriteRuns) {
  CoreUnderTest t;
  t.BecomeLeader();
  LetN1Replicate(&t);
  t.Propose();
  const auto sent = t.SentTo<AppendRequest>(kN1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].entries.size(), 1u);
  EXPECT_FALSE(t.out.storage.empty());
}

TEST(RaftLeader, PipelinesUpToTheInflightLimit) {
  CoreConfig config = ThreeVoters();
  config.max_inflight_bytes = 100;
  config.max_append_bytes = 100;
  CoreUnderTest t(config);
  t.BecomeLeader();
  LetN1Replicate(&t);
  for (int i = 0; i < 8; ++i) t.Propose(40);
  EXPECT_EQ(t.SentTo<AppendRequest>(kN1).size(), 3u) << "40, 80, 120 and then no more";
  t.Clear();
  t.Acknowledge(kN1, 2);
  EXPECT_EQ(t.SentTo<AppendRequest>(kN1).size(), 1u);
}

TEST(RaftLeader, OneMessageCarriesAtMostMaxAppendBytesButALargeEntryGoesAlone) {
  CoreConfig config = ThreeVoters();
  config.max_append_bytes = 50;
  CoreUnderTest t(config);
  t.BecomeLeader();
  for (std::size_t bytes : {20u, 20u, 20u, 500u}) t.Propose(bytes);
  t.Clear();
  for (std::uint64_t match = 0; match < 4;) {
    t.Acknowledge(kN1, match);
    const auto sent = t.SentTo<AppendRequest>(kN1);
    if (sent.empty()) break;
    for (const AppendRequest& request : sent) {
      std::size_t bytes = 0;
      for (const EntryRef& entry : request.entries) bytes += entry->size();
      EXPECT_TRUE(bytes <= 50 || request.entries.size() == 1);
      if (!request.entries.empty()) match = request.entries.back()->index.value();
    }
    t.Clear();
  }
}

TEST(RaftLeader, ProbesOneMessageAtATime) {
  CoreUnderTest t;
  t.BecomeLeader();
  for (int i = 0; i < 5; ++i) t.Propose();
  EXPECT_EQ(t.SentTo<AppendRequest>(kN1).size(), 1u);
}

AppendResponse Refusal(const CoreUnderTest& t, std::uint64_t prev, std::uint64_t conflict_index,
                       std::uint64_t conflict_term) {
  AppendResponse response;
  response.term = t.core.term();
  response.rejected_prev = LogIndex{prev};
  response.conflict_index = LogIndex{conflict_index};
  response.conflict_term = Term{conflict_term};
  return response;
}

TEST(RaftLeader, GoesBackAWholeTermWhenRefused) {
  struct Case {
    const char* name;
    std::uint64_t conflict_index, conflict_term, expected_prev;
  };
  // The leader's log: 1 1 3 3 3, and 5 when it leads.
  const Case cases[] = {
      {"the follower's log is shorter", 3, 0, 2},
      {"a term the leader does not have", 2, 2, 1},
      {"a term the leader has", 1, 1, 2},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    CoreUnderTest t(ThreeVoters(), RecoveredWith(4, {1, 1, 3, 3, 3}));
    t.BecomeLeader();
    t.Receive(kN1, Refusal(t, 5, c.conflict_index, c.conflict_term));
    ASSERT_EQ(t.out.loads.size(), 1u) << "old entries come from the disk";
    EXPECT_EQ(t.out.loads[0].from, LogIndex{c.expected_prev + 1});
  }
}

TEST(RaftLeader, AStaleRefusalIsIgnored) {
  CoreUnderTest t;
  t.BecomeLeader();
  LetN1Replicate(&t);
  t.Propose();
  t.Acknowledge(kN1, 2);
  t.Clear();
  t.Receive(kN1, Refusal(t, 1, 1, 0));
  EXPECT_TRUE(t.out.messages.empty());
}

TEST(RaftLeader, LoadsWhatTheWindowNoLongerHoldsAndSendsIt) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(1, {1, 1, 1}));
  t.BecomeLeader();
  t.Receive(kN1, Refusal(t, 3, 1, 0));
  ASSERT_EQ(t.out.loads.size(), 1u);
  const LoadRequest request = t.out.loads[0];
  EXPECT_EQ(request.from, LogIndex{1});
  EXPECT_EQ(request.to, LogIndex{4});
  t.Clear();
  t.Step(Loaded{.peer = kN1,
                .term = request.term,
                .from = request.from,
                .entries = {MakeEntry(1, 1), MakeEntry(1, 2)}});
  const auto sent = t.SentTo<AppendRequest>(kN1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].prev_index, LogIndex{0});
  EXPECT_EQ(sent[0].entries.size(), 2u);
}

TEST(RaftLeader, AFailedLoadIsTriedAgainWithTheNextHeartbeat) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(1, {1, 1, 1}));
  t.BecomeLeader();
  t.Receive(kN1, Refusal(t, 3, 1, 0));
  const LoadRequest request = t.out.loads.at(0);
  t.Clear();
  t.Step(Loaded{.peer = kN1, .term = request.term, .from = request.from, .entries = {}});
  EXPECT_TRUE(t.out.loads.empty()) << "not at once: a broken disk would be asked for ever";
  t.Tick(5);
  EXPECT_EQ(t.out.loads.size(), 1u);
}

TEST(RaftLeader, WhoCannotReadItsOwnLogHandsOver) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(1, {1, 1, 1}));
  t.BecomeLeader();
  t.Receive(kN1, Refusal(t, 3, 1, 0));
  LoadRequest request = t.out.loads.at(0);
  t.Propose();
  t.Sync();
  t.Acknowledge(kN2, 4);
  const auto fail = [&](bool damaged) {
    t.Clear();
    t.Step(Loaded{.peer = kN1,
                  .term = request.term,
                  .from = request.from,
                  .entries = {},
                  .damaged = damaged});
    const bool hands_over = !t.SentTo<TimeoutNow>(kN2).empty();
    t.Clear();
    t.Tick(5);
    if (!t.out.loads.empty()) request = t.out.loads.at(0);
    t.Acknowledge(kN2, 4);
    return hands_over;
  };
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(fail(false)) << "busy is not damaged";
  for (int i = 1; i < kDamagedLoadsMax; ++i) EXPECT_FALSE(fail(true));
  EXPECT_TRUE(fail(true));
}

TEST(RaftLeader, LoadedEntriesOfAnotherTermAreNotSent) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(1, {1, 1, 1}));
  t.BecomeLeader();
  t.Receive(kN1, Refusal(t, 3, 1, 0));
  const LoadRequest request = t.out.loads.at(0);
  t.Clear();
  t.Step(Loaded{.peer = kN1,
                .term = request.term,
                .from = request.from,
                .entries = {MakeEntry(1, 1), MakeEntry(9, 2)}});
  const auto sent = t.SentTo<AppendRequest>(kN1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].entries.size(), 1u);
}

TEST(RaftLeader, StepsDownWhenNoMajorityIsHeardForAnElectionTimeout) {
  CoreUnderTest t;
  t.BecomeLeader();
  t.Tick(29);
  EXPECT_EQ(t.core.role(), Role::kLeader);
  t.Tick(1);
  EXPECT_EQ(t.core.role(), Role::kFollower);
  EXPECT_EQ(t.core.leader(), PeerId());
}

TEST(RaftLeader, OneFollowerHeardKeepsTheLeader) {
  CoreUnderTest t;
  t.BecomeLeader();
  for (int i = 0; i < 20; ++i) {
    t.Tick(20);
    t.Acknowledge(kN2, 0);
  }
  EXPECT_EQ(t.core.role(), Role::kLeader);
}

TEST(RaftLeader, AnAnswerOfAnEarlierTermCountsForNothing) {
  CoreUnderTest t;
  t.BecomeLeader();
  t.Propose();
  t.Sync();
  AppendResponse old;
  old.term = t.core.term() - 1;
  old.ok = true;
  old.match_index = LogIndex{1};
  t.Receive(kN1, old);
  EXPECT_EQ(t.core.commit_index(), LogIndex{0});
}

TEST(RaftLeader, ANewerTermEndsLeadershipAndFailsReads) {
  CoreUnderTest t;
  t.BecomeLeader();
  LetN1Replicate(&t);
  t.Step(ReadIndexRequest{.context = 5});
  AppendResponse newer;
  newer.term = t.core.term() + 1;
  t.Receive(kN2, newer);
  EXPECT_EQ(t.core.role(), Role::kFollower);
  EXPECT_EQ(t.out.reads_failed, std::vector<std::uint64_t>{5});
}

TEST(RaftLeader, AReadIsConfirmedByAnswersSentAfterItCame) {
  CoreUnderTest t;
  t.BecomeLeader();
  LetN1Replicate(&t);
  t.Step(ReadIndexRequest{.context = 5});
  const std::uint64_t round = t.SentTo<AppendRequest>(kN1).at(0).read_round;
  t.Acknowledge(kN1, 1, round - 1);
  EXPECT_TRUE(t.out.reads.empty());
  t.Acknowledge(kN1, 1, round);
  ASSERT_EQ(t.out.reads.size(), 1u);
  EXPECT_EQ(t.out.reads[0].context, 5u);
  EXPECT_EQ(t.out.reads[0].index, LogIndex{1});
}

TEST(RaftLeader, ReadsThatComeDuringARoundShareTheNextOne) {
  CoreUnderTest t;
  t.BecomeLeader();
  LetN1Replicate(&t);
  t.Step(ReadIndexRequest{.context = 1});
  const std::uint64_t first = t.SentTo<AppendRequest>(kN1).at(0).read_round;
  t.Clear();
  t.Step(ReadIndexRequest{.context = 2});
  t.Step(ReadIndexRequest{.context = 3});
  EXPECT_TRUE(t.out.messages.empty()) << "one round at a time";
  t.Acknowledge(kN1, 1, first);
  EXPECT_EQ(t.out.reads.size(), 1u);
  const std::uint64_t second = t.SentTo<AppendRequest>(kN1).at(0).read_round;
  EXPECT_GT(second, first);
  t.Acknowledge(kN2, 0, second);
  EXPECT_EQ(t.out.reads.size(), 3u);
}

TEST(RaftLeader, ReadsWaitForACommitOfItsOwnTerm) {
  CoreUnderTest t;
  t.BecomeLeader();
  t.Step(ReadIndexRequest{.context = 1});
  t.Acknowledge(kN1, 0, 1);
  t.Acknowledge(kN2, 0, 1);
  EXPECT_TRUE(t.out.reads.empty());
  t.Propose();
  t.Sync();
  t.Clear();
  t.Acknowledge(kN1, 1, 1);
  const std::uint64_t round = t.SentTo<AppendRequest>(kN1).at(0).read_round;
  t.Acknowledge(kN1, 1, round);
  ASSERT_EQ(t.out.reads.size(), 1u);
  EXPECT_EQ(t.out.reads[0].index, LogIndex{1});
}

TEST(RaftLeader, AFollowerRefusesReads) {
  CoreUnderTest t;
  t.Step(ReadIndexRequest{.context = 9});
  EXPECT_EQ(t.out.reads_failed, std::vector<std::uint64_t>{9});
}

TEST(RaftLeader, AGroupOfOneServesReadsAtOnce) {
  CoreUnderTest t(ConfigOf({kN0}));
  t.Tick(60);
  t.Sync();
  t.Propose();
  t.Sync();
  t.Step(ReadIndexRequest{.context = 1});
  t.Step(ReadIndexRequest{.context = 2});
  EXPECT_EQ(t.out.reads.size(), 2u);
}

TEST(RaftLeader, HandsOverWhenTheSuccessorHasEverything) {
  CoreUnderTest t;
  t.BecomeLeader();
  LetN1Replicate(&t);
  t.Propose();
  t.Sync();
  t.Clear();
  t.Step(TransferLeadership{.to = kN1});
  EXPECT_TRUE(t.core.transferring());
  EXPECT_TRUE(t.Sent<TimeoutNow>().empty());
  t.Acknowledge(kN1, 2);
  ASSERT_EQ(t.SentTo<TimeoutNow>(kN1).size(), 1u);
  EXPECT_EQ(t.SentTo<TimeoutNow>(kN1)[0].term, t.core.term());
}

TEST(RaftLeader, PicksTheMostUpToDateSuccessor) {
  CoreUnderTest t;
  t.BecomeLeader();
  t.Propose();
  t.Propose();
  t.Acknowledge(kN1, 1);
  t.Acknowledge(kN2, 2);
  t.Clear();
  t.Step(TransferLeadership{.to = PeerId()});
  EXPECT_EQ(t.SentTo<TimeoutNow>(kN2).size(), 1u);
}

TEST(RaftLeader, ATransferThatTakesTooLongIsGivenUp) {
  CoreUnderTest t;
  t.BecomeLeader();
  LetN1Replicate(&t);
  t.Acknowledge(kN2, 1);
  t.Propose();
  t.Step(TransferLeadership{.to = kN2, .context = 4});
  for (int i = 0; i < 59; ++i) {
    t.Tick(1);
    t.Acknowledge(kN1, 1);
  }
  EXPECT_TRUE(t.core.transferring());
  t.Tick(1);
  EXPECT_FALSE(t.core.transferring());
  EXPECT_EQ(t.core.role(), Role::kLeader);
  ASSERT_EQ(t.out.transfers_failed.size(), 1u);
  EXPECT_EQ(t.out.transfers_failed[0].context, 4u);
  EXPECT_EQ(t.out.transfers_failed[0].why, TransferFailure::kTimedOut);
}

TEST(RaftLeader, ATransferToNobodyOfTheGroupIsRefused) {
  CoreUnderTest t;
  t.BecomeLeader();
  t.Step(TransferLeadership{.to = PeerId("n9")});
  t.Step(TransferLeadership{.to = kN0});
  EXPECT_FALSE(t.core.transferring());
}

TEST(RaftLeader, TellsFollowersOfANewCommitAtTheNextTickWithoutWaitingForAHeartbeat) {
  CoreUnderTest t;
  t.BecomeLeader();
  LetN1Replicate(&t);
  t.Propose();
  t.Sync();
  t.Clear();
  t.Acknowledge(kN1, 2);
  EXPECT_TRUE(t.SentTo<AppendRequest>(kN1).empty());
  t.Tick(1);
  const auto sent = t.SentTo<AppendRequest>(kN1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].commit_index, LogIndex{2});
}

TEST(RaftLeader, ANewCommitRidesOnTheNextAppend) {
  CoreUnderTest t;
  t.BecomeLeader();
  LetN1Replicate(&t);
  t.Propose();
  t.Sync();
  t.Acknowledge(kN1, 2);
  t.Clear();
  t.Propose();
  const auto sent = t.SentTo<AppendRequest>(kN1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].commit_index, LogIndex{2});
  EXPECT_EQ(sent[0].entries.size(), 1u);
}

TEST(RaftLeader, ADisconnectedPeerIsProbedFromWhatItAcknowledged) {
  CoreUnderTest t;
  t.BecomeLeader();
  LetN1Replicate(&t);
  t.Propose();  // lost with the connection
  t.Step(Disconnected{.peer = kN1});
  t.Clear();
  t.Tick(5);
  EXPECT_EQ(t.SentTo<AppendRequest>(kN1).at(0).prev_index, LogIndex{1});
  EXPECT_EQ(t.core.role(), Role::kLeader);
}

}  // namespace
}  // namespace triad::dledger
