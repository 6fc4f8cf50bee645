#include "remoting/frame.h"

#include <gtest/gtest.h>

#include "common/byte_order.h"

namespace triad::remoting {
namespace {

// A frame whose parts are exactly as given.
std::string RawFrame(std::uint32_t total, std::uint32_t type_and_length, std::string_view rest) {
  std::string frame(8, '\0');
  StoreBe32(frame.data(), total);
  StoreBe32(frame.data() + 4, type_and_length);
  return frame + std::string(rest);
}

std::string JsonFrame(std::string_view header, std::string_view body = {}) {
  return RawFrame(static_cast<std::uint32_t>(4 + header.size() + body.size()),
                  static_cast<std::uint32_t>(header.size()),
                  std::string(header) + std::string(body));
}

Command DecodeHeader(std::string_view header) {
  return DecodeFrame(JsonFrame(header)).value();
}

std::string RefusalOf(std::string_view frame) {
  FrameDecoder decoder;
  decoder.Append(frame);
  const auto next = decoder.Next();
  return next.ok() ? "accepted" : std::string(next.status().message());
}

TEST(FrameDecoder, RefusesLengthsWithoutRoomForTheHeaderLength) {
  for (std::uint32_t total = 0; total < 4; ++total) {
    EXPECT_NE(RefusalOf(RawFrame(total, 0, "")).find("leaves no room"), std::string::npos) << total;
  }
}

TEST(FrameDecoder, RefusesALengthAboveTheLimitBeforeAnythingElseArrives) {
  std::string prefix(4, '\0');
  StoreBe32(prefix.data(), static_cast<std::uint32_t>(kMaxFrameBytes - 4 + 1));
  // 0x00FFFFFD: the first byte is innocent, the length is not.
  EXPECT_NE(RefusalOf(prefix).find("the limit is 16777216"), std::string::npos);
}

TEST(FrameDecoder, WaitsForALengthAtTheLimit) {
  std::string prefix(4, '\0');
  StoreBe32(prefix.data(), static_cast<std::uint32_t>(kMaxFrameBytes - 4));
  FrameDecoder decoder;
  decoder.Append(prefix);
  const auto next = decoder.Next();
  ASSERT_TRUE(next.ok());
  EXPECT_FALSE(next->has_value());
}

TEST(FrameDecoder, RefusesAHeaderLongerThanItsFrameAfterEightBytes) {
  for (const std::uint32_t total :
       {4u, 6u, 1000u, static_cast<std::uint32_t>(kMaxFrameBytes - 4)}) {
    const std::uint32_t room = total - 4;
    if (room > 0) {
      EXPECT_EQ(RefusalOf(RawFrame(total, room, "")), "accepted");
    }
    const std::string refusal = RefusalOf(RawFrame(total, room + 1, ""));
    EXPECT_NE(refusal.find("header length " + std::to_string(room + 1) + " is beyond"),
              std::string::npos)
        << refusal;
  }
}

TEST(FrameDecoder, RefusesAnUnknownHeaderEncoding) {
  EXPECT_NE(RefusalOf(RawFrame(6, (2u << 24) | 2, "{}")).find("unknown header encoding 2"),
            std::string::npos);
}

TEST(FrameDecoder, SaysWhenItIsSpokenToInAnotherProtocol) {
  EXPECT_NE(RefusalOf("GET / HTTP/1.1").find("HTTP"), std::string::npos);
  EXPECT_NE(RefusalOf(std::string_view("\x16", 1)).find("TLS is not enabled"), std::string::npos);
  EXPECT_NE(RefusalOf("\x81hello").find("not the RocketMQ protocol"), std::string::npos);
}

TEST(FrameDecoder, HonoursASmallerLimit) {
  FrameDecoder decoder(64);
  decoder.Append(JsonFrame(R"({"code":1})", std::string(64, 'x')));
  EXPECT_FALSE(decoder.Next().ok());
}

TEST(FrameDecoder, FindsTheSameFramesWhereverTheStreamIsCut) {
  const std::string stream = JsonFrame(R"({"code":1,"opaque":1})", "one") +
                             JsonFrame(R"({"code":2,"opaque":2})") +
                             JsonFrame(R"({"code":3,"opaque":3})", std::string("\0\xff", 2));
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    SCOPED_TRACE(cut);
    FrameDecoder decoder;
    std::vector<std::pair<int, std::string>> seen;
    for (const std::string& part : {stream.substr(0, cut), stream.substr(cut)}) {
      decoder.Append(part);
      while (true) {
        auto next = decoder.Next();
        ASSERT_TRUE(next.ok()) << next.status();
        if (!next->has_value()) break;
        seen.emplace_back((*next)->code, (*next)->body);
      }
    }
    const std::vector<std::pair<int, std::string>> expected = {
        {1, "one"}, {2, ""}, {3, std::string("\0\xff", 2)}};
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(decoder.buffered_bytes(), 0u);
  }
}

TEST(FrameDecoder, KeepsWhatIsBehindAFrameThroughManyRounds) {
  // More rounds than the buffer keeps: used bytes must be given back, unused ones kept.
  const std::string frame = JsonFrame(R"({"code":5})", std::string(1000, 'b'));
  FrameDecoder decoder;
  std::string stream;
  for (int i = 0; i < 300; ++i) stream += frame;
  int count = 0;
  for (std::size_t at = 0; at < stream.size(); at += 1500) {
    decoder.Append(std::string_view(stream).substr(at, 1500));
    while (true) {
      const auto next = decoder.Next();
      ASSERT_TRUE(next.ok());
      if (!next->has_value()) break;
      ++count;
    }
    EXPECT_LT(decoder.buffered_bytes(), frame.size());
  }
  EXPECT_EQ(count, 300);
}

TEST(JsonHeader, TakesItsMembersInAnyOrderAndIgnoresOthers) {
  const Command command = DecodeHeader(
      "{\n \"version\" : 317 , unknown:{\"a\":[1,{b:null}]}, 'flag':2,\"opaque\":-5,"
      "\"remark\":\"r\",\"language\":\"GO\",\"extFields\":{},\"code\":\"310\"} \n");
  EXPECT_EQ(command.code, 310);
  EXPECT_EQ(command.version, 317);
  EXPECT_EQ(command.flag, 2);
  EXPECT_TRUE(command.is_oneway());
  EXPECT_EQ(command.opaque, -5);
  EXPECT_EQ(command.remark, "r");
  EXPECT_EQ(command.language, "GO");
  EXPECT_TRUE(command.ext.empty());
}

TEST(JsonHeader, DoesWithoutExtFieldsRemarkAndLanguage) {
  for (const char* header :
       {R"({"code":34})", R"({"code":34,"extFields":null,"remark":null,"language":null})",
        R"({"code":34,"extFields":{},"remark":""})"}) {
    SCOPED_TRACE(header);
    const Command command = DecodeHeader(header);
    EXPECT_EQ(command.code, 34);
    EXPECT_EQ(command.version, 0);
    EXPECT_EQ(command.remark, "");
    EXPECT_TRUE(command.ext.empty());
  }
}

TEST(JsonHeader, ReadsScalarsAsFieldValuesByTheirText) {
  const Command command = DecodeHeader(
      R"({"code":310,"extFields":{"e":3,"k":false,"j":-1,"s":"x","none":null,"o":{"a":[1]}}})");
  EXPECT_EQ(*command.ext.Find("e"), "3");
  EXPECT_EQ(*command.ext.Find("k"), "false");
  EXPECT_EQ(*command.ext.Find("j"), "-1");
  EXPECT_EQ(*command.ext.Find("s"), "x");
  EXPECT_EQ(*command.ext.Find("o"), R"({"a":[1]})");
  EXPECT_EQ(command.ext.Find("none"), std::nullopt);
}

TEST(JsonHeader, ALaterDuplicateFieldWins) {
  const Command command = DecodeHeader(R"({"extFields":{"topic":"a","topic":"b"}})");
  EXPECT_EQ(*command.ext.Find("topic"), "b");
}

TEST(JsonHeader, RefusesWhatIsNoHeader) {
  for (const char* header :
       {"", "[]", "7", "null", "{", "{}x", R"({"code":})", R"({"code":1,)", R"({"code":"x"})",
        R"({"code":1.5})", R"({"code":2147483648})", R"({"extFields":7})", R"({"extFields":{"a"}})",
        "{\"remark\":\"\xff\"}", R"({"code":1 "flag":2})"}) {
    EXPECT_NE(RefusalOf(JsonFrame(header)), "accepted") << header;
  }
}

TEST(JsonHeader, EscapesPropertiesAndOmitsWhatIsEmpty) {
  Command command = Command::Request(310);
  command.opaque = -2;
  command.ext.Add("i", "K\x01v\"\\\x02");
  EXPECT_EQ(EncodeFrame(command).value().substr(8),
            R"({"code":310,"extFields":{"i":"K\u0001v\"\\\u0002"},"flag":0,"language":"JAVA",)"
            R"("opaque":-2,"serializeTypeCurrentRPC":"JSON","version":479})");
  command = Command::ResponseTo(command, 14, "no leader");
  EXPECT_EQ(EncodeFrame(command).value().substr(8),
            R"({"code":14,"flag":1,"language":"JAVA","opaque":-2,"remark":"no leader",)"
            R"("serializeTypeCurrentRPC":"JSON","version":479})");
}

TEST(BinaryHeader, RefusesEveryTruncation) {
  Command command = Command::Request(34);
  command.serialize_type = SerializeType::kRocketmq;
  command.remark = "why";
  command.ext.Add("key", "value");
  const std::string whole = EncodeFrame(command).value().substr(8);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string frame =
        RawFrame(static_cast<std::uint32_t>(4 + size),
                 (1u << 24) | static_cast<std::uint32_t>(size), whole.substr(0, size));
    EXPECT_NE(RefusalOf(frame).find("bad binary header"), std::string::npos) << size;
  }
}

TEST(BinaryHeader, RefusesALengthBeyondItsBlock) {
  Command command = Command::Request(34);
  command.serialize_type = SerializeType::kRocketmq;
  command.ext.Add("key", "value");
  std::string frame = EncodeFrame(command).value();
  const std::size_t value_length_at = frame.size() - 5 - 4;
  StoreBe32(frame.data() + value_length_at, 0xFFFFFFFF);
  EXPECT_NE(RefusalOf(frame).find("a value needs 4294967295 bytes"), std::string::npos);
}

TEST(BinaryHeader, RefusesTextThatIsNotUtf8) {
  Command command = Command::Request(34);
  command.serialize_type = SerializeType::kRocketmq;
  command.ext.Add("topic", "T\xff");
  EXPECT_NE(RefusalOf(EncodeFrame(command).value()).find("not UTF-8"), std::string::npos);
}

TEST(BinaryHeader, KnowsTheLanguages) {
  for (const char* language : {"JAVA", "CPP", "GO", "NODE_JS", "OTHER"}) {
    Command command = Command::Request(34);
    command.serialize_type = SerializeType::kRocketmq;
    command.language = language;
    EXPECT_EQ(DecodeFrame(EncodeFrame(command).value()).value().language, language);
  }
}

TEST(BinaryHeader, CannotCarryALargeCode) {
  Command command = Command::Request(200050);
  EXPECT_TRUE(EncodeFrame(command).ok());
  command.serialize_type = SerializeType::kRocketmq;
  EXPECT_EQ(EncodeFrame(command).status().code(), StatusCode::kInvalidArgument);
}

TEST(EncodeFrame, RefusesAFrameAboveTheLimitAndLeavesTheBufferAsItWas) {
  const Command command = Command::Request(10);
  std::string out = "before";
  ASSERT_TRUE(EncodeFrameHead(command, 0, &out).ok());
  const std::size_t head_bytes = out.size() - 6;
  out = "before";
  EXPECT_TRUE(EncodeFrameHead(command, kMaxFrameBytes - head_bytes, &out).ok());
  out = "before";
  const Status status = EncodeFrameHead(command, kMaxFrameBytes - head_bytes + 1, &out);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(out, "before");
}

TEST(DecodeFrame, WantsExactlyOneFrame) {
  const std::string frame = JsonFrame(R"({"code":1})", "body");
  EXPECT_TRUE(DecodeFrame(frame).ok());
  EXPECT_FALSE(DecodeFrame(frame + "x").ok());
  EXPECT_FALSE(DecodeFrame(frame.substr(0, frame.size() - 1)).ok());
  EXPECT_FALSE(DecodeFrame(RawFrame(6, 3, "{}")).ok());
  EXPECT_FALSE(DecodeFrame("").ok());
}

}  // namespace
}  // namespace triad::remoting
