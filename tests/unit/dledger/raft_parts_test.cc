// The small classes of the core, each alone.

#include <algorithm>

#include "dledger/raft/election.h"
#include "dledger/raft/membership.h"
#include "dledger/raft/outbox.h"
#include "dledger/raft/read_index.h"
#include "dledger/raft/storage_queue.h"
#include "tests/unit/dledger/raft_core_fixture.h"

namespace triad::dledger {
namespace {

TEST(RaftStorageQueue, TokensGrowByOne) {
  StorageQueue queue{LogIndex{0}};
  Output out;
  queue.SaveHardState(HardState{.term = Term{1}, .voted_for = {}}, &out);
  queue.WriteLog(std::nullopt, {MakeEntry(1, 1)}, &out);
  queue.EndRecovery(HardState{.term = Term{1}, .voted_for = kN1}, &out);
  ASSERT_EQ(out.storage.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(out.storage[i].token, i + 1);
}

TEST(RaftStorageQueue, IsDurableUpToTheWritesThatAreDone) {
  StorageQueue queue{LogIndex{5}};
  Output out;
  const Token first = queue.WriteLog(std::nullopt, {MakeEntry(1, 6), MakeEntry(1, 7)}, &out);
  const Token second = queue.WriteLog(std::nullopt, {MakeEntry(1, 8)}, &out);
  EXPECT_EQ(queue.durable_index(), LogIndex{5});
  EXPECT_EQ(queue.pending_bytes(), 30u);
  queue.Done(first);
  EXPECT_EQ(queue.durable_index(), LogIndex{7});
  queue.Done(second);
  EXPECT_EQ(queue.durable_index(), LogIndex{8});
  EXPECT_EQ(queue.pending_bytes(), 0u);
}

// append, truncate, append: the first write's completion must not vouch for the second append.
TEST(RaftStorageQueue, AppendTruncateAppendIsDurableOnlyByTheLastWrite) {
  StorageQueue queue{LogIndex{0}};
  Output out;
  const Token first = queue.WriteLog(std::nullopt, {MakeEntry(1, 1), MakeEntry(1, 2)}, &out);
  const Token cut = queue.WriteLog(LogIndex{2}, {MakeEntry(2, 2)}, &out);
  const Token third = queue.WriteLog(std::nullopt, {MakeEntry(2, 3)}, &out);
  queue.Done(first);
  EXPECT_EQ(queue.durable_index(), LogIndex{1});
  queue.Done(cut);
  EXPECT_EQ(queue.durable_index(), LogIndex{2});
  queue.Done(third);
  EXPECT_EQ(queue.durable_index(), LogIndex{3});
}

TEST(RaftOutbox, KeepsOneAnswerOfEachKindPerPeer) {
  Outbox outbox;
  for (int i = 0; i < 5; ++i) {
    outbox.Hold(1, Term{1}, kN1, Message{VoteResponse{.term = Term{1}, .granted = i == 4}});
    outbox.Hold(1, Term{1}, kN1, Message{AppendResponse{}});
    outbox.Hold(1, Term{1}, kN2, Message{AppendResponse{}});
  }
  Output out;
  outbox.Release(1, Term{1}, &out);
  ASSERT_EQ(out.messages.size(), 3u);
  EXPECT_TRUE(std::get<VoteResponse>(out.messages[0].message.body).granted) << "the newest";
}

TEST(RaftOutbox, HoldsUntilTheTokenIsDone) {
  Outbox outbox;
  outbox.Hold(4, Term{1}, kN1, Message{AppendResponse{}});
  Output out;
  outbox.Release(3, Term{1}, &out);
  EXPECT_TRUE(out.messages.empty());
  outbox.Release(4, Term{1}, &out);
  EXPECT_EQ(out.messages.size(), 1u);
}

TEST(RaftElectionTimer, TimeoutsStayInTheirRangeAndDiffer) {
  Election election(30, 60, /*seed=*/3);
  std::vector<int> seen;
  for (int i = 0; i < 200; ++i) {
    election.Restart();
    int ticks = 1;
    while (!election.Tick()) ++ticks;
    EXPECT_GE(ticks, 30);
    EXPECT_LT(ticks, 60);
    seen.push_back(ticks);
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_GT(std::unique(seen.begin(), seen.end()) - seen.begin(), 15);
}

TEST(RaftElectionTimer, ALeaderIsAliveForTheMinimumTimeout) {
  Election election(30, 60, /*seed=*/3);
  EXPECT_FALSE(election.LeaderIsAlive());
  election.HeardLeader();
  for (int i = 0; i < 29; ++i) election.Tick();
  EXPECT_TRUE(election.LeaderIsAlive());
  election.Tick();
  EXPECT_FALSE(election.LeaderIsAlive());
}

TEST(RaftMembership, ATruncatedMembershipGivesWayToTheOneBefore) {
  const Membership one{.group_id = 0, .voters = {kN0}, .learners = {}};
  const Membership two{.group_id = 1, .voters = {kN0, kN1}, .learners = {}};
  const Membership three{.group_id = 1, .voters = {kN0, kN1, kN2}, .learners = {}};
  MembershipHistory history(one, {{LogIndex{3}, two}});
  EXPECT_EQ(history.current(), two);
  history.Append(LogIndex{7}, three);
  EXPECT_EQ(history.current(), three);
  EXPECT_FALSE(history.TruncateFrom(LogIndex{8}));
  EXPECT_TRUE(history.TruncateFrom(LogIndex{7}));
  EXPECT_EQ(history.current(), two);
  EXPECT_TRUE(history.TruncateFrom(LogIndex{1}));
  EXPECT_EQ(history.current(), one);
}

TEST(RaftMembership, KnowsWhatIsWellFormed) {
  EXPECT_TRUE(IsWellFormed(Membership{.group_id = 0, .voters = {kN0, kN1}, .learners = {kN2}}));
  EXPECT_FALSE(IsWellFormed(Membership{}));
  EXPECT_FALSE(IsWellFormed(Membership{.group_id = 0, .voters = {kN1, kN0}, .learners = {}}));
  EXPECT_FALSE(IsWellFormed(Membership{.group_id = 0, .voters = {kN0, kN0}, .learners = {}}));
  EXPECT_FALSE(IsWellFormed(Membership{.group_id = 0, .voters = {kN0}, .learners = {kN0}}));
}

TEST(RaftReadIndex, RefusesWhenTooManyWait) {
  ReadIndex reads;
  reads.Reset();
  for (std::size_t i = 0; i < ReadIndex::kWaitingMax; ++i) ASSERT_TRUE(reads.Add(i));
  EXPECT_FALSE(reads.Add(0));
  EXPECT_TRUE(reads.Start(LogIndex{1}));
  EXPECT_TRUE(reads.Add(0)) << "those of the running round wait no longer";
}

}  // namespace
}  // namespace triad::dledger
