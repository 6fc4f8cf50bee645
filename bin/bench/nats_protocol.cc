#include "bin/bench/nats_protocol.h"

#include <cstdlib>
#include <utility>

namespace triad::bench {
namespace {

constexpr char kInbox[] = "_I.";
constexpr std::uint64_t kAskedAtOnce = 2000;
constexpr char kConnect[] =
    "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}\r\n"
    "SUB _I.* 1\r\n";

struct NatsMessage {
  std::string_view subject;
  std::string_view payload;  // of an HMSG: with its headers
};

// Takes the next operation off `stream`. 1 = a message, 0 = more bytes are needed, 2 = another one.
Result<int> NextOperation(Stream* stream, NatsMessage* message) {
  const std::string_view input = stream->input();
  const std::size_t line_end = input.find("\r\n");
  if (line_end == std::string_view::npos) return 0;
  const std::string_view line = input.substr(0, line_end);
  const std::size_t after = line_end + 2;
  if (line.starts_with("-ERR")) return Status::Unavailable("nats: " + std::string(line));
  if (line.starts_with("MSG ") || line.starts_with("HMSG ")) {
    const std::size_t subject_at = line.find(' ') + 1;
    const std::string length(line.substr(line.rfind(' ') + 1));
    const std::size_t bytes = std::strtoul(length.c_str(), nullptr, 10);
    if (input.size() < after + bytes + 2) return 0;
    message->subject = line.substr(subject_at, line.find(' ', subject_at) - subject_at);
    message->payload = input.substr(after, bytes);
    stream->Consume(after + bytes + 2);
    return 1;
  }
  if (line.starts_with("PING")) stream->out() += "PONG\r\n";
  stream->Consume(after);
  return 2;
}

Status ConnectToNats(const std::string& address, Stream* stream) {
  TRIAD_RETURN_IF_ERROR(stream->Connect(address));
  stream->out() += kConnect;
  return stream->Flush();
}

}  // namespace

NatsPublish::NatsPublish(std::string address, std::string subject, std::size_t size)
    : address_(std::move(address)), subject_(std::move(subject)), body_(size, 'n') {}

Status NatsPublish::Open(std::size_t /*i*/, Stream* stream) {
  return stream->is_open() ? Status::Ok() : ConnectToNats(address_, stream);
}

void NatsPublish::Append(std::uint64_t request, Nanos /*now*/, std::string* out) {
  *out += "PUB " + subject_ + " " + kInbox + std::to_string(request) + " ";
  *out += std::to_string(body_.size()) + "\r\n";
  *out += body_;
  *out += "\r\n";
}

Status NatsPublish::Read(Stream* stream, AnswerSink* sink) {
  for (NatsMessage message;;) {
    const Result<int> kind = NextOperation(stream, &message);
    if (!kind.ok()) return kind.status();
    if (*kind == 0) return Status::Ok();
    if (*kind != 1 || !message.subject.starts_with(kInbox)) continue;
    const std::uint64_t request =
        std::strtoull(std::string(message.subject.substr(sizeof kInbox - 1)).c_str(), nullptr, 10);
    const bool is_stored = message.payload.find("\"seq\"") != std::string_view::npos;
    sink->Answered(request, is_stored ? std::string_view() : message.payload.substr(0, 200));
  }
}

NatsDrain::NatsDrain(std::string address, std::string stream_name)
    : address_(std::move(address)), stream_name_(std::move(stream_name)) {}

void NatsDrain::Ask(std::string* out) {
  const std::string body =
      "{\"batch\":" + std::to_string(kAskedAtOnce) + ",\"expires\":5000000000}";
  *out += "PUB $JS.API.CONSUMER.MSG.NEXT." + stream_name_ + ".bench _I.m " +
          std::to_string(body.size()) + "\r\n" + body + "\r\n";
  asked_ += kAskedAtOnce;
}

Status NatsDrain::Open(Stream* stream) {
  TRIAD_RETURN_IF_ERROR(ConnectToNats(address_, stream));
  Ask(&stream->out());
  Ask(&stream->out());
  return Status::Ok();
}

Result<std::uint64_t> NatsDrain::Read(Stream* stream) {
  std::uint64_t messages = 0;
  for (NatsMessage message;;) {
    const Result<int> kind = NextOperation(stream, &message);
    if (!kind.ok()) return kind.status();
    if (*kind == 0) break;
    // A status ("no more", "expired") has headers and no body.
    if (*kind == 1 && !message.payload.starts_with("NATS/1.0")) ++messages;
  }
  got_ += messages;
  if (asked_ - got_ < kAskedAtOnce) Ask(&stream->out());
  return messages;
}

}  // namespace triad::bench
