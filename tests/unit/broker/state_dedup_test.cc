// The keys of recent messages: their table, and what the replicated state makes of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/broker/state_support.h"

namespace triad::broker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

DedupRecord At(std::int64_t position, std::int64_t time_ms = 0) {
  return {QueueId{0}, QueueOffset{position / 10}, PhysicalOffset{position}, time_ms};
}

class DedupTableTest : public testing::Test {
 protected:
  void Put(const std::string& key, const DedupRecord& record) { table_.Put(key, record, note_); }

  std::vector<std::string> gone_;
  DedupTable::OnGone note_ = [this](const std::string& key) { gone_.push_back(key); };
  DedupTable table_{3};
};

TEST_F(DedupTableTest, FindsTheMessageOfAKey) {
  Put("a", At(10));
  Put("b", At(20));
  ASSERT_NE(table_.Find("a"), nullptr);
  EXPECT_EQ(*table_.Find("a"), At(10));
  EXPECT_EQ(table_.Find("c"), nullptr);
}

TEST_F(DedupTableTest, WhenFullTheOldestGoAndAreCounted) {
  for (const char* key : {"a", "b", "c", "d", "e"}) Put(key, At(10 + 10 * (*key - 'a')));
  EXPECT_EQ(table_.size(), 3u);
  EXPECT_EQ(table_.evicted(), 2u);
  EXPECT_THAT(gone_, ElementsAre("a", "b"));
  EXPECT_EQ(table_.Find("b"), nullptr);
  EXPECT_NE(table_.Find("c"), nullptr);
}

TEST_F(DedupTableTest, AKeyThatComesAgainIsAsYoungAsItsLastMessage) {
  Put("a", At(10, 100));
  Put("b", At(20, 200));
  Put("a", At(30, 300));
  table_.Expire(200, note_);
  EXPECT_THAT(gone_, ElementsAre("b"));
  EXPECT_EQ(*table_.Find("a"), At(30, 300));
}

TEST_F(DedupTableTest, ExpiryIsByTimeAndNotCountedAsEviction) {
  Put("a", At(10, 100));
  Put("b", At(20, 101));
  table_.Expire(100, note_);
  EXPECT_THAT(gone_, ElementsAre("a"));
  EXPECT_EQ(table_.evicted(), 0u);
  EXPECT_NE(table_.Find("b"), nullptr);
}

TEST(DedupRule, IsReadFromTheTopicsAttributes) {
  const struct {
    const char* name;
    std::map<std::string, std::string> attributes;
    DedupMode mode;
    std::int64_t window_ms;
  } kCases[] = {
      {"off by default", {}, DedupMode::kNone, 600000},
      {"none", {{"dedup", "none"}}, DedupMode::kNone, 600000},
      {"uniqKey", {{"dedup", "uniqKey"}}, DedupMode::kUniqKey, 600000},
      {"keys", {{"dedup", "keys"}, {"dedupWindowSec", "7"}}, DedupMode::kKeys, 7000},
      {"a window alone", {{"dedupWindowSec", "7"}}, DedupMode::kNone, 600000},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(DedupRuleOf(c.attributes).mode, c.mode);
    EXPECT_EQ(DedupRuleOf(c.attributes).window_ms, c.window_ms);
  }
}

TEST(DedupRule, BadValuesAreRefusedWithWhatIsExpected) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"dedup", "yes"},
                                                        {"dedup", ""},
                                                        {"dedupWindowSec", "0"},
                                                        {"dedupWindowSec", "10m"},
                                                        {"dedupWindowSec", "99999999"}}) {
    SCOPED_TRACE(name + "=" + value);
    const Status status = CheckDedupAttribute(name, value);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("expected"), std::string::npos);
    EXPECT_NE(status.message().find(name), std::string::npos);
  }
  EXPECT_TRUE(CheckDedupAttribute("dedup", "keys").ok());
  EXPECT_TRUE(CheckDedupAttribute("message.type", "yes").ok());
}

// ---- In the state -------------------------------------------------------------------------------

class StateDedup : public testing::Test {
 protected:
  StateDedup() { SetRule("uniqKey"); }
  void SetRule(const std::string& mode, const std::string& window = "600") {
    StateCommand command;
    command.put_topics.push_back(TopicOf("T"));
    command.put_topics.back().attributes = {{"dedup", mode}, {"dedupWindowSec", window}};
    h_.Apply(command);
  }
  // A message with a key at log time now.
  DedupRecord Message(const std::string& key) {
    const std::int64_t next = h_.state().NextOffset(Queue("T", 0)).value();
    const DedupRecord record{QueueId{0}, QueueOffset{next}, h_.next_position(), h_.time_ms()};
    h_.state().NoteKey("T", key, record);
    h_.Message(Queue("T", 0), next + 1);
    return record;
  }
  std::optional<DedupRecord> Find(const std::string& key) {
    return h_.state().FindDuplicate("T", key, h_.time_ms());
  }

  StateHarness h_;
};

TEST_F(StateDedup, AKeyIsKnownUntilItsWindowIsOver) {
  const DedupRecord first = Message("k");
  h_.Pass(599999);
  EXPECT_EQ(Find("k"), first);
  h_.Pass(1);
  EXPECT_EQ(Find("k"), std::nullopt);  // whether or not an entry came since
  h_.Apply({});
  EXPECT_EQ(h_.state().DedupUses().at(0).keys, 0u);
}

TEST_F(StateDedup, AFullTableOfAMillionKeysForgetsTheOldestAndCountsIt) {
  const auto record = [&](std::int64_t i) {
    return DedupRecord{QueueId{0}, QueueOffset{i}, PhysicalOffset{i}, h_.time_ms()};
  };
  for (std::int64_t i = 0; i < 1000002; ++i) {
    h_.state().NoteKey("T", std::to_string(i), record(i));
  }
  const ReplicatedState::DedupUse use = h_.state().DedupUses().at(0);
  EXPECT_EQ(use.keys, 1000000u);
  EXPECT_EQ(use.evicted, 2u);
  EXPECT_EQ(Find("0"), std::nullopt);
  EXPECT_EQ(Find("1"), std::nullopt);
  EXPECT_EQ(Find("2"), record(2));
  EXPECT_EQ(Find("1000001"), record(1000001));
}

TEST_F(StateDedup, TopicsKnowOnlyTheirOwnKeys) {
  Message("k");
  EXPECT_EQ(h_.state().FindDuplicate("U", "k", h_.time_ms()), std::nullopt);
}

TEST_F(StateDedup, KeysSurviveARestartInTheirOrder) {
  const DedupRecord a = Message("a");
  h_.Pass(1000);
  const DedupRecord b = Message("b");
  ASSERT_TRUE(h_.Flush().ok());
  ASSERT_TRUE(h_.Reopen().ok());
  EXPECT_EQ(Find("a"), a);
  EXPECT_EQ(Find("b"), b);
  h_.Pass(599500);
  h_.Apply({});
  EXPECT_EQ(Find("a"), std::nullopt);
  EXPECT_EQ(Find("b"), b);
}

TEST_F(StateDedup, WhatIsForgottenLeavesTheStore) {
  Message("a");
  ASSERT_TRUE(h_.Flush().ok());
  const auto keys = [&] {
    std::size_t count = 0;
    for (const auto& [key, value] : h_.Records()) count += key.front() == 'U' ? 1 : 0;
    CHECK(h_.Reopen().ok());
    return count;
  };
  EXPECT_EQ(keys(), 1u);
  h_.Pass(600000);
  h_.Apply({});
  ASSERT_TRUE(h_.Flush().ok());
  EXPECT_EQ(keys(), 0u);
}

TEST_F(StateDedup, AnotherModeForgetsTheKeysAndAnotherWindowKeepsThem) {
  const DedupRecord first = Message("k");
  SetRule("uniqKey", "1200");
  EXPECT_EQ(Find("k"), first);
  h_.Pass(900000);
  EXPECT_EQ(Find("k"), first);
  SetRule("keys");
  EXPECT_EQ(Find("k"), std::nullopt);
  SetRule("none");
  EXPECT_THAT(h_.state().DedupUses(), IsEmpty());
  EXPECT_FALSE(h_.state().has_dedup());
}

TEST_F(StateDedup, ADeletedTopicHasNoKeys) {
  Message("k");
  ASSERT_TRUE(h_.Flush().ok());
  StateCommand command;
  command.delete_topics.emplace_back("T");
  h_.Apply(command);
  ASSERT_TRUE(h_.Flush().ok());
  ASSERT_TRUE(h_.Reopen().ok());
  SetRule("uniqKey");
  EXPECT_EQ(Find("k"), std::nullopt);
}

// ---- Dead letters that are settled --------------------------------------------------------------

class StateDlq : public testing::Test {
 protected:
  StateDlq() {
    StateCommand command;
    command.put_topics.push_back(TopicOf("%DLQ%g"));
    h_.Apply(command);
  }
  void Mark(std::int64_t offset, std::int64_t min = 0) {
    StateCommand command;
    command.dlq_marks.push_back(
        {GroupName("g"), QueueId{0}, QueueOffset{offset}, QueueOffset{min}});
    h_.Apply(command);
  }
  bool Settled(std::int64_t offset) {
    return h_.state().DlqSettled(GroupName("g"), QueueId{0}, QueueOffset{offset});
  }
  ReplicatedState::DlqProgress Progress() {
    return h_.state().DlqProgressOf(GroupName("g"), QueueId{0});
  }

  StateHarness h_;
};

TEST_F(StateDlq, TheFloorRisesOverWhatIsSettledWithoutAGap) {
  Mark(0);
  Mark(3);
  EXPECT_EQ(Progress().floor, QueueOffset{1});
  EXPECT_THAT(Progress().settled, ElementsAre(QueueOffset{3}));
  Mark(2);
  Mark(1);
  EXPECT_EQ(Progress().floor, QueueOffset{4});
  EXPECT_THAT(Progress().settled, IsEmpty());
  EXPECT_TRUE(Settled(3));
  EXPECT_FALSE(Settled(4));
}

TEST_F(StateDlq, WhatRetentionDroppedIsNotKept) {
  Mark(1);
  Mark(5, 5);
  EXPECT_EQ(Progress().floor, QueueOffset{6});
  EXPECT_THAT(Progress().settled, IsEmpty());
}

TEST_F(StateDlq, MarksSurviveARestartAndGoWithTheirTopic) {
  Mark(0);
  Mark(7);
  ASSERT_TRUE(h_.Flush().ok());
  ASSERT_TRUE(h_.Reopen().ok());
  EXPECT_TRUE(Settled(0));
  EXPECT_TRUE(Settled(7));
  EXPECT_FALSE(Settled(6));
  StateCommand command;
  command.delete_topics.emplace_back("%DLQ%g");
  h_.Apply(command);
  ASSERT_TRUE(h_.Flush().ok());
  ASSERT_TRUE(h_.Reopen().ok());
  EXPECT_FALSE(Settled(7));
}

TEST_F(StateDlq, MarksOfSeveralProposalsMayShareAnEntry) {
  StateCommand one;
  one.dlq_marks.push_back({GroupName("g"), QueueId{0}, QueueOffset{0}, QueueOffset{0}});
  StateCommand two;
  two.dlq_marks.push_back({GroupName("g"), QueueId{0}, QueueOffset{1}, QueueOffset{0}});
  const auto both = DecodeStateCommand(EncodeStateCommand(one) + EncodeStateCommand(two));
  ASSERT_TRUE(both.ok());
  h_.Apply(both.value());
  EXPECT_EQ(Progress().floor, QueueOffset{2});
}

}  // namespace
}  // namespace triad::broker
