// PeerDialer: the connection to one peer on which this peer sends. Private to peer/.
//
// Owner: the transport's. Dials, says Hello, hears the answer, then writes what is queued, on the
// calling thread what the socket takes at once, the rest in one gather-write at a time; dials again
// when it breaks. Bounds: kOutBytesMax.

#pragma once

#include <asio.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dledger/peer/handshake.h"

namespace triad::dledger {

class PeerDialer : public std::enable_shared_from_this<PeerDialer> {
 public:
  PeerDialer(asio::io_context& io, Handshake& handshake, PeerAddress peer);

  void Start();
  void Send(Message message) { SendFrame(handshake_.Wrap(std::move(message))); }
  void Send(SnapshotMessage message) { SendFrame(handshake_.Wrap(std::move(message))); }
  void Flush();
  // Not dialled again when its connection ends.
  void Retire();
  bool retired() const { return is_retired_; }
  const PeerAddress& peer() const { return peer_; }
  bool connected() const { return state_ == State::kConnected; }
  void Close();

 private:
  enum class State { kIdle, kDialling, kConnected, kClosed };
  struct Outgoing {
    std::string head;
    std::vector<EntryRef> entries;  // keeps the bytes alive
  };
  using Endpoints = std::vector<asio::ip::tcp::endpoint>;

  void Dial();
  void Connect(Endpoints endpoints);
  void SayHello();
  void HearAnswer();
  void OnAnswerBytes(std::size_t count);
  void OnAnswer(const PeerFrame& frame);
  void WatchForEnd();
  void SendFrame(const PeerFrame& frame);
  std::size_t WriteNow();
  void WriteMore();
  // Ends the attempt or the connection and dials again later.
  void Fail(const std::string& why);
  // Runs `then` unless the attempt it belongs to is over; an error is a Fail.
  template <typename Then>
  auto Guard(const char* what, Then then);
  // The one timer: replaces what it waited for before.
  template <typename Then>
  void After(std::chrono::milliseconds delay, Then then);

  asio::io_context& io_;
  Handshake& handshake_;
  const PeerAddress peer_;
  asio::ip::tcp::resolver resolver_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer timer_;  // the attempt's deadline, or the pause before the next one
  State state_ = State::kIdle;
  bool is_retired_ = false;
  std::uint64_t attempt_ = 0;
  std::chrono::milliseconds backoff_{kBackoffMin};
  std::string hello_out_;
  std::string answer_;
  char scratch_[4096];

  std::vector<Outgoing> queued_;
  std::size_t queued_bytes_ = 0;
  std::size_t writing_bytes_ = 0;  // 0 = no write is under way
};

}  // namespace triad::dledger
