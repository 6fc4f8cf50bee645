// The broker's state across failures of real processes: idempotent sends, dead letters that are
// replayed once, ordered consumers that go on, offsets, members.

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <optional>

#include "remoting/bodies.h"
#include "remoting/client_bodies.h"
#include "remoting/codes.h"
#include "remoting/headers.h"
#include "tests/e2e/state_fixture.h"

namespace triad {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

TEST_F(State, ARepeatedSendGetsTheFirstResultAlsoFromTheNextLeader) {
  StartCluster();
  client::TopicSettings settings;
  settings.name = "Once";
  settings.read_queues = settings.write_queues = 4;
  settings.attributes = {{"dedup", "uniqKey"}};
  ASSERT_TRUE(admin_->UpdateTopic(settings).ok());
  std::vector<remoting::SendMessageResponse> first;
  std::size_t leader = Leader();
  for (int i = 0; i < 50; ++i) {
    const auto sent = Send(leader, "Once", "key" + std::to_string(i), i % 4);
    ASSERT_TRUE(sent.ok()) << sent.status();
    first.push_back(*sent);
  }
  const auto check = [&](std::size_t peer) {
    for (int i = 0; i < 50; ++i) {
      const auto again = Send(peer, "Once", "key" + std::to_string(i), (i + 1) % 4);
      ASSERT_TRUE(again.ok()) << again.status();
      const auto& one = first[static_cast<std::size_t>(i)];
      EXPECT_EQ(again->queue_id, one.queue_id);
      EXPECT_EQ(again->queue_offset, one.queue_offset);
    }
    EXPECT_EQ(Count("Once"), 50);
  };
  check(leader);
  ASSERT_TRUE(cluster_->Signal(leader, SIGKILL).ok());
  check(Leader());
  ASSERT_TRUE(cluster_->StartBroker(leader).ok());
  ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());
  check((Leader() + 1) % 3);  // through a follower
}

TEST_F(State, AReplayOfDeadLettersThatIsKilledAndRunAgainSendsEachOnce) {
  StartCluster();
  CreateTopic("Work", 2);
  constexpr int kCount = 120;
  std::size_t leader = Leader();
  // Every message dies at once: sent back with level -1.
  client::PushConsumerOptions options;
  options.client = ClientOf("dying");
  options.group = "g_dlq";
  options.consume_from = client::ConsumeFrom::kFirstOffset;
  client::PushConsumer consumer(options);
  ASSERT_TRUE(consumer.Subscribe("Work").ok());
  std::set<std::string> delivered;
  std::mutex mutex;
  consumer.SetListener(client::MessageListenerConcurrently(
      [&](const auto& messages, client::ConcurrentContext* context) {
        std::lock_guard hold(mutex);
        for (const auto& message : messages) delivered.insert(message.body);
        context->delay_level = -1;
        context->failure_reason = "cannot";
        return client::ConcurrentResult::kReconsumeLater;
      }));
  ASSERT_TRUE(consumer.Start().ok());
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(Send(leader, "Work", "w" + std::to_string(i), i % 2).ok());
  }
  ASSERT_TRUE(Eventually([&] { return Count("%DLQ%g_dlq") == kCount; }, seconds(60)));
  consumer.Shutdown();
  const std::vector<std::string> where = {"-n", cluster_->namesrv_address(), "-g", "g_dlq"};
  const auto verb = [&](const std::string& name, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"dlq", name};
    words.insert(words.end(), where.begin(), where.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  ASSERT_EQ(Admin(verb("list")), 0) << AdminOutput();
  EXPECT_NE(AdminOutput().find("120 dead letters are open"), std::string::npos) << AdminOutput();
  EXPECT_NE(AdminOutput().find("cannot"), std::string::npos);
  ASSERT_EQ(Admin(verb("replay", {"--dry-run"})), 0) << AdminOutput();
  EXPECT_EQ(Count("%RETRY%g_dlq"), 0);
  ASSERT_EQ(Admin(verb("drop", {"--limit", "10"})), 0) << AdminOutput();

  const pid_t replay = Spawn(verb("replay", {"--rate", "50"}), dir_ + "/replay.out");
  ASSERT_TRUE(Eventually([&] { return Count("%RETRY%g_dlq") >= 20; }, seconds(30)));
  ASSERT_EQ(kill(replay, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(replay, &status, 0), replay);
  ASSERT_LT(Count("%RETRY%g_dlq"), kCount - 10) << "it was meant to be killed in the middle";
  ASSERT_TRUE(cluster_->Signal(leader, SIGKILL).ok());
  Leader();
  ASSERT_EQ(Admin(verb("replay")), 0) << AdminOutput();
  EXPECT_EQ(Count("%RETRY%g_dlq"), kCount - 10);
  ASSERT_EQ(Admin(verb("replay")), 0) << AdminOutput();
  EXPECT_EQ(Count("%RETRY%g_dlq"), kCount - 10);
  ASSERT_EQ(Admin(verb("list", {"-o", "json"})), 0);
  EXPECT_NE(AdminOutput().find("[]"), std::string::npos) << AdminOutput();
  std::multiset<std::string> copies;
  const auto queues = reader_->Queues("%RETRY%g_dlq");
  ASSERT_TRUE(queues.ok());
  for (const auto& message : ReadQueue((*queues)[0])) copies.insert(message.body);
  for (const std::string& body : copies) EXPECT_EQ(copies.count(body), 1u) << body;
}

TEST_F(State, AnOrderedConsumerGoesOnWithinASecondOfAFailover) {
  StartCluster();
  CreateTopic("Resume", 2);
  client::PushConsumerOptions options;
  options.client = ClientOf("resume");
  options.group = "g_resume";
  options.consume_from = client::ConsumeFrom::kFirstOffset;
  client::PushConsumer consumer(options);
  ASSERT_TRUE(consumer.Subscribe("Resume").ok());
  std::mutex mutex;
  std::map<std::string, steady_clock::time_point> seen;
  consumer.SetListener(
      client::MessageListenerOrderly([&](const auto& messages, client::OrderlyContext* context) {
        EXPECT_GT(context->fence_token, 0u);
        std::lock_guard hold(mutex);
        for (const auto& message : messages) {
          seen.emplace(message.body, steady_clock::now());
        }
        return client::OrderlyResult::kSuccess;
      }));
  ASSERT_TRUE(consumer.Start().ok());
  OrderedLoad load(ClientOf("producer"), "Resume", 2);
  ASSERT_TRUE(load.Start().ok());
  load.Send(20);
  load.Drain();
  const auto all_seen = [&] {
    std::lock_guard hold(mutex);
    return seen.size() == static_cast<std::size_t>(load.sent());
  };
  ASSERT_TRUE(Eventually(all_seen, seconds(40)));
  ASSERT_TRUE(cluster_->Signal(Leader(), SIGKILL).ok());
  load.Send(2, 0);  // one for each queue; returns when they are acknowledged, by the new leader
  const auto acknowledged = steady_clock::now();
  ASSERT_TRUE(Eventually(all_seen, seconds(40)));
  for (const char* body : {"k0:10", "k1:10"}) {
    const auto after = std::chrono::duration_cast<milliseconds>(seen.at(body) - acknowledged);
    EXPECT_LT(after, milliseconds(1000)) << body << " was delivered late after the failover";
    RecordProperty(body, static_cast<int>(after.count()));
  }
  consumer.Shutdown();
}

// A grant is an entry of the log; a renewal is none, so only a ReadIndex keeps a leader that was
// left alone from promising the queue to somebody whose lock another leader may have given away.
TEST_F(State, ARenewalIsNotGrantedByALeaderThatHearsNoMajority) {
  StartCluster();
  CreateTopic("Renewal", 1);
  const std::size_t leader = Leader();
  ASSERT_TRUE(Send(leader, "%RETRY%g_renewal", "x", 0).ok());  // makes the group
  const auto granted = [&](std::size_t peer) { return Lock(peer, "g_renewal", "Renewal"); };
  ASSERT_TRUE(granted(leader));
  ASSERT_TRUE(granted(leader));  // the renewal, with a majority
  const std::vector<std::size_t> followers = {(leader + 1) % 3, (leader + 2) % 3};
  for (const std::size_t peer : followers) {
    ASSERT_TRUE(cluster_->Signal(peer, SIGSTOP).ok());
    ASSERT_TRUE(Eventually([&] { return Stopped(peer); }, seconds(30)));
  }
  EXPECT_FALSE(granted(leader));
  for (const std::size_t peer : followers) ASSERT_TRUE(cluster_->Signal(peer, SIGCONT).ok());
  EXPECT_TRUE(Eventually([&] { return granted(Leader()); }, seconds(30)));
}

TEST_F(State, OFS_1_OffsetsThatWereAnsweredAreThereAfterALeaderKill) {
  StartCluster();
  CreateTopic("Commits", 4);
  const std::size_t leader = Leader();
  ASSERT_TRUE(Send(leader, "%RETRY%g_commits", "x", 0).ok());  // makes the group
  std::map<int, std::int64_t> answered;
  for (std::int64_t offset = 1; offset <= 40; ++offset) {
    remoting::UpdateConsumerOffsetRequest header;
    header.consumer_group = "g_commits";
    header.topic = "Commits";
    header.queue_id = static_cast<std::int32_t>(offset % 4);
    header.commit_offset = offset;
    remoting::Command request = remoting::Command::Request(remoting::kUpdateConsumerOffset);
    header.Encode(&request.ext);
    const auto answer = Ask(leader, request);
    ASSERT_TRUE(answer.ok() && answer->code == 0);
    answered[header.queue_id] = offset;
  }
  ASSERT_TRUE(cluster_->Signal(leader, SIGKILL).ok());
  const std::size_t next = (leader + 1) % 3;  // whether it leads or not
  for (const auto& [queue, offset] : answered) {
    remoting::QueryConsumerOffsetRequest header;
    header.consumer_group = "g_commits";
    header.topic = "Commits";
    header.queue_id = queue;
    remoting::Command request = remoting::Command::Request(remoting::kQueryConsumerOffset);
    header.Encode(&request.ext);
    // Held while nobody leads; silence at the end of the budget, never an error and never 22.
    Result<remoting::Command> answer = Ask(next, request);
    while (!answer.ok()) answer = Ask(next, request);
    EXPECT_EQ(answer->code, 0) << answer->remark;
    EXPECT_EQ(answer->ext.Int64Or("offset", -1).value(), offset);
  }
}

TEST_F(State, OFS_4_ADamagedStateIsRefusedByNameAndTheOthersCopyTakesItsPlace) {
  StartCluster({{"shutdownWaitTimeSeconds", "1"}});
  CreateTopic("Damaged", 1);
  const client::MessageQueue queue{"Damaged", cluster_->broker_name(), 0};
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(Send(Leader(), "Damaged", "k" + std::to_string(i), 0).ok());
  }
  ASSERT_TRUE(reader_->CommitOffset(queue, 7).ok());
  const std::size_t peer = (Leader() + 1) % 3;
  const LocalBroker broker = cluster_->brokers()[peer];
  ASSERT_TRUE(cluster_->Signal(peer, SIGTERM).ok());  // its state is on its disk
  for (const std::string& damage : {std::string(), std::string(4096, '\0'), std::string("half")}) {
    std::ofstream(broker.store_dir + "/state/CURRENT", std::ios::trunc) << damage;
    ASSERT_TRUE(cluster_->StartBroker(peer).ok());
    ASSERT_TRUE(Eventually([&] { return !cluster_->Running(peer); }, seconds(30)))
        << "it runs with a damaged state of " << damage.size() << " bytes";
    EXPECT_NE(LocalCluster::Tail(broker.log_file).find(broker.store_dir + "/state"),
              std::string::npos)
        << LocalCluster::Tail(broker.log_file);
  }
  // As the operations page says.
  std::filesystem::remove_all(broker.store_dir);
  ASSERT_TRUE(cluster_->StartBroker(peer).ok());
  ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());
  const std::vector<std::string> move = {"transferLeader", "-n", cluster_->namesrv_address(),
                                         "--to", broker.peer_id};
  ASSERT_TRUE(Eventually([&] { return Admin(move) == 0; }, seconds(60))) << AdminOutput();
  ASSERT_EQ(Leader(), peer);
  const Result<std::int64_t> offset = reader_->FetchOffset(queue);
  ASSERT_TRUE(offset.ok()) << offset.status();
  EXPECT_EQ(*offset, 7);
}

TEST_F(State, APeerThatWasJustStartedListsTheMembersThatTheOthersKnow) {
  StartCluster();
  CreateTopic("Members", 4);
  std::vector<std::unique_ptr<client::PushConsumer>> consumers;
  for (int i = 0; i < 3; ++i) {
    client::PushConsumerOptions options;
    options.client = ClientOf("member" + std::to_string(i));
    options.group = "g_members";
    consumers.push_back(std::make_unique<client::PushConsumer>(options));
    ASSERT_TRUE(consumers.back()->Subscribe("Members").ok());
    consumers.back()->SetListener(
        client::MessageListenerConcurrently([](const auto&, client::ConcurrentContext*) {
          return client::ConcurrentResult::kSuccess;
        }));
    ASSERT_TRUE(consumers.back()->Start().ok());
  }
  const auto members = [&](std::size_t peer) {
    remoting::ConsumerGroupRequest header;
    header.consumer_group = "g_members";
    remoting::Command request = remoting::Command::Request(remoting::kGetConsumerListByGroup);
    header.Encode(&request.ext);
    const auto answer = Ask(peer, request);
    // Nobody takes queues by an error, or while nobody listens.
    if (!answer.ok() || answer->code != 0) return std::optional<std::size_t>();
    return std::optional(remoting::ConsumerIdList::Decode(answer->body)->ids.size());
  };
  for (std::size_t peer = 0; peer < 3; ++peer) {
    ASSERT_TRUE(Eventually([&] { return members(peer) == 3u; }, seconds(40))) << peer;
  }
  const std::size_t follower = (Leader() + 1) % 3;
  ASSERT_TRUE(cluster_->Signal(follower, SIGKILL).ok());
  ASSERT_TRUE(cluster_->StartBroker(follower).ok());
  ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());
  std::set<std::size_t> answers;
  const auto ask = [&] {
    const auto count = members(follower);
    if (count) answers.insert(*count);
    return count.has_value();
  };
  ASSERT_TRUE(Eventually(ask, seconds(40)));
  Eventually([&] { return ask() && false; }, seconds(2));
  EXPECT_EQ(answers, (std::set<std::size_t>{3})) << "a short list makes the others take queues";
  for (auto& consumer : consumers) consumer->Shutdown();
}

TEST_F(State, AFollowerServesWhatIsCommittedAndNothingElse) {
  StartCluster({{"slaveReadEnable", "true"}});
  CreateTopic("Reads", 2);
  OrderedLoad load(ClientOf("producer"), "Reads", 4);
  ASSERT_TRUE(load.Start().ok());
  load.Send(400);
  load.Drain();
  ASSERT_EQ(load.acked_count(), 400u);
  const std::size_t leader = Leader();
  for (std::size_t peer = 0; peer < 3; ++peer) {
    if (peer == leader) continue;
    CheckStored(&load, "Reads", cluster_->brokers()[peer].client_address);
  }
}

TEST_F(State, AFollowerAsksTheLeaderForAnOrderlyGroupAndLeftAloneNeverTellsLessThanItHas) {
  StartCluster({{"slaveReadEnable", "true"}});
  CreateTopic("Alone", 1);
  const std::size_t leader = Leader();
  const std::size_t alone = (leader + 1) % 3;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Send(leader, "Alone", "m" + std::to_string(i), 0).ok());
  }
  ASSERT_TRUE(Send(leader, "%RETRY%g_orderly", "x", 0).ok());  // makes the group
  ASSERT_TRUE(Lock(leader, "g_orderly", "Alone"));
  ASSERT_TRUE(Send(leader, "Alone", "behind the lock", 0).ok());
  const auto code = [&](const std::string& group) {
    const auto answer = Pull(alone, group, "Alone", 0);
    return answer.ok() ? answer->code : -1;
  };
  ASSERT_TRUE(Eventually([&] { return code("g_orderly") == 0; }, seconds(30)));
  // What stands in front of that message in the log is applied here too.
  ASSERT_TRUE(Eventually(
      [&] {
        const auto answer = Pull(alone, "g_any", "Alone", 0);
        if (!answer.ok() || answer->code != 0) return false;
        return remoting::PullMessageResponse::Decode(answer->ext)->max_offset == 6;
      },
      seconds(30)));
  // The leader last: two could elect another one.
  for (const std::size_t peer : {(leader + 2) % 3, leader}) {
    ASSERT_TRUE(cluster_->Signal(peer, SIGKILL).ok());
  }
  EXPECT_EQ(code("g_any"), 0) << "what is committed stands";
  const auto answer = Pull(alone, "g_orderly", "Alone", 0);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->code, remoting::kPullNotFound) << answer->remark;
  const auto said = remoting::PullMessageResponse::Decode(answer->ext);
  EXPECT_EQ(said->next_begin_offset, 0);
  EXPECT_EQ(said->max_offset, 6);
}

}  // namespace
}  // namespace triad
