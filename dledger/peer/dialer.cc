#include "dledger/peer/dialer.h"

#include <glog/logging.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <utility>

namespace triad::dledger {
namespace {

using asio::ip::tcp;

constexpr std::size_t kAnswerBytesMax = kFrameHeaderBytesMax + 8;
constexpr unsigned kUnackedMsMax = 5000;

// Small latency, and a peer whose machine vanished is noticed even while nobody answers.
void Tune(tcp::socket& socket) {
  asio::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnackedMsMax,
               sizeof(kUnackedMsMax));
}

}  // namespace

template <typename Then>
auto PeerDialer::Guard(const char* what, Then then) {
  return [self = shared_from_this(), attempt = attempt_, what, then = std::move(then)](
             const asio::error_code& error, auto... result) mutable {
    const auto turn = self->handshake_.events().BeginTurn();
    if (self->state_ == State::kClosed || self->attempt_ != attempt) return;
    if (error) {
      self->Fail(std::string(what) + ": " + error.message());
      return;
    }
    then(std::move(result)...);
  };
}

template <typename Then>
void PeerDialer::After(std::chrono::milliseconds delay, Then then) {
  timer_.expires_after(delay);
  timer_.async_wait([self = shared_from_this(), attempt = attempt_,
                     then = std::move(then)](const asio::error_code& error) {
    const auto turn = self->handshake_.events().BeginTurn();
    if (error || self->state_ == State::kClosed || self->attempt_ != attempt) return;
    then();
  });
}

PeerDialer::PeerDialer(asio::io_context& io, Handshake& handshake, PeerAddress peer)
    : io_(io),
      handshake_(handshake),
      peer_(std::move(peer)),
      resolver_(io),
      socket_(io),
      timer_(io) {}

void PeerDialer::Start() {
  Dial();
}

void PeerDialer::Dial() {
  if (state_ == State::kClosed) return;
  state_ = State::kDialling;
  ++attempt_;
  After(kDialTimeout, [this] { Fail("no answer"); });
  asio::error_code not_numeric;
  const asio::ip::address address = asio::ip::make_address(peer_.host, not_numeric);
  if (!not_numeric) {
    Connect(Endpoints{tcp::endpoint(address, peer_.port)});
    return;
  }
  resolver_.async_resolve(peer_.host, std::to_string(peer_.port),
                          Guard("resolve", [this](const tcp::resolver::results_type& found) {
                            Connect(Endpoints(found.begin(), found.end()));
                          }));
}

void PeerDialer::Connect(Endpoints endpoints) {
  if (endpoints.empty()) {
    Fail("no address");
    return;
  }
  socket_ = tcp::socket(io_);
  // The sequence is copied by asio.
  asio::async_connect(
      socket_, endpoints,
      Guard("connect", [this](const tcp::endpoint& /*connected_to*/) { SayHello(); }));
}

void PeerDialer::SayHello() {
  Tune(socket_);
  hello_out_ = EncodeFrameHead(handshake_.OwnHello(peer_.id, ""));
  answer_.clear();
  asio::async_write(socket_, asio::buffer(hello_out_),
                    Guard("hello", [this](std::size_t /*count*/) { HearAnswer(); }));
}

void PeerDialer::HearAnswer() {
  socket_.async_read_some(
      asio::buffer(scratch_),
      Guard("answer to hello", [this](std::size_t count) { OnAnswerBytes(count); }));
}

void PeerDialer::OnAnswerBytes(std::size_t count) {
  answer_.append(scratch_, count);
  const Result<std::size_t> size = FrameSize(answer_);
  if (!size.ok() || *size > kAnswerBytesMax || (*size != 0 && answer_.size() > *size)) {
    Fail("it does not speak this protocol");
    return;
  }
  if (*size == 0 || answer_.size() < *size) {
    HearAnswer();
    return;
  }
  const Result<PeerFrame> frame = DecodeFrame(answer_);
  if (!frame.ok() || !std::holds_alternative<Hello>(frame->body)) {
    Fail("it does not speak this protocol");
    return;
  }
  OnAnswer(*frame);
}

void PeerDialer::OnAnswer(const PeerFrame& frame) {
  const Hello& hello = std::get<Hello>(frame.body);
  std::string refusal;
  if (!hello.refusal.empty()) {
    refusal = "it refuses this peer: " + hello.refusal;
  } else if (hello.from != peer_.id) {
    refusal = "it calls itself '" + hello.from.value() + "', expected '" + peer_.id.value() + "'";
  } else {
    refusal = handshake_.Check(hello, frame.group_id);
  }
  if (!refusal.empty()) {
    handshake_.LogRefusal(peer_.id.value() + " at " + peer_.host + ":" + std::to_string(peer_.port),
                          refusal);
    backoff_ = kBackoffMax;
    Fail(refusal);
    return;
  }
  timer_.cancel();
  state_ = State::kConnected;
  backoff_ = kBackoffMin;
  VLOG(1) << "peer " << peer_.id << " connected";
  WatchForEnd();
  handshake_.events().OnHello(hello);
  handshake_.events().OnEventsEnd();
}

void PeerDialer::WatchForEnd() {
  // The accepting side says nothing more; what arrives is the end, or nonsense.
  socket_.async_read_some(asio::buffer(scratch_), Guard("closed", [this](std::size_t /*count*/) {
                            Fail("unexpected bytes");
                          }));
}

void PeerDialer::SendFrame(const PeerFrame& frame) {
  if (state_ != State::kConnected) return;
  Outgoing out;
  out.head = EncodeFrameHead(frame);
  out.entries = FrameEntries(frame);
  std::size_t bytes = out.head.size();
  for (const EntryRef& entry : out.entries) bytes += entry->size();
  if (queued_bytes_ + writing_bytes_ + bytes > kOutBytesMax) {
    handshake_.LogRefusal(peer_.id.value(), "too much waits to be sent; a message is dropped");
    return;
  }
  queued_bytes_ += bytes;
  queued_.push_back(std::move(out));
}

void PeerDialer::Flush() {
  if (state_ == State::kConnected && writing_bytes_ == 0 && !queued_.empty()) WriteMore();
}

// What the socket takes at once goes at once: no handler has to run for it. 0 also for an error:
// whoever tries again gets it.
std::size_t PeerDialer::WriteNow() {
  constexpr std::size_t kPiecesMax = 64;
  std::array<iovec, kPiecesMax> pieces;
  std::size_t count = 0;
  const auto add = [&](const std::string& bytes) {
    if (count < kPiecesMax) pieces[count++] = {const_cast<char*>(bytes.data()), bytes.size()};
  };
  for (const Outgoing& out : queued_) {
    add(out.head);
    for (const EntryRef& entry : out.entries) add(entry->bytes);
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  const ssize_t sent = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 ? 0 : static_cast<std::size_t>(sent);
}

void PeerDialer::WriteMore() {
  std::size_t sent = WriteNow();
  if (sent == queued_bytes_) {
    queued_.clear();
    queued_bytes_ = 0;
    return;
  }
  // The handler owns the bytes: a write that is being aborted may outlive the connection's state.
  auto batch = std::make_shared<std::vector<Outgoing>>(std::move(queued_));
  queued_.clear();
  writing_bytes_ = std::exchange(queued_bytes_, 0);
  std::vector<asio::const_buffer> buffers;
  const auto add = [&](const std::string& bytes) {
    const std::size_t skipped = std::min(sent, bytes.size());
    sent -= skipped;
    if (skipped < bytes.size()) buffers.push_back(asio::buffer(bytes) + skipped);
  };
  for (const Outgoing& out : *batch) {
    add(out.head);
    for (const EntryRef& entry : out.entries) add(entry->bytes);
  }
  asio::async_write(socket_, std::move(buffers), Guard("write", [this, batch](std::size_t) {
                      writing_bytes_ = 0;
                      Flush();
                    }));
}

void PeerDialer::Fail(const std::string& why) {
  const bool was_connected = state_ == State::kConnected;
  VLOG(1) << "peer " << peer_.id << ": " << why;
  ++attempt_;
  state_ = State::kIdle;
  asio::error_code ignored;
  resolver_.cancel();
  socket_.close(ignored);
  queued_.clear();
  queued_bytes_ = 0;
  writing_bytes_ = 0;
  if (is_retired_) {
    state_ = State::kClosed;
  } else {
    After(backoff_, [this] { Dial(); });
    backoff_ = std::min(backoff_ * 2, kBackoffMax);
  }
  if (!was_connected) return;
  LOG(INFO) << "connection to peer " << peer_.id << " lost: " << why;
  handshake_.events().OnDisconnected(peer_.id);
  handshake_.events().OnEventsEnd();
}

void PeerDialer::Retire() {
  is_retired_ = true;
  if (state_ != State::kConnected) Close();
}

void PeerDialer::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  asio::error_code ignored;
  resolver_.cancel();
  timer_.cancel();
  socket_.close(ignored);
}

}  // namespace triad::dledger
