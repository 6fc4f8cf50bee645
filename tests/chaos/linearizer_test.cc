// The search against a checker that simply tries every order.

#include "tests/chaos/linearizer.h"

#include <gtest/gtest.h>

#include "tests/sim/random.h"

namespace triad::chaos {
namespace {

// Tries every order that time allows; unknown operations also not at all. No memory, no list.
bool SomeOrderFits(const ObjectModel& model, const std::vector<ObjectOp>& ops, unsigned done,
                   const ObjectState& state) {
  bool all = true;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].known && !((done >> i) & 1)) all = false;
  }
  if (all) return true;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if ((done >> i) & 1) continue;
    bool may_be_next = true;
    for (std::size_t j = 0; j < ops.size(); ++j) {
      if (!((done >> j) & 1) && ops[j].known && ops[j].returned_ns < ops[i].invoked_ns) {
        may_be_next = false;
      }
    }
    ObjectState after;
    if (may_be_next && model.step(state, ops[i], &after) &&
        SomeOrderFits(model, ops, done | (1u << i), after)) {
      return true;
    }
  }
  return false;
}

ObjectOp RandomOp(Op asks, Op changes, Op removes, sim::Random* random) {
  ObjectOp op;
  op.op = random->OneIn(2) ? asks : random->OneIn(2) ? changes : removes;
  op.client = static_cast<int>(random->Below(2));
  op.known = !random->OneIn(4);
  op.invoked_ns = random->Between(0, 30);
  op.returned_ns = op.invoked_ns + random->Between(0, 15);
  op.argument = random->Between(0, 2);
  op.answer = op.op == Op::kFetch || op.op == Op::kGetTopic ? random->Between(-1, 2)
                                                            : random->Between(0, 2);
  return op;
}

TEST(Linearizer, AgreesWithTryingEveryOrder) {
  struct Case {
    const char* name;
    ObjectModel model;
    Op asks, changes;
    Op removes = changes;
  };
  const Case cases[] = {{"register", OffsetRegister(), Op::kFetch, Op::kCommit},
                        {"maximum", MaxOffset(), Op::kMax, Op::kAppend},
                        {"topic", TopicConfig(), Op::kGetTopic, Op::kPutTopic, Op::kDropTopic},
                        {"lock", QueueLock(), Op::kLock, Op::kUnlock}};
  for (const Case& c : cases) {
    int yes = 0;
    int no = 0;
    for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
      sim::Random random(seed);
      std::vector<ObjectOp> ops;
      const std::size_t count = 1 + random.Below(8);
      while (ops.size() < count) ops.push_back(RandomOp(c.asks, c.changes, c.removes, &random));
      const bool fits = SomeOrderFits(c.model, ops, 0, c.model.initial);
      const Linearizable found = Check(c.model, ops, [] { return false; });
      ASSERT_EQ(found, fits ? Linearizable::kYes : Linearizable::kNo) << c.name << " seed " << seed;
      ++(fits ? yes : no);
    }
    EXPECT_GT(yes, 200) << c.name;
    EXPECT_GT(no, 200) << c.name;
  }
}

TEST(Linearizer, DecidesALongHistoryWithoutOverlapAtOnce) {
  std::vector<ObjectOp> ops;
  for (std::int64_t i = 0; i < 300; ++i) {
    ops.push_back({Op::kCommit, 0, true, i * 20, i * 20 + 5, i, 0});
    ops.push_back({Op::kFetch, 1, true, i * 20 + 10, i * 20 + 15, 0, i});
  }
  int asked = 0;
  EXPECT_EQ(Check(OffsetRegister(), ops, [&] { return ++asked > 1; }), Linearizable::kYes);
  ops.back().answer = 7;
  EXPECT_EQ(Check(OffsetRegister(), ops, [&] { return ++asked > 1; }), Linearizable::kNo);
}

TEST(Linearizer, SaysUnknownWhenTimeIsUp) {
  std::vector<ObjectOp> ops;  // all at once, and the answers fit no order
  for (std::int64_t i = 0; i < 24; ++i) {
    ops.push_back({Op::kCommit, 0, true, 0, 1000, i, 0});
    ops.push_back({Op::kFetch, 1, true, 0, 1000, 0, i});
  }
  ops.push_back({Op::kFetch, 1, true, 2000, 2001, 0, 99});
  EXPECT_EQ(Check(OffsetRegister(), ops, [] { return true; }), Linearizable::kUnknown);
}

}  // namespace
}  // namespace triad::chaos
