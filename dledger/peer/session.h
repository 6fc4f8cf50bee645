// PeerSession: one accepted connection, on which a peer speaks to this one. Private to peer/.
//
// Owner: the transport's thread. Hears a Hello, answers it (welcome or refusal), then reads frames
// until the end. Bounds: one frame at a time, kFrameBytesMax; kHelloTimeout for the Hello.

#pragma once

#include <asio.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "dledger/peer/handshake.h"

namespace triad::dledger {

class PeerSession : public std::enable_shared_from_this<PeerSession> {
 public:
  // What the transport does with its sessions.
  struct Owner {
    std::function<void(PeerSession*)> on_welcome;  // it speaks for peer() now: replace an older one
    std::function<void(PeerSession*)> on_end;      // forget it; no call afterwards
  };
  PeerSession(asio::ip::tcp::socket socket, Handshake& handshake, const Owner& owner);

  void Start();
  // Empty until its Hello was welcome.
  const PeerId& peer() const { return peer_; }
  // Without any event.
  void Close();

 private:
  void Read();
  void MakeRoom(std::size_t bytes);
  std::string_view unparsed() const { return {buffer_.get() + begin_, end_ - begin_}; }
  void OnBytes(std::size_t count);
  // All whole frames of the buffer. False when the connection is over.
  bool TakeFrames();
  bool OnFrame(PeerFrame frame);
  bool OnHello(const Hello& hello, std::uint64_t group_id);
  void End(const std::string& why);

  asio::ip::tcp::socket socket_;
  asio::steady_timer timer_;
  Handshake& handshake_;
  const Owner& owner_;
  std::string from_address_;
  PeerId peer_;
  bool closed_ = false;
  std::string answer_;
  std::unique_ptr<char[]> buffer_;  // bytes [begin_, end_) are unparsed
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace triad::dledger
