// Members that join, lose their disks, fill them up or cannot read them: the others carry on, and
// so do they.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <future>
#include <string>

#include "dledger/log/log_store.h"
#include "dledger/log/segment_file.h"
#include "dledger/membership_codec.h"
#include "tests/unit/dledger/node_harness.h"

namespace triad::dledger {
namespace {

Status Change(Cluster& cluster, MembershipOp op, const PeerAddress& peer) {
  std::promise<Status> outcome;
  cluster.node(cluster.AwaitLeader()).ChangeMembership(op, peer, kPatience, [&](Status status) {
    outcome.set_value(status);
  });
  return outcome.get_future().get();
}

PeerAddress AddressOf(Cluster& cluster, std::size_t i) {
  const std::vector<PeerAddress>& peers = cluster.options(i).peers;
  return *std::find_if(peers.begin(), peers.end(),
                       [&](const PeerAddress& peer) { return peer.id == cluster.options(i).self; });
}

// Tries until it is done or patience ends. Not inside of Await: what is tried waits for the peers.
template <typename Try>
Status Insist(Cluster& cluster, Try attempt) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  Status status = attempt();
  while (!status.ok() && std::chrono::steady_clock::now() < deadline) {
    cluster.board().Await([] { return false; }, std::chrono::milliseconds(20));
    status = attempt();
  }
  return status;
}

// A peer that runs with an empty disk becomes a voter.
void Join(Cluster& cluster, std::size_t i) {
  const PeerAddress peer = AddressOf(cluster, i);
  for (const MembershipOp op : {MembershipOp::kAddLearner, MembershipOp::kPromote}) {
    const Status changed = Insist(cluster, [&] { return Change(cluster, op, peer); });
    ASSERT_TRUE(changed.ok()) << changed;
  }
}

void MoveLeadership(Cluster& cluster, std::size_t to) {
  const Status moved = Insist(cluster, [&] {
    const std::size_t leader = cluster.AwaitLeader();
    if (leader == to) return Status::Ok();
    std::promise<Status> outcome;
    cluster.node(leader).TransferLeadership(cluster.options(to).self, kPatience,
                                            [&](Status status) { outcome.set_value(status); });
    return outcome.get_future().get();
  });
  ASSERT_TRUE(moved.ok()) << moved;
  ASSERT_TRUE(cluster.board().Await([&] { return cluster.Leader() == to; }));
}

TEST(NodeMembers, APeerThatDoesNotKnowItsLeaderGetsTheLog) {
  Cluster cluster(4);
  for (std::size_t i = 0; i < 3; ++i) cluster.options(i).peers.pop_back();
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(cluster.Start(i).ok());
  cluster.Commit("three");
  ASSERT_TRUE(cluster.Start(3).ok());
  Join(cluster, 3);
  MoveLeadership(cluster, 3);
  // Nothing here names n3: neither its file nor its disk.
  cluster.Stop(2);
  cluster.Wipe(2);
  cluster.Commit("while it is away");
  ASSERT_TRUE(cluster.Start(2).ok());
  EXPECT_TRUE(cluster.AwaitAppliedByAll("while it is away"));
  EXPECT_TRUE(cluster.board().Await([&] { return !cluster.node(2).leader_info().recovering; }));
  EXPECT_EQ(cluster.Leader(), 3u);
}

TEST(NodeMembers, AFounderThatGrewMustNameTheOthersAndNeverFoundsASecondGroup) {
  Cluster cluster(2);
  const std::vector<PeerAddress> both = cluster.options(0).peers;
  cluster.options(0).peers.pop_back();
  ASSERT_TRUE(cluster.Start(0).ok());
  cluster.Commit("alone");
  ASSERT_TRUE(cluster.Start(1).ok());
  const Status added = Change(cluster, MembershipOp::kAddLearner, both[1]);
  ASSERT_TRUE(added.ok()) << added;
  ASSERT_TRUE(cluster.AwaitAppliedByAll("alone"));
  cluster.Stop(0);
  const Status refused = cluster.Start(0);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("dLegerPeers=" + PeersText(both)), std::string_view::npos)
      << refused;
  cluster.options(0).peers = both;
  ASSERT_TRUE(cluster.Start(0).ok());
  cluster.Commit("with both named");
  // With the file as it should be, an empty disk asks, and waits for what it had to come back.
  cluster.Stop(0);
  cluster.Wipe(0);
  ASSERT_TRUE(cluster.Start(0).ok());
  EXPECT_TRUE(cluster.board().Await([&] { return cluster.node(0).leader_info().recovering; }));
  EXPECT_EQ(cluster.node(0).leader_info().term, Term(0));
}

TEST(NodeMembers, TextsThatDoNotFitTheLogAreRefused) {
  Cluster cluster(1);
  cluster.StartAll();
  cluster.Commit("one");
  const std::string longest(kMemberTextBytesMax, 'x');
  for (const PeerAddress& peer : {PeerAddress{.id = PeerId(longest + "1"), .host = "h", .port = 1},
                                  PeerAddress{.id = PeerId("n1"), .host = longest, .port = 1}}) {
    EXPECT_EQ(Change(cluster, MembershipOp::kAddLearner, peer).code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(
        Change(cluster, MembershipOp::kRemove, {.id = PeerId(longest + "1"), .host = ""}).code(),
        StatusCode::kInvalidArgument);
  }
  const PeerAddress fits{.id = PeerId(longest), .host = longest.substr(2), .port = 1};
  EXPECT_TRUE(Change(cluster, MembershipOp::kAddLearner, fits).ok());
  cluster.Commit("two");
}

// ---- what a peer that led in vain leaves --------------------------------------------------------

void MakeStore(Cluster& cluster, std::size_t i, const HardState& state,
               const std::vector<EntryRef>& entries) {
  LogStoreOptions options;
  options.dir = cluster.options(i).dir;
  options.segment_bytes = cluster.options(i).segment_bytes;
  options.prepare_bytes = options.first_prepare_bytes = cluster.options(i).prepare_bytes;
  const auto log = LogStore::Open(PosixFileSystem(), options,
                                  {.group = "harness", .peer_id = cluster.options(i).self.value()});
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->SaveHardState(state).ok());
  ASSERT_TRUE((*log)->Append(entries).ok());
  ASSERT_TRUE((*log)->Close().ok());
}

TEST(NodeMembers, APeerThatLedTwiceBeforeAnybodyFoundedTheGroupJoinsIt) {
  Cluster cluster(3);
  LogTail tail;
  const auto founding = [&](std::uint64_t group_id) {
    Membership membership{.group_id = group_id, .voters = {}, .learners = {}};
    for (const PeerAddress& peer : cluster.options(0).peers) membership.voters.push_back(peer.id);
    return EncodeMembership(membership);
  };
  const EntryRef first = MakeEntry(Term(1), EntryType::kMembership, 1, founding(4711), &tail);
  const EntryRef second = MakeEntry(Term(2), EntryType::kNoop, 1, "", &tail);
  const HardState voted{.term = Term(2), .voted_for = cluster.options(2).self};
  MakeStore(cluster, 0, voted, {});
  MakeStore(cluster, 1, voted, {});
  MakeStore(cluster, 2, voted, {first, second});
  ASSERT_TRUE(cluster.Start(0).ok());
  ASSERT_TRUE(cluster.Start(1).ok());
  cluster.Commit("founded by the other two");
  ASSERT_TRUE(cluster.Start(2).ok());
  EXPECT_TRUE(cluster.AwaitAppliedByAll("founded by the other two"));
}

// ---- disks --------------------------------------------------------------------------------------

TEST(NodeMembers, AFollowerWhoseDiskIsFullStaysAndCatchesUpWhenThereIsRoom) {
  Cluster cluster(3);
  cluster.StartAll();
  cluster.Commit("before");
  const std::size_t leader = cluster.AwaitLeader();
  const std::size_t full = (leader + 1) % 3;
  const std::size_t other = (leader + 2) % 3;
  const auto write = [&](const std::string& name) {
    const std::string text = name + std::string(50'000, 'f');
    cluster.Propose(leader, text);
    ASSERT_TRUE(cluster.board().Await([&] { return cluster.recorder(other).has_applied(text); }));
  };
  const auto says_full = [&] {
    return cluster.node(full).status().not_ready_reason.find("no disk space") != std::string::npos;
  };
  cluster.FillDisk(full, true);
  for (int i = 0; i < 100 && !says_full(); ++i) write("until it is seen " + std::to_string(i));
  ASSERT_TRUE(cluster.board().Await(says_full));
  // Far more than was prepared.
  for (int i = 0; i < 40; ++i) write("too much " + std::to_string(i));
  EXPECT_TRUE(says_full());
  EXPECT_EQ(cluster.Leader(), leader);
  // Its next start finds the disk as it was.
  cluster.Stop(full);
  ASSERT_TRUE(cluster.Start(full).ok());
  write("after its start");
  ASSERT_TRUE(cluster.board().Await(says_full));
  cluster.FillDisk(full, false);
  EXPECT_TRUE(cluster.AwaitAppliedByAll("after its start" + std::string(50'000, 'f')));
}

TEST(NodeMembers, RetentionOnAFullDiskMakesRoomAndNeverEndsTheProcess) {
  Cluster cluster(1);
  cluster.KeepState();
  NodeOptions& options = cluster.options(0);
  options.segment_bytes = options.prepare_bytes = 8192;
  const auto first = [&] { return cluster.node(0).status().first_index; };
  cluster.StartAll();
  for (int i = 0; i < 40; ++i) cluster.Commit(Text(i) + std::string(1500, 'x'));
  cluster.Stop(0);
  options.retention.forced_percent = 1;
  options.retention.free_floor_bytes = ~std::uint64_t{0};
  options.retention.interval = std::chrono::milliseconds(10);
  // Not one file may grow: what was kept for this moment has to do; the next time there is nothing.
  cluster.FillDisk(0, true);
  ASSERT_TRUE(cluster.Start(0).ok());
  ASSERT_TRUE(cluster.board().Await([&] { return first() > LogIndex(1); }));
  const LogIndex dropped_once = first();
  cluster.FillDisk(0, false);
  EXPECT_TRUE(cluster.board().Await([&] { return first() > dropped_once; }));
  cluster.Commit("with room");
}

TEST(NodeMembers, ALeaderThatCannotReadWhatAFollowerNeedsLetsAnotherOneLead) {
  Cluster cluster(3);
  cluster.KeepState();  // nobody reads the log at its start
  for (std::size_t i = 0; i < 3; ++i) cluster.options(i).cache_bytes = 64u << 10;
  cluster.StartAll();
  cluster.Commit("the first");
  const EntryRef early = cluster.recorder(0).applied().back();
  cluster.Stop(2);
  for (int i = 0; i < 40; ++i) {
    cluster.Commit("more " + std::to_string(i) + std::string(50'000, 'm'));
  }
  // A leader that has just been started holds none of it in memory.
  cluster.Stop(0);
  cluster.Stop(1);
  cluster.Wipe(2);
  {
    const std::string path = cluster.options(0).dir + "/" + SegmentName(early->segment_base);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(kSegmentHeadBytes) + early->payload_position().value() -
               early->segment_base.value());
    file.put('\xee');
    ASSERT_TRUE(file.good());
  }
  ASSERT_TRUE(cluster.Start(0).ok());
  ASSERT_TRUE(cluster.Start(1).ok());
  MoveLeadership(cluster, 0);
  ASSERT_TRUE(cluster.Start(2).ok());
  EXPECT_TRUE(cluster.AwaitEqualStates());
  EXPECT_EQ(cluster.AwaitLeader(), 1u);
}

}  // namespace
}  // namespace triad::dledger
