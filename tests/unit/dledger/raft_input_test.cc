#include <array>
#include <limits>
#include <random>

#include "tests/unit/dledger/raft_core_fixture.h"

// Peers may say anything; the core never stops for it and never believes what cannot be.

namespace triad::dledger {
namespace {

TEST(RaftInput, MessagesOfNobodyAndOfOneselfAreIgnored) {
  CoreUnderTest t;
  for (const PeerId& stranger : {PeerId(), kN0}) {
    t.Receive(stranger, t.Append(5, 0, 0, {5}));
    t.Receive(stranger, VoteRequest{.term = Term{9},
                                    .pre_vote = false,
                                    .transfer = true,
                                    .last_index = LogIndex{9},
                                    .last_term = Term{8}});
  }
  t.Sync();
  EXPECT_TRUE(t.out.messages.empty());
  EXPECT_EQ(t.core.term(), Term{0});
}

TEST(RaftInput, AnswersOfStrangersAreIgnored) {
  CoreUnderTest t;
  t.TickUntil(Role::kPreCandidate);
  t.Receive(PeerId("n9"),
            VoteResponse{.term = Term{1}, .pre_vote = true, .granted = true, .life = kLife});
  t.Receive(PeerId("n9"), VoteResponse{.term = Term{8}, .pre_vote = false, .granted = false});
  AppendResponse append;
  append.term = Term{8};
  t.Receive(PeerId("n9"), append);
  EXPECT_EQ(t.core.role(), Role::kPreCandidate);
  EXPECT_EQ(t.core.term(), Term{0});
}

// The membership that has it as a voter, and perhaps its leadership, may not have come here yet.
TEST(RaftInput, ALeaderThatIsNotYetKnownIsFollowed) {
  CoreUnderTest t;
  t.Receive(PeerId("n9"), t.Append(5, 0, 0, {5}));
  t.Sync();
  EXPECT_EQ(t.core.leader(), PeerId("n9"));
  EXPECT_EQ(t.SentTo<AppendResponse>(PeerId("n9")).size(), 1u);
}

TEST(RaftInput, ACandidateThatIsNotYetKnownGetsAVote) {
  CoreUnderTest t;
  t.Receive(PeerId("n9"), VoteRequest{.term = Term{9},
                                      .pre_vote = false,
                                      .transfer = false,
                                      .last_index = LogIndex{9},
                                      .last_term = Term{8}});
  t.Sync();
  ASSERT_EQ(t.SentTo<VoteResponse>(PeerId("n9")).size(), 1u);
  EXPECT_TRUE(t.SentTo<VoteResponse>(PeerId("n9"))[0].granted);
}

TEST(RaftInput, MalformedAppendsAreDropped) {
  CoreUnderTest maker;
  AppendRequest gap = maker.Append(2, 0, 0, {1, 1});
  gap.entries[1] = MakeEntry(1, 3);
  AppendRequest null_entry = maker.Append(2, 0, 0, {1});
  null_entry.entries[0] = nullptr;
  AppendRequest wrong_start = maker.Append(2, 0, 0, {1});
  wrong_start.entries[0] = MakeEntry(1, 2);
  AppendRequest huge_prev = maker.Append(2, 0, 0, {});
  huge_prev.prev_index = LogIndex{UINT64_MAX};
  huge_prev.prev_term = Term{2};
  huge_prev.entries.push_back(MakeEntry(2, 0));
  struct Case {
    const char* name;
    AppendRequest request;
  };
  const Case cases[] = {
      {"terms go back", maker.Append(2, 0, 0, {2, 1})},
      {"entry of a later term", maker.Append(2, 0, 0, {3})},
      {"entry without a term", maker.Append(2, 0, 0, {0})},
      {"term before the beginning", maker.Append(2, 0, 1, {})},
      {"previous entry without a term", maker.Append(2, 3, 0, {})},
      {"previous entry of a later term", maker.Append(2, 3, 3, {})},
      {"a gap", gap},
      {"no entry", null_entry},
      {"not after the previous", wrong_start},
      {"index overflow", huge_prev},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    CoreUnderTest t;
    t.Receive(kN1, c.request);
    t.Sync();
    EXPECT_TRUE(t.out.messages.empty());
    EXPECT_EQ(t.core.last_index(), LogIndex{0});
    EXPECT_EQ(t.core.term(), Term{0});
  }
}

TEST(RaftInput, ASecondLeaderInOneTermIsNotBelieved) {
  CoreUnderTest t;
  t.Receive(kN1, t.Append(1, 0, 0, {1}));
  t.Receive(kN2, t.Append(1, 0, 0, {1, 1}));
  EXPECT_EQ(t.core.leader(), kN1);
  EXPECT_EQ(t.core.last_index(), LogIndex{1});
}

TEST(RaftInput, ALeaderDoesNotFollowAnotherOfItsOwnTerm) {
  CoreUnderTest t;
  t.BecomeLeader();
  t.Receive(kN1, t.Append(t.core.term().value(), 0, 0, {1}));
  EXPECT_EQ(t.core.role(), Role::kLeader);
  EXPECT_EQ(t.core.last_index(), LogIndex{0});
}

TEST(RaftInput, AnAcknowledgementBeyondTheLogIsIgnored) {
  CoreUnderTest t;
  t.BecomeLeader();
  t.Propose();
  t.Sync();
  t.Acknowledge(kN1, 99);
  t.Acknowledge(kN1, 1, /*round=*/99);
  EXPECT_EQ(t.core.commit_index(), LogIndex{0});
}

// What a confused or hostile peer might say. Small numbers, so that some of it fits.
class RandomPeer {
 public:
  explicit RandomPeer(std::uint32_t seed) : dice_(seed) {}

  std::uint32_t Below(std::uint32_t end) { return static_cast<std::uint32_t>(dice_() % end); }
  // Now and then as large as it gets.
  std::uint64_t Number(std::uint32_t end) {
    constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
    return Below(40) == 0 ? kLargest - Below(3) : Below(end);
  }

  AppendRequest Append(CoreUnderTest& t) {
    AppendRequest request = t.Append(Number(12), Number(6), Number(6), {}, Number(9));
    for (std::uint32_t n = Below(4); n > 0; --n) {
      const std::uint64_t at = request.prev_index.value() + request.entries.size() + 1;
      const std::uint64_t index = at + (Below(20) == 0 ? 1 : 0);
      request.entries.push_back(Below(5) == 0 ? MembershipEntry(Below(12), index, Members())
                                              : MakeEntry(Below(12), index));
    }
    request.read_round = Number(5);
    request.recovery_nonce = Below(3);
    return request;
  }
  Membership Members() {
    Membership membership{.group_id = 0, .voters = {kN0, kN1}, .learners = {}};
    if (Below(2) == 0) membership.voters.push_back(kN2);
    if (Below(3) == 0) membership.learners.push_back(PeerId("n7"));
    return membership;
  }
  InstallSnapshot Snapshot() {
    const LogIndex first{Below(14)};
    return InstallSnapshot{
        .base = {.first_index = first, .term = Term{Below(9)}, .membership = Members()},
        .applied = first + Below(3)};
  }
  AppendResponse Answer() {
    AppendResponse response;
    response.term = Term{Number(14)};
    response.ok = Below(2) == 0;
    response.match_index = LogIndex{Number(9)};
    response.rejected_prev = LogIndex{Number(9)};
    response.conflict_index = LogIndex{Number(9)};
    response.conflict_term = Term{Number(9)};
    response.read_round = Number(6);
    response.recovering = Below(4) == 0;
    response.recovery_nonce = Below(3);
    return response;
  }
  VoteRequest AskVote() {
    return VoteRequest{.term = Term{Number(14)},
                       .pre_vote = Below(2) == 0,
                       .transfer = Below(2) == 0,
                       .last_index = LogIndex{Number(9)},
                       .last_term = Term{Number(9)}};
  }
  VoteResponse Vote(Term near) {
    return VoteResponse{.term = Below(40) == 0 ? Term{Number(1)} : near + Below(2),
                        .pre_vote = Below(2) == 0,
                        .granted = Below(4) != 0,
                        .life = Below(8) == 0 ? 0 : kLife};
  }

 private:
  std::mt19937 dice_;
};

void RandomStep(CoreUnderTest& t, RandomPeer& peer, std::uint64_t step) {
  const PeerId from = std::array{kN1, kN2, PeerId("n7")}[peer.Below(3)];
  switch (peer.Below(12)) {
    case 0: return t.Receive(from, peer.Append(t));
    case 1: return t.Receive(from, peer.Answer());
    case 2: return t.Receive(from, peer.AskVote());
    case 3: return t.Receive(from, peer.Vote(t.core.term()));
    case 4: return t.Receive(from, TimeoutNow{.term = t.core.term() + peer.Below(2)});
    case 5: return t.Tick(static_cast<int>(peer.Below(40)));
    case 6:
      t.Sync();
      if (t.core.role() == Role::kLeader) t.Propose();
      return;
    case 7: return t.Step(peer.Snapshot());
    case 8: {
      const LogIndex safe = std::min(t.core.commit_index(), t.core.durable_index());
      const LogIndex first = LogIndex{peer.Below(3)} + safe.value() / 2;
      return t.Step(Purged{.first_index = std::min(first, safe + 1)});
    }
    case 9: return t.Change(static_cast<MembershipOp>(peer.Below(3)), from, /*context=*/step);
    case 10:
      t.Step(TransferLeadership{.to = from, .context = step});
      return t.Step(SnapshotSent{.peer = from,
                                 .term = t.core.term(),
                                 .ok = peer.Below(2) == 0,
                                 .base_index = LogIndex{peer.Below(9)}});
    default: t.Step(Disconnected{.peer = from}); t.Step(ReadIndexRequest{.context = step});
  }
}

// Whatever it is told, it can still count on from there.
TEST(RaftInput, TermsThatNobodyReachesAreNotBelieved) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t term : {kTermMax.value() + 1, kLargest - 1, kLargest}) {
    CoreUnderTest t;
    VoteRequest ask;
    ask.term = Term{term};
    AppendResponse answer;
    answer.term = Term{term};
    t.Receive(kN1, ask);
    t.Receive(kN1, VoteResponse{.term = Term{term}});
    t.Receive(kN1, t.Append(term, 0, 0, {}, 0));
    t.Receive(kN1, answer);
    EXPECT_EQ(t.core.term(), Term{0});
    t.Tick(1000);
  }
}

// Random peers, random disk answers. The point is that it returns, and that the view stays sane.
TEST(RaftInput, RandomMessagesNeverStopTheCore) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    RandomPeer peer(seed);
    CoreUnderTest t;
    LogIndex commit;
    for (std::uint64_t step = 0; step < 3000; ++step) {
      RandomStep(t, peer, step);
      t.Clear();
      ASSERT_GE(t.core.commit_index(), commit);
      commit = t.core.commit_index();
      ASSERT_LE(commit, t.core.last_index());
      ASSERT_LE(t.core.durable_index(), t.core.last_index());
      ASSERT_LE(t.core.first_index(), t.core.last_index() + 1);
    }
  }
}

}  // namespace
}  // namespace triad::dledger
