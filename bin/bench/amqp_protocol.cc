#include "bin/bench/amqp_protocol.h"

#include <algorithm>
#include <utility>

#include "common/byte_order.h"

namespace triad::bench {
namespace {

constexpr std::uint8_t kMethodFrame = 1;
constexpr std::uint8_t kHeaderFrame = 2;
constexpr std::uint8_t kBodyFrame = 3;
constexpr char kFrameEnd = '\xCE';
constexpr std::size_t kFrameOverhead = 8;
constexpr std::size_t kFrameMax = 131072;    // RabbitMQ's own default
constexpr std::uint16_t kChannelMax = 2047;  // RabbitMQ's own default; 0 is refused
constexpr int kAnswerWaitMs = 10000;
constexpr std::uint64_t kAckEvery = 500;
constexpr std::uint16_t kPrefetch = 2000;

// class << 16 | method
constexpr std::uint32_t Method(std::uint16_t id, std::uint16_t method) {
  return static_cast<std::uint32_t>(id) << 16 | method;
}
constexpr std::uint32_t kStart = Method(10, 10);
constexpr std::uint32_t kStartOk = Method(10, 11);
constexpr std::uint32_t kTune = Method(10, 30);
constexpr std::uint32_t kTuneOk = Method(10, 31);
constexpr std::uint32_t kOpen = Method(10, 40);
constexpr std::uint32_t kOpenOk = Method(10, 41);
constexpr std::uint32_t kConnectionClose = Method(10, 50);
constexpr std::uint32_t kChannelOpen = Method(20, 10);
constexpr std::uint32_t kChannelOpenOk = Method(20, 11);
constexpr std::uint32_t kChannelClose = Method(20, 40);
constexpr std::uint32_t kQueueDeclare = Method(50, 10);
constexpr std::uint32_t kQueueDeclareOk = Method(50, 11);
constexpr std::uint32_t kQueueDelete = Method(50, 40);
constexpr std::uint32_t kQueueDeleteOk = Method(50, 41);
constexpr std::uint32_t kQos = Method(60, 10);
constexpr std::uint32_t kQosOk = Method(60, 11);
constexpr std::uint32_t kConsume = Method(60, 20);
constexpr std::uint32_t kConsumeOk = Method(60, 21);
constexpr std::uint32_t kPublish = Method(60, 40);
constexpr std::uint32_t kDeliver = Method(60, 60);
constexpr std::uint32_t kAck = Method(60, 80);
constexpr std::uint32_t kNack = Method(60, 120);
constexpr std::uint32_t kConfirmSelect = Method(85, 10);
constexpr std::uint32_t kConfirmSelectOk = Method(85, 11);

void AppendFrame(std::uint8_t type, std::uint16_t channel, std::string_view payload,
                 std::string* out) {
  out->push_back(static_cast<char>(type));
  AppendBe16(out, channel);
  AppendBe32(out, static_cast<std::uint32_t>(payload.size()));
  *out += payload;
  out->push_back(kFrameEnd);
}

std::string Short(std::string_view text) {
  return std::string(1, static_cast<char>(text.size())) + std::string(text);
}
std::string Long(std::string_view text) {
  std::string out;
  AppendBe32(&out, static_cast<std::uint32_t>(text.size()));
  return out + std::string(text);
}

std::string MethodText(std::uint32_t method, std::string_view arguments) {
  std::string out;
  AppendBe32(&out, method);
  return out + std::string(arguments);
}

void AppendMethod(std::uint32_t method, std::string_view arguments, std::string* out) {
  AppendFrame(kMethodFrame, method >> 16 == 10 ? 0 : 1, MethodText(method, arguments), out);
}

struct Frame {
  std::uint8_t type = 0;
  std::string_view payload;
  std::uint32_t method() const {
    return type == kMethodFrame && payload.size() >= 4 ? LoadBe32(payload.data()) : 0;
  }
};

// Takes the next whole frame off `stream`; false when more bytes are needed.
Result<bool> NextFrame(Stream* stream, Frame* frame) {
  const std::string_view input = stream->input();
  if (input.starts_with("AMQP"))
    return Status::Unavailable("the server wants another AMQP version");
  if (input.size() < kFrameOverhead) return false;
  const std::size_t bytes = LoadBe32(input.data() + 3);
  if (input.size() < bytes + kFrameOverhead) return false;
  frame->type = static_cast<std::uint8_t>(input[0]);
  frame->payload = input.substr(7, bytes);
  stream->Consume(bytes + kFrameOverhead);
  const std::uint32_t method = frame->method();
  if (method == kChannelClose || method == kConnectionClose) {
    return Status::Unavailable(
        "the server closed with: " +
        std::string(frame->payload.substr(std::min<std::size_t>(7, frame->payload.size()))));
  }
  return true;
}

// Waits for the answer `wanted`; its arguments.
Result<std::string> Ask(Stream* stream, std::uint32_t wanted) {
  for (Frame frame;;) {
    const Result<bool> got = NextFrame(stream, &frame);
    if (!got.ok()) return got.status();
    if (!*got) {
      TRIAD_RETURN_IF_ERROR(stream->WaitForInput(kAnswerWaitMs));
      continue;
    }
    if (frame.method() == wanted) return std::string(frame.payload.substr(4));
  }
}

Status AskMethod(Stream* stream, std::uint32_t method, std::string_view arguments,
                 std::uint32_t wanted) {
  AppendMethod(method, arguments, &stream->out());
  return Ask(stream, wanted).status();
}

// A connection with channel 1 open.
Status ConnectToRabbit(const std::string& address, Stream* stream) {
  TRIAD_RETURN_IF_ERROR(stream->Connect(address));
  stream->out() += std::string_view("AMQP\0\0\x09\x01", 8);
  TRIAD_RETURN_IF_ERROR(Ask(stream, kStart).status());
  const std::string login =
      Long("") + Short("PLAIN") + Long(std::string_view("\0guest\0guest", 12)) + Short("en_US");
  TRIAD_RETURN_IF_ERROR(AskMethod(stream, kStartOk, login, kTune));
  std::string tune;
  AppendBe16(&tune, kChannelMax);
  AppendBe32(&tune, kFrameMax);
  AppendBe16(&tune, 0);  // no heartbeats
  AppendMethod(kTuneOk, tune, &stream->out());
  const std::string open = Short("/") + Short("") + std::string(1, '\0');
  TRIAD_RETURN_IF_ERROR(AskMethod(stream, kOpen, open, kOpenOk));
  return AskMethod(stream, kChannelOpen, Short(""), kChannelOpenOk);
}

// Method and content header of every publish.
std::string PublishFrames(const std::string& queue, std::size_t size) {
  std::string out;
  const std::string arguments =
      std::string(2, '\0') + Short("") + Short(queue) + std::string(1, '\0');
  AppendMethod(kPublish, arguments, &out);
  std::string header;
  AppendBe16(&header, 60);
  AppendBe16(&header, 0);
  AppendBe64(&header, size);
  AppendBe16(&header, 0x1000);  // delivery mode follows
  header.push_back(2);          // persistent
  AppendFrame(kHeaderFrame, 1, header, &out);
  return out;
}

}  // namespace

Status MakeQuorumQueue(const std::string& address, const std::string& queue) {
  Stream stream;
  TRIAD_RETURN_IF_ERROR(ConnectToRabbit(address, &stream));
  const std::string name = std::string(2, '\0') + Short(queue);
  TRIAD_RETURN_IF_ERROR(
      AskMethod(&stream, kQueueDelete, name + std::string(1, '\0'), kQueueDeleteOk));
  const std::string table = Short("x-queue-type") + "S" + Long("quorum");
  const std::string durable(1, '\x02');
  return AskMethod(&stream, kQueueDeclare, name + durable + Long(table), kQueueDeclareOk);
}

AmqpPublish::AmqpPublish(std::string address, const std::string& queue, std::size_t size)
    : address_(std::move(address)), message_(PublishFrames(queue, size)) {
  const std::string body(size, 'r');
  for (std::size_t at = 0; at < size; at += kFrameMax - kFrameOverhead)
    AppendFrame(kBodyFrame, 1, std::string_view(body).substr(at, kFrameMax - kFrameOverhead),
                &message_);
}

Status AmqpPublish::Open(std::size_t /*i*/, Stream* stream) {
  if (stream->is_open()) return Status::Ok();
  TRIAD_RETURN_IF_ERROR(ConnectToRabbit(address_, stream));
  first_ = next_;
  lowest_ = 1;
  confirmed_.assign(1, true);  // tag 0 is none
  return AskMethod(stream, kConfirmSelect, std::string(1, '\0'), kConfirmSelectOk);
}

void AmqpPublish::Append(std::uint64_t request, Nanos /*now*/, std::string* out) {
  *out += message_;
  next_ = request + 1;
  confirmed_.push_back(false);
}

Status AmqpPublish::Read(Stream* stream, AnswerSink* sink) {
  for (Frame frame;;) {
    const Result<bool> got = NextFrame(stream, &frame);
    if (!got.ok()) return got.status();
    if (!*got) return Status::Ok();
    const std::uint32_t method = frame.method();
    if ((method != kAck && method != kNack) || frame.payload.size() < 13) continue;
    const std::uint64_t tag = LoadBe64(frame.payload.data() + 4);
    const bool is_multiple = (frame.payload[12] & 1) != 0;
    Confirm(tag, is_multiple, method == kAck ? "" : "the queue refused the message", sink);
  }
}

void AmqpPublish::Confirm(std::uint64_t tag, bool is_multiple, std::string_view error,
                          AnswerSink* sink) {
  for (std::uint64_t i = is_multiple ? lowest_ : tag; i <= tag && i < confirmed_.size(); ++i) {
    if (confirmed_[i]) continue;
    confirmed_[i] = true;
    sink->Answered(first_ + i - 1, error);
  }
  while (lowest_ < confirmed_.size() && confirmed_[lowest_]) ++lowest_;
}

AmqpDrain::AmqpDrain(std::string address, std::string queue)
    : address_(std::move(address)), queue_(std::move(queue)) {}

Status AmqpDrain::Open(Stream* stream) {
  TRIAD_RETURN_IF_ERROR(ConnectToRabbit(address_, stream));
  std::string qos;
  AppendBe32(&qos, 0);
  AppendBe16(&qos, kPrefetch);
  qos.push_back('\0');
  TRIAD_RETURN_IF_ERROR(AskMethod(stream, kQos, qos, kQosOk));
  const std::string consume =
      std::string(2, '\0') + Short(queue_) + Short("") + std::string(1, '\0') + Long("");
  return AskMethod(stream, kConsume, consume, kConsumeOk);
}

Result<std::uint64_t> AmqpDrain::Read(Stream* stream) {
  std::uint64_t messages = 0;
  for (Frame frame;;) {
    const Result<bool> got = NextFrame(stream, &frame);
    if (!got.ok()) return got.status();
    if (!*got) break;
    if (frame.method() == kDeliver) ++tag_;
    if (frame.type == kHeaderFrame && frame.payload.size() >= 12) {
      body_left_ = LoadBe64(frame.payload.data() + 4);
    } else if (frame.type == kBodyFrame) {
      body_left_ -= std::min<std::uint64_t>(body_left_, frame.payload.size());
      if (body_left_ == 0) ++messages;
    }
  }
  if (tag_ - acked_ >= kAckEvery || (messages > 0 && body_left_ == 0 && stream->input().empty())) {
    std::string ack;
    AppendBe64(&ack, tag_);
    ack.push_back(1);
    AppendMethod(kAck, ack, &stream->out());
    acked_ = tag_;
  }
  return messages;
}

}  // namespace triad::bench
