#include "remoting/call_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace triad::remoting {
namespace {

TimePoint At(int ms) {
  return TimePoint(std::chrono::milliseconds(ms));
}

CallDone Note(std::vector<int>* calls, int id) {
  return [calls, id](const Result<Command>&) { calls->push_back(id); };
}

void Finish(std::vector<CallDone>* all) {
  for (CallDone& done : *all) done(Status::Cancelled("end"));
}

TEST(CallTable, FindsACallByItsOpaqueOnce) {
  CallTable table(10);
  std::vector<int> calls;
  const std::int32_t a = table.Add(At(1), Note(&calls, 1));
  const std::int32_t b = table.Add(At(1), Note(&calls, 2));
  EXPECT_NE(a, b);
  CallDone done = table.Take(b);
  ASSERT_TRUE(done);
  done(Command());
  EXPECT_EQ(calls, std::vector{2});
  EXPECT_FALSE(table.Take(b));
  EXPECT_FALSE(table.Take(b + 100));
  EXPECT_EQ(table.size(), 1u);
}

TEST(CallTable, IsFullAtItsCapacity) {
  CallTable table(2);
  std::vector<int> calls;
  table.Add(At(1), Note(&calls, 1));
  EXPECT_FALSE(table.full());
  const std::int32_t second = table.Add(At(1), Note(&calls, 2));
  EXPECT_TRUE(table.full());
  table.Take(second);
  EXPECT_FALSE(table.full());
}

TEST(CallTable, ExpiresAtTheDeadlineAndTellsTheNextOne) {
  CallTable table(10);
  std::vector<int> calls;
  table.Add(At(10), Note(&calls, 1));
  table.Add(At(30), Note(&calls, 2));
  table.Add(At(20), Note(&calls, 3));
  std::vector<CallDone> expired;
  EXPECT_EQ(table.Expire(At(9), &expired), At(10));
  EXPECT_TRUE(expired.empty());
  EXPECT_EQ(table.Expire(At(20), &expired), At(30));
  EXPECT_EQ(expired.size(), 2u);
  EXPECT_EQ(table.Expire(At(30), &expired), TimePoint::max());
  Finish(&expired);
  EXPECT_EQ(calls.back(), 2);
}

TEST(CallTable, TakeAllComesInCallOrder) {
  CallTable table(1000);
  std::vector<int> calls;
  std::vector<int> expected;
  for (int i = 0; i < 100; ++i) {
    table.Add(At(1), Note(&calls, i));
    expected.push_back(i);
  }
  std::vector<CallDone> all = table.TakeAll();
  Finish(&all);
  EXPECT_EQ(calls, expected);
  EXPECT_EQ(table.size(), 0u);
}

TEST(CallTable, ALongCallKeepsItsNumberWhileOthersComeAndGo) {
  CallTable table(100);
  std::vector<int> calls;
  const std::int32_t slow = table.Add(At(1), Note(&calls, -1));
  for (int i = 0; i < 1000; ++i) {
    const std::int32_t quick = table.Add(At(1), Note(&calls, i));
    EXPECT_NE(quick, slow);
    EXPECT_TRUE(table.Take(quick));
  }
  CallDone done = table.Take(slow);
  ASSERT_TRUE(done);
  done(Command());
  EXPECT_EQ(calls, std::vector{-1});
}

// Against a plain map, with growth in the middle.
TEST(CallTable, AgreesWithAMap) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  CallTable table(300);
  std::map<std::int32_t, int> model;
  std::vector<int> calls;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0 && !table.full()) {
      const std::int32_t opaque = table.Add(At(static_cast<int>(random() % 1000)), Note(&calls, i));
      ASSERT_TRUE(model.emplace(opaque, i).second);
    } else if (!model.empty()) {
      auto it = model.begin();
      std::advance(it, random() % model.size());
      CallDone done = table.Take(it->first);
      ASSERT_TRUE(done);
      done(Command());
      ASSERT_EQ(calls.back(), it->second);
      model.erase(it);
    }
    ASSERT_EQ(table.size(), model.size());
  }
}

}  // namespace
}  // namespace triad::remoting
