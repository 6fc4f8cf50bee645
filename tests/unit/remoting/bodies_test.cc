#include "remoting/bodies.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "common/byte_order.h"

namespace triad::remoting {
namespace {

// The text is what Encode writes, and Decode reads it back to the same value.
template <typename Body>
void ExpectText(const Body& body, std::string_view text) {
  EXPECT_EQ(body.Encode(), text);
  const auto decoded = Body::Decode(text);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(*decoded == body) << decoded->Encode();
}

TopicConfigBody SomeTopic() {
  TopicConfigBody topic;
  topic.topic_name = "T1";
  topic.read_queue_nums = 8;
  topic.write_queue_nums = 8;
  return topic;
}
constexpr std::string_view kSomeTopic =
    R"({"attributes":{},"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG",)"
    R"("topicName":"T1","topicSysFlag":0,"writeQueueNums":8})";

TEST(RouteBodies, RouteIsTheDocumentsExample) {
  TopicRouteData route;
  route.broker_datas.push_back(BrokerData{
      .broker_addrs = {{0, "10.0.0.2:10911"}, {1, "10.0.0.1:10911"}, {3, "10.0.0.3:10911"}},
      .broker_name = "broker-a",
      .cluster = "ClusterX"});
  route.queue_datas.push_back(
      QueueData{.broker_name = "broker-a", .read_queue_nums = 4, .write_queue_nums = 4, .perm = 6});
  ExpectText(route,
             R"({"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.2:10911","1":"10.0.0.1:10911",)"
             R"("3":"10.0.0.3:10911"},"brokerName":"broker-a","cluster":"ClusterX",)"
             R"("enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":)"
             R"("broker-a","perm":6,"readQueueNums":4,"topicSynFlag":0,"topicSysFlag":0,)"
             R"("writeQueueNums":4}]})");
}

TEST(RouteBodies, RouteOfAnOlderNameServerIsRead) {
  const auto route = TopicRouteData::Decode(
      R"({"brokerDatas":[{"brokerAddrs":{0:"h:1",1:"h:2","x":"no id"},"brokerName":"b"}],)"
      R"("orderTopicConf":"b:4","queueDatas":[{"brokerName":"b","perm":"6","topicSynFlag":1}]})");
  ASSERT_TRUE(route.ok());
  const std::map<std::int64_t, std::string> addrs = {{0, "h:1"}, {1, "h:2"}};
  EXPECT_EQ(route->broker_datas[0].broker_addrs, addrs);
  EXPECT_EQ(route->order_topic_conf, "b:4");
  EXPECT_EQ(route->queue_datas[0].perm, 6);
  EXPECT_EQ(route->queue_datas[0].topic_sys_flag, 1);
}

TEST(RouteBodies, ABrokerWithoutAddressesStillHasTheMember) {
  TopicRouteData route;
  route.broker_datas.emplace_back();
  EXPECT_NE(route.Encode().find(R"("brokerAddrs":{})"), std::string::npos);
}

TEST(RouteBodies, SmallOnesAreAsTheDocumentsSay) {
  ExpectText(KVTable{.table = {{"a", "1"}, {"k", "v\n"}}}, R"({"table":{"a":"1","k":"v\n"}})");
  ExpectText(TopicList{.topic_list = {"T1", "T2"}, .broker_addr = ""},
             R"({"topicList":["T1","T2"]})");
  ExpectText(TopicList{.topic_list = {}, .broker_addr = "h:1"},
             R"({"brokerAddr":"h:1","topicList":[]})");
  ExpectText(DataVersion{.counter = 3, .state_version = 0, .timestamp_ms = 1700000000000},
             R"({"counter":3,"stateVersion":0,"timestamp":1700000000000})");
  ExpectText(BrokerMemberGroup{.broker_addrs = {{0, "h:1"}}, .broker_name = "b", .cluster = "c"},
             R"({"brokerMemberGroup":{"brokerAddrs":{"0":"h:1"},"brokerName":"b","cluster":"c"}})");
  ExpectText(SomeTopic(), kSomeTopic);
}

TEST(RouteBodies, ClusterInfoIsAsTheDocumentSays) {
  ClusterInfo info;
  info.broker_addr_table["broker-a"] =
      BrokerData{.broker_addrs = {{0, "h:1"}}, .broker_name = "broker-a", .cluster = "ClusterX"};
  info.cluster_addr_table["ClusterX"] = {"broker-a"};
  ExpectText(info,
             R"({"brokerAddrTable":{"broker-a":{"brokerAddrs":{"0":"h:1"},"brokerName":"broker-a",)"
             R"("cluster":"ClusterX","enableActingMaster":false}},)"
             R"("clusterAddrTable":{"ClusterX":["broker-a"]}})");
}

TEST(RouteBodies, RegistrationIsAsTheDocumentSays) {
  RegisterBrokerBody body;
  body.topics.data_version = {.counter = 1, .state_version = 7, .timestamp_ms = 1700000000000};
  body.topics.topic_config_table["T1"] = SomeTopic();
  ExpectText(body,
             R"({"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":1,)"
             R"("stateVersion":7,"timestamp":1700000000000},"topicConfigTable":{"T1":)" +
                 std::string(kSomeTopic) + "}}}");
}

TEST(RouteBodies, TopicConfigKeepsDefaultsForWhatIsMissing) {
  const auto topic = TopicConfigBody::Decode(
      R"({"topicName":"T","attributes":{"message.type":"FIFO"},"topicFilterType":"MULTI_TAG"})");
  ASSERT_TRUE(topic.ok());
  EXPECT_EQ(topic->read_queue_nums, 16);
  EXPECT_EQ(topic->perm, 6);
  EXPECT_TRUE(topic->multi_tag);
  EXPECT_EQ(topic->attributes.at("message.type"), "FIFO");
}

std::string Deflate(std::string_view plain) {
  uLongf size = compressBound(static_cast<uLong>(plain.size()));
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size,
           reinterpret_cast<const Bytef*>(plain.data()), static_cast<uLong>(plain.size()));
  out.resize(size);
  return out;
}

void AppendPiece(std::string_view piece, std::string* out) {
  AppendBe32(out, static_cast<std::uint32_t>(piece.size()));
  out->append(piece);
}

std::string CompressedPlain() {
  std::string plain;
  AppendPiece(R"({"counter":1,"stateVersion":0,"timestamp":5})", &plain);
  AppendBe32(&plain, 2);
  AppendPiece("T1 8 4 6 SINGLE_TAG", &plain);
  AppendPiece(R"(T2 1 1 2 MULTI_TAG {"message.type":"FIFO","k":"a b"})", &plain);
  AppendPiece(R"(["h:1"])", &plain);
  return plain;
}

TEST(CompressedRegistration, IsRead) {
  std::string plain = CompressedPlain();
  AppendBe32(&plain, 0);  // mappings, from 5.0 on
  const auto body = RegisterBrokerBody::DecodeCompressed(Deflate(plain));
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(body->topics.data_version.timestamp_ms, 5);
  EXPECT_EQ(body->filter_server_list, (std::vector<std::string>{"h:1"}));
  const auto& topics = body->topics.topic_config_table;
  ASSERT_EQ(topics.size(), 2u);
  EXPECT_EQ(topics.at("T1").read_queue_nums, 8);
  EXPECT_EQ(topics.at("T1").write_queue_nums, 4);
  EXPECT_EQ(topics.at("T1").perm, 6);
  EXPECT_TRUE(topics.at("T2").multi_tag);
  EXPECT_EQ(topics.at("T2").attributes.at("k"), "a b");
}

TEST(CompressedRegistration, RefusesEveryTruncation) {
  const std::string plain = CompressedPlain();
  for (std::size_t size = 0; size < plain.size(); ++size) {
    EXPECT_FALSE(RegisterBrokerBody::DecodeCompressed(Deflate(plain.substr(0, size))).ok()) << size;
  }
  const std::string whole = Deflate(plain);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(RegisterBrokerBody::DecodeCompressed(whole.substr(0, size)).ok()) << size;
  }
}

TEST(CompressedRegistration, RefusesABomb) {
  const auto body = RegisterBrokerBody::DecodeCompressed(
      Deflate(std::string(RegisterBrokerBody::kMaxInflatedBytes + 1, ' ')));
  ASSERT_FALSE(body.ok());
  EXPECT_NE(body.status().message().find("inflates to more than"), std::string::npos);
}

HeartbeatData DocumentHeartbeat() {
  HeartbeatData data;
  data.client_id = "10.0.0.9@4711#123456789";
  ConsumerData consumer;
  consumer.group_name = "g1";
  SubscriptionData tags;
  tags.code_set = {2598919, 2598920};
  tags.sub_string = "TagA || TagB";
  tags.sub_version = 1700000000000;
  tags.tags_set = {"TagA", "TagB"};
  tags.topic = "T1";
  SubscriptionData retry;
  retry.sub_string = "*";
  retry.sub_version = 1700000000001;
  retry.topic = "%RETRY%g1";
  consumer.subscriptions = {tags, retry};
  data.consumers = {consumer};
  data.producer_groups = {"CLIENT_INNER_PRODUCER", "pg1"};
  return data;
}

TEST(ClientBodies, HeartbeatIsTheDocumentsExample) {
  ExpectText(
      DocumentHeartbeat(),
      R"({"clientID":"10.0.0.9@4711#123456789","consumerDataSet":[{"consumeFromWhere":)"
      R"("CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","groupName":"g1",)"
      R"("messageModel":"CLUSTERING","subscriptionDataSet":[{"classFilterMode":false,"codeSet":)"
      R"([2598919,2598920],"expressionType":"TAG","subString":"TagA || TagB","subVersion":)"
      R"(1700000000000,"tagsSet":["TagA","TagB"],"topic":"T1"},{"classFilterMode":false,)"
      R"("codeSet":[],"expressionType":"TAG","subString":"*","subVersion":1700000000001,)"
      R"("tagsSet":[],"topic":"%RETRY%g1"}],"unitMode":false}],"heartbeatFingerprint":0,)"
      R"("producerDataSet":[{"groupName":"CLIENT_INNER_PRODUCER"},{"groupName":"pg1"}],)"
      R"("withoutSub":false})");
}

TEST(ClientBodies, HeartbeatOfTheCppClientIsRead) {
  const auto data = HeartbeatData::Decode(
      R"({"clientID":"c","consumerDataSet":[{"consumeFromWhere":4,"consumeType":0,"groupName":"g",)"
      R"("messageModel":0,"subscriptionDataSet":[{"codeSet":["7"],"subString":"*","subVersion":)"
      R"("1700000000000","tagsSet":[],"topic":"T"}]}],"producerDataSet":[]})"
      "\n");
  ASSERT_TRUE(data.ok()) << data.status();
  const ConsumerData& consumer = data->consumers.at(0);
  EXPECT_EQ(consumer.consume_from_where, ConsumeFromWhere::kFirstOffset);
  EXPECT_EQ(consumer.consume_type, ConsumeType::kActively);
  EXPECT_EQ(consumer.message_model, MessageModel::kBroadcasting);
  EXPECT_EQ(consumer.subscriptions.at(0).sub_version, 1700000000000);
  EXPECT_EQ(consumer.subscriptions.at(0).expression_type, "TAG");
  EXPECT_EQ(consumer.subscriptions.at(0).code_set, (std::vector<std::int32_t>{7}));
}

TEST(ClientBodies, AnUnknownEnumReadsAsTheDefault) {
  const auto data = HeartbeatData::Decode(
      R"({"clientID":"c","consumerDataSet":[{"consumeType":"NEW","messageModel":9}]})");
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->consumers.at(0).consume_type, ConsumeType::kPassively);
  EXPECT_EQ(data->consumers.at(0).message_model, MessageModel::kClustering);
}

TEST(ClientBodies, AHeartbeatWithoutAClientIdIsRefused) {
  EXPECT_EQ(HeartbeatData::Decode("{}").status().message(), "HeartbeatData: clientID is missing");
}

TEST(ClientBodies, LocksAreTheDocumentsExample) {
  const MessageQueue q0{.topic = "T1", .broker_name = "broker-a", .queue_id = 0};
  const MessageQueue q1{.topic = "T1", .broker_name = "broker-a", .queue_id = 1};
  ExpectText(
      LockBatchRequest{
          .client_id = "10.0.0.9@4711#123456789", .consumer_group = "g1", .queues = {q0, q1}},
      R"({"clientId":"10.0.0.9@4711#123456789","consumerGroup":"g1","mqSet":[)"
      R"({"brokerName":"broker-a","queueId":0,"topic":"T1"},)"
      R"({"brokerName":"broker-a","queueId":1,"topic":"T1"}],"onlyThisBroker":false})");
  ExpectText(LockBatchResponse{.locked = {q0}},
             R"({"lockOKMQSet":[{"brokerName":"broker-a","queueId":0,"topic":"T1"}]})");
  ExpectText(LockBatchResponse{}, R"({"lockOKMQSet":[]})");
}

TEST(ClientBodies, GroupAndConnectionListsAreAsTheDocumentSays) {
  ExpectText(ConsumerIdList{.ids = {"a", "b"}}, R"({"consumerIdList":["a","b"]})");
  ExpectText(GroupList{.groups = {"g"}}, R"({"groupList":["g"]})");
  const ConnectionInfo connection{
      .client_addr = "10.0.0.9:51234", .client_id = "c", .language = "GO", .version = 317};
  ExpectText(ProducerConnection{.connections = {connection}},
             R"({"connectionSet":[{"clientAddr":"10.0.0.9:51234","clientId":"c","language":"GO",)"
             R"("version":317}]})");
  ConsumerConnection consumers;
  consumers.connections = {connection};
  consumers.subscription_table["T"].topic = "T";
  ExpectText(consumers,
             R"({"connectionSet":[{"clientAddr":"10.0.0.9:51234","clientId":"c","language":"GO",)"
             R"("version":317}],"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":)"
             R"("CONSUME_PASSIVELY","messageModel":"CLUSTERING","subscriptionTable":{"T":)"
             R"({"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"",)"
             R"("subVersion":0,"tagsSet":[],"topic":"T"}}})");
}

TEST(ClientBodies, AnUnknownSubscriptionIsLeftOut) {
  QuerySubscriptionBody body;
  body.group = "g";
  body.topic = "T";
  ExpectText(body, R"({"group":"g","topic":"T"})");
}

TEST(ClientBodies, CheckClientConfigRoundTrips) {
  CheckClientConfigBody body;
  body.client_id = "c";
  body.group = "g";
  body.subscription.topic = "T";
  body.subscription.expression_type = "SQL92";
  const auto decoded = CheckClientConfigBody::Decode(body.Encode());
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(*decoded, body);
}

TEST(AdminBodies, GroupConfigHasTheDefaultsOfTheDocument) {
  SubscriptionGroupConfigBody group;
  group.group_name = "g";
  ExpectText(group,
             R"({"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,)"
             R"("consumeFromMinEnable":true,"consumeMessageOrderly":false,)"
             R"("consumeTimeoutMinute":15,"groupName":"g","groupRetryPolicy":{"type":)"
             R"("CUSTOMIZED"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,)"
             R"("retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1})");
}

TEST(AdminBodies, GroupConfigKeepsARetryPolicyAsGiven) {
  const auto group = SubscriptionGroupConfigBody::Decode(
      R"({"groupName":"g","consumeEnable":false,"retryMaxTimes":"3",)"
      R"("groupRetryPolicy":{"type":"EXPONENTIAL","exponentialRetryPolicy":{"initial":5000}}})");
  ASSERT_TRUE(group.ok());
  EXPECT_FALSE(group->consume_enable);
  EXPECT_EQ(group->retry_max_times, 3);
  EXPECT_EQ(group->group_retry_policy_json,
            R"({"type":"EXPONENTIAL","exponentialRetryPolicy":{"initial":5000}})");
  EXPECT_EQ(SubscriptionGroupConfigBody::Decode(group->Encode()).value(), *group);
}

TEST(AdminBodies, ListsOfConfigsRoundTrip) {
  SubscriptionGroupConfigBody group;
  group.group_name = "g";
  const SubscriptionGroupList groups{.groups = {group}};
  EXPECT_EQ(SubscriptionGroupList::Decode(groups.Encode()).value(), groups);
  const TopicConfigList topics{.topics = {SomeTopic()}};
  EXPECT_EQ(TopicConfigList::Decode(topics.Encode()).value(), topics);
  SubscriptionGroupWrapper wrapper;
  wrapper.groups["g"] = group;
  const std::string text = wrapper.Encode();
  EXPECT_EQ(SubscriptionGroupWrapper::Decode(text).value(), wrapper);
  EXPECT_NE(text.find(R"("forbiddenTable":{},"subscriptionGroupTable":{"g":{)"), std::string::npos);
}

TEST(AdminBodies, QueueTablesHaveObjectKeys) {
  const MessageQueue queue{.topic = "T1", .broker_name = "b", .queue_id = 0};
  ExpectText(TopicStatsTable{.offset_table = {{queue, {.max_offset = 9}}}},
             R"({"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T1"}:)"
             R"({"lastUpdateTimestamp":0,"maxOffset":9,"minOffset":0}},"topicPutTps":0.0})");
  ExpectText(ConsumeStats{.consume_tps = 12.5,
                          .offset_table = {{queue,
                                            {.broker_offset = 9,
                                             .consumer_offset = 7,
                                             .last_timestamp_ms = 1,
                                             .pull_offset = 8}}}},
             R"({"consumeTps":12.5,"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T1"}:)"
             R"({"brokerOffset":9,"consumerOffset":7,"lastTimestamp":1,"pullOffset":8}}})");
  ExpectText(TopicStatsTable{}, R"({"offsetTable":{},"topicPutTps":0.0})");
}

TEST(AdminBodies, ResetOffsetsHaveAFormForJavaAndOneForCpp) {
  ResetOffsetBody body;
  body.offset_table[{.topic = "T", .broker_name = "b", .queue_id = 0}] = 0;
  body.offset_table[{.topic = "T", .broker_name = "b", .queue_id = 1}] = 5;
  ExpectText(body, R"({"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:0,)"
                   R"({"brokerName":"b","queueId":1,"topic":"T"}:5}})");
  EXPECT_EQ(body.EncodeForCpp(),
            R"({"offsetTable":[{"brokerName":"b","offset":0,"queueId":0,"topic":"T"},)"
            R"({"brokerName":"b","offset":5,"queueId":1,"topic":"T"}]})");
  EXPECT_EQ(ResetOffsetBody::Decode(body.EncodeForCpp()).value(), body);
}

TEST(AdminBodies, StatisticsAndOffsetTablesAreAsTheDocumentSays) {
  BrokerStatsData stats;
  stats.minute = {.average_time = 1.5, .sum = 3, .tps = 0.5};
  ExpectText(stats,
             R"({"statsDay":{"avgpt":0.0,"sum":0,"tps":0.0},"statsHour":{"avgpt":0.0,"sum":0,)"
             R"("tps":0.0},"statsMinute":{"avgpt":1.5,"sum":3,"tps":0.5}})");
  ExpectText(ConsumerOffsetTable{.offset_table = {{"T@g", {{0, 12}}}}},
             R"({"offsetTable":{"T@g":{"0":12}}})");
  ExpectText(DelayOffsetTable{.offset_table = {{3, 128}}}, R"({"offsetTable":{"3":128}})");
}

TEST(ReplicationBodies, AGroupStatusSurvivesTheWire) {
  GroupStatusBody status;
  status.broker_name = "b";
  status.peer = "n1";
  status.role = "leader";
  status.ready = true;
  status.term = 7;
  status.last_index = 900;
  status.disk_used_ratio = 0.25;
  status.sync_p99_us = 1500;
  status.members.push_back({.client_address = "127.0.0.1:1",
                            .connected = true,
                            .heard_ago_ms = 12,
                            .id = "n2",
                            .peer_address = "h:2",
                            .lag_bytes = 4096,
                            .lag_entries = 3,
                            .lag_ms = 8});
  EXPECT_EQ(GroupStatusBody::Decode(status.Encode()).value(), status);
  EXPECT_EQ(GroupStatusBody::Decode("{}").value(), GroupStatusBody());
}

TEST(Bodies, RefuseWhatIsNoObjectAndNameThemselves) {
  EXPECT_EQ(LockBatchRequest::Decode("[]").status().message(),
            "LockBatchRequestBody: the body is no JSON object");
  const Status status = TopicRouteData::Decode("{").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message().substr(0, 16), "TopicRouteData: ");
  EXPECT_FALSE(HeartbeatData::Decode("").ok());
}

}  // namespace
}  // namespace triad::remoting
