// A state's image: what one peer sends is what another one has.

#include "broker/state/state_image.h"

#include <gtest/gtest.h>

#include "broker/state/state_keys.h"
#include "broker/state/state_records.h"
#include "tests/unit/broker/image_support.h"
#include "tests/unit/broker/state_support.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {
namespace {

constexpr std::int64_t kStoreTimeMs = 1700000000000;
constexpr std::size_t kSmallBatch = 500;

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
  // Not loaded; it takes an image in batches of a few records.
  std::unique_ptr<ReplicatedState> OpenWatched(const std::string& name, Batches* batches) {
    auto store = GetParam()(dir_.path() + "/" + name);
    CHECK(store.ok()) << store.status();
    return std::make_unique<ReplicatedState>(
        std::make_unique<WatchedStore>(std::move(*store), batches), kDedupKeysMax, kSmallBatch);
  }
  // A state of its own, and before that one of another peer's.
  void FillTarget(const std::string& name) {
    const auto earlier = Open("earlier");
    if (earlier->applied_index() == LogIndex(0)) Fill(earlier.get(), 1, "earlier");
    Batches batches;
    const auto target = OpenWatched(name, &batches);
    ASSERT_TRUE(target->Load().ok());
    Fill(target.get(), 1, "own");
    ASSERT_TRUE(Install(target.get(), ImageOf(*earlier).value()).ok());
    Fill(target.get(), 2, "own");
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
    EXPECT_EQ(ImageOf(a).value(), ImageOf(b).value());
  }

  StoreTempDir dir_;
};

TEST_P(StateImageTest, AnInstalledImageIsTheStateAndNothingElse) {
  const auto source = Open("source");
  for (std::uint64_t i = 1; i <= 300; ++i) Fill(source.get(), i, std::to_string(i));
  const auto target = Open("target");
  for (std::uint64_t i = 1; i <= 5; ++i) Fill(target.get(), i, "own" + std::to_string(i));
  ASSERT_TRUE(Install(target.get(), ImageOf(*source).value()).ok());
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
    ASSERT_TRUE(Install(target.get(), ImageOf(*source).value()).ok());
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
  std::string bytes;
  for (std::string piece; NextImagePiece(records.value().get(), &piece).value();) bytes += piece;
  ImageRecords image(PiecesOfBytes(bytes, 100));
  const auto target = Open("target");
  ASSERT_TRUE(Install(target.get(), ListOf(&image).value()).ok());
  EXPECT_EQ(target->applied_index(), LogIndex(1));
  EXPECT_FALSE(target->FindTopic(Topic("Ttwo")).has_value());
}

TEST_P(StateImageTest, ABadImageChangesNothing) {
  const auto source = Open("source");
  Fill(source.get(), 1, "other");
  const RecordList good = ImageOf(*source).value();
  const auto target = Open("target");
  Fill(target.get(), 1, "own");
  const RecordList before = ImageOf(*target).value();
  RecordList no_topic = good;
  no_topic.emplace_back("T~", "not a topic");
  std::sort(no_topic.begin(), no_topic.end());
  RecordList own = good;  // a peer's own records say how an image came to it
  own.emplace_back(kInstalledKey, EncodeInstalled({.first = 1, .last = 1}));
  RecordList unsorted = good;
  std::swap(unsorted[1], unsorted[2]);
  RecordList twice = good;
  twice.insert(twice.begin(), good.front());
  RecordList without_its_flush(good.begin(), good.end());
  std::erase_if(without_its_flush, [](const auto& r) { return r.first.starts_with(kFlushPrefix); });
  for (const RecordList& bad : {no_topic, own, unsorted, twice, without_its_flush, RecordList()}) {
    EXPECT_EQ(Install(target.get(), bad).code(), StatusCode::kCorruption);
    EXPECT_EQ(ImageOf(*target).value(), before);
    EXPECT_TRUE(target->FindTopic(Topic("Town")).has_value());
  }
  ASSERT_TRUE(Install(target.get(), good).ok());
}

// ---- in batches ---------------------------------------------------------------------------------

TEST_P(StateImageTest, NoMoreThanABatchIsHeldBesideTheTables) {
  const auto source = Open("source");
  for (std::uint64_t i = 1; i <= 300; ++i) Fill(source.get(), i, std::to_string(i));
  const std::string bytes = ImageBytesOf(*source).value();
  FillTarget("target");
  constexpr std::size_t kPiece = 100;
  Batches batches;
  const auto target = OpenWatched("target", &batches);
  std::size_t handed_out = 0;  // of this pass
  std::size_t written = 0;     // of the image, by what had been handed out
  std::size_t held_max = 0;
  int passes = 0;
  batches.on_written = [&] {
    EXPECT_EQ(passes, 2) << "written before all of it was looked at";
    held_max = std::max(held_max, handed_out - std::exchange(written, handed_out));
  };
  const Status installed = target->Install([&] {
    ++passes;
    handed_out = 0;
    return std::make_unique<ImageRecords>(
        [&, next = PiecesOfBytes(bytes, kPiece)](std::string* piece) mutable {
          const Result<bool> more = next(piece);
          handed_out += piece->size();
          return more;
        });
  });
  ASSERT_TRUE(installed.ok()) << installed;
  EXPECT_EQ(handed_out, bytes.size());
  EXPECT_GT(batches.count, bytes.size() / kSmallBatch);
  EXPECT_LE(batches.largest_bytes, kSmallBatch + 200) << "and what the writer notes itself";
  EXPECT_LE(held_max, 2 * (kSmallBatch + kPiece));
  ExpectEqual(*source, *target);
}

TEST_P(StateImageTest, AnInstallationThatEndsHalfWayIsKnownAndDoneAgain) {
  const auto source = Open("source");
  for (std::uint64_t i = 1; i <= 5; ++i) Fill(source.get(), i, std::to_string(i));
  const RecordList image = ImageOf(*source).value();
  std::size_t whole = 0;
  for (std::size_t fails = 0; whole == 0; ++fails) {
    SCOPED_TRACE("batch " + std::to_string(fails) + " fails");
    const std::string name = "target" + std::to_string(fails);
    FillTarget(name);
    {
      Batches batches;
      batches.fails_from = fails;
      const auto target = OpenWatched(name, &batches);
      ASSERT_TRUE(target->Load().ok());
      const Status installed = Install(target.get(), image);
      if (installed.ok()) whole = fails;
      EXPECT_TRUE(installed.ok() || target->FindTopic(Topic("Town")).has_value())
          << "the tables are the old ones as long as they are not the new ones";
    }
    Batches batches;
    {
      const auto target = OpenWatched(name, &batches);
      const StatusCode expected =
          fails == 0 || whole > 0 ? StatusCode::kOk : StatusCode::kCorruption;
      EXPECT_EQ(target->Load().code(), expected);
    }
    const auto target = OpenWatched(name, &batches);
    ASSERT_TRUE(Install(target.get(), image).ok());
    ExpectEqual(*source, *target);
  }
  EXPECT_GT(whole, 5u);
}

// As LevelDB's recovery loses one: without a word.
TEST_P(StateImageTest, ABatchOfAnInstallationThatIsLostIsMissed) {
  const auto source = Open("source");
  for (std::uint64_t i = 1; i <= 3; ++i) Fill(source.get(), i, std::to_string(i));
  const RecordList image = ImageOf(*source).value();
  std::size_t count = 1;
  for (std::size_t lost = 0; lost < count; ++lost) {
    SCOPED_TRACE("batch " + std::to_string(lost) + " is lost");
    const std::string name = "target" + std::to_string(lost);
    FillTarget(name);
    Batches batches;
    batches.lost = lost;
    {
      const auto target = OpenWatched(name, &batches);
      ASSERT_TRUE(Install(target.get(), image).ok());
    }
    count = batches.count;
    EXPECT_EQ(OpenWatched(name, &batches)->Load().code(), StatusCode::kCorruption);
  }
  EXPECT_GT(count, 5u);
}

// What stands in the store while another peer's state is to replace it.
TEST_P(StateImageTest, AStoreThatCannotBeReadTakesNoImage) {
  const auto source = Open("source");
  Fill(source.get(), 1, "source");
  const RecordList image = ImageOf(*source).value();
  FillTarget("target");
  for (const std::size_t readable : {std::size_t{0}, std::size_t{5}}) {
    SCOPED_TRACE(readable);
    Batches batches;
    batches.images_fail = true;
    batches.image_records = readable;
    const auto target = OpenWatched("target", &batches);
    ASSERT_TRUE(target->Load().ok());
    EXPECT_EQ(Install(target.get(), image).code(), StatusCode::kIoError);
    EXPECT_TRUE(target->FindTopic(Topic("Town")).has_value());
  }
}

TEST_P(StateImageTest, RecordsOfAnInstallationThatCannotBeAreRefused) {
  const auto source = Open("source");
  Fill(source.get(), 1, "source");
  const RecordList image = ImageOf(*source).value();
  const struct {
    std::string key;
    std::string value;
    StatusCode load;
    StatusCode install;  // without a Load before it: what is there does not count any more
  } cases[] = {
      {std::string(kInstallPrefix) + "odd", "", StatusCode::kCorruption, StatusCode::kCorruption},
      {std::string(kInstalledKey), "short", StatusCode::kCorruption, StatusCode::kOk},
  };
  for (const auto& bad : cases) {
    SCOPED_TRACE(bad.key);
    const std::string name = "target" + std::to_string(bad.value.size());
    FillTarget(name);
    {
      const auto store = GetParam()(dir_.path() + "/" + name);
      ASSERT_TRUE(store.ok()) << store.status();
      ASSERT_TRUE((*store)->Write({.puts = {{bad.key, bad.value}}, .deletes = {}}).ok());
    }
    Batches batches;
    const auto target = OpenWatched(name, &batches);
    EXPECT_EQ(target->Load().code(), bad.load);
    EXPECT_EQ(Install(target.get(), image).code(), bad.install);
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, StateImageTest,
                         testing::Values(&OpenLevelDbStateStore, &OpenMemory));

// ---- its bytes ----------------------------------------------------------------------------------

TEST(ImageRecords, RefusesWhatIsCutOrImpossible) {
  const auto read = [](const std::string& bytes) {
    ImageRecords records(PiecesOfBytes(bytes, 3));
    return ListOf(&records).status().code();
  };
  EXPECT_EQ(read(""), StatusCode::kOk);
  EXPECT_EQ(read(std::string("\0\0\0\3\0\0\0\1abcd", 12)), StatusCode::kOk);
  EXPECT_EQ(read(std::string("\0\0\0\3\0\0\0\1ab", 10)), StatusCode::kCorruption);
  EXPECT_EQ(read(std::string("\0\0\0", 3)), StatusCode::kCorruption);
  EXPECT_EQ(read(std::string("\xff\0\0\3\0\0\0\1ab", 10)), StatusCode::kCorruption);
  EXPECT_EQ(read(std::string("\0\0\0\0\0\0\0\1a", 9)), StatusCode::kCorruption);
}

TEST(ImageRecords, AnErrorOfThePiecesIsTheirs) {
  ImageRecords records([](std::string*) -> Result<bool> { return Status::IoError("no piece"); });
  EXPECT_EQ(ListOf(&records).status().code(), StatusCode::kIoError);
}

}  // namespace
}  // namespace triad::broker
