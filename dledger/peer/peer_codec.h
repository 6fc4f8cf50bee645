// Peer codec: one frame between peers.
//
// Frame = length u32 (of all that follows), header length u32, Protobuf header (peer.proto), then
// the entries' own bytes back to back (or those of a snapshot's chunk): what was built once is what
// is sent, written and served.
// Pure. Bytes from a socket are checked, never CHECKed; entries are verified whole (CRCs).
// Bounds: kFrameBytesMax, kFrameHeaderBytesMax.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/status.h"
#include "dledger/log/entry_codec.h"
#include "dledger/raft/types.h"
#include "dledger/snapshot/snapshot_types.h"

namespace triad::dledger {

inline constexpr std::uint32_t kPeerProtocolVersion = 1;
inline constexpr std::size_t kFrameHeaderBytesMax = 64u << 10;
inline constexpr std::size_t kFrameBytesMax = kMaxEntryBytes + (1u << 20);

struct Hello {
  std::uint32_t version = kPeerProtocolVersion;
  std::string group;
  PeerId from;
  PeerId to;
  std::string client_address;
  std::string peers;         // canonical dLegerPeers
  std::string peer_address;  // "host:port" of the sender's own peer port
  bool has_log = false;
  Term term;
  LogIndex last_index;
  Term last_term;
  bool recovering = false;
  bool lost_unsynced = false;  // recovering, but only for a reboot under ASYNC_FLUSH; undecided
  std::string refusal;         // answer only: empty = welcome
};

struct PeerFrame {
  std::int64_t wall_ms = 0;
  std::uint64_t group_id = 0;
  std::variant<Hello, Message, SnapshotMessage> body;
};

// Everything of the frame before the entries' bytes. The entries are the body's own
// (AppendRequest). The bytes of a snapshot's chunk are part of the head.
std::string EncodeFrameHead(const PeerFrame& frame);
// The entries whose bytes follow the head; empty for all but an AppendRequest.
const std::vector<EntryRef>& FrameEntries(const PeerFrame& frame);

// Size of the whole frame at the start of `bytes`; 0 = not known yet. Errors: kCorruption.
Result<std::size_t> FrameSize(std::string_view bytes);
// Parses one whole frame. Errors: kCorruption, saying which check failed.
Result<PeerFrame> DecodeFrame(std::string_view frame);

}  // namespace triad::dledger
