#include "bin/admin/track_type.h"

#include <gtest/gtest.h>

namespace triad::admin {
namespace {

using remoting::ConsumerConnection;
using remoting::ConsumeStats;
using remoting::ConsumeType;
using remoting::MessageModel;

const Tracked kMessage{{"T", "b", 1}, 7, "tag"};

ConsumerConnection Group(ConsumeType type, MessageModel model = MessageModel::kClustering,
                         std::vector<std::string> tags = {}) {
  ConsumerConnection group;
  group.consume_type = type;
  group.message_model = model;
  group.subscription_table["T"].tags_set = std::move(tags);
  return group;
}

ConsumeStats At(const remoting::MessageQueue& queue, std::int64_t offset) {
  ConsumeStats progress;
  progress.offset_table[queue].consumer_offset = offset;
  return progress;
}

TEST(TrackType, AGroupHasConsumedWhatItIsBehind) {
  const ConsumerConnection group = Group(ConsumeType::kPassively);
  EXPECT_EQ(TrackTypeOf(group, At({"T", "b", 1}, 8), kMessage), "CONSUMED");
  EXPECT_EQ(TrackTypeOf(group, At({"T", "b", 1}, 7), kMessage), "NOT_CONSUME_YET");
  EXPECT_EQ(TrackTypeOf(group, {}, kMessage), "NOT_CONSUME_YET");
}

TEST(TrackType, OnlyTheMessagesOwnQueueCounts) {
  const ConsumerConnection group = Group(ConsumeType::kPassively);
  for (const remoting::MessageQueue& other :
       {remoting::MessageQueue{"T", "b", 2}, {"T", "c", 1}, {"U", "b", 1}}) {
    EXPECT_EQ(TrackTypeOf(group, At(other, 8), kMessage), "NOT_CONSUME_YET");
  }
}

TEST(TrackType, AGroupWithoutTheTagLetItPass) {
  const auto of = [](const std::vector<std::string>& tags) {
    return TrackTypeOf(Group(ConsumeType::kPassively, MessageModel::kClustering, tags),
                       At(kMessage.queue, 8), kMessage);
  };
  EXPECT_EQ(of({"other"}), "CONSUMED_BUT_FILTERED");
  EXPECT_EQ(of({"other", "tag"}), "CONSUMED");
  EXPECT_EQ(of({"*"}), "CONSUMED");
  EXPECT_EQ(of({}), "CONSUMED");
  ConsumerConnection no_more = Group(ConsumeType::kPassively);
  no_more.subscription_table.clear();
  EXPECT_EQ(TrackTypeOf(no_more, At(kMessage.queue, 8), kMessage), "CONSUMED");
}

TEST(TrackType, ABroadcastGroupHasNoProgressAtTheBroker) {
  const ConsumerConnection group = Group(ConsumeType::kPassively, MessageModel::kBroadcasting);
  EXPECT_EQ(TrackTypeOf(group, {}, kMessage), "CONSUME_BROADCASTING");
  EXPECT_EQ(TrackTypeOf(group, At(kMessage.queue, 8), kMessage), "CONSUMED")
      << "it was none before";
}

TEST(TrackType, WhoPullsItselfIsNotJudged) {
  EXPECT_EQ(TrackTypeOf(Group(ConsumeType::kActively), At(kMessage.queue, 8), kMessage), "PULL");
  EXPECT_EQ(TrackTypeOf(Group(ConsumeType::kPop), At(kMessage.queue, 8), kMessage), "UNKNOWN");
}

TEST(BrokerNameAt, IsOfTheGroupWithSuchAPeerOrOfTheOnlyOne) {
  const client::BrokerGroup a{"c", "a", {{0, "10.0.0.1:1"}, {1, "10.0.0.2:1"}}};
  const client::BrokerGroup b{"c", "b", {{0, "10.0.0.3:1"}}};
  EXPECT_EQ(BrokerNameAt("10.0.0.3:1", {a, b}), "b");
  EXPECT_EQ(BrokerNameAt("10.0.0.2:1", {b, a}), "a") << "it led when the message came";
  EXPECT_EQ(BrokerNameAt("10.0.0.9:1", {a, b}), "");
  EXPECT_EQ(BrokerNameAt("10.0.0.9:1", {a}), "a") << "it is down now";
}

}  // namespace
}  // namespace triad::admin
