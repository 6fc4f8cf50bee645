// hot_paths ROUNDS long|plain: sends and pulls by a fixed script, for instructions.py to count
// their instructions.
//
// One peer over a real store, no sockets. A round: 64 frames of one read are decoded, checked and
// submitted at once, as a connection thread does; an entry is made of them; when it is applied,
// each answer is encoded; "plain": by the short way of plain sends. Then the same messages are
// pulled, 32 at a time, from memory.
// What the counts begin and end with is named in instructions.py.

#include <glog/logging.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "remoting/codes.h"
#include "remoting/frame.h"
#include "tests/unit/broker/message_harness.h"

namespace triad::broker {
namespace {

constexpr int kPerRound = 64;
constexpr int kPerPull = 32;
constexpr int kQueues = 8;
constexpr std::size_t kBodyBytes = 1024;
constexpr char kTopic[] = "HotPaths";

std::string Frame(remoting::Command command) {
  return remoting::EncodeFrame(command).value();
}

std::string SendFrames(int round, const MessageHarness& harness) {
  std::string frames;
  for (int i = 0; i < kPerRound; ++i) {
    remoting::SendMessageRequest header = MessageHarness::SendHeader(kTopic);
    header.queue_id = i % kQueues;
    char key[40];
    std::snprintf(key, sizeof key, "%032X", static_cast<unsigned>(round * kPerRound + i));
    header.properties = "UNIQ_KEY\x01" + std::string(key) + "\x02WAIT\x01true\x02";
    header.broker_name = "broker-a";
    frames += Frame(harness.SendCommand(header, std::string(kBodyBytes, 'b')));
  }
  return frames;
}

// Counts answers and encodes them, as the connection would.
class Answers {
 public:
  void Take(const remoting::Command& answer, std::int32_t wanted) {
    std::string head;
    CHECK(remoting::EncodeFrameHead(answer, answer.body.size(), &head).ok());
    const std::lock_guard hold(mutex_);
    CHECK_EQ(answer.code, wanted) << answer.remark;
    bytes_ += head.size() + answer.body.size();
    ++count_;
    changed_.notify_one();
  }
  void TakeFrames(const std::string& frames, std::size_t count) {
    const std::lock_guard hold(mutex_);
    bytes_ += frames.size();
    count_ += static_cast<int>(count);
    changed_.notify_one();
  }
  void WaitFor(int count) {
    std::unique_lock lock(mutex_);
    CHECK(changed_.wait_for(lock, kPatience * 10, [&] { return count_ >= count; })) << "no answer";
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
  std::size_t bytes_ = 0;
};

class PlainConnection final : public TestConnection {
 public:
  PlainConnection(std::uint64_t id, TimerQueue& timers, Answers* answers)
      : TestConnection(id, timers), answers_(*answers) {}
  void SendFrames(std::string frames, std::size_t count) override {
    answers_.TakeFrames(frames, count);
  }

 private:
  Answers& answers_;
};

}  // namespace

// The names that instructions.py looks for.
[[gnu::noinline]] void HotSends(MessageHarness* harness, remoting::FrameDecoder* decoder,
                                const std::string& frames, Answers* answers) {
  decoder->Append(frames);
  for (;;) {
    Result<std::optional<remoting::Command>> command = decoder->Next();
    CHECK(command.ok()) << command.status();
    if (!command->has_value()) break;
    harness->Dispatch(std::move(**command), [answers](remoting::Command answer) {
      answers->Take(answer, remoting::kSuccess);
    });
  }
}

[[gnu::noinline]] void HotPlainSends(MessageHarness* harness, remoting::FrameDecoder* decoder,
                                     const std::string& frames,
                                     const remoting::ConnectionPtr& connection) {
  decoder->Append(frames);
  for (;;) {
    const Result<std::optional<std::string_view>> frame = decoder->Peek();
    CHECK(frame.ok()) << frame.status();
    if (!frame->has_value()) break;
    CHECK(harness->plain().Take(connection, **frame));
    decoder->Drop(**frame);
  }
  harness->plain().Flush();
}

[[gnu::noinline]] void HotPull(MessageHarness* harness, remoting::FrameDecoder* decoder,
                               const std::string& frame, Answers* answers) {
  decoder->Append(frame);
  Result<std::optional<remoting::Command>> command = decoder->Next();
  CHECK(command.ok() && command->has_value());
  harness->Dispatch(std::move(**command), [answers](remoting::Command answer) {
    answers->Take(answer, remoting::kSuccess);
  });
}

namespace {

void Run(int rounds, bool is_plain) {
  MessageHarness harness;
  harness.CreateTopic(kTopic, kQueues);
  remoting::FrameDecoder decoder;
  Answers sends;
  const auto connection = std::make_shared<PlainConnection>(7, harness.timers(), &sends);
  // The entry is made by whoever EndGather finds, perhaps this thread: not inside of what is
  // counted.
  Appender& appender = harness.store().appender();
  for (int round = 0; round < rounds; ++round) {
    const std::string frames = SendFrames(round, harness);
    appender.BeginGather();
    if (is_plain) {
      HotPlainSends(&harness, &decoder, frames, connection);
    } else {
      HotSends(&harness, &decoder, frames, &sends);
    }
    appender.EndGather();
    sends.WaitFor((round + 1) * kPerRound);
  }
  Answers pulls;
  const int per_queue = rounds * kPerRound / kQueues;
  int asked = 0;
  for (int queue = 0; queue < kQueues; ++queue) {
    for (int offset = 0; offset + kPerPull <= per_queue; offset += kPerPull) {
      HotPull(&harness, &decoder,
              Frame(MessageHarness::PullCommand(MessageHarness::PullHeader(kTopic, queue, offset))),
              &pulls);
      pulls.WaitFor(++asked);
    }
  }
  CHECK_GT(pulls.bytes(), static_cast<std::size_t>(asked) * kPerPull * kBodyBytes);
  std::printf("sent %d pulled %d\n", rounds * kPerRound, asked * kPerPull);
}

}  // namespace
}  // namespace triad::broker

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_ERROR;
  google::InitGoogleLogging(argv[0]);
  const std::string way = argc > 2 ? argv[2] : "";
  if (way != "long" && way != "plain") {
    std::fprintf(stderr, "hot_paths ROUNDS long|plain\n");
    return 2;
  }
  triad::broker::Run(std::atoi(argv[1]), way == "plain");
  return 0;
}
