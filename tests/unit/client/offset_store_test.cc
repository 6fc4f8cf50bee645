#include "client/offset_store.h"

#include <gtest/gtest.h>

namespace triad::client {
namespace {

const MessageQueue kQ0{"T", "a", 0};
const MessageQueue kQ1{"T", "a", 1};

TEST(OffsetStore, TellsWhatIsNotCommittedYet) {
  OffsetStore store;
  store.Begin(kQ0, 5, true);
  store.Begin(kQ1, 0, false);
  EXPECT_EQ(store.Uncommitted(), (std::map<MessageQueue, std::int64_t>{{kQ1, 0}}));
  store.Update(kQ0, 7, true);
  EXPECT_EQ(store.Uncommitted(kQ0), 7);
  store.Committed(kQ0, 7);
  EXPECT_EQ(store.Uncommitted(kQ0), std::nullopt);
  store.Update(kQ0, 9, true);
  store.Committed(kQ0, 8);  // a late answer to an older commit
  EXPECT_EQ(store.Uncommitted(kQ0), 9);
}

TEST(OffsetStore, MovesBackOnlyWhenAskedTo) {
  OffsetStore store;
  store.Begin(kQ0, 5, true);
  store.Update(kQ0, 3, true);
  EXPECT_EQ(store.Find(kQ0), 5);
  store.Update(kQ0, 3, false);
  EXPECT_EQ(store.Find(kQ0), 3);
}

TEST(OffsetStore, IgnoresQueuesThatItDoesNotHold) {
  OffsetStore store;
  store.Update(kQ0, 5, true);
  EXPECT_EQ(store.Find(kQ0), std::nullopt);
  store.Begin(kQ0, 1, true);
  store.Remove(kQ0);
  store.Update(kQ0, 5, true);
  EXPECT_TRUE(store.Uncommitted().empty());
}

TEST(OffsetStore, SurvivesAFile) {
  OffsetStore store;
  store.Begin(kQ0, 5, false);
  store.Begin(MessageQueue{"%RETRY%\"g\"", "b", 3}, 77, false);
  const auto decoded = OffsetStore::Decode(store.Encode());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, store.Uncommitted());
}

TEST(OffsetStore, RefusesABrokenFile) {
  for (const char* text : {"", "{}", "[{\"topic\":\"T\"}]", "[{\"offset\":-3}]", "[1", "[7]"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(OffsetStore::Decode(text).status().code(), StatusCode::kCorruption);
  }
}

}  // namespace
}  // namespace triad::client
