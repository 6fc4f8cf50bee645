#include "dledger/peer/session.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace triad::dledger {
namespace {

constexpr std::size_t kBufferBytes = 256u << 10;  // grows to one frame
constexpr std::size_t kBufferKeptMax = 2u << 20;  // a larger one goes when it is empty
constexpr std::size_t kReadBytesMin = 64u << 10;
constexpr std::size_t kHelloRestBytes = 8;  // around the header of a frame

std::string AddressOf(const asio::ip::tcp::socket& socket) {
  asio::error_code error;
  const asio::ip::tcp::endpoint endpoint = socket.remote_endpoint(error);
  return error ? "?" : endpoint.address().to_string();
}

}  // namespace

PeerSession::PeerSession(asio::ip::tcp::socket socket, Handshake& handshake, const Owner& owner)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      handshake_(handshake),
      owner_(owner),
      from_address_(AddressOf(socket_)) {}

void PeerSession::Start() {
  asio::error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  timer_.expires_after(kHelloTimeout);
  timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    const auto turn = self->handshake_.events().BeginTurn();
    if (!error && !self->closed_ && self->peer_.empty()) self->End("no hello");
  });
  Read();
}

void PeerSession::Read() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (capacity_ > kBufferKeptMax) {
      buffer_.reset();
      capacity_ = 0;
    }
  }
  const Result<std::size_t> frame_bytes = FrameSize(unparsed());
  const std::size_t wanted = frame_bytes.ok() ? *frame_bytes : 0;
  MakeRoom(std::max(kReadBytesMin, wanted - std::min(wanted, end_ - begin_)));
  socket_.async_read_some(
      asio::buffer(buffer_.get() + end_, capacity_ - end_),
      [self = shared_from_this()](const asio::error_code& error, std::size_t count) {
        const auto turn = self->handshake_.events().BeginTurn();
        if (self->closed_) return;
        if (error) {
          self->End(error.message());
          return;
        }
        self->OnBytes(count);
      });
}

// Behind what is unparsed. No zeros are written, and what was read is moved once per frame at most.
void PeerSession::MakeRoom(std::size_t bytes) {
  if (capacity_ - end_ >= bytes) return;
  const std::string_view kept = unparsed();
  if (kept.size() + bytes > capacity_) {
    capacity_ = std::max(kBufferBytes, std::bit_ceil(kept.size() + bytes));
    auto larger = std::make_unique_for_overwrite<char[]>(capacity_);
    std::copy(kept.begin(), kept.end(), larger.get());
    buffer_ = std::move(larger);
  } else {
    std::copy(kept.begin(), kept.end(), buffer_.get());
  }
  begin_ = 0;
  end_ = kept.size();
}

void PeerSession::OnBytes(std::size_t count) {
  end_ += count;
  const std::shared_ptr<PeerSession> alive = shared_from_this();
  const bool goes_on = TakeFrames();
  handshake_.events().OnEventsEnd();
  if (goes_on && !closed_) Read();
}

bool PeerSession::TakeFrames() {
  while (!closed_) {
    const std::string_view bytes = unparsed();
    const Result<std::size_t> size = FrameSize(bytes);
    if (!size.ok()) {
      End(size.status().ToString());
      return false;
    }
    // Whoever did not say hello yet has nothing large to say.
    if (peer_.empty() && *size > kFrameHeaderBytesMax + kHelloRestBytes) {
      End("its hello is too large");
      return false;
    }
    if (*size == 0 || bytes.size() < *size) return true;
    Result<PeerFrame> frame = DecodeFrame(bytes.substr(0, *size));
    begin_ += *size;
    if (!frame.ok()) {
      handshake_.LogRefusal(from_address_, "bad frame: " + frame.status().ToString());
      End(frame.status().ToString());
      return false;
    }
    if (!OnFrame(std::move(frame).value())) return false;
  }
  return false;
}

bool PeerSession::OnFrame(PeerFrame frame) {
  if (const Hello* hello = std::get_if<Hello>(&frame.body)) {
    if (peer_.empty()) return OnHello(*hello, frame.group_id);
    End("a second hello");
    return false;
  }
  if (peer_.empty()) {
    End("it did not say hello");
    return false;
  }
  if (!handshake_.GroupIdFits(frame.group_id)) {
    handshake_.LogRefusal(peer_.value(),
                          "its group id is another one: " + std::to_string(frame.group_id));
    End("foreign group id");
    return false;
  }
  if (SnapshotMessage* snapshot = std::get_if<SnapshotMessage>(&frame.body)) {
    handshake_.events().OnSnapshot(peer_, std::move(*snapshot));
    return !closed_;
  }
  handshake_.events().OnMessage(peer_, std::move(std::get<Message>(frame.body)), frame.wall_ms);
  return !closed_;
}

bool PeerSession::OnHello(const Hello& hello, std::uint64_t group_id) {
  const std::string refusal = handshake_.Check(hello, group_id);
  answer_ = EncodeFrameHead(handshake_.OwnHello(hello.from, refusal));
  asio::async_write(socket_, asio::buffer(answer_),
                    [self = shared_from_this(), refused = !refusal.empty()](
                        const asio::error_code& error, std::size_t /*count*/) {
                      const auto turn = self->handshake_.events().BeginTurn();
                      if (!self->closed_ && (error || refused)) self->End("refused");
                    });
  if (!refusal.empty()) {
    handshake_.LogRefusal("at " + from_address_, "refused: " + refusal);
    return false;  // ends behind the answer
  }
  timer_.cancel();
  peer_ = hello.from;
  owner_.on_welcome(this);
  handshake_.events().OnHello(hello);
  return !closed_;
}

void PeerSession::End(const std::string& why) {
  if (closed_) return;
  const std::shared_ptr<PeerSession> alive = shared_from_this();
  VLOG(1) << "connection from " << (peer_.empty() ? from_address_ : peer_.value())
          << " ends: " << why;
  Close();
  owner_.on_end(this);
  if (peer_.empty()) return;
  handshake_.events().OnDisconnected(peer_);
  handshake_.events().OnEventsEnd();
}

void PeerSession::Close() {
  if (closed_) return;
  closed_ = true;
  asio::error_code ignored;
  timer_.cancel();
  socket_.close(ignored);
}

}  // namespace triad::dledger
