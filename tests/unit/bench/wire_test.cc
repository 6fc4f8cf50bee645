// The bytes of a load: patched frames, answers read without decoding, what a run stored.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "bin/bench/frame_template.h"
#include "bin/bench/pull_loop.h"
#include "bin/bench/send_protocol.h"
#include "bin/bench/server_usage.h"
#include "bin/bench/verify.h"
#include "common/byte_order.h"
#include "common/java_crc32.h"
#include "remoting/codes.h"
#include "remoting/frame.h"
#include "remoting/headers.h"

namespace triad::bench {
namespace {

using remoting::Command;
using remoting::SerializeType;

constexpr SerializeType kBoth[] = {SerializeType::kJson, SerializeType::kRocketmq};

TEST(FrameTemplate, APatchedFrameIsWhatTheCodecWouldHaveWritten) {
  for (const SerializeType type : kBoth) {
    remoting::PullMessageRequest header;
    header.consumer_group = "g";
    header.topic = "t";
    header.queue_offset = 1111111111111111111;
    header.subscription = "*";
    Command request = Command::Request(remoting::kPullMessage);
    request.serialize_type = type;
    header.Encode(&request.ext);
    const Result<FrameTemplate> made = FrameTemplate::Make(request, 0, {"1111111111111111111"});
    ASSERT_TRUE(made.ok()) << made.status();
    const std::array<std::string_view, 1> texts = {"0000000000000000042"};
    std::string out = "before";
    made->Append(kFirstOpaque + 7, texts, &out);
    const Result<Command> read = remoting::DecodeFrame(std::string_view(out).substr(6));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->opaque, static_cast<std::int32_t>(kFirstOpaque + 7));
    const auto decoded = remoting::PullMessageRequest::Decode(read->ext);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->queue_offset, 42);
    EXPECT_EQ(decoded->topic, "t");
  }
}

TEST(FrameTemplate, RefusesAPlaceThatDoesNotStandThereExactlyOnce) {
  Command request = Command::Request(1);
  request.ext.Set("a", "PLACE");
  EXPECT_FALSE(FrameTemplate::Make(request, 0, {"OTHER"}).ok());
  request.ext.Set("b", "PLACE");
  EXPECT_FALSE(FrameTemplate::Make(request, 0, {"PLACE"}).ok());
}

TEST(AnswerHead, ReadsCodeOpaqueAndNumbersInBothEncodings) {
  for (const SerializeType type : kBoth) {
    Command answer = Command::ResponseTo(Command::Request(11), 19, "a \"code\":5 in the remark");
    answer.serialize_type = type;
    answer.opaque = static_cast<std::int32_t>(kFirstOpaque + 3);
    answer.ext.Set("maxOffset", std::int64_t{77});
    answer.ext.Set("nextBeginOffset", std::int64_t{1234567890123});
    answer.body = "body";
    const Result<std::string> frame = remoting::EncodeFrame(answer);
    ASSERT_TRUE(frame.ok());
    for (std::size_t cut = 0; cut < frame->size(); ++cut) {
      const Result<AnswerHead> part = ReadAnswerHead(std::string_view(*frame).substr(0, cut));
      ASSERT_TRUE(part.ok()) << cut;
      ASSERT_EQ(part->frame_bytes, 0u) << cut;
    }
    const std::string bytes = *frame + "next frame";
    const Result<AnswerHead> head = ReadAnswerHead(bytes);
    ASSERT_TRUE(head.ok()) << head.status();
    EXPECT_EQ(head->frame_bytes, frame->size());
    EXPECT_EQ(head->code, 19);
    EXPECT_EQ(head->opaque, kFirstOpaque + 3);
    EXPECT_EQ(head->body, "body");
    EXPECT_EQ(FindNumber(*head, "nextBeginOffset"), 1234567890123);
    EXPECT_EQ(FindNumber(*head, "maxOffset"), 77);
    EXPECT_EQ(FindNumber(*head, "minOffset"), -1);
    EXPECT_NE(DescribeFailure(*frame).find("code 19 a "), std::string::npos);
  }
}

TEST(AnswerHead, RefusesWhatIsNoFrame) {
  EXPECT_FALSE(ReadAnswerHead("HTTP/1.1 400 Bad Request").ok());
  std::string no_header("\0\0\0\x06\0\0\0\x02{}", 10);
  EXPECT_FALSE(ReadAnswerHead(no_header).ok());
}

// A stored record with IPv4 hosts.
std::string Record(std::string_view body, std::int64_t queue_offset) {
  std::string out(84, '\0');
  StoreBe32(out.data() + 8, JavaCrc32(body));
  StoreBe64(out.data() + 20, static_cast<std::uint64_t>(queue_offset));
  AppendBe32(&out, static_cast<std::uint32_t>(body.size()));
  out += body;
  out += std::string("\x01t\0\0", 4);
  StoreBe32(out.data(), static_cast<std::uint32_t>(out.size()));
  return out;
}

TEST(WalkMessages, SeesEveryMessageAndRefusesCutOnes) {
  const std::string body = Record("first", 5) + Record("", 6);
  std::vector<std::string> seen;
  std::vector<std::int64_t> offsets;
  const Result<std::uint64_t> count = WalkMessages(body, [&](const StoredMessage& message) {
    seen.emplace_back(message.body);
    offsets.push_back(message.queue_offset);
    EXPECT_EQ(message.body_crc, JavaCrc32(message.body));
  });
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(*count, 2u);
  EXPECT_EQ(seen, (std::vector<std::string>{"first", ""}));
  EXPECT_EQ(offsets, (std::vector<std::int64_t>{5, 6}));
  for (std::size_t cut = 1; cut < body.size(); ++cut) {
    if (cut == Record("first", 5).size()) continue;
    EXPECT_FALSE(
        WalkMessages(std::string_view(body).substr(0, cut), [](const StoredMessage&) {}).ok())
        << cut;
  }
}

std::string StampedBody(std::uint64_t run, std::uint64_t message, std::size_t size) {
  std::string body = Filler(size);
  WriteStamp({run, message, 99}, body.data());
  return body;
}

TEST(RunChecker, TellsStoredMissingRepeatedAndDamagedApart) {
  const std::vector<bool> acknowledged = {true, true, true, false, true};
  VerifyOptions options;
  options.run = 42;
  options.size = 100;
  options.acknowledged = &acknowledged;
  RunChecker checker(options);
  const auto take = [&](const std::string& body) { checker.Take(body, JavaCrc32(body)); };
  take(StampedBody(42, 0, 100));
  take(StampedBody(42, 1, 100));
  take(StampedBody(42, 1, 100));
  take(StampedBody(7, 2, 100));  // another run's
  take("short");
  std::string damaged = StampedBody(42, 4, 100);
  damaged.back() = '!';
  take(damaged);
  checker.Take(StampedBody(42, 4, 100), 1);  // a checksum of something else
  const PeerCheck check = checker.Finish();
  EXPECT_EQ(check.stored, 3u);
  EXPECT_EQ(check.repeated, 1u);
  EXPECT_EQ(check.damaged, 2u);
  EXPECT_EQ(check.missing, 2u);  // 2 and 4; 3 was never acknowledged
  EXPECT_FALSE(check.is_right());
}

TEST(RunChecker, CountsMessagesOfBatchesByTheirRequest) {
  const std::vector<bool> acknowledged = {true, false};
  VerifyOptions options;
  options.run = 1;
  options.batch = 3;
  options.size = 64;
  options.acknowledged = &acknowledged;
  RunChecker checker(options);
  for (const std::uint64_t message : {0u, 2u}) {
    const std::string body = StampedBody(1, message, 64);
    checker.Take(body, JavaCrc32(body));
  }
  EXPECT_EQ(checker.Finish().missing, 1u);
}

TEST(ServerUsage, FindsTheProcessThatListensOnAPort) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string text = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  EXPECT_EQ(ListenersOn({text}), std::vector<pid_t>{::getpid()});
  ::close(fd);
  EXPECT_TRUE(ListenersOn({text}).empty());
}

}  // namespace
}  // namespace triad::bench
