// Every request code of wire.md §3.1 and admin.md §2.4, as commands.

#include "nameserver/request_processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/java_crc32.h"
#include "remoting/codes.h"
#include "remoting/headers.h"
#include "temp_dir.h"
#include "tests/unit/remoting/hex_file.h"
#include "tests/unit/required_fields.h"

namespace triad::nameserver {
namespace {

using remoting::Command;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Fields = std::vector<std::pair<std::string, std::string>>;

constexpr TimePoint kStart = TimePoint(std::chrono::hours(1));
constexpr ConnectionId kConnection = 7;

class RequestProcessorTest : public testing::Test {
 protected:
  RequestProcessorTest() { Restart(); }

  void Restart() {
    config_.kv_config_path = dir_.Path("kv.json");
    config_.config_store_path = dir_.Path("namesrv.conf");
    processor_ = std::make_unique<RequestProcessor>(config_, PosixFileSystem(), kStart);
    ASSERT_TRUE(processor_->Load().ok());
  }

  Command Ask(std::int32_t code, const Fields& fields, std::string body = {},
              TimePoint now = kStart) {
    Command request = Command::Request(code);
    request.opaque = 42;
    request.version = version_;
    for (const auto& [key, value] : fields) request.ext.Set(key, value);
    request.body = std::move(body);
    Command response = processor_->Process(request, kConnection, now);
    EXPECT_TRUE(response.is_response());
    EXPECT_EQ(response.opaque, 42);
    return response;
  }

  static std::string Body(const remoting::DataVersion& version = {1, 1, 1000}) {
    remoting::RegisterBrokerBody body;
    body.topics.data_version = version;
    for (const char* topic : {"T1", "T2"}) {
      remoting::TopicConfigBody config;
      config.topic_name = topic;
      config.read_queue_nums = 4;
      config.write_queue_nums = 4;
      body.topics.topic_config_table[topic] = config;
    }
    return body.Encode();
  }
  static Fields BrokerFields(const std::string& id, const std::string& address) {
    return {{"brokerName", "broker-a"}, {"brokerAddr", address},
            {"clusterName", "C"},       {"haServerAddr", "h:9"},
            {"brokerId", id},           {"enableActingMaster", "false"},
            {"compressed", "false"},    {"heartbeatTimeoutMillis", "10000"}};
  }
  Command Register(const std::string& id = "0", const std::string& address = "10.0.0.1:10911") {
    return Ask(remoting::kRegisterBroker, BrokerFields(id, address), Body());
  }
  Command Route(const std::string& topic = "T1") {
    return Ask(remoting::kGetRouteInfoByTopic, {{"topic", topic}});
  }

  TempDir dir_;
  NameServerConfig config_;
  std::int32_t version_ = remoting::kServerVersion;
  std::unique_ptr<RequestProcessor> processor_;
};

TEST_F(RequestProcessorTest, AnUnknownCodeIsNotSupportedInTheDocumentedWords) {
  const Command response = Ask(9999, {});
  EXPECT_EQ(response.code, remoting::kRequestCodeNotSupported);
  EXPECT_EQ(response.remark, " request type 9999 not supported");
}

TEST_F(RequestProcessorTest, RegistersABrokerAndGivesItsRoute) {
  EXPECT_EQ(Register().code, 0);
  const Command response = Route();
  EXPECT_EQ(response.code, 0);
  EXPECT_EQ(
      response.body,
      "{\"brokerDatas\":[{\"brokerAddrs\":{\"0\":\"10.0.0.1:10911\"},\"brokerName\":"
      "\"broker-a\",\"cluster\":\"C\",\"enableActingMaster\":false}],\"filterServerTable\":{},"
      "\"queueDatas\":[{\"brokerName\":\"broker-a\",\"perm\":6,\"readQueueNums\":4,"
      "\"topicSynFlag\":0,\"topicSysFlag\":0,\"writeQueueNums\":4}]}");
}

TEST_F(RequestProcessorTest, AnOldClientGetsBareIntegerKeysUnlessItAsksForStandardJson) {
  Register();
  version_ = 400;
  EXPECT_THAT(Route().body, HasSubstr("\"brokerAddrs\":{0:\"10.0.0.1:10911\"}"));
  EXPECT_THAT(
      Ask(remoting::kGetRouteInfoByTopic, {{"topic", "T1"}, {"acceptStandardJsonOnly", "true"}})
          .body,
      HasSubstr("\"brokerAddrs\":{\"0\":\"10.0.0.1:10911\"}"));
  version_ = 401;
  EXPECT_THAT(Route().body, HasSubstr("\"brokerAddrs\":{\"0\":\"10.0.0.1:10911\"}"));
}

TEST_F(RequestProcessorTest, TheTwoRenderingsDifferInTheKeysOnly) {
  Register();
  Register("1", "10.0.0.2:10911");
  const std::string standard = Route().body;
  version_ = 1;
  std::string bare = Route().body;
  for (const std::string id : {"0", "1"}) {
    const auto at = bare.find(id + ":\"10");
    ASSERT_NE(at, std::string::npos);
    bare.replace(at, 1, "\"" + id + "\"");
  }
  EXPECT_EQ(bare, standard);
}

TEST_F(RequestProcessorTest, NoRouteIsCode17NamingTheTopic) {
  const Command response = Route("nope");
  EXPECT_EQ(response.code, remoting::kTopicNotExist);
  EXPECT_THAT(response.remark, HasSubstr("for the topic: nope"));
}

TEST_F(RequestProcessorTest, AMissingFieldIsCode1NamingIt) {
  const Command response = Ask(remoting::kGetRouteInfoByTopic, {});
  EXPECT_EQ(response.code, remoting::kSystemError);
  EXPECT_THAT(response.remark, HasSubstr("topic"));
  EXPECT_THAT(Ask(remoting::kRegisterBroker, {{"brokerName", "b"}}, Body()).remark,
              HasSubstr("brokerAddr"));
}

TEST_F(RequestProcessorTest, EveryRequestIsRefusedByEachFieldItLacks) {
  const test::RequiredFields broker = {
      {"brokerName", "b"}, {"brokerAddr", "h:1"}, {"clusterName", "c"}, {"brokerId", "0"}};
  for (const auto& [code, fields] : std::map<std::int32_t, test::RequiredFields>{
           {remoting::kPutKvConfig, {{"namespace", "n"}, {"key", "k"}, {"value", "v"}}},
           {remoting::kGetKvConfig, {{"namespace", "n"}, {"key", "k"}}},
           {remoting::kDeleteKvConfig, {{"namespace", "n"}, {"key", "k"}}},
           {remoting::kGetKvListByNamespace, {{"namespace", "n"}}},
           {remoting::kRegisterBroker, broker},
           {remoting::kUnregisterBroker, broker},
           {remoting::kQueryDataVersion, broker},
           {remoting::kBrokerHeartbeat,
            {{"clusterName", "c"}, {"brokerAddr", "h:1"}, {"brokerName", "b"}}},
           {remoting::kGetBrokerMemberGroup, {{"clusterName", "c"}, {"brokerName", "b"}}},
           {remoting::kGetRouteInfoByTopic, {{"topic", "T"}}},
           {remoting::kGetTopicsByCluster, {{"cluster", "c"}}},
           {remoting::kDeleteTopicInNamesrv, {{"topic", "T"}}},
           {remoting::kRegisterTopicInNamesrv, {{"topic", "T"}}},
           {remoting::kWipeWritePermOfBroker, {{"brokerName", "b"}}},
           {remoting::kAddWritePermOfBroker, {{"brokerName", "b"}}}}) {
    SCOPED_TRACE(remoting::RequestCodeName(code));
    const std::int32_t asked = code;
    test::ExpectEachFieldIsRequired(
        fields, remoting::kSystemError,
        [&](const test::RequiredFields& given) { return Ask(asked, given); });
  }
}

// A body that is not what the header or the code says: named in the answer, and nothing is changed.
TEST_F(RequestProcessorTest, ABodyThatIsNotWhatItShouldBeIsRefusedAndChangesNothing) {
  const std::string empty = Ask(remoting::kGetBrokerClusterInfo, {}).body;
  Fields compressed = BrokerFields("0", "h:1");
  compressed[6].second = "true";
  for (const char* body : {"[1,2]", "{\"a\":", "\x01\x02", "12"}) {
    SCOPED_TRACE(body);
    for (const Fields& fields : {BrokerFields("0", "h:1"), compressed}) {
      const Command answer = Ask(remoting::kRegisterBroker, fields, body);
      EXPECT_EQ(answer.code, remoting::kSystemError);
      EXPECT_THAT(answer.remark, HasSubstr("RegisterBrokerBody"));
    }
    const Command answer = Ask(remoting::kRegisterTopicInNamesrv, {{"topic", "T"}}, body);
    EXPECT_EQ(answer.code, remoting::kSystemError);
    EXPECT_THAT(answer.remark, HasSubstr("TopicRouteData"));
  }
  EXPECT_EQ(Ask(remoting::kRegisterBroker, compressed, Body()).code, remoting::kSystemError)
      << "it is not compressed";
  EXPECT_EQ(Ask(remoting::kGetBrokerClusterInfo, {}).body, empty);
  EXPECT_EQ(Ask(remoting::kRegisterBroker, BrokerFields("0", "h:1"), Body()).code, 0);
}

TEST_F(RequestProcessorTest, RefusesARegistrationWhoseChecksumDoesNotMatch) {
  Fields fields = BrokerFields("0", "h:1");
  fields.emplace_back("bodyCrc32", "12345");
  const Command refused = Ask(remoting::kRegisterBroker, fields, Body());
  EXPECT_EQ(refused.code, remoting::kSystemError);
  EXPECT_EQ(refused.remark, "crc32 not match");
  EXPECT_EQ(Route().code, remoting::kTopicNotExist);
  fields.back().second = std::to_string(JavaCrc32(Body()));
  EXPECT_EQ(Ask(remoting::kRegisterBroker, fields, Body()).code, 0);
}

TEST_F(RequestProcessorTest, RefusesAOneTopicFirstRegistrationANegativeIdAndABrokenBody) {
  remoting::RegisterBrokerBody one;
  one.topics.topic_config_table["T1"].topic_name = "T1";
  EXPECT_THAT(Ask(remoting::kRegisterBroker, BrokerFields("0", "h:1"), one.Encode()).remark,
              HasSubstr("register broker failed"));
  EXPECT_EQ(Ask(remoting::kRegisterBroker, BrokerFields("-1", "h:1"), Body()).code,
            remoting::kSystemError);
  EXPECT_EQ(Ask(remoting::kRegisterBroker, BrokerFields("0", "h:1"), "{\"broken").code,
            remoting::kSystemError);
  EXPECT_EQ(Ask(remoting::kGetBrokerClusterInfo, {}).body,
            "{\"brokerAddrTable\":{},\"clusterAddrTable\":{}}");
}

// zlib of: DataVersion {7, 0, 1700000000000}; "T1 3 5 6 SINGLE_TAG", "T2 8 8 4 SINGLE_TAG {}"; [].
constexpr char kCompressedBody[] =
    "78da636060b0a8564ace2fcd2b492d52b232d7512a2e492c490d4b2d2acecccf53b232d0512ac9cc"
    "4d050ae6162859199a1b20402d03030313100b87182a182b982a9829047bfab9fbb8c68738ba0385"
    "c5428c142c80d0044958a11aac293a1600627a1d01";

TEST_F(RequestProcessorTest, ReadsACompressedRegistrationAndChecksItsBytesAsSent) {
  const std::string body = test::FromHex(kCompressedBody);
  Fields fields = BrokerFields("0", "h:1");
  fields[6].second = "true";  // compressed
  fields.emplace_back("bodyCrc32", std::to_string(JavaCrc32(body)));
  const Command response = Ask(remoting::kRegisterBroker, fields, body);
  EXPECT_EQ(response.code, 0) << response.remark;
  EXPECT_THAT(Route("T1").body, HasSubstr("\"perm\":6,\"readQueueNums\":3"));
  EXPECT_THAT(Route("T2").body, HasSubstr("\"perm\":4,\"readQueueNums\":8"));
  fields.pop_back();
  EXPECT_EQ(Ask(remoting::kRegisterBroker, fields, body.substr(0, 20)).code,
            remoting::kSystemError);
}

TEST_F(RequestProcessorTest, AFollowerLearnsTheLeaderAndTheOrderedTopics) {
  Ask(remoting::kPutKvConfig,
      {{"namespace", "ORDER_TOPIC_CONFIG"}, {"key", "T1"}, {"value", "broker-a:4"}});
  Register();
  const Command response = Register("1", "10.0.0.2:10911");
  EXPECT_EQ(*response.ext.Find("masterAddr"), "10.0.0.1:10911");
  EXPECT_EQ(*response.ext.Find("haServerAddr"), "h:9");
  EXPECT_EQ(response.body, "{\"table\":{\"T1\":\"broker-a:4\"}}");
}

TEST_F(RequestProcessorTest, ALeadersAnswerCarriesNoHeader) {
  const Command response = Register();
  EXPECT_TRUE(response.ext.empty());
  EXPECT_EQ(response.body, "");
}

TEST_F(RequestProcessorTest, UnregisteringRemovesTheRoute) {
  Register();
  EXPECT_EQ(Ask(remoting::kUnregisterBroker, BrokerFields("0", "10.0.0.1:10911")).code, 0);
  EXPECT_EQ(Route().code, remoting::kTopicNotExist);
}

TEST_F(RequestProcessorTest, AHeartbeatOrAVersionQueryKeepsTheBroker) {
  Register();
  const auto seconds = [](int n) { return kStart + std::chrono::seconds(n); };
  EXPECT_EQ(
      Ask(remoting::kBrokerHeartbeat,
          {{"clusterName", "C"}, {"brokerAddr", "10.0.0.1:10911"}, {"brokerName", "broker-a"}}, {},
          seconds(9))
          .code,
      0);
  EXPECT_TRUE(processor_->Expire(seconds(18)).empty());
  const remoting::DataVersion version{1, 1, 1000};
  Ask(remoting::kQueryDataVersion, BrokerFields("0", "10.0.0.1:10911"), version.Encode(),
      seconds(18));
  EXPECT_TRUE(processor_->Expire(seconds(27)).empty());
  EXPECT_EQ(processor_->Expire(seconds(28)).size(), 1u);
}

// A stock broker takes no notice; ours registers again at once.
TEST_F(RequestProcessorTest, AHeartbeatOfWhoIsNotRegisteredIsToldSo) {
  const auto beat = [this](const std::string& address, const std::string& term) {
    Fields fields = {{"clusterName", "C"}, {"brokerAddr", address}, {"brokerName", "broker-a"}};
    if (!term.empty()) fields.emplace_back("epoch", term);
    const Command answer = Ask(remoting::kBrokerHeartbeat, fields);
    EXPECT_EQ(answer.code, 0);
    return answer.ext.BoolOr("registered", true);
  };
  EXPECT_FALSE(beat("10.0.0.1:10911", ""));
  Register();  // in term 1
  EXPECT_TRUE(beat("10.0.0.1:10911", ""));
  EXPECT_TRUE(beat("10.0.0.1:10911", "1"));
  EXPECT_FALSE(beat("10.0.0.1:10911", "0"));
  EXPECT_FALSE(beat("10.9.9.9:1", "1"));
}

TEST_F(RequestProcessorTest, TellsWhetherADataVersionChanged) {
  Register();
  const auto ask = [this](const std::string& address, const remoting::DataVersion& version) {
    return Ask(remoting::kQueryDataVersion, BrokerFields("0", address), version.Encode());
  };
  const Command same = ask("10.0.0.1:10911", {1, 1, 1000});
  EXPECT_EQ(*same.ext.Find("changed"), "false");
  EXPECT_EQ(same.body, remoting::DataVersion({1, 1, 1000}).Encode());
  EXPECT_EQ(*ask("10.0.0.1:10911", {2, 1, 1000}).ext.Find("changed"), "true");
  const Command unknown = ask("10.9.9.9:1", {1, 1, 1000});
  EXPECT_EQ(*unknown.ext.Find("changed"), "true");
  EXPECT_EQ(unknown.body, "");
}

TEST_F(RequestProcessorTest, GivesTheMembersOfAGroup) {
  Register();
  Register("2", "10.0.0.3:10911");
  const Fields fields = {{"clusterName", "C"}, {"brokerName", "broker-a"}};
  EXPECT_EQ(Ask(remoting::kGetBrokerMemberGroup, fields).body,
            "{\"brokerMemberGroup\":{\"brokerAddrs\":{\"0\":\"10.0.0.1:10911\",\"2\":\"10.0.0.3:"
            "10911\"},\"brokerName\":\"broker-a\",\"cluster\":\"C\"}}");
}

TEST_F(RequestProcessorTest, ListsClustersAndTopics) {
  Register();
  EXPECT_THAT(Ask(remoting::kGetBrokerClusterInfo, {}).body,
              HasSubstr("\"clusterAddrTable\":{\"C\":[\"broker-a\"]}"));
  EXPECT_EQ(Ask(remoting::kGetAllTopicListFromNameServer, {}).body,
            "{\"topicList\":[\"T1\",\"T2\"]}");
  EXPECT_EQ(Ask(remoting::kGetTopicsByCluster, {{"cluster", "C"}}).body,
            "{\"topicList\":[\"T1\",\"T2\"]}");
  EXPECT_EQ(Ask(remoting::kGetTopicsByCluster, {{"cluster", "X"}}).body, "{\"topicList\":[]}");
  EXPECT_EQ(Ask(remoting::kGetSystemTopicListFromNs, {}).body,
            "{\"brokerAddr\":\"10.0.0.1:10911\",\"topicList\":[\"C\",\"broker-a\"]}");
  for (const std::int32_t code : {remoting::kGetUnitTopicList, remoting::kGetHasUnitSubTopicList,
                                  remoting::kGetHasUnitSubUnunitTopicList}) {
    EXPECT_EQ(Ask(code, {}).body, "{\"topicList\":[]}");
  }
}

TEST_F(RequestProcessorTest, TopicListsCanBeDisabled) {
  config_.enable_all_topic_list = false;
  config_.enable_topic_list = false;
  Restart();
  for (const std::int32_t code :
       {remoting::kGetAllTopicListFromNameServer, remoting::kGetTopicsByCluster,
        remoting::kGetUnitTopicList, remoting::kGetHasUnitSubTopicList,
        remoting::kGetHasUnitSubUnunitTopicList}) {
    const Command response = Ask(code, {{"cluster", "C"}});
    EXPECT_EQ(response.code, remoting::kSystemError);
    EXPECT_EQ(response.remark, "disable");
  }
}

TEST_F(RequestProcessorTest, WipesAndAddsTheWritePermission) {
  Register();
  EXPECT_EQ(*Ask(remoting::kWipeWritePermOfBroker, {{"brokerName", "broker-a"}})
                 .ext.Find("wipeTopicCount"),
            "2");
  EXPECT_THAT(Route().body, HasSubstr("\"perm\":4"));
  EXPECT_EQ(
      *Ask(remoting::kAddWritePermOfBroker, {{"brokerName", "broker-a"}}).ext.Find("addTopicCount"),
      "2");
  EXPECT_THAT(Route().body, HasSubstr("\"perm\":6"));
}

TEST_F(RequestProcessorTest, DeletesAndRegistersATopic) {
  Register();
  EXPECT_EQ(Ask(remoting::kDeleteTopicInNamesrv, {{"topic", "T1"}, {"clusterName", "X"}}).code, 0);
  EXPECT_EQ(Route().code, 0);
  EXPECT_EQ(Ask(remoting::kDeleteTopicInNamesrv, {{"topic", "T1"}}).code, 0);
  EXPECT_EQ(Route().code, remoting::kTopicNotExist);
  const std::string body =
      "{\"queueDatas\":[{\"brokerName\":\"broker-a\",\"perm\":6,\"readQueueNums\":2,"
      "\"topicSysFlag\":0,\"writeQueueNums\":2}]}";
  EXPECT_EQ(Ask(remoting::kRegisterTopicInNamesrv, {{"topic", "T1"}}, body).code, 0);
  EXPECT_THAT(Route().body, HasSubstr("\"readQueueNums\":2"));
}

TEST_F(RequestProcessorTest, WaitsForItsBrokersWhenToldSo) {
  config_.need_wait_for_service = true;
  Restart();
  Register();
  const Command early = Route();
  EXPECT_EQ(early.code, remoting::kSystemError);
  EXPECT_EQ(early.remark, "name server not ready");
  EXPECT_EQ(
      Ask(remoting::kGetRouteInfoByTopic, {{"topic", "T1"}}, {}, kStart + config_.wait_for_service)
          .code,
      0);
}

TEST_F(RequestProcessorTest, PutsGetsListsAndDeletesKv) {
  const Fields key = {{"namespace", "n"}, {"key", "k"}};
  EXPECT_EQ(Ask(remoting::kGetKvConfig, key).code, remoting::kQueryNotFound);
  EXPECT_EQ(Ask(remoting::kGetKvConfig, key).remark, "No config item, Namespace: n Key: k");
  EXPECT_EQ(Ask(remoting::kGetKvListByNamespace, {{"namespace", "n"}}).code,
            remoting::kQueryNotFound);
  EXPECT_EQ(Ask(remoting::kPutKvConfig, {{"namespace", "n"}, {"key", "k"}, {"value", "v"}}).code,
            0);
  Restart();
  EXPECT_EQ(*Ask(remoting::kGetKvConfig, key).ext.Find("value"), "v");
  EXPECT_EQ(Ask(remoting::kGetKvListByNamespace, {{"namespace", "n"}}).body,
            "{\"table\":{\"k\":\"v\"}}");
  EXPECT_EQ(Ask(remoting::kDeleteKvConfig, key).code, 0);
  EXPECT_EQ(Ask(remoting::kGetKvConfig, key).code, remoting::kQueryNotFound);
}

TEST_F(RequestProcessorTest, ORD_4_TheOrderSettingIsInTheRouteOnlyWhenEnabled) {
  Register();
  Ask(remoting::kPutKvConfig,
      {{"namespace", "ORDER_TOPIC_CONFIG"}, {"key", "T1"}, {"value", "broker-a:4"}});
  EXPECT_THAT(Route().body, testing::Not(HasSubstr("orderTopicConf")));
  EXPECT_EQ(Ask(remoting::kUpdateNamesrvConfig, {}, "orderMessageEnable=true\n").code, 0);
  EXPECT_THAT(Route().body, HasSubstr("\"orderTopicConf\":\"broker-a:4\""));
  version_ = 1;
  EXPECT_THAT(Route().body, HasSubstr("\"orderTopicConf\":\"broker-a:4\""));
}

TEST_F(RequestProcessorTest, AChangeOfTheConfigurationIsWrittenIntoItsFileBesideTheComments) {
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), config_.config_store_path,
                                  "# mine\norderMessageEnable=false\n")
                  .ok());
  const Command answer =
      Ask(remoting::kUpdateNamesrvConfig, {},
          "orderMessageEnable=true\nenableTopicList=false\nnobodyKnows=1\nlistenPort=9999\n");
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.remark,
            "in force: enableTopicList, orderMessageEnable; in force at the next start: "
            "listenPort; unknown and ignored: nobodyKnows");
  EXPECT_EQ(ReadFile(PosixFileSystem(), config_.config_store_path).value(),
            "# mine\norderMessageEnable=true\nenableTopicList=false\nlistenPort=9999\n");
  const std::string body = Ask(remoting::kGetNamesrvConfig, {}).body;
  EXPECT_THAT(body, HasSubstr("orderMessageEnable=true\n"));
  EXPECT_THAT(body, HasSubstr("listenPort=9876\n"));
}

TEST_F(RequestProcessorTest, RefusesToChangeTheBlackListAndBadValues) {
  for (const char* key : {"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"}) {
    const Command response =
        Ask(remoting::kUpdateNamesrvConfig, {}, std::string(key) + "=x\nenableTopicList=false\n");
    EXPECT_EQ(response.code, remoting::kNoPermission);
    EXPECT_EQ(response.remark, "Can not update config in black list.");
  }
  const Command bad =
      Ask(remoting::kUpdateNamesrvConfig, {}, "listenPort=x\nenableTopicList=false\n");
  EXPECT_EQ(bad.code, remoting::kSystemError);
  EXPECT_THAT(bad.remark, HasSubstr("listenPort=x: expected a whole number"));
  EXPECT_THAT(Ask(remoting::kUpdateNamesrvConfig, {}, "a=\\u1").remark,
              HasSubstr("string2Properties error"));
  EXPECT_THAT(Ask(remoting::kGetNamesrvConfig, {}).body, HasSubstr("enableTopicList=true\n"));
  EXPECT_FALSE(PosixFileSystem().Exists(config_.config_store_path));
}

TEST_F(RequestProcessorTest, TheConfiguredBlackListCounts) {
  config_.config_black_list = "listenPort; enableTopicList";
  Restart();
  EXPECT_EQ(Ask(remoting::kUpdateNamesrvConfig, {}, "enableTopicList=false").code,
            remoting::kNoPermission);
}

TEST_F(RequestProcessorTest, OnlyWritesNeedTheDisk) {
  EXPECT_TRUE(RequestProcessor::NeedsDisk(remoting::kPutKvConfig));
  EXPECT_TRUE(RequestProcessor::NeedsDisk(remoting::kDeleteKvConfig));
  EXPECT_TRUE(RequestProcessor::NeedsDisk(remoting::kUpdateNamesrvConfig));
  EXPECT_FALSE(RequestProcessor::NeedsDisk(remoting::kGetRouteInfoByTopic));
}

}  // namespace
}  // namespace triad::nameserver
