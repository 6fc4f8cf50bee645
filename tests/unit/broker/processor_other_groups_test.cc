// A topic of two broker groups: order=strict keeps it in one (operations.md, "Topics ordered by
// key"). The name server and the other group are a small server here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "broker/processor/response.h"
#include "broker/processor/send_processor.h"
#include "broker/service/other_groups.h"
#include "broker/service/strict_topics.h"
#include "remoting/server.h"
#include "tests/unit/broker/admin_fixture.h"
#include "tests/unit/log_lines.h"

namespace triad::broker {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

// A name server and, behind its route, the broker group "b1" with the topic T.
class Neighbour {
 public:
  Neighbour() {
    remoting::ServerOptions options;
    options.bind_address = "127.0.0.1";
    options.ports = {0};
    options.threads = 1;
    remoting::ServerHandler handler;
    handler.on_request = [this](const remoting::ConnectionPtr& connection, const Command& command) {
      Command answer = Command::ResponseTo(command, remoting::kSuccess);
      if (command.code == remoting::kGetRouteInfoByTopic) {
        ++routes_asked;
        if (before_route) before_route();
        answer.code = queues ? remoting::kSuccess : remoting::kTopicNotExist;
        if (queues) answer.body = Route();
      } else if (command.code == remoting::kGetTopicConfig) {
        if (silent) return;
        answer.code = attributes ? remoting::kSuccess : remoting::kRequestCodeNotSupported;
        if (attributes) answer.body = Config();
      }
      if (command.code == remoting::kGetRouteInfoByTopic && Hold(connection, answer)) return;
      connection->Send(answer);
    };
    server_ = remoting::CreateServer(options, handler);
    const Status started = server_->Start();
    CHECK(started.ok()) << started;
  }
  ~Neighbour() { server_->Stop(milliseconds(100)); }

  std::string address() const { return "127.0.0.1:" + std::to_string(server_->ports()[0]); }

  // Of the topic there, set between requests; no queues: it does not exist.
  std::optional<remoting::QueueData> queues;
  std::optional<std::map<std::string, std::string>> attributes;  // nothing: does not know code 351
  std::atomic<bool> silent = false;  // its name server answers, the group does not
  std::atomic<int> routes_asked = 0;
  std::function<void()> before_route;  // runs when a route was asked for

  // From now on answers about routes wait for Release.
  void HoldRoutes() {
    const std::lock_guard lock(mutex_);
    holds_ = true;
  }
  bool WaitForHeld(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return held_.size() >= count; });
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    holds_ = false;
    for (const auto& [connection, answer] : held_) connection->Send(answer);
    held_.clear();
  }

 private:
  bool Hold(const remoting::ConnectionPtr& connection, const Command& answer) {
    const std::lock_guard lock(mutex_);
    if (holds_) held_.emplace_back(connection, answer);
    changed_.notify_all();
    return holds_;
  }
  std::string Route() const {
    remoting::TopicRouteData route;
    route.queue_datas = {*queues};
    route.broker_datas.emplace_back().broker_name = queues->broker_name;
    route.broker_datas[0].broker_addrs = {{0, address()}};
    return route.Encode();
  }
  std::string Config() const {
    remoting::TopicConfigBody config;
    config.topic_name = "T";
    config.attributes = *attributes;
    return config.Encode();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_ = false;
  std::vector<std::pair<remoting::ConnectionPtr, Command>> held_;
  std::unique_ptr<remoting::Server> server_;
};

remoting::QueueData QueuesIn(const std::string& group, std::int32_t write, std::int32_t perm) {
  remoting::QueueData queues;
  queues.broker_name = group;
  queues.read_queue_nums = 4;
  queues.write_queue_nums = write;
  queues.perm = perm;
  return queues;
}

class OtherGroupsTest : public AdminTest {
 protected:
  OtherGroupsTest()
      : client_(remoting::CreateClient({}, {})),
        groups_("b0", broker_.context().registration, *client_),
        send_dispatcher_(SystemClock(), broker_.gate()) {
    broker_.context().registration.SetNameServers(neighbour_.address());
    broker_.context().other_groups = &groups_;
    broker_.context().store_host = ParseHostPort("127.0.0.1:10911").value();
    sends_ = std::make_unique<SendProcessor>(broker_.context());
    sends_->Register(&send_dispatcher_);
  }
  ~OtherGroupsTest() override { client_->Stop(); }

  bool Exists() { return broker_.state().FindTopic(Topic("T")).has_value(); }
  void StartSend(const std::shared_ptr<RecordingConnection>& connection, const std::string& topic,
                 std::int32_t reconsume_times = 0) {
    remoting::SendMessageRequest header;
    header.producer_group = "p";
    header.topic = topic;
    header.default_topic = "TBW102";
    header.default_topic_queue_nums = 4;
    header.reconsume_times = reconsume_times;
    Command send = Command::Request(remoting::kSendMessageV2);
    header.EncodeV2(&send.ext);
    send.body = "body";
    send_dispatcher_.OnRequest(connection, std::move(send));
  }
  Command SendTo(const std::string& topic, std::int32_t reconsume_times = 0) {
    const auto connection = broker_.Connect();
    StartSend(connection, topic, reconsume_times);
    return connection->Next();
  }

  using Attributes = std::map<std::string, std::string>;
  const Attributes strict_ = {{"order", "strict"}};
  Neighbour neighbour_;
  std::unique_ptr<remoting::Client> client_;
  OtherGroups groups_;
  Dispatcher send_dispatcher_;
  std::unique_ptr<SendProcessor> sends_;
};

TEST_F(OtherGroupsTest, AStrictTopicIsNotMadeWhereAnotherGroupTakesItsMessages) {
  for (const std::optional<Attributes>& there : {std::optional<Attributes>(), {Attributes{}}}) {
    neighbour_.queues = QueuesIn("b1", 4, 6);
    neighbour_.attributes = there;
    const Command refused = SetT("+order=strict");
    EXPECT_EQ(refused.code, 29);
    EXPECT_THAT(refused.remark,
                AllOf(HasSubstr("topic[T]"), HasSubstr("group b1"), HasSubstr("-b, not -c")));
    EXPECT_FALSE(Exists());
  }
}

TEST_F(OtherGroupsTest, NoTopicIsMadeBesideAStrictOneOfAnotherGroup) {
  neighbour_.queues = QueuesIn("b1", 4, 6);
  neighbour_.attributes = strict_;
  const Command refused = SetT("");
  EXPECT_EQ(refused.code, 29);
  EXPECT_THAT(refused.remark, AllOf(HasSubstr("group b1"), HasSubstr("has there")));
  EXPECT_FALSE(Exists());
  // In a list of topics as well, and then none of them is made.
  remoting::TopicConfigList list;
  for (const char* name : {"S", "T"}) list.topics.emplace_back().topic_name = name;
  EXPECT_EQ(broker_.Ask(remoting::kUpdateAndCreateTopicList, {}, list.Encode()).code, 29);
  EXPECT_FALSE(broker_.state().FindTopic(Topic("S")).has_value());
}

TEST_F(OtherGroupsTest, PlainTopicsMayBeInManyGroups) {
  neighbour_.queues = QueuesIn("b1", 4, 6);
  for (const std::optional<Attributes>& there : {std::optional<Attributes>(), {Attributes{}}}) {
    neighbour_.attributes = there;
    EXPECT_EQ(SetT("").code, 0);
    EXPECT_TRUE(Exists());
    EXPECT_EQ(broker_.Ask(remoting::kDeleteTopicInBroker, {{"topic", "T"}}).code, 0);
  }
}

TEST_F(OtherGroupsTest, AHolderThatDoesNotAnswerMayBeStrict) {
  neighbour_.queues = QueuesIn("b1", 4, 6);
  neighbour_.silent = true;
  const Command refused = SetT("");
  EXPECT_EQ(refused.code, 14);
  EXPECT_THAT(refused.remark, AllOf(HasSubstr("group b1"), HasSubstr("try again")));
  EXPECT_FALSE(Exists());
}

TEST_F(OtherGroupsTest, WhoTakesNoMessagesAnyMoreStandsAgainstNothing) {
  neighbour_.attributes = strict_;
  for (const remoting::QueueData& there :
       {QueuesIn("b1", 4, 4), QueuesIn("b1", 0, 6), QueuesIn("b0", 4, 6)}) {
    neighbour_.queues = there;
    EXPECT_EQ(SetT("+order=strict").code, 0);
    EXPECT_EQ(broker_.Ask(remoting::kDeleteTopicInBroker, {{"topic", "T"}}).code, 0);
  }
}

TEST_F(OtherGroupsTest, BecomingStrictOrTakingMessagesAgainIsChecked) {
  neighbour_.queues = QueuesIn("b1", 4, 6);
  neighbour_.attributes = Attributes{};
  EXPECT_EQ(SetT("").code, 0);
  EXPECT_EQ(SetT("+order=strict").code, 29);
  neighbour_.attributes = strict_;
  EXPECT_EQ(SetT("", "2").code, 0);  // it was there before; nothing about the keys is new
  EXPECT_EQ(SetT("", "0").code, 0);
  EXPECT_EQ(SetT("", "2").code, 29);
}

TEST_F(OtherGroupsTest, OnlyAStrictTopicNeedsTheAnswerOfAtLeastOneNameServer) {
  broker_.context().registration.SetNameServers("127.0.0.1:1; 127.0.0.1:2");
  const Command refused = SetT("+order=strict");
  EXPECT_EQ(refused.code, 14);
  EXPECT_THAT(refused.remark, AllOf(HasSubstr("no name server answered"), HasSubstr("try again")));
  EXPECT_EQ(SetT("").code, 0);
  broker_.context().registration.SetNameServers("127.0.0.1:1;" + neighbour_.address());
  EXPECT_EQ(SetT("+order=strict").code, 0);
}

TEST_F(OtherGroupsTest, ALongListIsNotHeldUpByDeadNameServers) {
  neighbour_.queues.reset();
  remoting::TopicConfigList list;
  for (int i = 0; i < 50; ++i) {
    list.topics.emplace_back().topic_name = "S" + std::to_string(i);
  }
  EXPECT_EQ(broker_.Ask(remoting::kUpdateAndCreateTopicList, {}, list.Encode()).code, 0);
  EXPECT_EQ(neighbour_.routes_asked, 50);
  EXPECT_EQ(broker_.Ask(remoting::kUpdateAndCreateTopicList, {}, list.Encode()).code, 0);
  EXPECT_EQ(neighbour_.routes_asked, 50);  // nothing is new
  broker_.context().registration.SetNameServers("127.0.0.1:1");
  for (auto& topic : list.topics) topic.topic_name += "x";
  EXPECT_EQ(broker_.Ask(remoting::kUpdateAndCreateTopicList, {}, list.Encode()).code, 0);
}

TEST_F(OtherGroupsTest, AListAsksForAllItsTopicsAtTheSameTime) {
  neighbour_.HoldRoutes();
  remoting::TopicConfigList list;
  for (const char* name : {"S1", "S2", "S3"}) list.topics.emplace_back().topic_name = name;
  const auto connection = broker_.Connect();
  broker_.Start(connection, remoting::kUpdateAndCreateTopicList, {}, list.Encode());
  EXPECT_TRUE(neighbour_.WaitForHeld(3));
  neighbour_.Release();
  EXPECT_EQ(connection->Next().code, 0);
}

TEST_F(OtherGroupsTest, ALongerListIsAskedForInParts) {
  remoting::TopicConfigList list;
  for (std::size_t i = 0; i < OtherGroups::kTopicsMax + 1; ++i) {
    list.topics.emplace_back().topic_name = "S" + std::to_string(i);
  }
  list.topics.front().attributes = {{"+order", "strict"}};  // the last to be asked about
  neighbour_.before_route = [this] {
    if (neighbour_.routes_asked > static_cast<int>(OtherGroups::kTopicsMax)) {
      neighbour_.queues = QueuesIn("b1", 4, 6);
    }
  };
  const Command refused = broker_.Ask(remoting::kUpdateAndCreateTopicList, {}, list.Encode());
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.remark, HasSubstr("topic[S0]"));
  EXPECT_FALSE(broker_.state().FindTopic(Topic("S1")).has_value());
}

TEST_F(OtherGroupsTest, AnUpdateStartsAgainWhenItsTopicWasDeletedWhileOthersWereAsked) {
  ASSERT_EQ(SetT("+message.type=FIFO", "0").code, 0);
  neighbour_.routes_asked = 0;
  neighbour_.before_route = [this] {
    StateCommand command;
    if (Exists()) command.delete_topics.emplace_back("T");
    if (!command.empty()) broker_.peer().Apply(std::move(command));
  };
  EXPECT_EQ(SetT("", "2").code, 0);
  EXPECT_EQ(neighbour_.routes_asked, 2);  // for the topic that was, and for the new one
  const auto topic = broker_.state().FindTopic(Topic("T"));
  ASSERT_TRUE(topic.has_value());
  EXPECT_TRUE(topic->attributes.empty()) << "those of the one that was deleted";
}

TEST_F(OtherGroupsTest, ADeleteWaitsForTheUpdateInFrontOfIt) {
  ASSERT_EQ(SetT("", "0").code, 0);
  neighbour_.HoldRoutes();
  const auto update = broker_.Connect();
  broker_.Start(update, remoting::kUpdateAndCreateTopic,
                {{"topic", "T"},
                 {"defaultTopic", "TBW102"},
                 {"readQueueNums", "2"},
                 {"writeQueueNums", "2"},
                 {"perm", "6"},
                 {"topicFilterType", "SINGLE_TAG"},
                 {"order", "false"}});
  EXPECT_TRUE(neighbour_.WaitForHeld(1));
  const auto deletion = broker_.Connect();
  broker_.Start(deletion, remoting::kDeleteTopicInBroker, {{"topic", "T"}});
  neighbour_.Release();
  EXPECT_EQ(update->Next().code, 0);
  EXPECT_EQ(deletion->Next().code, 0);
  EXPECT_FALSE(Exists());
}

TEST_F(OtherGroupsTest, WhoWaitedTooLongBehindOthersIsToldSoAndHoldsUpNobody) {
  neighbour_.HoldRoutes();  // each question costs its whole budget
  constexpr int kMany = 10;
  static_assert(kMany * OtherGroups::kAskBudget > kBudget + OtherGroups::kAskBudget);
  std::vector<std::shared_ptr<RecordingConnection>> updates;
  for (int i = 0; i < kMany; ++i) {
    updates.push_back(broker_.Connect());
    broker_.Start(updates.back(), remoting::kUpdateAndCreateTopic,
                  {{"topic", "T" + std::to_string(i)},
                   {"defaultTopic", "TBW102"},
                   {"readQueueNums", "1"},
                   {"writeQueueNums", "1"},
                   {"perm", "6"},
                   {"topicFilterType", "SINGLE_TAG"},
                   {"order", "false"}});
  }
  EXPECT_EQ(updates.front()->Next().code, 0);
  Command last;
  for (int i = 1; i < kMany; ++i) last = updates[static_cast<std::size_t>(i)]->Next();
  EXPECT_EQ(last.code, 14);
  EXPECT_THAT(last.remark, HasSubstr("took too long"));
  EXPECT_LT(neighbour_.routes_asked, kMany);
  neighbour_.Release();
  EXPECT_EQ(SetT("").code, 0) << "nobody waits any more";
}

TEST_F(OtherGroupsTest, MoreThan256WaitingChangesAreRefusedAndTheOthersGoOn) {
  neighbour_.HoldRoutes();
  const auto update = broker_.Connect();
  broker_.Start(update, remoting::kUpdateAndCreateTopic,
                {{"topic", "T"},
                 {"defaultTopic", "TBW102"},
                 {"readQueueNums", "1"},
                 {"writeQueueNums", "1"},
                 {"perm", "6"},
                 {"topicFilterType", "SINGLE_TAG"},
                 {"order", "false"}});
  EXPECT_TRUE(neighbour_.WaitForHeld(1));
  std::vector<std::shared_ptr<RecordingConnection>> deletions;
  for (int i = 0; i < 256; ++i) {
    deletions.push_back(broker_.Connect());
    broker_.Start(deletions.back(), remoting::kDeleteTopicInBroker, {{"topic", "T"}});
  }
  const Command refused = deletions.back()->Next();
  EXPECT_EQ(refused.code, remoting::kSystemBusy);
  EXPECT_THAT(refused.remark, HasSubstr("too many changes of topics"));
  deletions.pop_back();
  neighbour_.Release();
  EXPECT_EQ(update->Next().code, 0);
  for (const auto& deletion : deletions) EXPECT_EQ(deletion->Next().code, 0);
  EXPECT_FALSE(Exists());
}

TEST_F(OtherGroupsTest, ASendMakesNoTopicBesideAStrictOneOfAnotherGroup) {
  neighbour_.queues = QueuesIn("b1", 4, 6);
  neighbour_.attributes = strict_;
  const Command refused = SendTo("T");
  EXPECT_EQ(refused.code, 29);
  EXPECT_EQ(refused.remark, SetT("").remark);
  EXPECT_FALSE(Exists());
  neighbour_.silent = true;
  const Command unknown = SendTo("T");
  EXPECT_EQ(unknown.code, 14);
  EXPECT_EQ(unknown.remark, SetT("").remark);
  EXPECT_FALSE(Exists());
  neighbour_.silent = false;
  neighbour_.attributes = Attributes{};  // plain in both
  EXPECT_EQ(SendTo("T").code, 0);
  EXPECT_TRUE(Exists());
  neighbour_.routes_asked = 0;
  neighbour_.attributes = strict_;
  EXPECT_EQ(SendTo("T").code, 0);  // it was there before
  EXPECT_EQ(neighbour_.routes_asked, 0);
}

TEST_F(OtherGroupsTest, ASendMakesItsTopicWhenNoNameServerAnswers) {
  broker_.context().registration.SetNameServers("127.0.0.1:1; 127.0.0.1:2");
  EXPECT_EQ(SendTo("T").code, 0);
  EXPECT_TRUE(Exists());
}

TEST_F(OtherGroupsTest, NobodyIsAskedAboutTopicsOfTheSystem) {
  neighbour_.queues = QueuesIn("b1", 4, 6);
  neighbour_.attributes = strict_;
  EXPECT_EQ(SendTo("%RETRY%g").code, 0);
  EXPECT_EQ(SendTo("%RETRY%g", 99).code, 0);  // a dead letter
  EXPECT_TRUE(broker_.state().FindTopic(Topic("%DLQ%g")).has_value());
  EXPECT_EQ(SendTo("%DLQ%other").code, 0);
  EXPECT_EQ(SendTo("rmq_sys_SYNC_BROKER_MEMBER_b0").code, 0);
  EXPECT_EQ(neighbour_.routes_asked, 0);
}

TEST_F(OtherGroupsTest, SendsThatComeMeanwhileShareOneQuestion) {
  neighbour_.HoldRoutes();
  std::vector<std::shared_ptr<RecordingConnection>> senders;
  for (int i = 0; i < 10; ++i) {
    senders.push_back(broker_.Connect());
    StartSend(senders.back(), "T");  // returns while the answer is not there
  }
  EXPECT_TRUE(neighbour_.WaitForHeld(1));
  neighbour_.Release();
  for (const auto& sender : senders) EXPECT_EQ(sender->Next().code, 0);
  EXPECT_EQ(neighbour_.routes_asked, 1);
}

TEST_F(OtherGroupsTest, AStrictTopicThatAnotherGroupTakesInNeverthelessIsSaidOnce) {
  ASSERT_EQ(SetT("+order=strict").code, 0);
  CreateTopic("Plain", 1);
  Counters counters;
  StrictWatch watch("b0", broker_.state(), groups_, counters);
  // Looks twice.
  const auto finds = [&](std::int64_t split) {
    const TimePoint deadline = SystemClock().MonoNow() + kPatience;
    for (int i = 0; i < 2; ++i) {
      watch.Look();
      while (watch.looking() && SystemClock().MonoNow() < deadline) std::this_thread::yield();
    }
    return !watch.looking() && counters.split_topics == split;
  };
  const test::LogLines errors(google::GLOG_ERROR);
  EXPECT_TRUE(finds(0));
  EXPECT_TRUE(errors.lines().empty());
  neighbour_.attributes = Attributes{};
  neighbour_.queues = QueuesIn("b1", 4, 6);
  EXPECT_TRUE(finds(1));
  EXPECT_THAT(errors.lines(), testing::ElementsAre(
                                  AllOf(HasSubstr("topic T "), HasSubstr("group b0"),
                                        HasSubstr("group b1"), HasSubstr("updateTopicPerm -p 4"))));
  neighbour_.queues = QueuesIn("b1", 4, 4);  // as the line says
  EXPECT_TRUE(finds(0));
  neighbour_.queues = QueuesIn("b1", 4, 6);
  EXPECT_TRUE(finds(1));
  EXPECT_EQ(errors.lines().size(), 2u);
  watch.Forget();
  EXPECT_EQ(counters.split_topics, 0);
  EXPECT_TRUE(finds(1));
  ASSERT_EQ(SetT("-order").code, 0);
  EXPECT_TRUE(finds(0));
  EXPECT_EQ(neighbour_.routes_asked, 12) << "two creations, and a strict topic in each look";
}

}  // namespace
}  // namespace triad::broker
