#include "dledger/peer/peer_codec.h"

#include <utility>

#include "dledger/peer/peer.pb.h"

namespace triad::dledger {
namespace {

constexpr std::size_t kPrefixBytes = 8;

void PutU32(std::uint32_t value, char* out) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<char>(value >> (24 - 8 * i));
}

std::uint32_t GetU32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = (value << 8) | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

void ToWire(const Hello& hello, wire::Header* header) {
  wire::Hello* out = header->mutable_hello();
  out->set_version(hello.version);
  out->set_group(hello.group);
  out->set_from(hello.from.value());
  out->set_to(hello.to.value());
  out->set_client_address(hello.client_address);
  out->set_peers(hello.peers);
  out->set_peer_address(hello.peer_address);
  out->set_has_log(hello.has_log);
  out->set_term(hello.term.value());
  out->set_last_index(hello.last_index.value());
  out->set_last_term(hello.last_term.value());
  out->set_recovering(hello.recovering);
  out->set_lost_unsynced(hello.lost_unsynced);
  out->set_refusal(hello.refusal);
}

Hello FromWire(const wire::Hello& in) {
  Hello hello;
  hello.version = in.version();
  hello.group = in.group();
  hello.from = PeerId(in.from());
  hello.to = PeerId(in.to());
  hello.client_address = in.client_address();
  hello.peers = in.peers();
  hello.peer_address = in.peer_address();
  hello.has_log = in.has_log();
  hello.term = Term(in.term());
  hello.last_index = LogIndex(in.last_index());
  hello.last_term = Term(in.last_term());
  hello.recovering = in.recovering();
  hello.lost_unsynced = in.lost_unsynced();
  hello.refusal = in.refusal();
  return hello;
}

struct MessageToWire {
  wire::Header* header;

  void operator()(const VoteRequest& in) const {
    wire::VoteRequest* out = header->mutable_vote_request();
    out->set_term(in.term.value());
    out->set_pre_vote(in.pre_vote);
    out->set_transfer(in.transfer);
    out->set_last_index(in.last_index.value());
    out->set_last_term(in.last_term.value());
    out->set_life(in.life);
  }
  void operator()(const VoteResponse& in) const {
    wire::VoteResponse* out = header->mutable_vote_response();
    out->set_term(in.term.value());
    out->set_pre_vote(in.pre_vote);
    out->set_granted(in.granted);
    out->set_life(in.life);
  }
  void operator()(const AppendRequest& in) const {
    wire::AppendRequest* out = header->mutable_append_request();
    out->set_term(in.term.value());
    out->set_prev_index(in.prev_index.value());
    out->set_prev_term(in.prev_term.value());
    out->set_commit_index(in.commit_index.value());
    out->set_read_round(in.read_round);
    out->set_recovery_nonce(in.recovery_nonce);
    out->set_recovery_target(in.recovery_target.value());
    out->set_entries(static_cast<std::uint32_t>(in.entries.size()));
  }
  void operator()(const AppendResponse& in) const {
    wire::AppendResponse* out = header->mutable_append_response();
    out->set_term(in.term.value());
    out->set_ok(in.ok);
    out->set_match_index(in.match_index.value());
    out->set_conflict_index(in.conflict_index.value());
    out->set_conflict_term(in.conflict_term.value());
    out->set_rejected_prev(in.rejected_prev.value());
    out->set_read_round(in.read_round);
    out->set_recovering(in.recovering);
    out->set_recovery_nonce(in.recovery_nonce);
  }
  void operator()(const TimeoutNow& in) const {
    header->mutable_timeout_now()->set_term(in.term.value());
  }
};

struct SnapshotToWire {
  wire::Header* header;

  void operator()(const SnapshotOffer& in) const {
    wire::SnapshotOffer* out = header->mutable_snapshot_offer();
    out->set_term(in.term.value());
    out->set_id(in.id);
    out->set_base(EncodeBegin({.base = in.head.base, .fresh = false}));
    out->set_applied(in.head.applied.value());
    out->set_total_bytes(in.head.total_bytes);
    out->set_crc(in.head.crc);
  }
  void operator()(const SnapshotChunk& in) const {
    wire::SnapshotChunk* out = header->mutable_snapshot_chunk();
    out->set_id(in.id);
    out->set_offset(in.offset);
    out->set_crc(in.crc);
  }
  void operator()(const SnapshotAnswer& in) const {
    wire::SnapshotAnswer* out = header->mutable_snapshot_answer();
    out->set_id(in.id);
    out->set_kind(static_cast<std::uint32_t>(in.kind));
    out->set_offset(in.offset);
  }
};

Result<SnapshotMessage> FromWire(const wire::SnapshotOffer& in) {
  SnapshotOffer out;
  out.term = Term(in.term());
  out.id = in.id();
  const std::optional<BeginRecord> begin = DecodeBegin(in.base());
  if (!begin) return Status::Corruption("snapshot offer: bad base");
  out.head.base = begin->base;
  out.head.applied = LogIndex(in.applied());
  out.head.total_bytes = in.total_bytes();
  out.head.crc = in.crc();
  const bool fits = out.id != 0 && out.head.applied + 1 >= out.head.base.tail.next_index;
  if (!fits) return Status::Corruption("snapshot offer: the state ends before the log begins");
  return SnapshotMessage{std::move(out)};
}

Result<SnapshotMessage> FromWire(const wire::SnapshotChunk& in, std::string_view* raw) {
  if (raw->size() > kSnapshotChunkBytes) return Status::Corruption("snapshot chunk: too large");
  SnapshotChunk out;
  out.id = in.id();
  out.offset = in.offset();
  out.crc = in.crc();
  out.data.assign(*raw);
  *raw = {};
  return SnapshotMessage{std::move(out)};
}

Result<SnapshotMessage> FromWire(const wire::SnapshotAnswer& in) {
  if (in.kind() > 2) return Status::Corruption("snapshot answer: unknown kind");
  return SnapshotMessage{SnapshotAnswer{
      .id = in.id(), .kind = static_cast<SnapshotAnswer::Kind>(in.kind()), .offset = in.offset()}};
}

AppendResponse FromWire(const wire::AppendResponse& in) {
  AppendResponse out;
  out.term = Term(in.term());
  out.ok = in.ok();
  out.match_index = LogIndex(in.match_index());
  out.conflict_index = LogIndex(in.conflict_index());
  out.conflict_term = Term(in.conflict_term());
  out.rejected_prev = LogIndex(in.rejected_prev());
  out.read_round = in.read_round();
  out.recovering = in.recovering();
  out.recovery_nonce = in.recovery_nonce();
  return out;
}

VoteRequest FromWire(const wire::VoteRequest& in) {
  VoteRequest out;
  out.term = Term(in.term());
  out.pre_vote = in.pre_vote();
  out.transfer = in.transfer();
  out.last_index = LogIndex(in.last_index());
  out.last_term = Term(in.last_term());
  out.life = in.life();
  return out;
}

VoteResponse FromWire(const wire::VoteResponse& in) {
  VoteResponse out;
  out.term = Term(in.term());
  out.pre_vote = in.pre_vote();
  out.granted = in.granted();
  out.life = in.life();
  return out;
}

Result<AppendRequest> FromWire(const wire::AppendRequest& in, std::string_view* raw) {
  AppendRequest out;
  out.term = Term(in.term());
  out.prev_index = LogIndex(in.prev_index());
  out.prev_term = Term(in.prev_term());
  out.commit_index = LogIndex(in.commit_index());
  out.read_round = in.read_round();
  out.recovery_nonce = in.recovery_nonce();
  out.recovery_target = LogIndex(in.recovery_target());
  for (std::uint32_t i = 0; i < in.entries(); ++i) {
    Result<EntryRef> entry = DecodeEntry(*raw, /*verify_payload=*/true);
    if (!entry.ok()) return Status::Corruption("entry: " + entry.status().ToString());
    if (!out.entries.empty()) {
      const Status follows = CheckFollows(TailAfter(*out.entries.back()), **entry);
      if (!follows.ok()) return Status::Corruption("entries: " + follows.ToString());
    }
    raw->remove_prefix((*entry)->size());
    out.entries.push_back(std::move(entry).value());
  }
  return out;
}

Result<SnapshotMessage> SnapshotFromWire(const wire::Header& header, std::string_view* raw) {
  if (header.has_snapshot_offer()) return FromWire(header.snapshot_offer());
  if (header.has_snapshot_chunk()) return FromWire(header.snapshot_chunk(), raw);
  return FromWire(header.snapshot_answer());
}

Result<PeerFrame> BodyFromWire(const wire::Header& header, std::string_view raw) {
  PeerFrame frame;
  frame.wall_ms = header.wall_ms();
  frame.group_id = header.group_id();
  switch (header.body_case()) {
    case wire::Header::kHello: frame.body = FromWire(header.hello()); break;
    case wire::Header::kVoteRequest: frame.body = Message{FromWire(header.vote_request())}; break;
    case wire::Header::kVoteResponse: frame.body = Message{FromWire(header.vote_response())}; break;
    case wire::Header::kAppendRequest: {
      Result<AppendRequest> append = FromWire(header.append_request(), &raw);
      if (!append.ok()) return append.status();
      frame.body = Message{std::move(append).value()};
      break;
    }
    case wire::Header::kAppendResponse:
      frame.body = Message{FromWire(header.append_response())};
      break;
    case wire::Header::kTimeoutNow:
      frame.body = Message{TimeoutNow{Term(header.timeout_now().term())}};
      break;
    case wire::Header::kSnapshotOffer:
    case wire::Header::kSnapshotChunk:
    case wire::Header::kSnapshotAnswer: {
      Result<SnapshotMessage> snapshot = SnapshotFromWire(header, &raw);
      if (!snapshot.ok()) return snapshot.status();
      frame.body = std::move(snapshot).value();
      break;
    }
    case wire::Header::BODY_NOT_SET: return Status::Corruption("peer frame: unknown kind");
  }
  if (!raw.empty()) return Status::Corruption("peer frame: bytes left over");
  return frame;
}

const std::string& ChunkBytes(const PeerFrame& frame) {
  static const std::string& none = *new std::string;
  const SnapshotMessage* snapshot = std::get_if<SnapshotMessage>(&frame.body);
  if (snapshot == nullptr) return none;
  const SnapshotChunk* chunk = std::get_if<SnapshotChunk>(snapshot);
  return chunk == nullptr ? none : chunk->data;
}

}  // namespace

const std::vector<EntryRef>& FrameEntries(const PeerFrame& frame) {
  static const std::vector<EntryRef>& none = *new std::vector<EntryRef>;
  const Message* message = std::get_if<Message>(&frame.body);
  if (message == nullptr) return none;
  const AppendRequest* append = std::get_if<AppendRequest>(&message->body);
  return append == nullptr ? none : append->entries;
}

std::string EncodeFrameHead(const PeerFrame& frame) {
  wire::Header header;
  header.set_wall_ms(frame.wall_ms);
  header.set_group_id(frame.group_id);
  if (const Hello* hello = std::get_if<Hello>(&frame.body)) {
    ToWire(*hello, &header);
  } else if (const SnapshotMessage* snapshot = std::get_if<SnapshotMessage>(&frame.body)) {
    std::visit(SnapshotToWire{&header}, *snapshot);
  } else {
    std::visit(MessageToWire{&header}, std::get<Message>(frame.body).body);
  }
  const std::string& chunk = ChunkBytes(frame);
  std::size_t raw_bytes = chunk.size();
  for (const EntryRef& entry : FrameEntries(frame)) raw_bytes += entry->size();
  const std::size_t header_bytes = header.ByteSizeLong();
  CHECK_LE(header_bytes, kFrameHeaderBytesMax);
  std::string head(kPrefixBytes + header_bytes, '\0');
  PutU32(static_cast<std::uint32_t>(4 + header_bytes + raw_bytes), head.data());
  PutU32(static_cast<std::uint32_t>(header_bytes), head.data() + 4);
  CHECK(header.SerializeToArray(head.data() + kPrefixBytes, static_cast<int>(header_bytes)));
  head += chunk;
  return head;
}

Result<std::size_t> FrameSize(std::string_view bytes) {
  if (bytes.size() < kPrefixBytes) return std::size_t{0};
  const std::size_t length = GetU32(bytes);
  const std::size_t header_bytes = GetU32(bytes.substr(4));
  if (length < 4 || length > kFrameBytesMax) {
    return Status::Corruption("peer frame: length " + std::to_string(length));
  }
  if (header_bytes > kFrameHeaderBytesMax || header_bytes > length - 4) {
    return Status::Corruption("peer frame: header length " + std::to_string(header_bytes));
  }
  return 4 + length;
}

Result<PeerFrame> DecodeFrame(std::string_view frame) {
  Result<std::size_t> size = FrameSize(frame);
  if (!size.ok()) return size.status();
  if (*size == 0 || *size != frame.size()) return Status::Corruption("peer frame: cut short");
  const std::size_t header_bytes = GetU32(frame.substr(4));
  wire::Header header;
  if (!header.ParseFromArray(frame.data() + kPrefixBytes, static_cast<int>(header_bytes))) {
    return Status::Corruption("peer frame: header does not parse");
  }
  return BodyFromWire(header, frame.substr(kPrefixBytes + header_bytes));
}

}  // namespace triad::dledger
