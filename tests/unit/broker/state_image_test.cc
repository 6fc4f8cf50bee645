// A state's image: what one peer sends is what another one has.

#include "broker/state/state_image.h"

#include <gtest/gtest.h>

#include "tests/unit/broker/state_support.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {
namespace {

constexpr std::int64_t kStoreTimeMs = 1700000000000;

using Records = std::vector<std::pair<std::string, std::string>>;
using OpenStore = Result<std::unique_ptr<StateStore>> (*)(const std::string&);

class StateImageTest : public testing::TestWithParam<OpenStore> {
 protected:
  std::unique_ptr<ReplicatedState> Open(const std::string& name) {
    auto store = GetParam()(dir_.path() + "/" + name);
    CHECK(store.ok()) << store.status();
    auto state = std::make_unique<ReplicatedState>(std::move(store.value()));
    const Status loaded = state->Load();
    CHECK(loaded.ok()) << loaded;
    return state;
  }
  // One of everything.
  static void Fill(ReplicatedState* state, std::uint64_t index, const std::string& mark) {
    StateCommand command;
    TopicConfig topic = TopicOf("T" + mark);
    topic.attributes["dedup"] = "uniqKey";
    command.put_topics.push_back(std::move(topic));
    command.put_topics.push_back(TopicOf("%DLQ%g" + mark));
    GroupConfig group;
    group.name = GroupName("g" + mark);
    command.put_groups.push_back(std::move(group));
    const GroupQueue key{GroupName("g" + mark), Queue("T" + mark, 1)};
    command.offsets.push_back({.key = key, .offset = QueueOffset(5), .fence_token = 0});
    command.locks.push_back({.key = key, .client = ClientId("c" + mark), .token = index});
    command.delays.emplace_back(3, QueueOffset(static_cast<std::int64_t>(index)));
    command.send_backs.emplace_back(GroupName("g" + mark), PhysicalOffset(77));
    command.dlq_marks.push_back(
        {GroupName("g" + mark), QueueId(0), QueueOffset(4), QueueOffset(0)});
    command.set_delay_levels = "1s 2s";
    command.put_settings["key" + mark] = mark;
    ApplyContext context;
    context.index = LogIndex(index);
    context.term = Term(1);
    context.end_position = PhysicalOffset(static_cast<std::int64_t>(1000 * index));
    context.store_time_ms = kStoreTimeMs;
    state->Apply(command, context);
    state->NoteKey("T" + mark, "key",
                   {QueueId(1), QueueOffset(3), PhysicalOffset(9), kStoreTimeMs});
    state->NoteMessage(Queue("T" + mark, 1), QueueOffset(static_cast<std::int64_t>(9 + index)));
    state->FinishEntry(context);
    ASSERT_TRUE(state->Flush({{"only-mine", mark}}).ok());
  }
  static Records ImageOf(const ReplicatedState& state) {
    const auto records = state.NewImage();
    CHECK(records.ok());
    StateImageParser parser;
    std::string piece;
    while (NextImagePiece(records.value().get(), &piece).value()) {
      // Cut anywhere.
      CHECK(parser.Add(piece.substr(0, piece.size() / 3)).ok());
      CHECK(parser.Add(piece.substr(piece.size() / 3)).ok());
    }
    return std::move(parser).Finish().value();
  }
  static void ExpectEqual(const ReplicatedState& a, const ReplicatedState& b) {
    EXPECT_EQ(a.applied_index(), b.applied_index());
    EXPECT_EQ(a.flushed_index(), b.flushed_index());
    EXPECT_EQ(a.applied_position(), b.applied_position());
    EXPECT_EQ(a.log_time_ms(), b.log_time_ms());
    EXPECT_EQ(a.data_version().counter, b.data_version().counter);
    EXPECT_EQ(a.Topics(), b.Topics());
    EXPECT_EQ(a.Groups(), b.Groups());
    EXPECT_EQ(a.NextOffsets(), b.NextOffsets());
    EXPECT_EQ(a.Locks().size(), b.Locks().size());
    EXPECT_EQ(a.next_fence_token(), b.next_fence_token());
    EXPECT_EQ(a.delay_levels(), b.delay_levels());
    ASSERT_FALSE(a.settings().empty());
    EXPECT_EQ(a.settings(), b.settings());
    EXPECT_EQ(a.DelayProgress(3), b.DelayProgress(3));
    for (const TopicConfig& topic : a.Topics()) {
      const std::string& name = topic.name.value();
      if (name.starts_with("%")) continue;
      ASSERT_TRUE(a.FindDuplicate(name, "key", kStoreTimeMs).has_value()) << name;
      EXPECT_TRUE(b.FindDuplicate(name, "key", kStoreTimeMs).has_value()) << name;
    }
    for (const GroupConfig& group : a.Groups()) {
      ASSERT_TRUE(a.DlqSettled(group.name, QueueId(0), QueueOffset(4)));
      EXPECT_TRUE(b.DlqSettled(group.name, QueueId(0), QueueOffset(4)));
      EXPECT_EQ(a.OffsetsOf(group.name), b.OffsetsOf(group.name));
      EXPECT_EQ(a.SentBack(group.name, PhysicalOffset(77)),
                b.SentBack(group.name, PhysicalOffset(77)));
    }
    EXPECT_EQ(ImageOf(a), ImageOf(b));
  }

  StoreTempDir dir_;
};

TEST_P(StateImageTest, AnInstalledImageIsTheStateAndNothingElse) {
  const auto source = Open("source");
  for (std::uint64_t i = 1; i <= 300; ++i) Fill(source.get(), i, std::to_string(i));
  const auto target = Open("target");
  for (std::uint64_t i = 1; i <= 5; ++i) Fill(target.get(), i, "own" + std::to_string(i));
  ASSERT_TRUE(target->Install(ImageOf(*source)).ok());
  ExpectEqual(*source, *target);
  EXPECT_FALSE(target->FindTopic(Topic("Town1")).has_value());
  EXPECT_FALSE(target->LoadedExtra("only-mine").has_value());
  EXPECT_FALSE(target->dirty());
}

TEST_P(StateImageTest, AnInstalledImageIsThereAfterAStartAndGoesOn) {
  const auto source = Open("source");
  for (std::uint64_t i = 1; i <= 10; ++i) Fill(source.get(), i, std::to_string(i));
  {
    const auto target = Open("target");
    Fill(target.get(), 1, "own");
    ASSERT_TRUE(target->Install(ImageOf(*source)).ok());
  }
  {
    const auto target = Open("target");
    ExpectEqual(*source, *target);
    EXPECT_FALSE(target->LoadedExtra("only-mine").has_value());
    Fill(target.get(), 11, "more");
  }
  Fill(source.get(), 11, "more");
  ExpectEqual(*source, *Open("target"));
}

TEST_P(StateImageTest, AnImageIsOfItsMoment) {
  const auto source = Open("source");
  Fill(source.get(), 1, "one");
  const auto records = source->NewImage();
  ASSERT_TRUE(records.ok());
  Fill(source.get(), 2, "two");
  StateImageParser parser;
  std::string piece;
  while (NextImagePiece(records.value().get(), &piece).value()) {
    ASSERT_TRUE(parser.Add(piece).ok());
  }
  const auto target = Open("target");
  ASSERT_TRUE(target->Install(std::move(parser).Finish().value()).ok());
  EXPECT_EQ(target->applied_index(), LogIndex(1));
  EXPECT_FALSE(target->FindTopic(Topic("Ttwo")).has_value());
}

TEST_P(StateImageTest, ABadImageChangesNothing) {
  const auto target = Open("target");
  Fill(target.get(), 1, "own");
  const Records before = ImageOf(*target);
  EXPECT_EQ(target->Install({{"T?", "not a topic"}}).code(), StatusCode::kCorruption);
  EXPECT_EQ(ImageOf(*target), before);
  EXPECT_TRUE(target->FindTopic(Topic("Town")).has_value());
}

INSTANTIATE_TEST_SUITE_P(Stores, StateImageTest,
                         testing::Values(&OpenLevelDbStateStore, &OpenMemory));

TEST(StateImageParser, RefusesWhatIsCutOrImpossible) {
  StateImageParser cut;
  ASSERT_TRUE(cut.Add(std::string("\0\0\0\3\0\0\0\1ab", 10)).ok());
  EXPECT_EQ(std::move(cut).Finish().status().code(), StatusCode::kCorruption);
  StateImageParser huge;
  EXPECT_EQ(huge.Add(std::string("\xff\0\0\3\0\0\0\1ab", 10)).code(), StatusCode::kCorruption);
  StateImageParser nameless;
  EXPECT_EQ(nameless.Add(std::string("\0\0\0\0\0\0\0\1a", 9)).code(), StatusCode::kCorruption);
}

}  // namespace
}  // namespace triad::broker
