#include "tests/unit/dledger/raft_core_fixture.h"

namespace triad::dledger {
namespace {

std::vector<AppendResponse> Answers(const CoreUnderTest& t) {
  return t.SentTo<AppendResponse>(kN1);
}

TEST(RaftFollower, AcknowledgesOnlyWhatIsDurable) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {1, 1}));
  EXPECT_TRUE(Answers(t).empty());
  t.Sync();
  ASSERT_EQ(Answers(t).size(), 1u);
  EXPECT_TRUE(Answers(t)[0].ok);
  EXPECT_EQ(Answers(t)[0].match_index, LogIndex{2});
}

TEST(RaftFollower, AnswersAHeartbeatAtOnceThoughItsDiskIsSlow) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {1}));
  t.Sync();
  t.Receive(kN1, t.Append(1, 1, 1, {1, 1}));
  t.Clear();
  AppendRequest heartbeat = t.Append(1, 3, 1, {});
  heartbeat.read_round = 8;
  t.Receive(kN1, heartbeat);
  ASSERT_EQ(Answers(t).size(), 1u);
  EXPECT_EQ(Answers(t)[0].match_index, LogIndex{1}) << "only what is durable";
  EXPECT_EQ(Answers(t)[0].read_round, 8u);
}

TEST(RaftFollower, EntriesReceivedAgainAreAcknowledgedWithoutWriting) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {1, 1}));
  t.Sync();
  t.Clear();
  t.Receive(kN1, t.Append(1, 0, 0, {1, 1}));
  EXPECT_TRUE(t.out.storage.empty());
  ASSERT_EQ(Answers(t).size(), 1u);
  EXPECT_EQ(Answers(t)[0].match_index, LogIndex{2});
}

TEST(RaftFollower, AnOldAppendDoesNotShortenTheLog) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {1, 1, 1}));
  t.Sync();
  t.Clear();
  t.Receive(kN1, t.Append(1, 0, 0, {1}));
  EXPECT_TRUE(t.out.storage.empty());
  EXPECT_EQ(t.core.last_index(), LogIndex{3});
}

TEST(RaftFollower, ADivergentTailIsCutAtTheFirstConflict) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(2, {1, 2, 2}));
  t.Receive(kN1, t.Append(3, 1, 1, {3}));
  ASSERT_EQ(t.out.storage.size(), 2u);
  EXPECT_EQ(t.out.storage[1].truncate_from, LogIndex{2});
  ASSERT_EQ(t.out.storage[1].append.size(), 1u);
  EXPECT_EQ(t.core.last_index(), LogIndex{2});
  EXPECT_EQ(t.core.last_term(), Term{3});
  EXPECT_EQ(t.core.durable_index(), LogIndex{1}) << "what was cut is durable no more";
}

TEST(RaftFollower, AWriteFromBeforeACutVouchesForNothingBehindIt) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {1, 1, 1}));
  const Token before_cut = t.out.storage.back().token;
  t.Receive(kN2, t.Append(2, 1, 1, {2}));
  t.Clear();
  t.Step(StorageDone{.token = before_cut});
  EXPECT_EQ(t.core.durable_index(), LogIndex{1});
  EXPECT_TRUE(t.Sent<AppendResponse>().empty()) << "the new term is not durable yet";
  t.Step(StorageDone{.token = t.last_token});
  EXPECT_EQ(t.core.durable_index(), LogIndex{2});
  ASSERT_EQ(t.SentTo<AppendResponse>(kN2).size(), 1u);
  EXPECT_EQ(t.SentTo<AppendResponse>(kN2)[0].match_index, LogIndex{2});
}

TEST(RaftFollower, RefusesBehindItsEndAndSaysWhere) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(1, {1, 1}));
  t.Receive(kN1, t.Append(1, 5, 1, {1}));
  ASSERT_EQ(Answers(t).size(), 1u);
  EXPECT_FALSE(Answers(t)[0].ok);
  EXPECT_EQ(Answers(t)[0].conflict_index, LogIndex{3});
  EXPECT_EQ(Answers(t)[0].conflict_term, Term{0});
  EXPECT_EQ(Answers(t)[0].rejected_prev, LogIndex{5});
}

TEST(RaftFollower, RefusesAWholeConflictingTermAtOnce) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(2, {1, 2, 2, 2}));
  t.Receive(kN1, t.Append(3, 4, 3, {}));
  t.Sync();
  ASSERT_EQ(Answers(t).size(), 1u);
  EXPECT_EQ(Answers(t)[0].conflict_index, LogIndex{2});
  EXPECT_EQ(Answers(t)[0].conflict_term, Term{2});
}

TEST(RaftFollower, CommitIsBoundedByTheLastEntryOfThisAppend) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(2, {1, 2, 2}));
  t.Receive(kN1, t.Append(3, 1, 1, {}, /*commit=*/3));
  t.Sync();
  EXPECT_EQ(t.core.commit_index(), LogIndex{1}) << "2 and 3 may be another leader's";
}

TEST(RaftFollower, GivesOutAsCommittedOnlyWhatIsDurableHere) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {1, 1}, /*commit=*/2));
  EXPECT_EQ(t.core.commit_index(), LogIndex{2});
  EXPECT_FALSE(t.out.committed.has_value());
  t.Sync();
  EXPECT_EQ(t.out.committed, LogIndex{2});
}

TEST(RaftFollower, NothingCommittedIsEverCut) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {1, 1}, /*commit=*/2));
  t.Sync();
  t.Clear();
  t.Receive(kN1, t.Append(2, 0, 0, {2, 2}));
  t.Sync();
  EXPECT_EQ(t.core.last_term(), Term{1});
  EXPECT_EQ(t.core.last_index(), LogIndex{2});
}

TEST(RaftFollower, AnOldLeaderLearnsTheNewTerm) {
  CoreUnderTest t(ThreeVoters(), RecoveredWith(7, {1}));
  t.Receive(kN1, t.Append(5, 1, 1, {}));
  ASSERT_EQ(Answers(t).size(), 1u);
  EXPECT_FALSE(Answers(t)[0].ok);
  EXPECT_EQ(Answers(t)[0].term, Term{7});
  EXPECT_EQ(t.core.leader(), PeerId());
}

TEST(RaftFollower, NoAnswerLeavesBeforeTheTermIsDurable) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {}));
  t.Receive(kN1, t.Append(1, 4, 1, {}));
  EXPECT_TRUE(t.out.messages.empty());
  t.Sync();
  EXPECT_EQ(Answers(t).size(), 2u);
}

TEST(RaftFollower, ASlowDiskDoesNotMakeTheQueueGrowWithoutBound) {
  CoreConfig config = ThreeVoters();
  config.max_inflight_bytes = 100;
  config.max_append_bytes = 10;
  CoreUnderTest t(config);
  for (std::uint64_t i = 0; i < 100; ++i) t.Receive(kN1, t.Append(1, i, i == 0 ? 0 : 1, {1}));
  EXPECT_LE(t.core.last_index(), LogIndex{22});
  t.Sync();
  const std::uint64_t last = t.core.last_index().value();
  t.Receive(kN1, t.Append(1, last, 1, {1}));
  EXPECT_EQ(t.core.last_index(), LogIndex{last + 1}) << "it goes on when the disk has caught up";
}

TEST(RaftFollower, AMembershipTakesEffectWhenAppendedAndGoesWithItsEntry) {
  CoreUnderTest t;
  t.core.set_membership_decoder([](const Entry&, Membership* membership) {
    membership->voters = {kN0, kN1};
    membership->learners = {kN2};
    return true;
  });
  AppendRequest request = t.Append(1, 0, 0, {1, 1});
  request.entries[1] = MakeEntry(1, 2, 10, EntryType::kMembership);
  t.Receive(kN1, request);
  EXPECT_EQ(t.core.membership().voters.size(), 2u);
  t.Receive(kN1, t.Append(2, 1, 1, {2}));
  EXPECT_EQ(t.core.membership().voters.size(), 3u);
}

TEST(RaftFollower, AnUnreadableMembershipIsNotTaken) {
  CoreUnderTest t;
  t.core.set_membership_decoder([](const Entry&, Membership*) { return false; });
  AppendRequest request = t.Append(1, 0, 0, {1, 1, 1});
  request.entries[1] = MakeEntry(1, 2, 10, EntryType::kMembership);
  t.Receive(kN1, request);
  EXPECT_EQ(t.core.last_index(), LogIndex{1});
}

}  // namespace
}  // namespace triad::dledger
