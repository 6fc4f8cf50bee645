// Frames between peers.

#include "dledger/peer/peer_codec.h"

#include <gtest/gtest.h>

namespace triad::dledger {
namespace {

std::string Whole(const PeerFrame& frame) {
  std::string bytes = EncodeFrameHead(frame);
  for (const EntryRef& entry : FrameEntries(frame)) bytes += entry->bytes;
  return bytes;
}

PeerFrame Append(int entries) {
  LogTail tail;
  AppendRequest request;
  request.term = Term(3);
  request.prev_index = LogIndex(0);
  request.commit_index = LogIndex(1);
  request.read_round = 9;
  request.recovery_nonce = 0xfedcba9876543210;
  request.recovery_target = LogIndex(12);
  for (int i = 0; i < entries; ++i) {
    request.entries.push_back(
        MakeEntry(Term(2), EntryType::kBatch, 5, "payload " + std::to_string(i), &tail));
  }
  PeerFrame frame;
  frame.wall_ms = 1234567890123;
  frame.group_id = 77;
  frame.body = Message{request};
  return frame;
}

TEST(PeerCodec, AnAppendKeepsItsFieldsAndTheEntriesBytes) {
  const PeerFrame sent = Append(3);
  const Result<PeerFrame> frame = DecodeFrame(Whole(sent));
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->wall_ms, sent.wall_ms);
  EXPECT_EQ(frame->group_id, 77u);
  const auto& was = std::get<AppendRequest>(std::get<Message>(sent.body).body);
  const auto& is = std::get<AppendRequest>(std::get<Message>(frame->body).body);
  EXPECT_EQ(is.term, was.term);
  EXPECT_EQ(is.commit_index, was.commit_index);
  EXPECT_EQ(is.read_round, was.read_round);
  EXPECT_EQ(is.recovery_nonce, was.recovery_nonce);
  EXPECT_EQ(is.recovery_target, was.recovery_target);
  ASSERT_EQ(is.entries.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(is.entries[i]->bytes, was.entries[i]->bytes);
}

TEST(PeerCodec, AnAnswerKeepsItsFields) {
  AppendResponse was;
  was.term = Term(1);
  was.ok = true;
  was.match_index = LogIndex(2);
  was.conflict_index = LogIndex(3);
  was.conflict_term = Term(4);
  was.rejected_prev = LogIndex(5);
  was.read_round = 6;
  was.recovering = true;
  was.recovery_nonce = 7;
  PeerFrame sent;
  sent.body = Message{was};
  const Result<PeerFrame> frame = DecodeFrame(Whole(sent));
  ASSERT_TRUE(frame.ok()) << frame.status();
  const auto& is = std::get<AppendResponse>(std::get<Message>(frame->body).body);
  EXPECT_EQ(is.term, was.term);
  EXPECT_EQ(is.ok, was.ok);
  EXPECT_EQ(is.match_index, was.match_index);
  EXPECT_EQ(is.conflict_index, was.conflict_index);
  EXPECT_EQ(is.conflict_term, was.conflict_term);
  EXPECT_EQ(is.rejected_prev, was.rejected_prev);
  EXPECT_EQ(is.read_round, was.read_round);
  EXPECT_EQ(is.recovering, was.recovering);
  EXPECT_EQ(is.recovery_nonce, was.recovery_nonce);
}

TEST(PeerCodec, VotesKeepTheirFields) {
  VoteRequest request;
  request.term = Term(9);
  request.pre_vote = true;
  request.transfer = true;
  request.last_index = LogIndex(8);
  request.last_term = Term(7);
  request.life = ~0ull;
  PeerFrame sent;
  sent.body = Message{request};
  Result<PeerFrame> frame = DecodeFrame(Whole(sent));
  ASSERT_TRUE(frame.ok()) << frame.status();
  const auto& is = std::get<VoteRequest>(std::get<Message>(frame->body).body);
  EXPECT_EQ(is.term, request.term);
  EXPECT_TRUE(is.pre_vote);
  EXPECT_TRUE(is.transfer);
  EXPECT_EQ(is.last_index, request.last_index);
  EXPECT_EQ(is.last_term, request.last_term);
  EXPECT_EQ(is.life, request.life);

  VoteResponse response;
  response.term = Term(9);
  response.granted = true;
  response.life = 5;
  sent.body = Message{response};
  frame = DecodeFrame(Whole(sent));
  ASSERT_TRUE(frame.ok()) << frame.status();
  const auto& answer = std::get<VoteResponse>(std::get<Message>(frame->body).body);
  EXPECT_EQ(answer.term, response.term);
  EXPECT_FALSE(answer.pre_vote);
  EXPECT_TRUE(answer.granted);
  EXPECT_EQ(answer.life, response.life);
}

TEST(PeerCodec, AHelloKeepsItsFields) {
  Hello was;
  was.group = "g\xff";  // bytes, whatever they are
  was.from = PeerId("n0");
  was.to = PeerId("n1");
  was.client_address = "1.2.3.4:10911";
  was.peers = "n0-a:1;n1-b:2";
  was.peer_address = "a:1";
  was.has_log = true;
  was.term = Term(6);
  was.last_index = LogIndex(5);
  was.last_term = Term(4);
  was.recovering = true;
  was.lost_unsynced = true;
  was.refusal = "because";
  PeerFrame sent;
  sent.body = was;
  const Result<PeerFrame> frame = DecodeFrame(Whole(sent));
  ASSERT_TRUE(frame.ok()) << frame.status();
  const auto& is = std::get<Hello>(frame->body);
  EXPECT_EQ(is.version, kPeerProtocolVersion);
  EXPECT_EQ(is.group, was.group);
  EXPECT_EQ(is.from, was.from);
  EXPECT_EQ(is.to, was.to);
  EXPECT_EQ(is.client_address, was.client_address);
  EXPECT_EQ(is.peers, was.peers);
  EXPECT_EQ(is.peer_address, was.peer_address);
  EXPECT_TRUE(is.has_log);
  EXPECT_EQ(is.term, was.term);
  EXPECT_EQ(is.last_index, was.last_index);
  EXPECT_EQ(is.last_term, was.last_term);
  EXPECT_TRUE(is.recovering);
  EXPECT_TRUE(is.lost_unsynced);
  EXPECT_EQ(is.refusal, was.refusal);
}

TEST(PeerCodec, ACutFrameIsNeverAFrame) {
  const std::string whole = Whole(Append(2));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodeFrame(std::string_view(whole).substr(0, size)).ok()) << size;
  }
}

TEST(PeerCodec, AFlippedBitInAnEntryIsNoticed) {
  const std::string whole = Whole(Append(1));
  const std::size_t head = EncodeFrameHead(Append(1)).size();
  // The last bytes are padding to 8, which no checksum covers.
  const std::size_t end = head + kEntryHeaderBytes + std::string("payload 0").size();
  for (std::size_t at = head; at < end; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_FALSE(DecodeFrame(damaged).ok()) << at - head;
  }
}

TEST(PeerCodec, EntriesThatDoNotFollowEachOtherAreRefused) {
  PeerFrame frame = Append(3);
  auto& request = std::get<AppendRequest>(std::get<Message>(frame.body).body);
  request.entries.erase(request.entries.begin() + 1);
  EXPECT_FALSE(DecodeFrame(Whole(frame)).ok());
}

TEST(PeerCodec, RefusesImpossibleLengths) {
  EXPECT_EQ(FrameSize("\0\0\0").value(), 0u);
  const std::string huge("\xff\xff\xff\xff\0\0\0\0", 8);
  EXPECT_FALSE(FrameSize(huge).ok());
  const std::string header_too_long("\0\0\0\x10\0\0\0\x11", 8);
  EXPECT_FALSE(FrameSize(header_too_long).ok());
}

TEST(PeerCodec, ASnapshotsMessagesKeepTheirFields) {
  SnapshotOffer offer{.term = Term(7), .id = 99, .head = {}};
  offer.head.base.tail.next_index = LogIndex(41);
  offer.head.base.tail.position = offer.head.base.tail.segment_base = PhysicalOffset(4096);
  offer.head.base.tail.header_crc = 5;
  offer.head.base.tail.last_term = Term(6);
  offer.head.base.membership = {.group_id = 3, .voters = {PeerId("n0")}, .learners = {}};
  offer.head.applied = LogIndex(50);
  offer.head.total_bytes = 1234;
  offer.head.crc = 77;
  const Result<PeerFrame> one =
      DecodeFrame(Whole({.wall_ms = 1, .group_id = 2, .body = SnapshotMessage{offer}}));
  ASSERT_TRUE(one.ok()) << one.status();
  const auto& is = std::get<SnapshotOffer>(std::get<SnapshotMessage>(one->body));
  EXPECT_EQ(is.term, offer.term);
  EXPECT_EQ(is.id, 99u);
  EXPECT_EQ(is.head, offer.head);
  EXPECT_EQ(is.head.base.membership, offer.head.base.membership);

  const SnapshotChunk chunk{.id = 99, .offset = 17, .crc = 4, .data = std::string(300, 'x')};
  const Result<PeerFrame> two =
      DecodeFrame(Whole({.wall_ms = 1, .group_id = 2, .body = SnapshotMessage{chunk}}));
  ASSERT_TRUE(two.ok()) << two.status();
  const auto& chunk_is = std::get<SnapshotChunk>(std::get<SnapshotMessage>(two->body));
  EXPECT_EQ(chunk_is.offset, 17u);
  EXPECT_EQ(chunk_is.crc, 4u);
  EXPECT_EQ(chunk_is.data, chunk.data);

  const SnapshotAnswer answer{
      .id = 99, .kind = SnapshotAnswer::Kind::kInstalled, .offset = 1u << 20};
  const Result<PeerFrame> three =
      DecodeFrame(Whole({.wall_ms = 1, .group_id = 2, .body = SnapshotMessage{answer}}));
  ASSERT_TRUE(three.ok()) << three.status();
  const auto& answer_is = std::get<SnapshotAnswer>(std::get<SnapshotMessage>(three->body));
  EXPECT_EQ(answer_is.kind, SnapshotAnswer::Kind::kInstalled);
  EXPECT_EQ(answer_is.offset, 1u << 20);
}

TEST(PeerCodec, AChunkLargerThanAgreedIsRefused) {
  const SnapshotChunk chunk{
      .id = 1, .offset = 0, .crc = 0, .data = std::string(kSnapshotChunkBytes + 1, 'x')};
  EXPECT_EQ(DecodeFrame(Whole({.wall_ms = 1, .group_id = 2, .body = SnapshotMessage{chunk}}))
                .status()
                .code(),
            StatusCode::kCorruption);
}

}  // namespace
}  // namespace triad::dledger
