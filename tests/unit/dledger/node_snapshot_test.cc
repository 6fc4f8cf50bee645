// Retention and snapshots among three peers in one process, over real sockets and disks.

#include <gtest/gtest.h>

#include <string>

#include "dledger/log/log_store.h"
#include "dledger/snapshot/snapshot_file.h"
#include "tests/unit/dledger/node_harness.h"

namespace triad::dledger {
namespace {

// Logs of 8 KiB segments of which only the last stays.
class NodeSnapshot : public ::testing::Test {
 protected:
  NodeSnapshot() : cluster_(3) {
    cluster_.KeepState();
    for (std::size_t i = 0; i < 3; ++i) {
      NodeOptions& options = cluster_.options(i);
      options.segment_bytes = 8192;
      options.prepare_bytes = 8192;
      options.retention.forced_percent = 1;
      options.retention.held_percent = 101;
      options.retention.free_floor_bytes = ~std::uint64_t{0};
      options.retention.interval = std::chrono::milliseconds(10);
    }
    cluster_.StartAll();
  }
  LogIndex Last(std::size_t i) { return cluster_.node(i).status().last_index; }
  LogIndex First(std::size_t i) { return cluster_.node(i).status().first_index; }

  // Writes until the logs of all running peers have forgotten `index`.
  void ForgetUpTo(LogIndex index) {
    for (int i = 0; i < 2000; ++i) {
      cluster_.Commit("filling " + std::to_string(++filled_) + std::string(1500, 'x'));
      bool all = true;
      for (std::size_t peer = 0; peer < 3; ++peer) {
        all = all && (!cluster_.is_running(peer) || First(peer) > index + 1);
      }
      if (all) return;
    }
    ADD_FAILURE() << "nothing is dropped";
  }
  // A follower that is stopped, and whose next entry nobody has any more.
  std::size_t LeaveOneBehind() {
    cluster_.Commit("first");
    const std::size_t behind = (cluster_.AwaitLeader() + 1) % 3;
    last_of_behind_ = Last(behind);
    cluster_.Stop(behind);
    ForgetUpTo(last_of_behind_);
    return behind;
  }
  bool AwaitWhole(std::size_t i) {
    return cluster_.board().Await([&] {
      const NodeStatus status = cluster_.node(i).status();
      const std::optional<std::size_t> leader = cluster_.Leader();
      return leader && !status.leader.recovering && status.commit_index == Last(*leader);
    });
  }

  // Files that take room for nothing once a transfer is over.
  bool HoldsSnapshots() {
    for (std::size_t i = 0; i < 3; ++i) {
      const auto names = PosixFileSystem().List(SnapshotDir(cluster_.options(i).dir));
      if (names.ok() && !names->empty()) return true;
    }
    return false;
  }

  // Where the log of a stopped peer begins.
  StoreBase BaseOf(std::size_t i) {
    LogStoreOptions options;
    options.dir = cluster_.options(i).dir;
    const auto log =
        LogStore::Open(PosixFileSystem(), options,
                       {.group = "harness", .peer_id = cluster_.options(i).self.value()});
    EXPECT_TRUE(log.ok()) << log.status();
    if (!log.ok()) return {};
    EXPECT_TRUE((*log)->Close().ok());
    return (*log)->base();
  }

  Cluster cluster_;
  int filled_ = 0;
  LogIndex last_of_behind_;
};

TEST_F(NodeSnapshot, APeerBehindRetentionGetsTheStateAndGoesOn) {
  const std::size_t behind = LeaveOneBehind();
  ASSERT_TRUE(cluster_.Start(behind).ok());
  EXPECT_TRUE(cluster_.AwaitEqualStates());
  EXPECT_EQ(cluster_.recorder(behind).installed(), 1);
  ASSERT_TRUE(AwaitWhole(behind));  // only then the next entry comes as an entry
  EXPECT_GT(First(behind), last_of_behind_);
  EXPECT_TRUE(cluster_.board().Await([&] { return !HoldsSnapshots(); })) << "files are left";
  cluster_.Commit("behind it");
  EXPECT_TRUE(cluster_.AwaitEqualStates());
  // And its own start goes on from there.
  cluster_.Stop(behind);
  cluster_.Commit("meanwhile");
  ASSERT_TRUE(cluster_.Start(behind).ok());
  EXPECT_TRUE(cluster_.AwaitEqualStates());
  EXPECT_EQ(cluster_.recorder(behind).installed(), 0);
}

TEST_F(NodeSnapshot, ThePeerKnowsThatItsLogDoesNotReachTheInstalledStateYet) {
  const std::size_t behind = LeaveOneBehind();
  // Nobody is left to send the log.
  cluster_.set_on_installed(behind, [&] {
    for (std::size_t i = 0; i < 3; ++i) {
      if (i != behind) cluster_.Stop(i);
    }
  });
  ASSERT_TRUE(cluster_.Start(behind).ok());
  EXPECT_TRUE(
      cluster_.board().Await([&] { return cluster_.node(behind).status().log_behind_state; }));
  EXPECT_GT(cluster_.recorder(behind).state().index, Last(behind));
  cluster_.StartAll();
  EXPECT_TRUE(cluster_.AwaitEqualStates());
  EXPECT_TRUE(
      cluster_.board().Await([&] { return !cluster_.node(behind).status().log_behind_state; }));
}

TEST_F(NodeSnapshot, TheLeaderKeepsTheLogThatAPeerIsAboutToGet) {
  const std::size_t behind = LeaveOneBehind();
  const std::size_t leader = cluster_.AwaitLeader();
  // Several segments, and many looks of the retention, before the peer asks for its first entry.
  cluster_.set_on_installed(behind, [&] {
    for (int i = 0; i < 40; ++i) {
      const LogIndex before = cluster_.node(leader).status().applied_index;
      cluster_.Propose(leader, "more " + std::to_string(i) + std::string(1500, 'x'));
      EXPECT_TRUE(cluster_.board().Await(
          [&] { return cluster_.node(leader).status().applied_index > before; }));
    }
  });
  ASSERT_TRUE(cluster_.Start(behind).ok());
  EXPECT_TRUE(cluster_.AwaitEqualStates());
  ASSERT_TRUE(AwaitWhole(behind));
  EXPECT_EQ(cluster_.recorder(behind).installed(), 1);
}

TEST_F(NodeSnapshot, AWipedPeerBehindRetentionBecomesAVoterAgain) {
  cluster_.Commit("first");
  const std::size_t wiped = (cluster_.AwaitLeader() + 1) % 3;
  cluster_.Stop(wiped);
  cluster_.Wipe(wiped);
  ForgetUpTo(LogIndex(2));
  ASSERT_TRUE(cluster_.Start(wiped).ok());
  EXPECT_TRUE(cluster_.AwaitEqualStates());
  EXPECT_GE(cluster_.recorder(wiped).installed(), 1);
  ASSERT_TRUE(AwaitWhole(wiped));
  // With it alone the leader has a majority.
  cluster_.Stop(3 - wiped - cluster_.AwaitLeader());
  cluster_.Commit("with the wiped one");
  EXPECT_TRUE(cluster_.AwaitEqualStates());
}

TEST_F(NodeSnapshot, AnInstallationThatACrashStoppedIsFinishedByTheStart) {
  cluster_.Commit("first");
  const std::size_t behind = (cluster_.AwaitLeader() + 1) % 3;
  cluster_.Stop(behind);
  ForgetUpTo(LogIndex(3));
  // What a peer holds that received everything and died at once: the file, and its old log.
  const std::size_t leader = cluster_.AwaitLeader();
  Recorder source(cluster_.board(), true, cluster_.recorder(leader).state());
  ASSERT_TRUE(cluster_.AwaitEqualStates());
  cluster_.Stop(leader);
  const StoreBase base = BaseOf(leader);
  const std::string& dir = cluster_.options(behind).dir;
  auto file = SnapshotFile::Create(PosixFileSystem(), SnapshotDir(dir), "in");
  ASSERT_TRUE(file.ok());
  Result<StateImage> image = source.TakeImage();
  std::string piece;
  while (*image->pieces->Next(&piece)) ASSERT_TRUE((*file)->Append(piece).ok());
  ASSERT_TRUE((*file)
                  ->Seal({.base = base,
                          .applied = image->applied,
                          .total_bytes = (*file)->size(),
                          .crc = (*file)->crc()})
                  .ok());
  ASSERT_TRUE(PublishSnapshot(PosixFileSystem(), dir).ok());

  ASSERT_TRUE(cluster_.Start(behind).ok());
  EXPECT_EQ(First(behind), base.tail.next_index);
  ASSERT_TRUE(cluster_.Start(leader).ok());
  EXPECT_TRUE(cluster_.AwaitEqualStates());
  EXPECT_FALSE(PosixFileSystem().Exists(SnapshotDir(dir) + "/ready"));
}

}  // namespace
}  // namespace triad::dledger
