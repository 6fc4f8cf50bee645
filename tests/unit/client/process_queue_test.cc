#include "client/process_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace triad::client {
namespace {

using std::chrono::milliseconds;

TimePoint At(int ms) {
  return TimePoint(milliseconds(ms));
}

Messages Make(std::int64_t begin, std::int64_t end, std::size_t bytes = 1) {
  Messages messages;
  for (std::int64_t at = begin; at < end; ++at) {
    ReceivedMessage message;
    message.queue_offset = at;
    message.body.assign(bytes, 'x');
    messages.push_back(message);
  }
  return messages;
}

ProcessQueue Queue(ProcessQueue::Limits limits = {}) {
  return ProcessQueue(MessageQueue{"T", "a", 0}, limits);
}

std::vector<std::int64_t> Offsets(const Messages& messages) {
  std::vector<std::int64_t> offsets;
  for (const ReceivedMessage& message : messages) offsets.push_back(message.queue_offset);
  return offsets;
}

TEST(ProcessQueue, CommitsTheSmallestUnfinishedOffset) {
  ProcessQueue queue = Queue();
  queue.Track(Make(10, 15));
  EXPECT_EQ(queue.Finish({12}), 10);
  EXPECT_EQ(queue.Finish({10}), 11);
  EXPECT_EQ(queue.Finish({11}), 13);
  EXPECT_EQ(queue.Finish({14}), 13);
  EXPECT_EQ(queue.Finish({13}), 15);
  EXPECT_EQ(queue.Finish({13}), std::nullopt);
}

TEST(ProcessQueue, CommitIsRightForAnyOrderOfFinishing) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  ProcessQueue queue = Queue();
  std::set<std::int64_t> open;
  std::int64_t next = 0;
  for (int step = 0; step < 2000; ++step) {
    if (open.empty() || random() % 3 == 0) {
      const std::int64_t end = next + 1 + static_cast<std::int64_t>(random() % 5);
      queue.Track(Make(next, end));
      for (; next < end; ++next) open.insert(next);
    } else {
      auto it = open.begin();
      std::advance(it, random() % open.size());
      const std::int64_t finished = *it;
      open.erase(it);
      ASSERT_EQ(queue.Finish({finished}), open.empty() ? next : *open.begin());
    }
  }
}

TEST(ProcessQueue, IsFullByCountBytesOrSpan) {
  ProcessQueue::Limits limits;
  limits.max_messages = 3;
  limits.max_bytes = 100;
  limits.max_span = 10;
  {
    ProcessQueue queue = Queue(limits);
    queue.Track(Make(0, 2));
    EXPECT_FALSE(queue.Full());
    queue.Track(Make(2, 3));
    EXPECT_TRUE(queue.Full());
    queue.Finish({0});
    EXPECT_FALSE(queue.Full());
  }
  {
    ProcessQueue queue = Queue(limits);
    queue.Track(Make(0, 1, 99));
    EXPECT_FALSE(queue.Full());
    queue.Track(Make(1, 2, 1));
    EXPECT_TRUE(queue.Full());
    queue.Finish({0});
    EXPECT_FALSE(queue.Full());
  }
  {
    ProcessQueue queue = Queue(limits);
    queue.Track(Make(0, 1));
    queue.Track(Make(11, 12));
    EXPECT_TRUE(queue.Full()) << "offset 0 is stuck and 11 was pulled";
    queue.Finish({0});
    EXPECT_FALSE(queue.Full());
  }
}

TEST(ProcessQueue, OrderlyTakesInOrderAndCommitsWhatWasTaken) {
  ProcessQueue queue = Queue();
  queue.Add(Make(5, 9));
  ASSERT_TRUE(queue.Claim(At(0)));
  EXPECT_EQ(Offsets(queue.Take(3)), (std::vector<std::int64_t>{5, 6, 7}));
  EXPECT_EQ(queue.cached_messages(), 4u) << "taken ones count until they are done";
  EXPECT_EQ(queue.Commit(), 8);
  EXPECT_EQ(Offsets(queue.Take(3)), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(queue.Commit(), 9);
  EXPECT_EQ(queue.Commit(), std::nullopt);
  EXPECT_EQ(queue.cached_messages(), 0u);
}

TEST(ProcessQueue, OrderlyPutsAFailedBatchBackInFront) {
  ProcessQueue queue = Queue();
  queue.Add(Make(0, 3));
  ASSERT_TRUE(queue.Claim(At(0)));
  Messages batch = queue.Take(1);
  batch[0].reconsume_times = 4;
  queue.PutBack(std::move(batch));
  EXPECT_EQ(queue.Commit(), std::nullopt) << "nothing is done";
  batch = queue.Take(2);
  EXPECT_EQ(Offsets(batch), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(batch[0].reconsume_times, 4);
}

TEST(ProcessQueue, OrderlyNeverCommitsPastAMessageThatWasPutBack) {
  ProcessQueue queue = Queue();
  queue.Add(Make(0, 3));
  ASSERT_TRUE(queue.Claim(At(0)));
  Messages batch = queue.Take(3);
  queue.PutBack({batch[0]});  // 1 and 2 were given up
  EXPECT_EQ(queue.Commit(), 0);
  EXPECT_EQ(Offsets(queue.Take(3)), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(queue.Commit(), 1);
}

TEST(ProcessQueue, OneConsumerAtATime) {
  ProcessQueue queue = Queue();
  queue.Add(Make(0, 1));
  EXPECT_TRUE(queue.Claim(At(0)));
  EXPECT_FALSE(queue.Claim(At(0)));
  EXPECT_FALSE(queue.WaitIdle(milliseconds(1)));
  queue.Take(1);
  queue.Commit();
  EXPECT_TRUE(queue.Take(1).empty());  // gives the claim up
  EXPECT_TRUE(queue.WaitIdle(milliseconds(1)));
  EXPECT_TRUE(queue.Claim(At(0)));
}

TEST(ProcessQueue, APausedQueueIsNotClaimedEarly) {
  ProcessQueue queue = Queue();
  ASSERT_TRUE(queue.Claim(At(0)));
  queue.Pause(At(100));
  EXPECT_FALSE(queue.Claim(At(99)));
  EXPECT_TRUE(queue.WaitIdle(milliseconds(1))) << "a pause does not hold up a release";
  EXPECT_TRUE(queue.Claim(At(100)));
}

TEST(ProcessQueue, ADroppedQueueIsNotConsumed) {
  ProcessQueue queue = Queue();
  queue.Drop();
  EXPECT_FALSE(queue.Claim(At(0)));
}

TEST(ProcessQueue, ALockLastsThirtySecondsFromItsConfirmation) {
  ProcessQueue queue = Queue();
  EXPECT_FALSE(queue.HasLock(At(0)));
  queue.SetLocked(7, At(1000));
  EXPECT_EQ(queue.fence_token(), 7u);
  EXPECT_TRUE(queue.HasLock(At(30999)));
  EXPECT_FALSE(queue.HasLock(At(31000)));
  queue.SetLocked(7, At(20000));
  EXPECT_TRUE(queue.HasLock(At(49999)));
  queue.SetUnlocked();
  EXPECT_FALSE(queue.HasLock(At(20001)));
}

}  // namespace
}  // namespace triad::client
