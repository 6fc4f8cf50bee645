// Clients, groups, topics and locks as they see the wire (wire.md §6.1, §7, §12; admin.md §2.5,
// §2.6).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "broker/processor/names.h"
#include "broker/service/peer_members.h"
#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "remoting/server.h"
#include "tests/unit/broker/admin_fixture.h"

namespace triad::broker {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

TEST_F(AdminTest, AHeartbeatMakesTheGroupAndItsRetryTopicBeforeItIsAnswered) {
  const Command answer = broker_.Ask(remoting::kHeartBeat, {}, Heartbeat("c1", "g1", "T"));
  EXPECT_EQ(answer.code, 0) << answer.remark;
  EXPECT_GE(answer.version, 232);
  EXPECT_EQ(*answer.ext.Find("IS_SUB_CHANGE"), "true");
  EXPECT_TRUE(broker_.state().FindGroup(GroupName("g1")).has_value());
  const auto retry = broker_.state().FindTopic(Topic("%RETRY%g1"));
  ASSERT_TRUE(retry.has_value());
  EXPECT_EQ(retry->read_queues, 1);
  EXPECT_EQ(retry->perm, 6);
  EXPECT_TRUE(broker_.consumers().Online(GroupName("g1")));
}

TEST_F(AdminTest, AGroupThatMayNotBeCreatedIsPassedOver) {
  BrokerConfig config = OneBroker::DefaultConfig();
  config.auto_create_group = false;
  OneBroker strict(config);
  EXPECT_EQ(strict.Ask(remoting::kHeartBeat, {}, Heartbeat("c1", "g1", "T")).code, 0);
  EXPECT_FALSE(strict.state().FindGroup(GroupName("g1")).has_value());
  EXPECT_FALSE(strict.consumers().Online(GroupName("g1")));
}

TEST_F(AdminTest, TheMembersOfAGroupAreListedUntilTheyLeave) {
  const auto first = broker_.Connect();
  const auto second = broker_.Connect();
  broker_.AskOn(first, remoting::kHeartBeat, {}, Heartbeat("c1", "g1", "T"));
  broker_.AskOn(second, remoting::kHeartBeat, {}, Heartbeat("c2", "g1", "T"));
  const auto list = [&] {
    const Command answer =
        broker_.Ask(remoting::kGetConsumerListByGroup, {{"consumerGroup", "g1"}});
    return remoting::ConsumerIdList::Decode(answer.body).value().ids;
  };
  EXPECT_THAT(list(), UnorderedElementsAre("c1", "c2"));
  EXPECT_EQ(broker_
                .AskOn(first, remoting::kUnregisterClient,
                       {{"clientID", "c1"}, {"consumerGroup", "g1"}, {"producerGroup", "p"}})
                .code,
            0);
  EXPECT_THAT(list(), UnorderedElementsAre("c2"));
}

TEST_F(AdminTest, AnUnknownGroupsListIsAnErrorOnlyAfterAWhile) {
  const TimePoint before = SystemClock().MonoNow();
  EXPECT_EQ(broker_.Ask(remoting::kGetConsumerListByGroup, {{"consumerGroup", "nobody"}}).code, 1);
  EXPECT_GE(SystemClock().MonoNow() - before, std::chrono::milliseconds(900));
}

TEST_F(AdminTest, OnlyTagFiltersAreChecked) {
  remoting::CheckClientConfigBody body;
  body.group = "g";
  body.subscription.topic = "T";
  EXPECT_EQ(broker_.Ask(remoting::kCheckClientConfig, {}, body.Encode()).code, 0);
  body.subscription.expression_type = "SQL92";
  EXPECT_EQ(broker_.Ask(remoting::kCheckClientConfig, {}, body.Encode()).code, 1);
}

TEST_F(AdminTest, ORD_1_ALockIsOfItsGroupTopicBrokerAndQueue) {
  CreateTopic("T", 2);
  CreateTopic("U", 2);
  const auto lock = [&](const std::string& client, const std::string& group,
                        const remoting::MessageQueue& queue) {
    remoting::LockBatchRequest body;
    body.client_id = client;
    body.consumer_group = group;
    body.queues = {queue};
    const Command answer = broker_.Ask(remoting::kLockBatchMq, {}, body.Encode());
    EXPECT_EQ(answer.code, 0) << answer.remark;
    return remoting::LockBatchResponse::Decode(answer.body).value().locked.size() == 1;
  };
  EXPECT_TRUE(lock("c1", "g", {"T", "b0", 0}));
  EXPECT_FALSE(lock("c2", "g", {"T", "b0", 0}));
  EXPECT_FALSE(lock("c2", "g", {"T", "b1", 1})) << "another broker's queue";
  EXPECT_TRUE(lock("c2", "g", {"T", "b0", 1})) << "another queue";
  EXPECT_TRUE(lock("c2", "g", {"U", "b0", 0})) << "another topic";
  EXPECT_TRUE(lock("c2", "other", {"T", "b0", 0})) << "another group";
}

TEST_F(AdminTest, ORD_2_AOnewayUnlockReleasesAndOneByAnotherChangesNothing) {
  CreateTopic("T", 1);
  remoting::LockBatchRequest body;
  body.consumer_group = "g";
  body.queues = {{"T", "b0", 0}};
  const auto lock = [&](const std::string& client) {
    body.client_id = client;
    const Command answer = broker_.Ask(remoting::kLockBatchMq, {}, body.Encode());
    return remoting::LockBatchResponse::Decode(answer.body).value().locked.size() == 1;
  };
  const auto unlock_oneway = [&](const std::string& client) {
    body.client_id = client;
    broker_.SendOneway(remoting::kUnlockBatchMq, body.Encode());
  };
  ASSERT_TRUE(lock("a"));
  unlock_oneway("b");
  EXPECT_FALSE(lock("c"));
  unlock_oneway("a");
  const TimePoint end = SystemClock().MonoNow() + kPatience;
  bool got = false;
  while (!got && SystemClock().MonoNow() < end) got = lock("c");
  EXPECT_TRUE(got);
}

TEST_F(AdminTest, ALockAnswerListsWhatTheClientHoldsWithTokens) {
  CreateTopic("T", 4);
  remoting::LockBatchRequest lock;
  lock.client_id = "c1";
  lock.consumer_group = "g";
  lock.queues = {{"T", "b0", 0}, {"T", "another broker", 1}};
  const Command answer = broker_.Ask(remoting::kLockBatchMq, {}, lock.Encode());
  ASSERT_EQ(answer.code, 0) << answer.remark;
  const auto locked = remoting::LockBatchResponse::Decode(answer.body).value().locked;
  ASSERT_EQ(locked.size(), 1u);
  EXPECT_EQ(locked[0], (remoting::MessageQueue{"T", "b0", 0}));
  EXPECT_GT(remoting::Json::Parse(answer.body).value()["fenceTokens"]["T@0"].AsInt64(), 0);
  lock.client_id = "c2";
  const Command denied = broker_.Ask(remoting::kLockBatchMq, {}, lock.Encode());
  EXPECT_EQ(denied.code, 0);
  EXPECT_TRUE(remoting::LockBatchResponse::Decode(denied.body).value().locked.empty());
}

// A name in a lock stays in the group's state.
TEST_F(AdminTest, ALockWithANameThatNobodyCanHaveIsRefused) {
  CreateTopic("T", 1);
  const auto code = [&](const std::string& client, const std::string& group) {
    remoting::LockBatchRequest lock;
    lock.client_id = client;
    lock.consumer_group = group;
    lock.queues = {{"T", "b0", 0}};
    return broker_.Ask(remoting::kLockBatchMq, {}, lock.Encode()).code;
  };
  EXPECT_EQ(code("c", std::string(249, 'g')), 1);
  EXPECT_EQ(code("c", "g/../g"), 1);
  EXPECT_EQ(code(std::string(1025, 'c'), "g"), 1);
  EXPECT_TRUE(broker_.state().Locks().empty());
  EXPECT_EQ(code(std::string(1024, 'c'), std::string(248, 'g')), 0);
  EXPECT_EQ(broker_.state().Locks().size(), 1u);
}

// The second time it would be the next topic's, or group's.
TEST_F(AdminTest, ADeletionThatTheLeaderMayHaveMadeIsNotRepeated) {
  std::atomic<int> asked{0};
  remoting::ServerOptions options;
  options.bind_address = "127.0.0.1";
  options.ports = {0};
  remoting::ServerHandler handler;
  handler.on_request = [&](const remoting::ConnectionPtr& connection, const Command&) {
    ++asked;
    connection->Close();
  };
  const auto leader = remoting::CreateServer(options, handler);
  ASSERT_TRUE(leader->Start().ok());
  dledger::LeaderInfo info;
  info.term = Term(9);
  info.leader = PeerId("n1");
  info.leader_client_address = "127.0.0.1:" + std::to_string(leader->ports()[0]);
  broker_.gate().OnLeaderChange(info);
  for (const std::int32_t code :
       {remoting::kDeleteTopicInBroker, remoting::kDeleteSubscriptionGroup}) {
    const int before = asked;
    EXPECT_EQ(broker_.Ask(code, {{"topic", "T"}, {"groupName", "g"}}).code, 1);
    EXPECT_EQ(asked - before, 1);
  }
  leader->Stop(std::chrono::milliseconds(0));
}

TEST_F(AdminTest, WhatDoesNotExistIsNotLocked) {
  CreateTopic("T", 2);
  remoting::LockBatchRequest lock;
  lock.client_id = "c1";
  lock.consumer_group = "g";
  lock.queues = {{"T", "b0", 1}, {"T", "b0", 2}, {"NoTopic", "b0", 0}};
  const Command answer = broker_.Ask(remoting::kLockBatchMq, {}, lock.Encode());
  ASSERT_EQ(answer.code, 0) << answer.remark;
  const auto locked = remoting::LockBatchResponse::Decode(answer.body).value().locked;
  ASSERT_EQ(locked.size(), 1u);
  EXPECT_EQ(locked[0].queue_id, 1);
}

// A longer one would be a consume queue's directory that no file system makes.
TEST(Names, TheRetryTopicOfALegalGroupIsALegalTopic) {
  const std::string longest(kGroupBytesMax, 'g');
  EXPECT_TRUE(CheckGroupName(longest).ok());
  EXPECT_TRUE(CheckTopicName(RetryTopicOf(longest)).ok());
  EXPECT_LE(RetryTopicOf(longest).size(), 255u);
  EXPECT_FALSE(CheckGroupName(longest + "g").ok());
}

TEST_F(AdminTest, APeerIsToldTheMembersThatThisOneKnowsItself) {
  broker_.AskOn(broker_.Connect(), remoting::kHeartBeat, {}, Heartbeat("c1", "g1", "T"));
  const auto ask = [&](const std::string& group) {
    const Command answer = broker_.Ask(PeerMembers::kRequest, {{"consumerGroup", group}});
    EXPECT_EQ(answer.code, 0);
    return remoting::ConsumerIdList::Decode(answer.body).value().ids;
  };
  EXPECT_THAT(ask("g1"), UnorderedElementsAre("c1"));
  EXPECT_TRUE(ask("nobody").empty());  // at once: the asking peer does the waiting
}

TEST_F(AdminTest, ConcurrentChangesOfATopicAreAllKept) {
  CreateTopic("T", 4);
  const std::vector<std::string> changes = {"+dedup=keys", "+order=none", "+message.type=NORMAL",
                                            "+reserve.time=1", "+dedupWindowSec=60"};
  for (int round = 0; round < 5; ++round) {
    std::vector<std::shared_ptr<RecordingConnection>> clients;
    const auto start = [&](const std::string& attributes) {
      clients.push_back(broker_.Connect());
      broker_.Start(clients.back(), remoting::kUpdateAndCreateTopic,
                    {{"topic", "T"},
                     {"defaultTopic", "TBW102"},
                     {"readQueueNums", "4"},
                     {"writeQueueNums", "4"},
                     {"perm", "6"},
                     {"topicFilterType", "SINGLE_TAG"},
                     {"order", "false"},
                     {"attributes", attributes}});
    };
    for (const std::string& change : changes) start(change);  // none waits for another's answer
    for (const auto& client : clients) EXPECT_EQ(client->Next().code, 0);
    EXPECT_EQ(broker_.state().FindTopic(Topic("T"))->attributes.size(), changes.size());
    clients.clear();
    for (const std::string& change : changes) {
      start("-" + change.substr(1, change.find('=') - 1));
    }
    for (const auto& client : clients) EXPECT_EQ(client->Next().code, 0);
    EXPECT_TRUE(broker_.state().FindTopic(Topic("T"))->attributes.empty());
  }
}

TEST_F(AdminTest, TopicsAreCreatedChangedListedAndDeleted) {
  CreateTopic("T", 4);
  Command one = broker_.Ask(remoting::kGetTopicConfig, {{"topic", "T"}});
  EXPECT_EQ(remoting::TopicConfigBody::Decode(one.body).value().read_queue_nums, 4);
  CreateTopic("T", 6);
  one = broker_.Ask(remoting::kGetTopicConfig, {{"topic", "T"}});
  EXPECT_EQ(remoting::TopicConfigBody::Decode(one.body).value().read_queue_nums, 6);
  const Command all = broker_.Ask(remoting::kGetAllTopicConfig, {});
  const auto table =
      remoting::TopicConfigSerializeWrapper::Decode(all.body).value().topic_config_table;
  EXPECT_TRUE(table.contains("T"));
  EXPECT_TRUE(table.contains("TBW102"));
  EXPECT_EQ(broker_.Ask(remoting::kDeleteTopicInBroker, {{"topic", "T"}}).code, 0);
  EXPECT_EQ(broker_.Ask(remoting::kGetTopicConfig, {{"topic", "T"}}).code, 17);
  EXPECT_EQ(broker_.Ask(remoting::kDeleteTopicInBroker, {{"topic", "T"}}).code, 0);
}

TEST_F(AdminTest, AnUnchangedTopicDoesNotMoveTheDataVersion) {
  CreateTopic("T", 4);
  const auto before = broker_.state().data_version().counter;
  CreateTopic("T", 4);
  EXPECT_EQ(broker_.state().data_version().counter, before);
  CreateTopic("T", 5);
  EXPECT_GT(broker_.state().data_version().counter, before);
}

TEST_F(AdminTest, BadTopicsAreRefused) {
  const auto create = [&](const std::string& name, const std::string& attributes) {
    return broker_.Ask(remoting::kUpdateAndCreateTopic, {{"topic", name},
                                                         {"defaultTopic", "TBW102"},
                                                         {"readQueueNums", "1"},
                                                         {"writeQueueNums", "1"},
                                                         {"perm", "6"},
                                                         {"topicFilterType", "SINGLE_TAG"},
                                                         {"order", "false"},
                                                         {"attributes", attributes}});
  };
  EXPECT_EQ(create("with blank", "").code, 29);
  EXPECT_EQ(create(std::string(128, 'a'), "").code, 29);
  const Command system = create("TBW102", "");
  EXPECT_EQ(system.code, 29);
  EXPECT_EQ(system.remark, "The topic[TBW102] is conflict with system topic.");
  const Command attribute = create("T", "+no.such=1");
  EXPECT_EQ(attribute.code, 1);
  EXPECT_EQ(attribute.remark, "unsupported key: no.such");
  EXPECT_EQ(create("T", "+message.type=FIFO").code, 0);
  EXPECT_EQ(broker_.state().FindTopic(Topic("T"))->attributes.at("message.type"), "FIFO");
  EXPECT_EQ(broker_.Ask(remoting::kDeleteTopicInBroker, {{"topic", "SELF_TEST_TOPIC"}}).code, 29);
}

TEST_F(AdminTest, StatisticsListEveryQueueOfATopic) {
  CreateTopic("T", 3);
  Send("T", 1, 2);
  const Command answer = broker_.Ask(remoting::kGetTopicStatsInfo, {{"topic", "T"}});
  ASSERT_EQ(answer.code, 0) << answer.remark;
  const auto table = remoting::TopicStatsTable::Decode(answer.body).value().offset_table;
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table.at({"T", "b0", 1}).max_offset, 2);
  EXPECT_GT(table.at({"T", "b0", 1}).last_update_timestamp_ms, 0);
  EXPECT_EQ(table.at({"T", "b0", 0}).max_offset, 0);
  EXPECT_EQ(table.at({"T", "b0", 0}).last_update_timestamp_ms, 0);
  EXPECT_EQ(broker_.Ask(remoting::kGetTopicStatsInfo, {{"topic", "NoTopic"}}).code, 17);
}

TEST_F(AdminTest, SystemTopicsAreThereAndListed) {
  const auto listed =
      remoting::TopicList::Decode(broker_.Ask(remoting::kGetSystemTopicListFromBroker, {}).body)
          .value()
          .topic_list;
  EXPECT_THAT(listed, Contains("TBW102"));
  EXPECT_THAT(listed, Contains("b0"));
  for (const char* name : {"TBW102", "SELF_TEST_TOPIC", "BenchmarkTest", "DefaultCluster", "b0",
                           "SCHEDULE_TOPIC_XXXX", "OFFSET_MOVED_EVENT", "RMQ_SYS_TRANS_HALF_TOPIC",
                           "RMQ_SYS_TRANS_OP_HALF_TOPIC", "DefaultCluster_REPLY_TOPIC"}) {
    EXPECT_TRUE(broker_.state().FindTopic(Topic(name)).has_value()) << name;
  }
  EXPECT_EQ(broker_.state().FindTopic(Topic("TBW102"))->perm, 7);
  EXPECT_EQ(broker_.state().FindTopic(Topic("SCHEDULE_TOPIC_XXXX"))->read_queues, 18);
}

TEST_F(AdminTest, GroupsAreCreatedListedAndDeletedWithTheirOffsets) {
  CreateTopic("T", 1);
  CreateGroup("g");
  ASSERT_EQ(UpdateOffset("g", "T", 0, 0).code, 0);
  const auto all = remoting::SubscriptionGroupWrapper::Decode(
      broker_.Ask(remoting::kGetAllSubscriptionGroupConfig, {}).body);
  EXPECT_TRUE(all.value().groups.contains("g"));
  EXPECT_TRUE(all.value().groups.contains("TOOLS_CONSUMER"));
  EXPECT_EQ(broker_.Ask(remoting::kGetSubscriptionGroupConfig, {{"group", "g"}}).code, 0);
  EXPECT_EQ(
      broker_.Ask(remoting::kDeleteSubscriptionGroup, {{"groupName", "g"}, {"cleanOffset", "true"}})
          .code,
      0);
  EXPECT_EQ(broker_.Ask(remoting::kGetSubscriptionGroupConfig, {{"group", "g"}}).code, 26);
  EXPECT_TRUE(broker_.state().OffsetsOf(GroupName("g")).empty());
  remoting::SubscriptionGroupConfigBody bad;
  bad.group_name = "with blank";
  EXPECT_EQ(broker_.Ask(remoting::kUpdateAndCreateSubscriptionGroup, {}, bad.Encode()).code, 29);
}

TEST_F(AdminTest, ConnectionsAreListed) {
  EXPECT_EQ(broker_.Ask(remoting::kGetConsumerConnectionList, {{"consumerGroup", "g"}}).code, 206);
  EXPECT_EQ(broker_.Ask(remoting::kGetProducerConnectionList, {{"producerGroup", "p"}}).code, 1);
  broker_.Ask(remoting::kHeartBeat, {}, Heartbeat("c1", "g", "T"));
  const auto consumers = remoting::ConsumerConnection::Decode(
      broker_.Ask(remoting::kGetConsumerConnectionList, {{"consumerGroup", "g"}}).body);
  ASSERT_EQ(consumers.value().connections.size(), 1u);
  EXPECT_EQ(consumers.value().connections[0].client_id, "c1");
  EXPECT_THAT(consumers.value().connections[0].client_addr, HasSubstr("10.0.0.9:"));
  EXPECT_TRUE(consumers.value().subscription_table.contains("T"));
  EXPECT_EQ(broker_.Ask(remoting::kGetProducerConnectionList, {{"producerGroup", "p"}}).code, 0);
}

TEST_F(AdminTest, AttributesOfOursAreCheckedByValue) {
  for (const char* bad : {"+dedup=yes", "+dedupWindowSec=0", "+dedupWindowSec=ten", "+order=x"}) {
    SCOPED_TRACE(bad);
    const Command answer = SetT(bad);
    EXPECT_EQ(answer.code, 1);
    EXPECT_THAT(answer.remark, HasSubstr("expected"));
  }
  EXPECT_EQ(SetT("+dedup=uniqKey,+dedupWindowSec=60").code, 0);
  EXPECT_EQ(broker_.state().FindTopic(Topic("T"))->attributes.at("dedup"), "uniqKey");
  EXPECT_EQ(broker_.state().DedupUses().size(), 1u);
  EXPECT_EQ(SetT("-dedup").code, 0);
  EXPECT_TRUE(broker_.state().DedupUses().empty());
}

// Answers of the original 5.3.3 to the same requests.
TEST_F(AdminTest, AttributesOfTheOriginalAreCheckedByValue) {
  for (const char* bad : {"+message.type=banana", "+queue.type=x", "+cleanup.policy=x"}) {
    SCOPED_TRACE(bad);
    const Command answer = SetT(bad);
    EXPECT_EQ(answer.code, 1);
    EXPECT_THAT(answer.remark, HasSubstr("value is not in set: ["));
  }
  for (const char* bad : {"+reserve.time=x", "+reserve.time=-5", "+reserve.time=1x"}) {
    EXPECT_EQ(SetT(bad).code, 1) << bad;
  }
  const Command mixed = SetT("+message.type=MIXED");
  EXPECT_EQ(mixed.code, 29);
  EXPECT_EQ(mixed.remark, "MIXED message type is not supported.");
  EXPECT_FALSE(broker_.state().FindTopic(Topic("T")));
  EXPECT_EQ(SetT("+queue.type=SimpleCQ,+reserve.time=-1,+message.type=NORMAL").code, 0);
  // What a topic was made as it stays.
  for (const char* change : {"+queue.type=BatchCQ", "-queue.type", "+cleanup.policy=DELETE"}) {
    SCOPED_TRACE(change);
    const Command answer = SetT(change);
    EXPECT_EQ(answer.code, 1);
    EXPECT_THAT(answer.remark, HasSubstr("attempt to update an unchangeable attribute. key: "));
  }
  EXPECT_EQ(SetT("+queue.type=SimpleCQ").code, 0) << "no change";
  EXPECT_EQ(SetT("+message.type=DELAY").code, 0);
  EXPECT_EQ(SetT("-message.type").code, 0);
  EXPECT_EQ(
      broker_.state().FindTopic(Topic("T"))->attributes,
      (std::map<std::string, std::string>{{"queue.type", "SimpleCQ"}, {"reserve.time", "-1"}}));
}

TEST_F(AdminTest, AFilterTypeThatDoesNotExistIsRefused) {
  const auto create = [&](const char* type) {
    return broker_.Ask(remoting::kUpdateAndCreateTopic, {{"topic", "T"},
                                                         {"defaultTopic", "TBW102"},
                                                         {"readQueueNums", "1"},
                                                         {"writeQueueNums", "1"},
                                                         {"perm", "6"},
                                                         {"topicFilterType", type}});
  };
  const Command answer = create("XX");
  EXPECT_EQ(answer.code, 1);
  EXPECT_EQ(answer.remark, "topicFilterType = [XX] value invalid");
  EXPECT_EQ(create("MULTI_TAG").code, 0);
  EXPECT_TRUE(broker_.state().FindTopic(Topic("T"))->multi_tag);
}

TEST_F(AdminTest, ATopicOrderedByKeyKeepsItsQueues) {
  EXPECT_EQ(SetT("+order=strict", "2").code, 0);
  for (const char* queues : {"1", "4"}) {
    const Command refused = SetT("", queues);
    EXPECT_EQ(refused.code, 29);
    EXPECT_THAT(refused.remark, HasSubstr("order=strict"));
    EXPECT_THAT(refused.remark, HasSubstr("-order"));
  }
  EXPECT_EQ(broker_.state().FindTopic(Topic("T"))->write_queues, 2);
  EXPECT_EQ(SetT("+message.type=FIFO", "2").code, 0);  // anything else may change
  EXPECT_EQ(SetT("-order", "4").code, 0);
  EXPECT_EQ(broker_.state().FindTopic(Topic("T"))->write_queues, 4);
}

}  // namespace
}  // namespace triad::broker
