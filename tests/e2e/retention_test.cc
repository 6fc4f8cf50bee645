// Retention with real processes: old segments go, minimum offsets follow, and a peer that needs
// what is gone, or has lost its disk, gets the state and is as good as the others.

#include <signal.h>

#include <filesystem>
#include <regex>

#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/run_admin.h"

namespace triad {
namespace {

using std::chrono::seconds;

class RetentionE2e : public ClusterTest {
 protected:
  // Every segment but the last goes as soon as the state no longer needs it.
  void Begin() {
    StartCluster({{"mappedFileSizeCommitLog", "1048576"},
                  {"diskSpaceCleanForciblyRatio", "1"},
                  {"diskSpaceFreeFloorBytes", "9000000000000000"},
                  {"diskSpaceWarningLevelRatio", "99"},
                  {"cleanResourceInterval", "100"},
                  {"shutdownWaitTimeSeconds", "1"}});
    CreateTopic("Old", 1);
    CreateTopic("Filling", 1);
    client::ProducerOptions options;
    options.client = ClientOf("filler");
    options.send_timeout = seconds(10);
    producer_ = std::make_unique<client::Producer>(options);
    ASSERT_TRUE(producer_->Start().ok());
    for (int i = 0; i < 3; ++i) Send("Old", 100);
    ASSERT_TRUE(reader_->CommitOffset(OnlyQueue("Old"), 2).ok());
  }
  client::MessageQueue OnlyQueue(const std::string& topic) {
    const auto queues = reader_->Queues(topic);
    EXPECT_TRUE(queues.ok()) << queues.status();
    return queues.ok() && !queues->empty() ? queues->front() : client::MessageQueue{};
  }
  std::int64_t Send(const std::string& topic, std::size_t bytes) {
    client::Message message;
    message.topic = topic;
    message.body = std::to_string(++sent_) + std::string(bytes, 'm');
    const Result<client::SendResult> sent = producer_->Send(message);
    EXPECT_TRUE(sent.ok()) << sent.status();
    return sent.ok() ? sent->queue_offset : -1;
  }
  // Until the leader has forgotten the three messages of Old, and the entry that sets a limit.
  void ForgetOld() {
    const AdminRun told = RunAdmin(
        cluster_->namesrv_address(),
        {"updateBrokerConfig", "-c", "RaftCluster", "-k", "maxMessageSize", "-v", "100000"});
    ASSERT_EQ(told.exit_code, 0) << told.out;
    const client::MessageQueue old = OnlyQueue("Old");
    const bool forgotten = Eventually(
        [&] {
          for (int i = 0; i < 10; ++i) Send("Filling", 60000);
          const Result<std::int64_t> min = reader_->MinOffset(old);
          return min.ok() && *min == 3;
        },
        seconds(90));
    ASSERT_TRUE(forgotten);
  }
  void ExpectEqualReads(std::size_t peer) {
    const client::MessageQueue filling = OnlyQueue("Filling");
    std::vector<client::ReceivedMessage> there;
    std::vector<client::ReceivedMessage> here;
    // Each peer forgets by itself, a look at its disk later or earlier than another.
    EXPECT_TRUE(Eventually(
        [&] {
          there = ReadQueue(filling, cluster_->brokers()[peer].client_address);
          here = ReadQueue(filling);
          return there.size() == here.size();
        },
        seconds(30)));
    ASSERT_EQ(there.size(), here.size());
    ASSERT_FALSE(here.empty());
    EXPECT_GT(here.front().queue_offset, 0);
    for (std::size_t i = 0; i < here.size(); ++i) {
      EXPECT_EQ(there[i].body, here[i].body);
      EXPECT_EQ(there[i].queue_offset, here[i].queue_offset);
    }
  }
  void MakeLeader(std::size_t peer) {
    const std::string& id = cluster_->brokers()[peer].peer_id;
    AdminRun run;
    const bool moved = Eventually(
        [&] {
          run = RunAdmin(cluster_->namesrv_address(), {"transferLeader", "--to", id});
          return Leader() == peer;
        },
        seconds(60));
    ASSERT_TRUE(moved) << run.out;
  }
  // Offsets, queue ends, topics and settings came over: with this peer as the leader nothing is
  // forgotten.
  void ExpectStateOf(std::size_t peer) {
    MakeLeader(peer);
    if (HasFatalFailure()) return;
    EXPECT_EQ(Send("Old", 10), 3);
    const Result<std::int64_t> committed = reader_->FetchOffset(OnlyQueue("Old"));
    ASSERT_TRUE(committed.ok()) << committed.status();
    EXPECT_EQ(*committed, 2);
    const AdminRun config =
        RunAdmin(cluster_->namesrv_address(),
                 {"getBrokerConfig", "-b", cluster_->brokers()[peer].client_address});
    EXPECT_TRUE(std::regex_search(config.out, std::regex("maxMessageSize +: 100000\n")))
        << config.out;
  }

  std::unique_ptr<client::Producer> producer_;
  int sent_ = 0;
};

TEST_F(RetentionE2e, OFS_2_OFS_3_OPS_5_BehindTheMinimumAPullIsToldWhereToGoAndANewGroupHasNoPlace) {
  Begin();
  ForgetOld();
  const client::MessageQueue queue = OnlyQueue("Filling");
  const Result<std::int64_t> min = reader_->MinOffset(queue);
  ASSERT_TRUE(min.ok()) << min.status();
  ASSERT_GT(*min, 0);
  const Result<client::PullResult> pull = reader_->Pull(queue, "*", 0, 1);
  ASSERT_TRUE(pull.ok()) << pull.status();
  EXPECT_EQ(pull->status, client::PullStatus::kOffsetIllegal);
  EXPECT_GE(pull->next_begin_offset, *min);
  EXPECT_EQ(pull->next_begin_offset, pull->min_offset);
  // Code 22, not 0: the client's own rule says where to begin.
  const Result<std::int64_t> none = reader_->FetchOffset(queue);
  EXPECT_EQ(none.status().code(), StatusCode::kNotFound) << none.status();
}

TEST_F(RetentionE2e, APeerThatSleptTooLongIsAsGoodAsTheOthersAgain) {
  Begin();
  const std::size_t late = (Leader() + 1) % 3;
  ASSERT_TRUE(cluster_->Signal(late, SIGKILL).ok());
  ForgetOld();
  ASSERT_TRUE(cluster_->StartBroker(late).ok());
  ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(60)).ok());
  ExpectEqualReads(late);
  ExpectStateOf(late);
  CheckLogsIdentical();
}

TEST_F(RetentionE2e, APeerWithANewDiskIsAsGoodAsTheOthersAgain) {
  Begin();
  const std::size_t wiped = (Leader() + 1) % 3;
  ForgetOld();
  ASSERT_TRUE(cluster_->Signal(wiped, SIGKILL).ok());
  std::filesystem::remove_all(cluster_->brokers()[wiped].store_dir);
  ASSERT_TRUE(cluster_->StartBroker(wiped).ok());
  ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(60)).ok());
  ExpectEqualReads(wiped);
  // It is killed while it has the state, and starts from what it got.
  ASSERT_TRUE(cluster_->Signal(wiped, SIGKILL).ok());
  Send("Filling", 1000);
  ASSERT_TRUE(cluster_->StartBroker(wiped).ok());
  ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(60)).ok());
  ExpectEqualReads(wiped);
  ExpectStateOf(wiped);
  CheckLogsIdentical();
}

TEST_F(RetentionE2e, ALearnerThatNeedsASnapshotBecomesAVoterAlsoWhenTheLeaderDiesMeanwhile) {
  Begin();
  ForgetOld();
  const Result<std::size_t> added = cluster_->AddBroker();
  ASSERT_TRUE(added.ok()) << added.status();
  const std::size_t fresh = *added;
  const LocalBroker& peer = cluster_->brokers()[fresh];
  ASSERT_TRUE(cluster_->StartBroker(fresh).ok());
  AdminRun run =
      RunAdmin(cluster_->namesrv_address(), {"addPeer", "--id", peer.peer_id, "--address",
                                             "127.0.0.1:" + std::to_string(peer.peer_port)});
  ASSERT_EQ(run.exit_code, 0) << run.out;
  const std::size_t dead = Leader();
  ASSERT_TRUE(cluster_->Signal(dead, SIGKILL).ok());
  Send("Filling", 1000);  // another leads
  // An empty disk is trusted when every voter has spoken.
  ASSERT_TRUE(cluster_->StartBroker(dead).ok());
  const bool promoted = Eventually(
      [&] {
        run = RunAdmin(cluster_->namesrv_address(), {"promotePeer", "--id", peer.peer_id});
        return run.exit_code == 0;
      },
      seconds(60));
  ASSERT_TRUE(promoted) << run.out;
  ASSERT_TRUE(cluster_->WaitForMembers(4, seconds(60)).ok());
  ExpectEqualReads(fresh);
  ExpectStateOf(fresh);
  CheckLogsIdentical();
}

}  // namespace
}  // namespace triad
