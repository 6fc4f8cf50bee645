// A topic of two broker groups: order=strict keeps it in one (operations.md, "Topics ordered by
// key"). The name server and the other group are a small server here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "broker/service/other_groups.h"
#include "remoting/server.h"
#include "tests/unit/broker/admin_fixture.h"

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
        answer.code = queues ? remoting::kSuccess : remoting::kTopicNotExist;
        if (queues) answer.body = Route();
      } else if (command.code == remoting::kGetTopicConfig) {
        if (silent) return;
        answer.code = attributes ? remoting::kSuccess : remoting::kRequestCodeNotSupported;
        if (attributes) answer.body = Config();
      }
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

 private:
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
        groups_("b0", broker_.context().registration, *client_) {
    broker_.context().registration.SetNameServers(neighbour_.address());
    broker_.context().other_groups = &groups_;
  }
  ~OtherGroupsTest() override { client_->Stop(); }

  bool Exists() { return broker_.state().FindTopic(Topic("T")).has_value(); }

  using Attributes = std::map<std::string, std::string>;
  const Attributes strict_ = {{"order", "strict"}};
  Neighbour neighbour_;
  std::unique_ptr<remoting::Client> client_;
  OtherGroups groups_;
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

}  // namespace
}  // namespace triad::broker
