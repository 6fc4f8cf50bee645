// Changes of the configuration: what is of the group, what is of one peer, and what the answer says
// (admin.md §2.7; cases.md CFG-9, NS-4).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "broker/service/dynamic_config.h"
#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "remoting/server.h"
#include "tests/unit/broker/one_broker.h"
#include "tests/unit/log_lines.h"

namespace triad::broker {
namespace {

using remoting::Command;
using testing::HasSubstr;

constexpr char kText[] =
    "# a comment\nbrokerName=b0\n\nbrokerIP1 = 127.0.0.1\n# the flush\n"
    "flushDiskType = ASYNC_FLUSH\noffsetCommitIntervalMs=10\n";

// A file and what it says.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text = kText) { Write(text); }
  void Write(const std::string& text) { std::ofstream(path()) << text; }
  std::string path() const { return dir_.path() + "/broker.conf"; }
  std::string Text() const { return ReadFile(PosixFileSystem(), path()).value(); }
  std::size_t files() const {
    const std::filesystem::directory_iterator all(dir_.path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  BrokerConfig Load() const {
    BrokerConfigSource source;
    source.file = path();
    source.text = Text();
    auto loaded = LoadBrokerConfig(source);
    CHECK(loaded.faults.empty()) << loaded.faults[0];
    return loaded.config;
  }

 private:
  StoreTempDir dir_;
};

class DynamicConfigTest : public testing::Test {
 protected:
  Command Update(const std::string& body) {
    return broker_.Ask(remoting::kUpdateBrokerConfig, {}, body);
  }
  std::string Get() { return broker_.Ask(remoting::kGetBrokerConfig, {}).body; }
  std::string Text() const { return file_.Text(); }

  ConfigFile file_;
  OneBroker broker_{file_.Load()};
};

TEST_F(DynamicConfigTest, CFG_9_AnUpdateEditsItsLineAndNothingElse) {
  const Command answer = Update("flushDiskType=SYNC_FLUSH\n");
  ASSERT_EQ(answer.code, 0) << answer.remark;
  EXPECT_THAT(answer.remark, HasSubstr("in force here at the next start: flushDiskType"));
  std::string expected = kText;
  expected.replace(expected.find("flushDiskType = ASYNC_FLUSH"), 27, "flushDiskType=SYNC_FLUSH");
  EXPECT_EQ(Text(), expected);
  EXPECT_THAT(Get(), HasSubstr("flushDiskType=ASYNC_FLUSH\n")) << "what is in force";
  ASSERT_EQ(Update("traceOn=false\n").code, 0);
  EXPECT_EQ(Text(), expected + "traceOn=false\n") << "a new key is one line more";
  EXPECT_EQ(file_.files(), 1u);
}

TEST_F(DynamicConfigTest, WhatMakesThisPeerThisPeerIsFixedInEverySpelling) {
  for (const char* key : {"dLegerPeers", "dLedgerPeers", "dLegerSelfId", "dLedgerSelfId",
                          "dLegerGroup", "dLedgerGroupName", "storePathRootDir"}) {
    const Command answer = Update(std::string(key) + "=n7\n");
    EXPECT_EQ(answer.code, remoting::kNoPermission) << key;
    EXPECT_THAT(answer.remark, HasSubstr(key));
  }
  EXPECT_EQ(Text(), kText);
}

TEST(ConfigBlackList, WhatTheFileListsIsRefusedToo) {
  const std::string text = std::string(kText) + "configBlackList=traceOn; namesrvAddr;\n";
  const ConfigFile file(text);
  OneBroker broker{file.Load()};
  const auto update = [&](const std::string& body) {
    return broker.Ask(remoting::kUpdateBrokerConfig, {}, body);
  };
  for (const char* key : {"traceOn", "namesrvAddr", "configBlackList", "brokerConfigPath"}) {
    const Command answer = update(std::string(key) + "=false\nbrokerPermission=4\n");
    EXPECT_EQ(answer.code, remoting::kNoPermission) << key;
    EXPECT_THAT(answer.remark,
                HasSubstr("Can not update config in black list. " + std::string(key)));
  }
  EXPECT_EQ(broker.state().settings(), Settings());
  EXPECT_EQ(file.Text(), text);
  EXPECT_EQ(update("brokerPermission=4\n").code, 0);
  EXPECT_THAT(broker.Ask(remoting::kGetBrokerConfig, {}).body,
              HasSubstr("configBlackList=traceOn; namesrvAddr;\n"));
}

TEST_F(DynamicConfigTest, TheDelayLevelsThatAGroupWasFoundedWithStay) {
  const Command answer = Update("messageDelayLevel=1s 2s\n");
  EXPECT_EQ(answer.code, remoting::kNoPermission);
  EXPECT_THAT(answer.remark, HasSubstr("founded"));
  EXPECT_EQ(Text(), kText);
}

TEST_F(DynamicConfigTest, KeysOfTheGroupAreInItsStateAndInForceWhenAnswered) {
  EXPECT_EQ(broker_.registrations(), 0);
  const Command answer = Update("brokerPermission= 4 \nautoCreateTopicEnable=FALSE\n");
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.remark, "in force in the group: autoCreateTopicEnable, brokerPermission");
  const Settings expected = {{"autoCreateTopicEnable", "false"}, {"brokerPermission", "4"}};
  EXPECT_EQ(broker_.state().settings(), expected) << "as every peer prints them";
  EXPECT_EQ(broker_.context().config.broker_permission, 4);
  EXPECT_FALSE(broker_.context().config.auto_create_topic);
  EXPECT_THAT(Get(), HasSubstr("brokerPermission=4\n"));
  EXPECT_THAT(Text(), HasSubstr("brokerPermission=4\n"));
  EXPECT_EQ(broker_.registrations(), 1) << "name servers are told of a permission";
  const auto version = [&] {
    return remoting::Json::Parse(*broker_.Ask(remoting::kGetBrokerConfig, {}).ext.Find("version"))
        .value()["counter"]
        .AsInt64();
  };
  EXPECT_EQ(version(), 2);
}

TEST_F(DynamicConfigTest, RetentionIsTheGroupsAndInForceAtOnce) {
  const Command answer = Update("fileReservedTime=24\ndeleteWhen=03;15\n");
  EXPECT_EQ(answer.remark, "in force in the group: deleteWhen, fileReservedTime");
  ASSERT_EQ(broker_.retentions().size(), 1u);
  EXPECT_EQ(broker_.retentions()[0], "24 h at 03;15");
  EXPECT_THAT(Get(), HasSubstr("deleteWhen=03;15\n"));
}

TEST_F(DynamicConfigTest, WhatSettingsAskForIsThereWhenTheyAreAnswered) {
  const auto queues = [&] { return broker_.state().FindTopic(Topic("TBW102"))->write_queues; };
  ASSERT_EQ(queues(), 8);
  ASSERT_FALSE(broker_.state().FindTopic(Topic("RMQ_SYS_TRACE_TOPIC")));
  ASSERT_EQ(Update("traceTopicEnable=true\ndefaultTopicQueueNums=3\n").code, 0);
  EXPECT_EQ(queues(), 3);
  EXPECT_TRUE(broker_.state().FindTopic(Topic("RMQ_SYS_TRACE_TOPIC")));
}

TEST_F(DynamicConfigTest, NS_4_AnotherListOfNameServersIsTakenAtOnce) {
  const Command answer = Update("namesrvAddr=127.0.0.1:1;127.0.0.1:2\n");
  EXPECT_EQ(answer.remark, "in force here: namesrvAddr");
  EXPECT_EQ(broker_.name_servers(), "127.0.0.1:1;127.0.0.1:2");
  EXPECT_THAT(Get(), HasSubstr("namesrvAddr=127.0.0.1:1;127.0.0.1:2\n"));
  EXPECT_EQ(broker_.state().settings(), Settings()) << "it is this peer's";
}

TEST_F(DynamicConfigTest, TheLimitOfFlowControlIsThisPeersAndInForceAtOnce) {
  const Command answer = Update("sendThreadPoolQueueCapacity=77\n");
  EXPECT_EQ(answer.remark, "in force here: sendThreadPoolQueueCapacity");
  EXPECT_EQ(broker_.send_queue(), 77);
  EXPECT_THAT(Get(), HasSubstr("sendThreadPoolQueueCapacity=77\n"));
  EXPECT_THAT(Text(), HasSubstr("sendThreadPoolQueueCapacity=77\n"));
  EXPECT_EQ(broker_.state().settings(), Settings()) << "it is this peer's";
  EXPECT_EQ(Update("sendThreadPoolQueueCapacity=0\n").code, 29);
  EXPECT_EQ(broker_.send_queue(), 77);
}

TEST_F(DynamicConfigTest, TheAnswerSaysWhichIsWhich) {
  const Command answer = Update(
      "traceOn=false\nnamesrvAddr=127.0.0.1:1\nflushDiskType=SYNC_FLUSH\ntransactionTimeOut=1\n");
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.remark,
            "in force in the group: traceOn; in force here: namesrvAddr; in force here at the next "
            "start: flushDiskType; without effect here: transactionTimeOut");
}

TEST_F(DynamicConfigTest, OfARefusedUpdateNothingHappens) {
  struct Case {
    const char* body;
    std::int32_t code;
    const char* remark;
  };
  for (const Case& c : {
           Case{"traceOn=false\nbrokerConfigPath=x\n", 16, "Can not update config in black list."},
           Case{"traceOn=false\ndLegerSelfId=n9\n", 16, "dLegerSelfId"},
           Case{"traceOn=false\nbrokerPermision=4\n", 29,
                "unknown key brokerPermision, did you mean brokerPermission?"},
           Case{"traceOn=false\nbrokerPermission=many\n", 29, "brokerPermission=many"},
           Case{"traceOn=false\nbrokerPermission=99\n", 29, "0 to 15"},
           Case{"traceOn=false\nbrokerRole=SLAVE\n", 29, "SLAVE"},  // no single value's fault
           Case{"traceOn=\\u12\n", 1, "string2Properties error"},
       }) {
    SCOPED_TRACE(c.body);
    const Command answer = Update(c.body);
    EXPECT_EQ(answer.code, c.code);
    EXPECT_THAT(answer.remark, HasSubstr(c.remark));
    EXPECT_EQ(Text(), kText);
    EXPECT_TRUE(broker_.context().config.trace_on);
    EXPECT_EQ(broker_.state().settings(), Settings());
  }
}

TEST_F(DynamicConfigTest, WithoutALeaderNothingIsDoneAndTheAnswerSaysSo) {
  broker_.gate().OnLeaderChange(dledger::LeaderInfo{});
  const Command answer = Update("traceOn=false\nflushDiskType=SYNC_FLUSH\n");
  EXPECT_EQ(answer.code, remoting::kServiceNotAvailable);
  EXPECT_THAT(answer.remark, HasSubstr("no leader of the group could be reached"));
  EXPECT_THAT(answer.remark, HasSubstr("nobody leads"));
  EXPECT_THAT(answer.remark, HasSubstr("the keys of this peer alone were not changed"));
  EXPECT_EQ(Text(), kText);
  EXPECT_TRUE(broker_.context().config.trace_on);
  // This peer's own keys need nobody.
  EXPECT_EQ(Update("flushDiskType=SYNC_FLUSH\n").code, 0);
}

TEST_F(DynamicConfigTest, AFileThatCannotBeWrittenDoesNotStopTheGroup) {
  std::filesystem::remove(file_.path());
  std::filesystem::create_directory(file_.path());
  const Command answer = Update("traceOn=false\n");
  EXPECT_EQ(answer.code, 0);
  EXPECT_THAT(answer.remark, HasSubstr("in force in the group: traceOn; not in the file of this"));
  EXPECT_FALSE(broker_.context().config.trace_on);
  const Command own = Update("traceOn=true\nflushDiskType=SYNC_FLUSH\n");
  EXPECT_NE(own.code, 0) << "what stands nowhere but in the file";
  EXPECT_FALSE(broker_.context().config.trace_on);
}

// A follower and the leader it forwards to, over a socket.
class ForwardedConfig : public testing::Test {
 protected:
  ForwardedConfig() {
    remoting::ServerOptions options;
    options.bind_address = "127.0.0.1";
    options.ports = {0};
    options.threads = 1;
    remoting::ServerHandler handler;
    handler.on_request = [this](const remoting::ConnectionPtr& connection, Command command) {
      leader_.dispatcher().OnRequest(connection, std::move(command));
    };
    server_ = remoting::CreateServer(options, handler);
    CHECK(server_->Start().ok());
    dledger::LeaderInfo info;
    info.term = Term(7);
    info.leader = PeerId("n9");
    info.leader_client_address = "127.0.0.1:" + std::to_string(server_->ports()[0]);
    follower_.gate().OnLeaderChange(info);
  }
  ~ForwardedConfig() override { server_->Stop(std::chrono::milliseconds(100)); }
  // As if the leader's entry had come.
  void ArriveAtFollower(const Settings& settings) {
    StateCommand command;
    command.put_settings = settings;
    follower_.peer().Apply(command);
  }

  ConfigFile leaders_file_;
  ConfigFile followers_file_;
  OneBroker leader_{leaders_file_.Load()};
  OneBroker follower_{followers_file_.Load()};
  std::unique_ptr<remoting::Server> server_;
};

TEST_F(ForwardedConfig, TheLeaderGetsTheGroupsKeysAndTheFollowerKeepsItsOwn) {
  ArriveAtFollower({{"traceOn", "false"}});
  const Command answer =
      follower_.Ask(remoting::kUpdateBrokerConfig, {}, "traceOn=false\nflushDiskType=SYNC_FLUSH\n");
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.remark,
            "in force in the group: traceOn; in force here at the next start: flushDiskType");
  EXPECT_EQ(leader_.state().settings(), (Settings{{"traceOn", "false"}}));
  EXPECT_THAT(leaders_file_.Text(), HasSubstr("traceOn=false\n"));
  EXPECT_THAT(leaders_file_.Text(), HasSubstr("flushDiskType = ASYNC_FLUSH\n"));
  EXPECT_THAT(followers_file_.Text(), HasSubstr("traceOn=false\n"));
  EXPECT_THAT(followers_file_.Text(), HasSubstr("flushDiskType=SYNC_FLUSH\n"));
}

TEST_F(ForwardedConfig, AFollowerThatHasNotGotItSaysSo) {
  const Command answer = follower_.Ask(remoting::kUpdateBrokerConfig, {}, "traceOn=false\n");
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.remark,
            "in force in the group: traceOn; not seen in force at the peer that was asked");
  EXPECT_FALSE(leader_.context().config.trace_on);
  EXPECT_TRUE(follower_.context().config.trace_on);
}

TEST_F(ForwardedConfig, AFollowerRefusesABadPartBeforeTheLeaderHearsOfIt) {
  const Command answer =
      follower_.Ask(remoting::kUpdateBrokerConfig, {}, "traceOn=false\nflushDiskType=SOMETIMES\n");
  EXPECT_EQ(answer.code, remoting::kInvalidParameter);
  EXPECT_EQ(leader_.state().settings(), Settings());
}

// ---- a peer that is told by the group -----------------------------------------------------------

class ToldByTheGroup : public testing::Test {
 protected:
  // As a start with this file.
  void Start(const std::string& text) {
    file_.Write(text);
    config_ = file_.Load();
    told_ = std::make_unique<DynamicConfig>(
        &config_, PosixFileSystem(),
        DynamicConfig::Effects{
            [] {},
            [](const std::string&) {},
            [this](const BrokerConfig& copy) { hours_.push_back(copy.file_reserved_hours); },
            {}});
  }

  ConfigFile file_;
  BrokerConfig config_;
  std::unique_ptr<DynamicConfig> told_;
  std::vector<int> hours_;
};

TEST_F(ToldByTheGroup, TheGroupsValueWinsAtAStartAndTheWarningNamesBoth) {
  Start("brokerName=b0\nbrokerPermission=2\ntraceOn=false\n");
  const test::LogLines warnings(google::GLOG_WARNING);
  told_->StartWith({{"brokerPermission", "4"}, {"traceOn", "false"}, {"fileReservedTime", "9"}});
  EXPECT_EQ(config_.broker_permission, 4);
  EXPECT_EQ(hours_, std::vector<int>{9});
  ASSERT_EQ(warnings.lines().size(), 1u) << "the others agree, or say nothing";
  const std::string line = warnings.lines()[0];
  EXPECT_THAT(line, HasSubstr(file_.path() + ":2: brokerPermission=2"));
  EXPECT_THAT(line, HasSubstr("told brokerPermission=4"));
  EXPECT_THAT(line, HasSubstr("updateBrokerConfig -n NAMESRV -c DefaultCluster -k "
                              "brokerPermission -v 2"));
  EXPECT_FALSE(told_->has_unwritten()) << "the file is the operator's";
}

TEST_F(ToldByTheGroup, AChangeGoesIntoTheFileAlsoWhenItsValueIsInForceAlready) {
  Start("brokerName=b0\nbrokerPermission=2\n");
  told_->StartWith({{"brokerPermission", "4"}});
  told_->Follow({{"brokerPermission", "4"}});
  ASSERT_TRUE(told_->has_unwritten());
  ASSERT_TRUE(told_->WriteGroup().ok());
  EXPECT_FALSE(told_->has_unwritten());
  EXPECT_EQ(file_.Text(), "brokerName=b0\nbrokerPermission=4\n");
}

TEST_F(ToldByTheGroup, WhatThisVersionCannotTakeIsLeftAlone) {
  Start("brokerName=b0\n");
  const test::LogLines errors(google::GLOG_ERROR);
  told_->Follow({{"ofALaterVersion", "1"}, {"brokerPermission", "99"}, {"traceOn", "false"}});
  EXPECT_EQ(config_.broker_permission, 6);
  EXPECT_FALSE(config_.trace_on);
  ASSERT_EQ(errors.lines().size(), 1u);
  EXPECT_THAT(errors.lines()[0], HasSubstr("brokerPermission=99"));
  ASSERT_TRUE(told_->WriteGroup().ok());
  EXPECT_EQ(file_.Text(), "brokerName=b0\ntraceOn=false\n");
}

TEST_F(ToldByTheGroup, WithoutAFileNothingIsWritten) {
  DynamicConfig none(&config_, PosixFileSystem(), {[] {}, {}, {}, {}});
  none.Follow({{"brokerPermission", "4"}});
  EXPECT_FALSE(none.has_unwritten());
  EXPECT_TRUE(none.WriteGroup().ok());
  EXPECT_EQ(config_.broker_permission, 4);
}

}  // namespace
}  // namespace triad::broker
