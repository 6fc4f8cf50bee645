#include "remoting/headers.h"

#include <gtest/gtest.h>

#include "remoting/codes.h"

namespace triad::remoting {
namespace {

ExtFields Fields(std::initializer_list<std::pair<const char*, const char*>> items) {
  ExtFields fields;
  for (const auto& [key, value] : items) fields.Add(key, value);
  return fields;
}

ExtFields ShortSend() {
  return Fields({{"a", "pg"},
                 {"b", "T"},
                 {"c", "TBW102"},
                 {"d", "4"},
                 {"e", "-1"},
                 {"f", "1"},
                 {"g", "5"},
                 {"h", "9"}});
}

std::string MissingIn(const Status& status) {
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(ExtFields, RequiredFormsNameTheFieldThatIsMissingOrBad) {
  const ExtFields fields = Fields({{"n", "12x"}, {"big", "4294967296"}, {"empty", ""}});
  EXPECT_EQ(MissingIn(fields.GetInt32("x").status()), "missing required field x");
  EXPECT_EQ(MissingIn(fields.GetInt64("n").status()), "field n is no integer: '12x'");
  EXPECT_EQ(MissingIn(fields.GetInt32("big").status()), "field big is out of range: '4294967296'");
  EXPECT_EQ(MissingIn(fields.GetInt64("empty").status()), "field empty is no integer: ''");
  EXPECT_EQ(fields.GetInt64("big").value(), 4294967296);
  EXPECT_EQ(fields.GetString("empty").value(), "");
}

TEST(ExtFields, OptionalFormsTakeAnEmptyTextForAbsent) {
  const ExtFields fields = Fields(
      {{"empty", ""}, {"yes", "True"}, {"other", "yes"}, {"one", "1"}, {"zero", "0"}, {"n", "x"}});
  EXPECT_EQ(fields.StringOr("empty", "d"), "d");
  EXPECT_EQ(fields.Int64Or("empty", 4).value(), 4);
  EXPECT_EQ(fields.Int32Or("absent", 5).value(), 5);
  EXPECT_FALSE(fields.Int32Or("n", 5).ok());
  EXPECT_TRUE(fields.BoolOr("empty", true));
  EXPECT_TRUE(fields.BoolOr("yes", false));
  EXPECT_FALSE(fields.BoolOr("other", true));
  EXPECT_TRUE(fields.BoolOr("one", false)) << "as C++ clients write it";
  EXPECT_FALSE(fields.BoolOr("zero", true));
}

TEST(ExtFields, SetReplaces) {
  ExtFields fields = Fields({{"a", "1"}});
  fields.Set("a", std::int64_t{2});
  fields.SetBool("b", true);
  EXPECT_EQ(fields.items().size(), 2u);
  EXPECT_EQ(*fields.Find("a"), "2");
  EXPECT_EQ(*fields.Find("b"), "true");
}

TEST(SendMessageRequest, BothSpellingsMeanTheSame) {
  SendMessageRequest header;
  header.producer_group = "pg";
  header.topic = "T";
  header.default_topic = "TBW102";
  header.default_topic_queue_nums = 4;
  header.queue_id = -1;
  header.sys_flag = 3;
  header.born_timestamp_ms = 1700000000000;
  header.flag = 7;
  header.properties = "K\x01v\x02";
  header.reconsume_times = 2;
  header.unit_mode = true;
  header.max_reconsume_times = 16;
  header.batch = true;
  header.broker_name = "b";
  ExtFields longer;
  ExtFields shorter;
  header.EncodeV1(&longer);
  header.EncodeV2(&shorter);
  for (const auto& decoded : {SendMessageRequest::Decode(kSendMessage, longer).value(),
                              SendMessageRequest::Decode(kSendMessageV2, shorter).value(),
                              SendMessageRequest::Decode(kSendBatchMessage, shorter).value()}) {
    ExtFields again;
    decoded.EncodeV1(&again);
    EXPECT_EQ(again.items(), longer.items());
  }
  EXPECT_EQ(*longer.Find("maxReconsumeTimes"), "16");
  EXPECT_EQ(*shorter.Find("l"), "16");
}

TEST(SendMessageRequest, OptionalFieldsMayBeAbsentOrEmpty) {
  ExtFields fields = ShortSend();
  for (const char* key : {"i", "j", "k", "l", "m", "n"}) fields.Add(key, "");
  for (const ExtFields& f : {ShortSend(), fields}) {
    const auto header = SendMessageRequest::DecodeV2(f).value();
    EXPECT_EQ(header.queue_id, -1);
    EXPECT_EQ(header.reconsume_times, 0);
    EXPECT_EQ(header.max_reconsume_times, std::nullopt);
    EXPECT_FALSE(header.batch);
  }
}

TEST(SendMessageRequest, EveryRequiredFieldIsMissedByItsName) {
  const struct {
    char letter;
    const char* name;
  } kCases[] = {{'a', "producerGroup"},         {'b', "topic"},   {'c', "defaultTopic"},
                {'d', "defaultTopicQueueNums"}, {'e', "queueId"}, {'f', "sysFlag"},
                {'g', "bornTimestamp"},         {'h', "flag"}};
  const ExtFields shorter = ShortSend();
  ExtFields longer;
  SendMessageRequest::DecodeV2(shorter).value().EncodeV1(&longer);
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    ExtFields without;
    for (const auto& [key, value] : shorter.items()) {
      if (key[0] != c.letter) without.Add(key, value);
    }
    EXPECT_EQ(MissingIn(SendMessageRequest::DecodeV2(without).status()),
              std::string("missing required field ") + c.name + " (" + c.letter + ")");
    ExtFields long_without;
    for (const auto& [key, value] : longer.items()) {
      if (key != c.name) long_without.Add(key, value);
    }
    EXPECT_EQ(MissingIn(SendMessageRequest::DecodeV1(long_without).status()),
              std::string("missing required field ") + c.name);
  }
}

TEST(SendMessageRequest, ABadNumberIsRefused) {
  ExtFields fields = ShortSend();
  fields.Set("e", std::string("three"));
  EXPECT_EQ(MissingIn(SendMessageRequest::DecodeV2(fields).status()),
            "field queueId is no integer: 'three'");
}

TEST(Headers, PullRequestReadsAllItsFields) {
  const ExtFields fields = Fields({{"bname", "broker-a"},
                                   {"commitOffset", "100"},
                                   {"consumerGroup", "g1"},
                                   {"expressionType", "TAG"},
                                   {"maxMsgBytes", "262144"},
                                   {"maxMsgNums", "32"},
                                   {"queueId", "3"},
                                   {"queueOffset", "128"},
                                   {"subVersion", "1700000000000"},
                                   {"suspendTimeoutMillis", "15000"},
                                   {"sysFlag", "3"},
                                   {"topic", "T1"}});
  const auto header = PullMessageRequest::Decode(fields).value();
  EXPECT_EQ(header.consumer_group, "g1");
  EXPECT_EQ(header.topic, "T1");
  EXPECT_EQ(header.queue_id, 3);
  EXPECT_EQ(header.queue_offset, 128);
  EXPECT_EQ(header.max_msg_nums, 32);
  EXPECT_EQ(header.sys_flag, 3);
  EXPECT_EQ(header.commit_offset, 100);
  EXPECT_EQ(header.suspend_timeout_ms, 15000);
  EXPECT_EQ(header.sub_version, 1700000000000);
  EXPECT_EQ(header.expression_type, "TAG");
  EXPECT_EQ(header.max_msg_bytes, 262144);
  EXPECT_EQ(header.subscription, "");
}

TEST(Headers, PullResponseWritesWhatJavaUnboxes) {
  ExtFields fields;
  PullMessageResponse{
      .suggest_which_broker_id = 0, .next_begin_offset = 129, .min_offset = 0, .max_offset = 130}
      .Encode(&fields);
  EXPECT_EQ(*fields.Find("suggestWhichBrokerId"), "0");
  EXPECT_EQ(*fields.Find("nextBeginOffset"), "129");
  EXPECT_EQ(*fields.Find("minOffset"), "0");
  EXPECT_EQ(*fields.Find("maxOffset"), "130");
}

TEST(Headers, AnAbsentOptionalIsNotWritten) {
  ExtFields fields;
  SendBackRequest back;
  back.group = "g";
  back.Encode(&fields);
  EXPECT_EQ(fields.Find("maxReconsumeTimes"), std::nullopt);
  EXPECT_EQ(fields.Find("originMsgId"), std::nullopt);
  EXPECT_EQ(*fields.Find("unitMode"), "false");
  EXPECT_EQ(*fields.Find("delayLevel"), "0");
}

TEST(Headers, UnregisterTakesEmptyGroupsForAbsent) {
  const auto header =
      UnregisterClientRequest::Decode(
          Fields({{"clientID", "c"}, {"producerGroup", ""}, {"consumerGroup", "g"}}))
          .value();
  EXPECT_EQ(header.client_id, "c");
  EXPECT_EQ(header.producer_group, "");
  EXPECT_EQ(header.consumer_group, "g");
}

TEST(Headers, RegistrationKeepsAbsentApartFromFalse) {
  ExtFields fields = Fields({{"brokerName", "b"},
                             {"brokerAddr", "10.0.0.2:10911"},
                             {"clusterName", "c"},
                             {"haServerAddr", "10.0.0.2:10912"},
                             {"brokerId", "0"}});
  EXPECT_EQ(RegisterBrokerRequest::Decode(fields).value().enable_acting_master, std::nullopt);
  fields.Add("enableActingMaster", "false");
  EXPECT_EQ(RegisterBrokerRequest::Decode(fields).value().enable_acting_master, false);
}

TEST(Headers, ResetOffsetDefaultsToEveryQueue) {
  const auto header =
      ResetOffsetRequest::Decode(
          Fields({{"topic", "T"}, {"group", "g"}, {"timestamp", "-1"}, {"isForce", "true"}}))
          .value();
  EXPECT_EQ(header.queue_id, -1);
  EXPECT_EQ(header.timestamp_ms, -1);
  EXPECT_TRUE(header.is_force);
  EXPECT_EQ(header.offset, std::nullopt);
}

TEST(Codes, AreKnownByName) {
  EXPECT_EQ(RequestCodeName(kSendMessageV2), "SEND_MESSAGE_V2");
  EXPECT_EQ(RequestCodeName(10), "SEND_MESSAGE");
  EXPECT_EQ(RequestCodeName(200151), "BATCH_ACK_MESSAGE");
  EXPECT_EQ(RequestCodeName(9999), "UNKNOWN");
  EXPECT_EQ(ResponseCodeName(kPullOffsetMoved), "PULL_OFFSET_MOVED");
  EXPECT_EQ(ResponseCodeName(-1), "UNKNOWN");
}

}  // namespace
}  // namespace triad::remoting
