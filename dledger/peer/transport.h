// PeerTransport: the connections between the peers of one group.
//
// Each peer dials every other one and sends on the connection it dialled; what it accepted it only
// reads. A Hello says where its sender can be dialled: whoever speaks up gets answers, also when
// no list here names it. A Hello goes both ways first; a foreign group or group id is refused
// loudly (rate-limited). Before the group has begun, so is a peer that is not in dLegerPeers
// (unless it is of the group that one of them names), and another peer list is one warning;
// afterwards the log says who is a member, and who is none is
// heard all the same: it may be a learner to be, or this peer may not have read so far. Lost
// connections are dialled again after 20..500 ms, names resolved each time. Messages to a peer that
// is not connected are dropped: Raft repeats what matters. Owner: the thread that runs `io` (the
// log thread), or whoever holds PeerEvents' turn: every call and every event is inside of one.
// Bounds: kOutBytesMax un-sent per peer (beyond: dropped), kSessionsMax accepted connections
// (beyond: closed), frames as in peer_codec.h. Bad bytes close the connection.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/ids.h"
#include "common/status.h"
#include "dledger/peer/peer_address.h"
#include "dledger/peer/peer_codec.h"

namespace asio {
class io_context;
}

namespace triad::dledger {

inline constexpr std::size_t kOutBytesMax = 48u << 20;
inline constexpr std::size_t kSessionsMax = 128;
inline constexpr std::chrono::milliseconds kBackoffMin{20};
inline constexpr std::chrono::milliseconds kBackoffMax{500};
inline constexpr std::chrono::milliseconds kDialTimeout{2000};   // resolve, connect, Hello
inline constexpr std::chrono::milliseconds kHelloTimeout{2000};  // of an accepted connection

struct TransportOptions {
  std::string group;
  PeerId self;
  std::vector<PeerAddress> peers;  // with self
  std::string bind_address = "0.0.0.0";
};

// Who uses the transport. Calls come on the owner thread, never from inside Send or Flush.
class PeerEvents {
 public:
  virtual ~PeerEvents() = default;
  // Held by the transport's own handlers from their begin to their end.
  virtual std::unique_lock<std::mutex> BeginTurn() = 0;
  // This peer's state for a Hello: client_address, has_log, the log's end, recovering. The
  // transport fills in the rest.
  virtual Hello OwnState() = 0;
  virtual std::uint64_t OwnGroupId() = 0;  // 0 = none yet
  // A handshake with hello.from succeeded, in either direction.
  virtual void OnHello(const Hello& hello) = 0;
  virtual void OnMessage(const PeerId& from, Message message, std::int64_t wall_ms) = 0;
  virtual void OnSnapshot(const PeerId& from, SnapshotMessage message) = 0;
  // A connection that had its handshake is gone, in either direction.
  virtual void OnDisconnected(const PeerId& peer) = 0;
  // Behind one or more of the events above: the moment to act on them together.
  virtual void OnEventsEnd() = 0;
};

class PeerTransport {
 public:
  // Binds the port of `options.self`. Errors: kUnavailable (in use; which), kInvalidArgument.
  // `io`, `clock` and `events` outlive the transport.
  static Result<std::unique_ptr<PeerTransport>> Listen(asio::io_context& io, const Clock& clock,
                                                       TransportOptions options,
                                                       PeerEvents* events);
  ~PeerTransport();
  PeerTransport(const PeerTransport&) = delete;
  PeerTransport& operator=(const PeerTransport&) = delete;

  // Accepts and dials from now on.
  void Start();
  // Whom to dial from now on, self left out. Who is no longer named is served while its connection
  // lasts, and not dialled again.
  void SetPeers(const std::vector<PeerAddress>& peers);
  // Queues; Flush puts on the wire what was queued since.
  void Send(const PeerId& to, Message message);
  void Send(const PeerId& to, SnapshotMessage message);
  void Flush();
  // What we dialled stands and said Hello.
  bool connected(const PeerId& peer) const;
  // Closes everything; no event afterwards. Idempotent.
  void Close();

 private:
  struct Parts;
  explicit PeerTransport(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace triad::dledger
