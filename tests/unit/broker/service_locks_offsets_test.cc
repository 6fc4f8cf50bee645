// Queue locks and consumer offsets on a leader: through a real log (wire.md §6, §7.6; cases.md
// ORD-1, ORD-2, OFS-1).

#include <gtest/gtest.h>

#include "tests/unit/broker/one_peer.h"

namespace triad::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LocksAndOffsets : public testing::Test {
 protected:
  LocksAndOffsets()
      : reads_(peer_.store().node()),
        offsets_(OffsetService::Options{.interval = interval_}, clock_, timers_,
                 peer_.store().appender(), peer_.store().state(), reads_),
        locks_(clock_, peer_.store().appender(), peer_.store().state(), reads_, offsets_) {
    StateCommand command;
    TopicConfig& topic = command.put_topics.emplace_back();
    topic.name = Topic("T");
    topic.read_queues = topic.write_queues = 4;
    command.put_groups.emplace_back().name = GroupName("g");
    peer_.Apply(command);
    locks_.OnLeaderTerm(peer_.term());
  }
  ~LocksAndOffsets() override { timers_.Stop(); }

  TimePoint Deadline() const { return clock_.MonoNow() + kPatience; }
  // The queue ids that `client` holds of `ids` after asking for them.
  std::vector<std::int32_t> Lock(const std::string& client, std::vector<std::int32_t> ids) {
    std::vector<TopicQueue> queues;
    for (const std::int32_t id : ids) queues.push_back(Queue("T", id));
    Outcome<Result<std::vector<LockService::Held>>> outcome;
    locks_.Lock(GroupName("g"), ClientId(client), queues, Deadline(), outcome.Callback());
    const auto held = outcome.Get();
    CHECK(held.ok()) << held.status();
    std::vector<std::int32_t> got;
    for (const auto& one : held.value()) got.push_back(one.queue.queue_id.value());
    last_tokens_.clear();
    for (const auto& one : held.value()) last_tokens_.push_back(one.token);
    return got;
  }
  Status Unlock(const std::string& client, std::int32_t id) {
    Outcome<Status> outcome;
    locks_.Unlock(GroupName("g"), ClientId(client), {Queue("T", id)}, Deadline(),
                  outcome.Callback());
    return outcome.Get();
  }
  GroupQueue Key(std::int32_t id) const { return {GroupName("g"), Queue("T", id)}; }
  void Commit(std::int32_t id, std::int64_t offset, std::function<void(Status)> done,
              std::uint64_t token = 0) {
    offsets_.Commit({Key(id), QueueOffset(offset), token}, Deadline(), std::move(done));
  }
  std::optional<std::int64_t> Query(std::int32_t id) {
    Outcome<Result<std::optional<QueueOffset>>> outcome;
    offsets_.Query(Key(id), Deadline(), outcome.Callback());
    const auto found = outcome.Get();
    CHECK(found.ok()) << found.status();
    if (!found.value()) return std::nullopt;
    return found.value()->value();
  }

  // The services' clock stands still unless a test moves it; timers and log run on the real one.
  class OffsetClock final : public Clock {
   public:
    TimePoint MonoNow() const override {
      return SystemClock().MonoNow() + std::chrono::nanoseconds(shift_ns_.load());
    }
    std::int64_t WallNowMs() const override { return SystemClock().WallNowMs(); }
    void Advance(seconds by) { shift_ns_ += std::chrono::nanoseconds(by).count(); }

   private:
    std::atomic<std::int64_t> shift_ns_{0};
  };

  const milliseconds interval_{20};
  OffsetClock clock_;
  OnePeerStore peer_;
  TimerQueue timers_;
  LeaderReads reads_;
  OffsetService offsets_;
  LockService locks_;
  std::vector<std::uint64_t> last_tokens_;
};

using Ids = std::vector<std::int32_t>;

TEST_F(LocksAndOffsets, ORD_1_TheFirstToAskHoldsTheQueueUntilItsLeaseEnds) {
  EXPECT_EQ(Lock("A", {0, 1}), (Ids{0, 1}));
  EXPECT_EQ(Lock("B", {1, 2}), (Ids{2}));
  clock_.Advance(seconds(20));
  EXPECT_EQ(Lock("A", {0, 1}), (Ids{0, 1}));
  clock_.Advance(seconds(59));
  EXPECT_EQ(Lock("B", {1}), (Ids{}));
  clock_.Advance(seconds(2));
  EXPECT_EQ(Lock("B", {1}), (Ids{1}));
}

TEST_F(LocksAndOffsets, ALeaseEndsSixtySecondsAfterItsLastRenewal) {
  EXPECT_EQ(Lock("A", {1}), (Ids{1}));
  clock_.Advance(seconds(40));
  EXPECT_EQ(Lock("A", {1}), (Ids{1}));  // renews
  clock_.Advance(seconds(40));
  EXPECT_EQ(Lock("B", {1}), (Ids{}));
  clock_.Advance(seconds(21));
  EXPECT_EQ(Lock("B", {1}), (Ids{1}));
  EXPECT_EQ(Lock("A", {1}), (Ids{}));
}

TEST_F(LocksAndOffsets, ORD_2_OnlyItsHolderReleasesAQueueAndThenItIsFreeAtOnce) {
  EXPECT_EQ(Lock("A", {0}), (Ids{0}));
  EXPECT_TRUE(Unlock("B", 0).ok());
  EXPECT_EQ(Lock("C", {0}), (Ids{}));
  EXPECT_TRUE(Unlock("A", 0).ok());
  EXPECT_EQ(Lock("C", {0}), (Ids{0}));
}

TEST_F(LocksAndOffsets, EveryGrantHasALargerToken) {
  Lock("A", {0});
  const std::uint64_t first = last_tokens_.at(0);
  Lock("A", {0});
  EXPECT_EQ(last_tokens_.at(0), first);  // a renewal is the same grant
  ASSERT_TRUE(Unlock("A", 0).ok());
  Lock("B", {0});
  EXPECT_GT(last_tokens_.at(0), first);
}

TEST_F(LocksAndOffsets, ANewLeaderCountsEveryLeaseOfTheLogAsFresh) {
  EXPECT_EQ(Lock("A", {0}), (Ids{0}));
  clock_.Advance(seconds(59));
  locks_.OnLeaderTerm(Term{});
  locks_.OnLeaderTerm(peer_.term());
  clock_.Advance(seconds(59));
  EXPECT_EQ(Lock("B", {0}), (Ids{}));
  EXPECT_EQ(Lock("A", {0}), (Ids{0}));
}

TEST_F(LocksAndOffsets, ALeaseThatEndedLeavesTheTableAndTheLog) {
  Lock("gone", {0, 1});
  Lock("B", {2});
  clock_.Advance(seconds(40));
  Lock("B", {2});
  clock_.Advance(seconds(20));
  locks_.ReleaseExpired(Deadline());
  Outcome<Status> flushed;  // behind the releases in the log
  Commit(3, 1, flushed.Callback());
  ASSERT_TRUE(flushed.Get().ok());
  EXPECT_EQ(locks_.leases(), 1u);
  for (const auto& lock : peer_.store().state().Locks()) {
    EXPECT_EQ(lock.client, ClientId(lock.key.queue == Queue("T", 2) ? "B" : ""));
  }
  // So the next leader does not keep the queues for somebody who is gone.
  locks_.OnLeaderTerm(Term{});
  locks_.OnLeaderTerm(peer_.term());
  EXPECT_EQ(Lock("C", {0}), (Ids{0}));
}

TEST_F(LocksAndOffsets, ATokenGrowsAlsoOverAReleaseByTime) {
  Lock("A", {0});
  const std::uint64_t first = last_tokens_.at(0);
  clock_.Advance(seconds(60));
  locks_.ReleaseExpired(Deadline());
  Lock("A", {0});
  EXPECT_GT(last_tokens_.at(0), first);
  Outcome<Status> stale;
  Commit(0, 5, stale.Callback(), first);
  EXPECT_EQ(stale.Get().code(), StatusCode::kPermissionDenied);
}

TEST_F(LocksAndOffsets, WhoRenewsInTimeIsNotReleased) {
  Lock("A", {0});
  const std::uint64_t first = last_tokens_.at(0);
  clock_.Advance(seconds(59));
  locks_.ReleaseExpired(Deadline());
  EXPECT_EQ(Lock("A", {0}), (Ids{0}));
  EXPECT_EQ(last_tokens_.at(0), first);
}

TEST_F(LocksAndOffsets, NobodyGrantsWithoutLeading) {
  locks_.OnLeaderTerm(Term{});
  Outcome<Result<std::vector<LockService::Held>>> outcome;
  locks_.Lock(GroupName("g"), ClientId("A"), {Queue("T", 0)}, Deadline(), outcome.Callback());
  EXPECT_EQ(outcome.Get().status().code(), StatusCode::kNotLeader);
}

TEST_F(LocksAndOffsets, WhoAsksAgainWhileItsReleaseIsOnItsWayGetsAGrantBehindIt) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(Lock("A", {0}), (Ids{0}));
    Outcome<Status> released;
    locks_.Unlock(GroupName("g"), ClientId("A"), {Queue("T", 0)}, Deadline(), released.Callback());
    ASSERT_EQ(Lock("A", {0}), (Ids{0}));
    ASSERT_TRUE(released.Get().ok());
    const auto locks = peer_.store().state().Locks();
    ASSERT_EQ(locks.at(0).client, ClientId("A")) << "told that it holds what is free";
    ASSERT_EQ(locks.at(0).token, last_tokens_.at(0));
  }
}

TEST_F(LocksAndOffsets, AGroupWithALiveLeaseIsOrderly) {
  EXPECT_FALSE(locks_.GroupHoldsLease(GroupName("g")));
  Lock("A", {3});
  EXPECT_TRUE(locks_.GroupHoldsLease(GroupName("g")));
  EXPECT_FALSE(locks_.GroupHoldsLease(GroupName("f")));
  EXPECT_FALSE(locks_.GroupHoldsLease(GroupName("h")));
  clock_.Advance(seconds(60));
  EXPECT_FALSE(locks_.GroupHoldsLease(GroupName("g")));
}

// Its record goes with the topic or with the group's offsets; the next leader knows records only.
TEST_F(LocksAndOffsets, ALeaseWhoseRecordIsGoneIsGrantedAnewAndOutlivesAFailover) {
  StateCommand forget_group;
  forget_group.delete_groups.emplace_back("g");
  forget_group.clean_offsets = true;
  StateCommand delete_topic;
  delete_topic.delete_topics.emplace_back("T");
  for (const StateCommand& removal : {forget_group, delete_topic}) {
    ASSERT_EQ(Lock("A", {0}), (Ids{0}));
    const std::uint64_t first = last_tokens_.at(0);
    peer_.Apply(removal);
    StateCommand again;
    again.put_topics.emplace_back().name = Topic("T");
    again.create_only = true;
    peer_.Apply(again);
    ASSERT_EQ(Lock("A", {0}), (Ids{0}));
    EXPECT_GT(last_tokens_.at(0), first);
    EXPECT_EQ(peer_.store().state().LockToken(Key(0)), last_tokens_.at(0));
    locks_.OnLeaderTerm(Term{});
    locks_.OnLeaderTerm(peer_.term());
    EXPECT_EQ(Lock("B", {0}), (Ids{})) << "A consumes in order";
  }
}

TEST_F(LocksAndOffsets, ACommitBehindItsTopicsDeletionSaysSo) {
  StateCommand delete_topic;
  delete_topic.delete_topics.emplace_back("T");
  peer_.Apply(delete_topic);
  Outcome<Status> late;
  Commit(0, 5, late.Callback());
  EXPECT_EQ(late.Get().code(), StatusCode::kNotFound);
  EXPECT_EQ(peer_.store().state().FindOffset(Key(0)), std::nullopt);
}

TEST_F(LocksAndOffsets, GrantsStandInTheLog) {
  Lock("A", {0});
  const auto locks = peer_.store().state().Locks();
  ASSERT_EQ(locks.size(), 1u);
  EXPECT_EQ(locks[0].client, ClientId("A"));
  EXPECT_EQ(locks[0].token, last_tokens_.at(0));
}

TEST_F(LocksAndOffsets, TheLastCommitInArrivalOrderWinsAlsoASmallerOne) {
  Outcome<Status> first;
  Outcome<Status> second;
  Commit(0, 100, first.Callback());
  Commit(0, 40, second.Callback());
  EXPECT_TRUE(first.Get().ok());
  EXPECT_TRUE(second.Get().ok());
  EXPECT_EQ(peer_.store().state().FindOffset(Key(0)), QueueOffset(40));
}

TEST_F(LocksAndOffsets, AResetStandsBehindEveryCommitThatArrivedBeforeItAndBeforeLaterOnes) {
  OffsetService slow(OffsetService::Options{.interval = seconds(60)}, clock_, timers_,
                     peer_.store().appender(), peer_.store().state(), reads_);
  slow.Commit({Key(0), QueueOffset(90), 0}, Deadline(), [](const Status&) {});
  Outcome<Status> reset;
  slow.CommitNow({{Key(0), QueueOffset(5), 0}, {Key(1), QueueOffset(6), 0}}, Deadline(),
                 reset.Callback());
  ASSERT_TRUE(reset.Get().ok());
  EXPECT_EQ(peer_.store().state().FindOffset(Key(0)), QueueOffset(5));
  EXPECT_EQ(peer_.store().state().FindOffset(Key(1)), QueueOffset(6));
  EXPECT_EQ(slow.pending(), 0u);
}

TEST_F(LocksAndOffsets, OfACommitOfSeveralTheFirstErrorIsTold) {
  Lock("A", {0});
  const std::uint64_t old_token = last_tokens_.at(0);
  ASSERT_TRUE(Unlock("A", 0).ok());
  Lock("B", {0});
  Outcome<Status> outcome;
  offsets_.CommitNow({{Key(0), QueueOffset(5), old_token}, {Key(1), QueueOffset(6), 0}}, Deadline(),
                     outcome.Callback());
  EXPECT_EQ(outcome.Get().code(), StatusCode::kPermissionDenied);
}

TEST_F(LocksAndOffsets, CommitsAreGatheredIntoOneEntry) {
  const LogIndex before = peer_.store().state().applied_index();
  std::vector<Outcome<Status>> outcomes(4);
  for (std::int32_t id = 0; id < 4; ++id) {
    Commit(id, 10 + id, outcomes[static_cast<std::size_t>(id)].Callback());
  }
  for (auto& outcome : outcomes) EXPECT_TRUE(outcome.Get().ok());
  EXPECT_EQ(peer_.store().state().applied_index(), before + 1);
}

TEST_F(LocksAndOffsets, AQueryDoesNotMissACommitThatArrivedBeforeIt) {
  OffsetService slow(OffsetService::Options{.interval = seconds(60)}, clock_, timers_,
                     peer_.store().appender(), peer_.store().state(), reads_);
  slow.Commit({Key(0), QueueOffset(7), 0}, Deadline(), [](const Status&) {});
  Outcome<Result<std::optional<QueueOffset>>> outcome;
  slow.Query(Key(0), Deadline(), outcome.Callback());
  const auto found = outcome.Get();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found.value(), QueueOffset(7));
}

TEST_F(LocksAndOffsets, AQueryTellsNothingStoredFromAnError) {
  EXPECT_EQ(Query(3), std::nullopt);
}

TEST_F(LocksAndOffsets, ALockPutsTheGroupsCommitsInFrontOfItsGrant) {
  OffsetService slow(OffsetService::Options{.interval = seconds(60)}, clock_, timers_,
                     peer_.store().appender(), peer_.store().state(), reads_);
  LockService locks(clock_, peer_.store().appender(), peer_.store().state(), reads_, slow);
  locks.OnLeaderTerm(peer_.term());
  slow.Commit({Key(0), QueueOffset(9), 0}, Deadline(), [](const Status&) {});
  Outcome<Result<std::vector<LockService::Held>>> outcome;
  locks.Lock(GroupName("g"), ClientId("A"), {Queue("T", 0)}, Deadline(), outcome.Callback());
  ASSERT_TRUE(outcome.Get().ok());
  EXPECT_EQ(peer_.store().state().FindOffset(Key(0)), QueueOffset(9));
}

TEST_F(LocksAndOffsets, AnUnlockPutsTheGroupsCommitsInFrontOfItsRelease) {
  OffsetService slow(OffsetService::Options{.interval = seconds(60)}, clock_, timers_,
                     peer_.store().appender(), peer_.store().state(), reads_);
  LockService locks(clock_, peer_.store().appender(), peer_.store().state(), reads_, slow);
  locks.OnLeaderTerm(peer_.term());
  Outcome<Result<std::vector<LockService::Held>>> held;
  locks.Lock(GroupName("g"), ClientId("A"), {Queue("T", 0)}, Deadline(), held.Callback());
  const std::uint64_t token = held.Get().value().at(0).token;
  Outcome<Status> committed;
  slow.Commit({Key(0), QueueOffset(9), token}, Deadline(), committed.Callback());
  Outcome<Status> released;
  locks.Unlock(GroupName("g"), ClientId("A"), {Queue("T", 0)}, Deadline(), released.Callback());
  ASSERT_TRUE(released.Get().ok());
  EXPECT_TRUE(committed.Get().ok()) << "refused: it stands behind the next holder's grant";
  EXPECT_EQ(peer_.store().state().FindOffset(Key(0)), QueueOffset(9));
}

TEST_F(LocksAndOffsets, ACommitThatNobodyWaitsForStandsInTheLogAfterItsInterval) {
  Outcome<Status> committed;
  Commit(0, 7, committed.Callback());  // no query, lock or reset follows
  EXPECT_TRUE(committed.Get().ok());
  EXPECT_EQ(peer_.store().state().FindOffset(Key(0)), QueueOffset(7));
}

TEST_F(LocksAndOffsets, ACommitUnderAnOlderLockIsRefused) {
  Lock("A", {0});
  const std::uint64_t old_token = last_tokens_.at(0);
  ASSERT_TRUE(Unlock("A", 0).ok());
  Lock("B", {0});
  Outcome<Status> stale;
  Commit(0, 5, stale.Callback(), old_token);
  EXPECT_EQ(stale.Get().code(), StatusCode::kPermissionDenied);
  Outcome<Status> current;
  Commit(0, 6, current.Callback(), last_tokens_.at(0));
  EXPECT_TRUE(current.Get().ok());
}

TEST_F(LocksAndOffsets, AWaitingCommitOfAnEarlierHolderIsRefusedWhenTheNextOneCommits) {
  OffsetService slow(OffsetService::Options{.interval = seconds(60)}, clock_, timers_,
                     peer_.store().appender(), peer_.store().state(), reads_);
  Outcome<Status> unfenced;
  slow.Commit({Key(0), QueueOffset(1), 0}, Deadline(), unfenced.Callback());
  Outcome<Status> earlier;
  slow.Commit({Key(0), QueueOffset(50), 7}, Deadline(), earlier.Callback());
  Outcome<Status> current;
  slow.Commit({Key(0), QueueOffset(100), 8}, Deadline(), current.Callback());
  EXPECT_EQ(earlier.Get().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(slow.pending(), 2u);
  Outcome<Status> flushed;
  slow.Flush(GroupName("g"), Deadline(), flushed.Callback());
  EXPECT_TRUE(flushed.Get().ok());
  EXPECT_TRUE(unfenced.Get().ok());
  EXPECT_TRUE(current.Get().ok());
  EXPECT_EQ(peer_.store().state().FindOffset(Key(0)), QueueOffset(100));
}

TEST_F(LocksAndOffsets, AStaleCommitTakesNobodysPlaceWhileItWaits) {
  Lock("A", {0});
  const std::uint64_t old_token = last_tokens_.at(0);
  ASSERT_TRUE(Unlock("A", 0).ok());
  Lock("B", {0});
  OffsetService slow(OffsetService::Options{.interval = seconds(60)}, clock_, timers_,
                     peer_.store().appender(), peer_.store().state(), reads_);
  Outcome<Status> unfenced;
  slow.Commit({Key(0), QueueOffset(100), 0}, Deadline(), unfenced.Callback());
  Outcome<Status> stale;
  slow.Commit({Key(0), QueueOffset(50), old_token}, Deadline(), stale.Callback());
  EXPECT_EQ(stale.Get().code(), StatusCode::kPermissionDenied);
  Outcome<Status> flushed;
  slow.Flush(GroupName("g"), Deadline(), flushed.Callback());
  EXPECT_TRUE(flushed.Get().ok());
  EXPECT_TRUE(unfenced.Get().ok());
  EXPECT_EQ(peer_.store().state().FindOffset(Key(0)), QueueOffset(100));
}

TEST_F(LocksAndOffsets, ALateCommitOfAnOlderLockDoesNotTakeTheNewHoldersPlace) {
  OffsetService slow(OffsetService::Options{.interval = seconds(60)}, clock_, timers_,
                     peer_.store().appender(), peer_.store().state(), reads_);
  Outcome<Status> current;
  slow.Commit({Key(0), QueueOffset(100), 8}, Deadline(), current.Callback());
  Outcome<Status> stale;
  slow.Commit({Key(0), QueueOffset(50), 7}, Deadline(), stale.Callback());
  EXPECT_EQ(stale.Get().code(), StatusCode::kPermissionDenied);
  Outcome<Status> flushed;
  slow.Flush(GroupName("g"), Deadline(), flushed.Callback());
  EXPECT_TRUE(flushed.Get().ok());
  EXPECT_TRUE(current.Get().ok());
  EXPECT_EQ(peer_.store().state().FindOffset(Key(0)), QueueOffset(100));
}

TEST_F(LocksAndOffsets, AQuerySeesACommitAtEveryStageOfItsWay) {
  // The timer takes the commits out while the query looks for them.
  OffsetService quick(OffsetService::Options{.interval = milliseconds(0)}, clock_, timers_,
                      peer_.store().appender(), peer_.store().state(), reads_);
  for (std::int64_t round = 1; round <= 200; ++round) {
    for (std::int32_t id = 1; id < 200; ++id) {
      quick.Commit({{GroupName("many"), Queue("T", id)}, QueueOffset(round), 0}, Deadline(),
                   [](const Status&) {});
    }
    quick.Commit({Key(0), QueueOffset(round), 0}, Deadline(), [](const Status&) {});
    Outcome<Result<std::optional<QueueOffset>>> outcome;
    quick.Query(Key(0), Deadline(), outcome.Callback());
    const auto found = outcome.Get();
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found.value(), QueueOffset(round));
  }
}

TEST_F(LocksAndOffsets, AcknowledgedCommitsSurviveARestart) {
  Outcome<Status> outcome;
  Commit(0, 77, outcome.Callback());
  ASSERT_TRUE(outcome.Get().ok());
  peer_.Restart();
  EXPECT_EQ(peer_.store().state().FindOffset(Key(0)), QueueOffset(77));
}

TEST_F(LocksAndOffsets, CommitsBeyondTheBoundAreRefused) {
  OffsetService small(OffsetService::Options{.interval = seconds(60), .max_pending = 1}, clock_,
                      timers_, peer_.store().appender(), peer_.store().state(), reads_);
  small.Commit({Key(0), QueueOffset(1), 0}, Deadline(), [](const Status&) {});
  Outcome<Status> second;
  small.Commit({Key(1), QueueOffset(1), 0}, Deadline(), second.Callback());
  EXPECT_EQ(second.Get().code(), StatusCode::kBusy);
}

TEST_F(LocksAndOffsets, ReadsOfALeaderAreConfirmed) {
  std::vector<Outcome<Status>> outcomes(10);
  for (auto& outcome : outcomes) reads_.Confirm(seconds(5), outcome.Callback());
  for (auto& outcome : outcomes) EXPECT_TRUE(outcome.Get().ok());
}

}  // namespace
}  // namespace triad::broker
