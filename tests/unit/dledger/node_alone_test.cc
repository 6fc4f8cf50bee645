// A group of one voter: the whole path from Build to Apply and back from the disk.

#include <gtest/gtest.h>

#include <future>
#include <set>

#include "tests/unit/dledger/node_harness.h"

namespace triad::dledger {
namespace {

void CommitMany(Cluster& cluster, int from, int to) {
  const std::size_t leader = cluster.AwaitLeader();
  for (int i = from; i < to; ++i) cluster.Propose(leader, Text(i));
  EXPECT_TRUE(cluster.AwaitAppliedByAll(Text(to - 1)));
}

TEST(NodeAlone, AppliesInTheOrderOfBuild) {
  Cluster cluster(1);
  cluster.StartAll();
  CommitMany(cluster, 0, 500);
  int next = 0;
  LogIndex index{1};
  for (const EntryRef& entry : cluster.recorder(0).applied()) {
    EXPECT_EQ(entry->index, index);
    ++index;
    if (entry->type != EntryType::kBatch) continue;
    EXPECT_EQ(TextOf(*entry), Text(next++));
  }
  EXPECT_EQ(next, 500);
}

// Unless the log thread is in a turn just then, which it is for a moment every 10 ms.
TEST(NodeAlone, WhoFindsTheLogIdleBuildsItself) {
  constexpr int kTries = 100;
  Cluster cluster(1);
  cluster.StartAll();
  CommitMany(cluster, 0, 1);
  int own = 0;
  for (int i = 1; i <= kTries; ++i) {
    cluster.recorder(0).Queue(Sized(Text(i)));
    cluster.node(0).ProposeNow();
    ASSERT_TRUE(cluster.AwaitAppliedByAll(Text(i)));
    own += cluster.recorder(0).builder() == std::this_thread::get_id() ? 1 : 0;
  }
  EXPECT_GT(own, 0);  // the log may still be at work at any one of them
  cluster.Propose(0, Text(kTries + 1));
  ASSERT_TRUE(cluster.AwaitAppliedByAll(Text(kTries + 1)));
  EXPECT_NE(cluster.recorder(0).builder(), std::this_thread::get_id());
}

TEST(NodeAlone, BeginsWithAMembershipEntryThatNamesTheGroup) {
  Cluster cluster(1);
  cluster.StartAll();
  cluster.AwaitLeader();
  const std::vector<EntryRef> applied = cluster.recorder(0).applied();
  ASSERT_EQ(applied.size(), 1u);
  EXPECT_EQ(applied[0]->type, EntryType::kMembership);
  EXPECT_TRUE(cluster.board().Await([&] { return cluster.node(0).status().group_id != 0; }));
}

TEST(NodeAlone, GivesTheSameBytesAgainAfterARestart) {
  Cluster cluster(1);
  cluster.StartAll();
  CommitMany(cluster, 0, 50);
  const std::string before = cluster.AppliedBytes(0);
  cluster.Stop(0);
  cluster.StartAll();
  cluster.AwaitLeader();
  const std::string after = cluster.AppliedBytes(0);
  ASSERT_GE(after.size(), before.size());
  EXPECT_EQ(after.substr(0, before.size()), before);
}

TEST(NodeAlone, StartsToApplyBehindWhatTheApplicationHolds) {
  Cluster cluster(1);
  cluster.StartAll();
  CommitMany(cluster, 0, 20);
  cluster.Stop(0);
  cluster.options(0).applied = LogIndex(10);
  cluster.StartAll();
  cluster.AwaitLeader();
  EXPECT_EQ(cluster.recorder(0).applied().front()->index, LogIndex(11));
}

TEST(NodeAlone, TellsBeforeItsStartWhatTheLogHolds) {
  Cluster cluster(1);
  cluster.StartAll();
  CommitMany(cluster, 0, 20);
  const LogIndex last = cluster.recorder(0).applied().back()->index;
  cluster.Stop(0);
  Board board;
  Recorder recorder(board);
  const Result<std::unique_ptr<Node>> opened =
      Node::Open(PosixFileSystem(), SystemClock(), cluster.options(0), &recorder);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const NodeStatus status = opened.value()->status();
  EXPECT_EQ(status.first_index, LogIndex(1));
  EXPECT_GE(status.last_index, last);
  EXPECT_NE(status.group_id, 0u);
  EXPECT_TRUE(opened.value()->ReadRange(LogIndex(1), last + 1, 1u << 20).ok());
}

TEST(NodeAlone, RefusesAStateThatIsAheadOfTheLog) {
  Cluster cluster(1);
  cluster.options(0).applied = LogIndex(7);
  EXPECT_EQ(cluster.Start(0).code(), StatusCode::kCorruption);
}

TEST(NodeAlone, OpensNoPeerPortWhenItHasNone) {
  Cluster cluster(1);
  cluster.options(0).peers[0].port = 0;
  cluster.options(0).bind_address = "not an address";  // would be refused if it were used
  const Status started = cluster.Start(0);
  EXPECT_TRUE(started.ok()) << started;
}

TEST(NodeAlone, RollsSegmentsAndNeverSplitsAnEntry) {
  Cluster cluster(1);
  cluster.StartAll();
  for (int i = 0; i < 8; ++i) cluster.Commit(Text(i) + std::string(300'000, 'x'));
  std::set<PhysicalOffset> bases;
  const auto segment = static_cast<std::int64_t>(cluster.options(0).segment_bytes);
  for (const EntryRef& entry : cluster.recorder(0).applied()) {
    bases.insert(entry->segment_base);
    EXPECT_LE(entry->end(), entry->segment_base + segment);
  }
  EXPECT_GE(bases.size(), 3u);
}

TEST(NodeAlone, KeepsAnEntryLargerThanASegment) {
  Cluster cluster(1);
  cluster.StartAll();
  cluster.Commit("small before");
  cluster.Commit(std::string(3'000'000, 'L'));
  cluster.Commit("small behind");
  const std::string before = cluster.AppliedBytes(0);
  cluster.Stop(0);
  cluster.StartAll();
  cluster.AwaitLeader();
  EXPECT_EQ(cluster.AppliedBytes(0).substr(0, before.size()), before);
}

TEST(NodeAlone, ReadsEntriesBackByAPositionInsideThem) {
  Cluster cluster(1);
  cluster.options(0).cache_bytes = 64u << 10;
  cluster.StartAll();
  for (int i = 0; i < 10; ++i) cluster.Commit(Text(i) + std::string(50'000, 'y'));
  for (const EntryRef& entry : cluster.recorder(0).applied()) {
    const Result<EntryRef> read = cluster.node(0).ReadAt(entry->position + 5);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ((*read)->bytes, entry->bytes);
  }
  std::promise<Result<EntryRef>> loaded;
  const EntryRef first = cluster.recorder(0).applied().front();
  cluster.node(0).LoadAt(first->position, [&](Result<EntryRef> entry) { loaded.set_value(entry); });
  const Result<EntryRef> entry = loaded.get_future().get();
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ((*entry)->bytes, first->bytes);
}

// The next look of its own is an hour away, and there is no hour in which it would do anything.
TEST(NodeAlone, ForgetsWhatIsOldAtOnceWhenAsked) {
  Cluster cluster(1);
  cluster.KeepState();
  NodeOptions& options = cluster.options(0);
  options.segment_bytes = options.prepare_bytes = 8192;
  options.retention.age = std::chrono::milliseconds(1);
  options.retention.expired_percent = 101;
  options.retention.interval = std::chrono::hours(1);
  cluster.StartAll();
  for (int i = 0; i < 20; ++i) cluster.Commit(Text(i) + std::string(1500, 'x'));
  EXPECT_EQ(cluster.node(0).status().first_index, LogIndex(1));
  EXPECT_TRUE(cluster.board().Await([&] {
    cluster.node(0).CleanNow();
    return cluster.node(0).status().first_index > LogIndex(1);
  }));
}

TEST(NodeAlone, CommitsWithAsyncFlushToo) {
  Cluster cluster(1);
  cluster.options(0).sync_flush = false;
  cluster.StartAll();
  CommitMany(cluster, 0, 200);
  const std::string before = cluster.AppliedBytes(0);
  cluster.Stop(0);
  cluster.StartAll();
  cluster.AwaitLeader();
  EXPECT_EQ(cluster.AppliedBytes(0).substr(0, before.size()), before);
}

TEST(NodeAlone, ConfirmsReads) {
  Cluster cluster(1);
  cluster.StartAll();
  cluster.Commit("one");
  const LogIndex last = cluster.recorder(0).applied().back()->index;
  EXPECT_TRUE(cluster.AwaitRead(0).ok());
  EXPECT_GE(cluster.node(0).status().applied_index, last);
}

TEST(NodeAlone, HasNobodyToTransferTo) {
  Cluster cluster(1);
  cluster.StartAll();
  cluster.AwaitLeader();
  std::promise<Status> outcome;
  cluster.node(0).TransferLeadership(PeerId(), kPatience,
                                     [&](Status status) { outcome.set_value(status); });
  EXPECT_EQ(outcome.get_future().get().code(), StatusCode::kUnavailable);
}

TEST(NodeAlone, StoreTimesNeverGoBack) {
  Cluster cluster(1);
  cluster.StartAll();
  CommitMany(cluster, 0, 100);
  std::int64_t last = SystemClock().WallNowMs() - 60'000;
  for (const EntryRef& entry : cluster.recorder(0).applied()) {
    EXPECT_GE(entry->store_time_ms, last);
    last = entry->store_time_ms;
  }
  EXPECT_NEAR(static_cast<double>(cluster.node(0).LogTimeMs()),
              static_cast<double>(SystemClock().WallNowMs()), 5000.0);
}

TEST(NodeAlone, AnswersEverythingAfterStop) {
  Cluster cluster(1);
  cluster.StartAll();
  cluster.AwaitLeader();
  cluster.node(0).Stop();
  EXPECT_EQ(cluster.AwaitRead(0).code(), StatusCode::kUnavailable);
  EXPECT_EQ(cluster.node(0).ReadAt(PhysicalOffset(0)).status().code(), StatusCode::kUnavailable);
  EXPECT_FALSE(cluster.node(0).PostReader([] {}));
}

}  // namespace
}  // namespace triad::dledger
