// Frames of the protocol's documents: the worked examples of wire.md §14 byte by byte, and the
// frames that real clients, probes and strangers send (tests/data/spec).

#include <gtest/gtest.h>

#include "remoting/codes.h"
#include "remoting/frame.h"
#include "remoting/headers.h"
#include "remoting/json.h"
#include "tests/unit/remoting/hex_file.h"

namespace triad::remoting {
namespace {

using test::ReadHex;
using test::ReadText;

Command QueryOffsetRequest(SerializeType type) {
  Command command = Command::Request(kQueryConsumerOffset);
  command.version = 407;
  command.opaque = 7;
  command.serialize_type = type;
  command.ext.Add("consumerGroup", "g1");
  command.ext.Add("topic", "T1");
  command.ext.Add("queueId", "3");
  return command;
}

TEST(GoldenFrames, QueryOffsetRequestIsEncodedAsTheDocumentSays) {
  EXPECT_EQ(EncodeFrame(QueryOffsetRequest(SerializeType::kJson)).value(),
            ReadHex("frames/query-offset-request-json.hex"));
  EXPECT_EQ(EncodeFrame(QueryOffsetRequest(SerializeType::kRocketmq)).value(),
            ReadHex("frames/query-offset-request-binary.hex"));
}

TEST(GoldenFrames, QueryOffsetResponseIsEncodedAsTheDocumentSays) {
  for (const auto& [type, file] :
       {std::pair(SerializeType::kJson, "frames/query-offset-response-json.hex"),
        std::pair(SerializeType::kRocketmq, "frames/query-offset-response-binary.hex")}) {
    SCOPED_TRACE(file);
    Command response = Command::ResponseTo(QueryOffsetRequest(type), kSuccess);
    OffsetResponse{.offset = 128}.Encode(&response.ext);
    EXPECT_EQ(EncodeFrame(response).value(), ReadHex(file));
  }
}

TEST(GoldenFrames, QueryOffsetRequestIsDecodedInBothEncodings) {
  for (const char* file :
       {"frames/query-offset-request-json.hex", "frames/query-offset-request-binary.hex"}) {
    SCOPED_TRACE(file);
    const Command command = DecodeFrame(ReadHex(file)).value();
    EXPECT_EQ(command.code, kQueryConsumerOffset);
    EXPECT_EQ(command.opaque, 7);
    EXPECT_EQ(command.version, 407);
    EXPECT_EQ(command.language, "JAVA");
    EXPECT_FALSE(command.is_response());
    EXPECT_TRUE(command.body.empty());
    const auto header = QueryConsumerOffsetRequest::Decode(command.ext).value();
    EXPECT_EQ(header.consumer_group, "g1");
    EXPECT_EQ(header.topic, "T1");
    EXPECT_EQ(header.queue_id, 3);
    EXPECT_FALSE(header.set_zero_if_not_found);
  }
}

TEST(GoldenFrames, SendV2RequestCarriesItsPropertiesAndBody) {
  const std::string bytes = ReadHex("frames/send-v2-request.hex");
  const Command command = DecodeFrame(bytes).value();
  EXPECT_EQ(command.code, kSendMessageV2);
  EXPECT_EQ(command.body, "hello");
  const auto header = SendMessageRequest::Decode(command.code, command.ext).value();
  EXPECT_EQ(header.producer_group, "pg1");
  EXPECT_EQ(header.topic, "T1");
  EXPECT_EQ(header.default_topic, "TBW102");
  EXPECT_EQ(header.default_topic_queue_nums, 4);
  EXPECT_EQ(header.queue_id, 3);
  EXPECT_EQ(header.born_timestamp_ms, 1700000000000);
  EXPECT_EQ(header.properties, std::string("TAGS\x01TagA\x02UNIQ_KEY\x01"
                                           "0A0000091F4C18B4AAC2092E0E480000\x02WAIT\x01true\x02"));
  EXPECT_EQ(header.max_reconsume_times, std::nullopt);
  EXPECT_FALSE(header.batch);
  EXPECT_EQ(header.broker_name, "broker-a");
  EXPECT_EQ(EncodeFrame(command).value(), bytes);
}

TEST(GoldenFrames, SendV2ResponseIsEncodedAsTheDocumentSays) {
  Command response =
      Command::ResponseTo(DecodeFrame(ReadHex("frames/send-v2-request.hex")).value(), kSuccess);
  // The document lists the fields in this order; a typed header may write them in any.
  response.ext.Add("MSG_REGION", "DefaultRegion");
  response.ext.Add("TRACE_ON", "true");
  response.ext.Add("msgId", "0A00000100002A9F0000000000010000");
  response.ext.Add("queueId", "3");
  response.ext.Add("queueOffset", "128");
  response.ext.Add("transactionId", "0A0000091F4C18B4AAC2092E0E480000");
  EXPECT_EQ(EncodeFrame(response).value(), ReadHex("frames/send-v2-response.hex"));

  ExtFields typed;
  SendMessageResponse::Decode(response.ext).value().Encode(&typed);
  for (const auto& [key, value] : response.ext.items()) {
    SCOPED_TRACE(key);
    ASSERT_NE(typed.Find(key), std::nullopt);
    EXPECT_EQ(*typed.Find(key), value);
  }
  EXPECT_EQ(typed.items().size(), response.ext.items().size());
}

// What a decoder can see of each file; the rest (codes, remarks) belongs to the servers.
TEST(SpecFrames, AreAcceptedOrRefusedAsTheirDescriptionsSay) {
  for (const char* name :
       {"bad-utf8", "binary-header", "header-overrun", "http-get", "missing-field", "pretty-json",
        "tls-hello", "two-in-one", "unknown-code", "zero-length"}) {
    SCOPED_TRACE(name);
    const std::string file = std::string("spec/frame-") + name + ".hex";
    const std::string bytes = ReadHex(file);
    const Json expected = Json::Parse(ReadText(file + ".expected.json")).value();
    ASSERT_EQ(static_cast<std::int64_t>(bytes.size()), expected["bytes"].AsInt64());
    FrameDecoder decoder;
    decoder.Append(bytes);
    auto first = decoder.Next();
    const std::string result = expected["result"].AsString();
    if (result == "close" || result == "error-or-close") {
      ASSERT_FALSE(first.ok());
      EXPECT_EQ(first.status().code(), StatusCode::kInvalidArgument);
      EXPECT_FALSE(first.status().message().empty());
      continue;
    }
    ASSERT_TRUE(first.ok()) << first.status();
    ASSERT_TRUE(first->has_value());
    std::vector<std::int64_t> opaques = {(*first)->opaque};
    std::vector<std::int64_t> expected_opaques = {expected["opaque"].AsInt64()};
    if (result == "responses") {
      const auto second = decoder.Next();
      ASSERT_TRUE(second.ok() && second->has_value());
      opaques.push_back((*second)->opaque);
      expected_opaques.clear();
      for (const Json& item : expected["opaques"].items()) {
        expected_opaques.push_back(item.AsInt64());
      }
    }
    EXPECT_EQ(opaques, expected_opaques);
    EXPECT_EQ(static_cast<int>((*first)->serialize_type), expected["serializeType"].AsInt64(0));
    EXPECT_EQ(decoder.buffered_bytes(), 0u);
  }
}

TEST(SpecFrames, PrettyJsonIsUnderstood) {
  const Command command = DecodeFrame(ReadHex("spec/frame-pretty-json.hex")).value();
  EXPECT_EQ(command.code, kGetRouteInfoByTopic);
  EXPECT_EQ(command.version, 0);
  EXPECT_EQ(command.remark, "");
  EXPECT_EQ(GetRouteInfoRequest::Decode(command.ext).value().topic, "NoSuchTopic");
}

TEST(SpecFrames, AMissingFieldIsNamed) {
  const Command command = DecodeFrame(ReadHex("spec/frame-missing-field.hex")).value();
  const auto header = QueryMessageRequest::Decode(command.ext);
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.status().message(), "missing required field beginTimestamp");
}

TEST(SpecFrames, ATlsHelloIsCalledByItsName) {
  FrameDecoder decoder;
  decoder.Append(ReadHex("spec/frame-tls-hello.hex").substr(0, 1));
  const auto next = decoder.Next();
  ASSERT_FALSE(next.ok());
  EXPECT_NE(next.status().message().find("TLS is not enabled"), std::string::npos);
}

TEST(SpecFrames, BothFramesOfOneWriteArriveAlsoByteByByte) {
  FrameDecoder decoder;
  std::vector<std::int32_t> opaques;
  for (const char byte : ReadHex("spec/frame-two-in-one.hex")) {
    decoder.Append(std::string_view(&byte, 1));
    auto next = decoder.Next();
    ASSERT_TRUE(next.ok());
    if (next->has_value()) opaques.push_back((*next)->opaque);
  }
  EXPECT_EQ(opaques, (std::vector<std::int32_t>{11, 12}));
}

}  // namespace
}  // namespace triad::remoting
