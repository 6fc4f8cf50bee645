// The short way of sends against the long one: the same fields, the same bytes.

#include "remoting/plain_send.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "remoting/codes.h"
#include "remoting/frame.h"
#include "remoting/headers.h"

namespace triad::remoting {
namespace {

SendMessageRequest OneHeader() {
  SendMessageRequest header;
  header.producer_group = "g";
  header.topic = "Orders";
  header.default_topic = "TBW102";
  header.default_topic_queue_nums = 4;
  header.queue_id = 3;
  header.sys_flag = 1;
  header.born_timestamp_ms = 1700000000123;
  header.flag = -7;
  header.properties =
      "UNIQ_KEY\x01"
      "0A\x02"
      "TAGS\x01"
      "t\x02";
  header.reconsume_times = 2;
  header.broker_name = "b";
  return header;
}

Command RequestOf(const SendMessageRequest& header, SerializeType type) {
  Command request = Command::Request(kSendMessageV2);
  request.serialize_type = type;
  request.opaque = 4711;
  header.EncodeV2(&request.ext);
  request.body = "the body";
  return request;
}

std::string FrameOf(const Command& command) {
  auto frame = EncodeFrame(command);
  EXPECT_TRUE(frame.ok()) << frame.status();
  return frame.ok() ? *frame : std::string();
}

std::string JsonFrame(const std::string& header, const std::string& body) {
  std::string frame;
  const auto put = [&frame](std::size_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      frame.push_back(static_cast<char>(value >> shift & 0xFF));
    }
  };
  put(4 + header.size() + body.size());
  put(header.size());
  return frame + header + body;
}

bool IsPlain(const std::string& frame) {
  std::string scratch;
  PlainSend send;
  return ReadPlainSend(frame, &scratch, &send);
}

// What the short way read is what the long way reads.
void ExpectSame(const std::string& frame, const PlainSend& send) {
  const auto command = DecodeFrame(frame);
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(command->code, kSendMessageV2);
  EXPECT_EQ(command->flag, 0);
  EXPECT_EQ(command->opaque, send.opaque);
  EXPECT_EQ(command->serialize_type, send.serialize_type);
  EXPECT_EQ(command->body, send.body);
  EXPECT_EQ(std::string(send.head) + std::string(send.body), frame);
  const auto header = SendMessageRequest::Decode(command->code, command->ext);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->topic, send.topic);
  EXPECT_EQ(header->queue_id, send.queue_id);
  EXPECT_EQ(header->sys_flag, send.sys_flag);
  EXPECT_EQ(header->born_timestamp_ms, send.born_timestamp_ms);
  EXPECT_EQ(header->flag, send.flag);
  EXPECT_EQ(header->properties, send.properties);
  EXPECT_EQ(header->reconsume_times, send.reconsume_times);
  EXPECT_FALSE(header->batch);
}

constexpr SerializeType kTypes[] = {SerializeType::kJson, SerializeType::kRocketmq};

TEST(PlainSend, ReadsWhatTheLongWayReads) {
  std::vector<SendMessageRequest> headers{OneHeader()};
  headers.push_back(OneHeader());
  headers.back().properties.clear();
  headers.push_back(OneHeader());
  headers.back().properties = "K\x01schl\xC3\xBCssel\x02\x02";
  headers.push_back(OneHeader());
  headers.back().properties = "no separator at all";
  headers.push_back(OneHeader());
  headers.back().max_reconsume_times = 16;
  headers.back().queue_id = -1;
  for (const SerializeType type : kTypes) {
    for (std::size_t i = 0; i < headers.size(); ++i) {
      SCOPED_TRACE(std::to_string(static_cast<int>(type)) + " " + std::to_string(i));
      const std::string frame = FrameOf(RequestOf(headers[i], type));
      std::string scratch;
      PlainSend send;
      ASSERT_TRUE(ReadPlainSend(frame, &scratch, &send));
      ExpectSame(frame, send);
    }
  }
}

TEST(PlainSend, ReadsOtherClientsJson) {
  const std::string fields =
      R"("extFields":{"a":"g","b":"t","c":"d","d":4,"e":"1","f":0,"g":12,"h":"0","i":"A\u0001b",)"
      R"("j":"","k":false,"l":"","m":"false","n":"x"})";
  for (const std::string& header :
       {R"({"code":310,)" + fields + R"(,"flag":0,"language":"JAVA","opaque":5,"version":443})",
        R"({"code":310,"language":"GO","version":317,"opaque":6,"flag":0,"remark":"",)" + fields +
            "}"}) {
    SCOPED_TRACE(header);
    const std::string frame = JsonFrame(header, "b");
    std::string scratch;
    PlainSend send;
    ASSERT_TRUE(ReadPlainSend(frame, &scratch, &send));
    ExpectSame(frame, send);
  }
}

TEST(PlainSend, LeavesTheUnusualToTheLongWay) {
  struct Case {
    const char* name;
    void (*change)(Command*);
  };
  const Case cases[] = {
      {"another code", [](Command* c) { c->code = kSendMessage; }},
      {"a batch by its code", [](Command* c) { c->code = kSendBatchMessage; }},
      {"a batch by its flag", [](Command* c) { c->ext.Set("m", "true"); }},
      {"a batch as C++ clients say it", [](Command* c) { c->ext.Set("m", "1"); }},
      {"oneway", [](Command* c) { c->flag = kFlagOneway; }},
      {"a response", [](Command* c) { c->flag = kFlagResponse; }},
      {"a remark", [](Command* c) { c->remark = "x"; }},
      {"no number", [](Command* c) { c->ext.Set("e", "x"); }},
      {"an empty number", [](Command* c) { c->ext.Set("e", ""); }},
      {"a number out of range", [](Command* c) { c->ext.Set("f", "2147483648"); }},
      {"no number where one is optional", [](Command* c) { c->ext.Set("j", "x"); }},
  };
  for (const SerializeType type : kTypes) {
    for (const Case& c : cases) {
      SCOPED_TRACE(c.name);
      Command request = RequestOf(OneHeader(), type);
      c.change(&request);
      EXPECT_FALSE(IsPlain(FrameOf(request)));
    }
  }
}

TEST(PlainSend, LeavesARequestWithoutARequiredFieldToTheLongWay) {
  for (const SerializeType type : kTypes) {
    for (char letter = 'a'; letter <= 'n'; ++letter) {
      SCOPED_TRACE(letter);
      const Command whole = RequestOf(OneHeader(), type);
      Command request = whole;
      request.ext = ExtFields();
      whole.ext.Visit([&](std::string_view key, std::string_view value) {
        if (key != std::string_view(&letter, 1)) request.ext.Add(key, value);
        return true;
      });
      EXPECT_EQ(IsPlain(FrameOf(request)), letter > 'h');
    }
  }
}

// Any change of any byte: what is still read is read alike.
TEST(PlainSend, NeverReadsWhatTheLongWayReadsDifferently) {
  std::mt19937 random(20261130);
  int read = 0;
  for (const SerializeType type : kTypes) {
    const std::string whole = FrameOf(RequestOf(OneHeader(), type));
    for (int round = 0; round < 60000; ++round) {
      std::string frame = whole;
      const int changes = 1 + static_cast<int>(random() % 3);
      for (int i = 0; i < changes; ++i) {
        const std::size_t at = 8 + random() % (frame.size() - 8);
        const char* const kBytes = "\"\\{}:,0123456789abcdefghijklmn-\x01\x80\xC3";
        frame[at] =
            round % 2 == 0 ? kBytes[random() % 34] : frame[8 + random() % (frame.size() - 8)];
      }
      std::string scratch;
      PlainSend send;
      if (!ReadPlainSend(frame, &scratch, &send)) continue;
      ++read;
      ExpectSame(frame, send);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(read, 1000);
}

TEST(PlainSend, DoesNotReadBeyondACutFrame) {
  for (const SerializeType type : kTypes) {
    const std::string whole = FrameOf(RequestOf(OneHeader(), type));
    for (std::size_t size = 0; size < whole.size() - 8; ++size) {
      const std::string cut = whole.substr(0, size);  // its own allocation: a sanitizer sees
      std::string scratch;
      PlainSend send;
      EXPECT_FALSE(ReadPlainSend(cut, &scratch, &send)) << size;
    }
  }
}

TEST(PlainSendAnswer, HasTheBytesOfTheLongWay) {
  struct Case {
    const char* name;
    std::string transaction_id;
    std::string region;
    bool trace_on;
  };
  const Case cases[] = {{"usual", "0A01", "DefaultRegion", true},
                        {"no trace", "0A01", "DefaultRegion", false},
                        {"empty texts", "", "", true},
                        {"a quote", "a\"b", "r", true},
                        {"a control character",
                         "a\x01"
                         "b",
                         "r", true},
                        {"not ASCII", "\xC3\xBC", "r\xC3\xBC", false}};
  for (const SerializeType type : kTypes) {
    for (const Case& c : cases) {
      SCOPED_TRACE(c.name);
      SendMessageResponse header;
      header.msg_id = "7F00000100002A9F0000000000000123";
      header.queue_id = 2147483647;
      header.queue_offset = 9223372036854775807;
      header.transaction_id = c.transaction_id;
      header.msg_region = c.region;
      header.trace_on = c.trace_on;
      Command request = Command::Request(kSendMessageV2);
      request.opaque = -2147483647;
      request.serialize_type = type;
      Command response = Command::ResponseTo(request, kSuccess);
      header.Encode(&response.ext);

      std::string bytes = "before";
      AppendPlainSendAnswer({.serialize_type = type,
                             .opaque = request.opaque,
                             .msg_id = header.msg_id,
                             .queue_id = header.queue_id,
                             .queue_offset = header.queue_offset,
                             .transaction_id = c.transaction_id,
                             .msg_region = c.region,
                             .trace_on = c.trace_on},
                            &bytes);
      EXPECT_EQ(bytes, "before" + FrameOf(response));
    }
  }
}

}  // namespace
}  // namespace triad::remoting
