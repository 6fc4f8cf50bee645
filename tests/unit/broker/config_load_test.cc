// Every tests/data/spec/*.conf against its expected result (cases.md CFG, GRP), and what only this
// broker decides.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "broker/config/broker_config.h"
#include "common/file_system.h"
#include "remoting/json.h"

namespace triad::broker {
namespace {

using remoting::Json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

LoadedBrokerConfig LoadText(const std::string& text) {
  BrokerConfigSource source;
  source.file = "broker.conf";
  source.text = text;
  source.host_name = "testhost";
  source.home = "/home/someone";
  return LoadBrokerConfig(source);
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

// All that a user sees.
std::string Messages(const LoadedBrokerConfig& loaded) {
  return Joined(loaded.faults) + Joined(loaded.warnings) + Joined(loaded.notes);
}

void CheckGroup(const Json& group, const LoadedBrokerConfig& loaded) {
  if (!group["accept"].AsBool()) {
    EXPECT_THAT(Joined(loaded.faults), HasSubstr(group["messageMustContain"].AsString()));
    EXPECT_THAT(loaded.faults, Not(IsEmpty()));
    return;
  }
  EXPECT_EQ(Joined(loaded.faults), "");
  EXPECT_EQ(loaded.config.self.value(), group["self"].AsString());
  const auto& members = group["members"].items();
  ASSERT_EQ(loaded.config.members.size(), members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    EXPECT_EQ(loaded.config.members[i].id.value(), members[i]["id"].AsString());
    EXPECT_EQ(loaded.config.members[i].host, members[i]["host"].AsString());
    EXPECT_EQ(loaded.config.members[i].port, members[i]["port"].AsInt64());
  }
}

void CheckFile(const std::filesystem::path& path, const Json& expected) {
  BrokerConfigSource source;
  source.file = path.filename().string();
  source.text = ReadAll(path);
  source.host_name = "testhost";
  source.home = "/home/someone";
  const LoadedBrokerConfig loaded = LoadBrokerConfig(source);
  const std::string start = expected["start"].AsString();
  if (start == "ok") {
    EXPECT_EQ(Joined(loaded.faults), "");
  }
  if (start == "refuse") {
    EXPECT_THAT(loaded.faults, Not(IsEmpty()));
  }
  for (const Json& name : expected["mustName"].items()) {
    EXPECT_THAT(Joined(loaded.faults), HasSubstr(name.AsString()));
  }
  const std::string messages = Messages(loaded);
  for (const auto& unknown : expected["unknown"].members()) {
    EXPECT_THAT(Joined(loaded.warnings), HasSubstr(unknown.key));
    if (!unknown.value.is_null()) {
      EXPECT_THAT(messages, HasSubstr("did you mean " + unknown.value.AsString() + "?"));
    }
  }
  for (const Json& known : expected["knownNoEffect"].items()) {
    EXPECT_THAT(Joined(loaded.warnings), Not(HasSubstr(known.AsString())));
    EXPECT_THAT(Joined(loaded.notes), HasSubstr(known.AsString()));
  }
  const auto values = BrokerConfigTable().Values(loaded.config);
  for (const auto& value : expected["effective"].members()) {
    ASSERT_TRUE(values.contains(value.key)) << value.key;
    const bool is_bool = value.value.type() == Json::Type::kBool;
    const std::string wanted =
        is_bool ? (value.value.AsBool() ? "true" : "false") : value.value.AsString();
    EXPECT_EQ(values.at(value.key), wanted) << value.key;
  }
  if (expected.Has("group")) CheckGroup(expected["group"], loaded);
}

TEST(BrokerConfigFiles, GRP_3_GRP_4_EverySpecFileIsReadAsExpected) {
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(TRIAD_TEST_DATA) / "spec")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".conf" || name == "namesrv.conf") continue;
    SCOPED_TRACE(name);
    auto expected = Json::Parse(ReadAll(entry.path().string() + ".expected.json"));
    ASSERT_TRUE(expected.ok()) << expected.status();
    CheckFile(entry.path(), expected.value());
    ++files;
  }
  EXPECT_GE(files, 18u);
}

TEST(BrokerConfigFiles, CFG_1_NoKeyOfTheOriginalIsCalledUnknown) {
  for (const auto& [name, count] : {std::pair{"original-broker-keys-5.3.3.txt", 470u},
                                    {"original-broker-keys-4.9.7.txt", 180u}}) {
    SCOPED_TRACE(name);
    const std::string keys = ReadAll(std::filesystem::path(TRIAD_TEST_DATA) / name);
    EXPECT_GE(Properties::Parse(keys).value().entries().size(), count);
    const auto loaded = LoadText(keys);
    EXPECT_EQ(loaded.unknown_keys, 0u);
    EXPECT_THAT(Messages(loaded), Not(HasSubstr("unknown key")));
  }
  const auto typo = LoadText("timerStopEnqeue=false\n");
  EXPECT_EQ(typo.unknown_keys, 1u);
  EXPECT_THAT(Joined(typo.warnings), HasSubstr("did you mean timerStopEnqueue?"));
}

TEST(BrokerConfigFiles, ACorrectGroupFileLoadsWithoutAnyWarning) {
  const auto loaded =
      LoadText(ReadAll(std::filesystem::path(TRIAD_TEST_DATA) / "spec" / "ok-dledger-n0.conf"));
  EXPECT_EQ(Joined(loaded.warnings), "");
}

TEST(BrokerConfigFiles, GRP_2_TwoMembersAreLegalWithAWarning) {
  const auto loaded =
      LoadText(ReadAll(std::filesystem::path(TRIAD_TEST_DATA) / "spec" / "peers-even.conf"));
  EXPECT_EQ(Joined(loaded.faults), "");
  EXPECT_THAT(Joined(loaded.warnings), HasSubstr("losing either of them stops writes"));
}

TEST(BrokerConfigFiles, APreferredLeaderThatIsNoMemberIsAWarning) {
  const std::string file =
      ReadAll(std::filesystem::path(TRIAD_TEST_DATA) / "spec" / "ok-dledger-n0.conf");
  const auto member = LoadText(file + "\npreferredLeaderId=n1\n");
  EXPECT_EQ(Joined(member.warnings), "");
  EXPECT_EQ(member.config.preferred_leader_id, "n1");
  const auto stranger = LoadText(file + "\npreferredLeaderId=n9\n");
  EXPECT_EQ(Joined(stranger.faults), "");
  EXPECT_THAT(Joined(stranger.warnings), HasSubstr("\"n9\" is not one of dLegerPeers"));
}

TEST(BrokerConfigFiles, AFaultOfSeveralKeysNamesTheLineAndTheSpellingOfTheFile) {
  for (const std::string key : {"dLegerSelfId", "dLedgerSelfId"}) {
    const auto loaded =
        LoadText("enableDLegerCommitLog=true\n\ndLedgerPeers=n0-127.0.0.1:40911\n" + key + "=n9\n");
    EXPECT_THAT(Joined(loaded.faults), HasSubstr(":4: " + key + ": \"n9\" is not one of"));
  }
}

constexpr const char* kSevenKeys =
    "brokerClusterName=DefaultCluster\n"
    "brokerName=RaftBroker\n"
    "brokerId=-1\n"
    "enableDLegerCommitLog=true\n"
    "dLedgerGroupName=RaftNode\n"
    "dLedgerPeers=n0-127.0.0.1:40911;n1-127.0.0.1:40912;n2-127.0.0.1:40913\n";

TEST(BrokerConfig, SeedSpellingsStartAPeerWithOneNote) {
  const auto loaded = LoadText(std::string(kSevenKeys) + "dLedgerSelfId=n0\n");
  EXPECT_EQ(Joined(loaded.faults), "");
  EXPECT_EQ(Joined(loaded.warnings), "");
  ASSERT_EQ(loaded.notes.size(), 1u);
  EXPECT_THAT(loaded.notes[0], HasSubstr("dLedgerPeers is read as dLegerPeers"));
  EXPECT_EQ(loaded.config.self.value(), "n0");
  EXPECT_EQ(loaded.config.dledger_group, "RaftNode");
  EXPECT_EQ(loaded.config.listen_port, 10911);
  EXPECT_EQ(loaded.config.follower_id, 1);
}

TEST(BrokerConfig, OneFileServesAllPeersOfAHost) {
  const auto n0 = LoadText(std::string(kSevenKeys) + "dLedgerSelfId=n0\n").config;
  const auto n2 = LoadText(std::string(kSevenKeys) + "dLedgerSelfId=n2\n").config;
  EXPECT_EQ(n2.listen_port, 10931);
  EXPECT_EQ(n2.ha_listen_port, 10932);
  EXPECT_EQ(n2.follower_id, 3);
  EXPECT_NE(n0.store_root, n2.store_root);
}

TEST(BrokerConfig, CFG_8_AGivenListenPortIsKept) {
  const auto loaded = LoadText(std::string(kSevenKeys) + "dLedgerSelfId=n2\nlistenPort=20911\n");
  EXPECT_EQ(loaded.config.listen_port, 20911);
  EXPECT_EQ(loaded.config.ha_listen_port, 20912);
}

TEST(BrokerConfig, PeersOnHostsOfTheirOwnKeepTheDefaultPort) {
  const auto loaded = LoadText(
      "enableDLegerCommitLog=true\ndLegerSelfId=n2\n"
      "dLegerPeers=n0-a:40911;n1-b:40911;n2-c:40911\n");
  EXPECT_EQ(loaded.config.listen_port, 10911);
}

TEST(BrokerConfig, ASlaveWithoutAGroupIsRefusedWithAdvice) {
  EXPECT_THAT(Joined(LoadText("brokerRole=SLAVE\n").faults),
              HasSubstr("enableDLegerCommitLog=true"));
  EXPECT_THAT(Joined(LoadText("brokerId=1\n").faults), HasSubstr("enableDLegerCommitLog=true"));
  EXPECT_THAT(LoadText("brokerId=0\nbrokerRole=SYNC_MASTER\n").faults, IsEmpty());
}

TEST(BrokerConfig, NS_1_TheRoleIsIgnoredInAGroupWithANote) {
  const auto loaded = LoadText(std::string(kSevenKeys) + "dLedgerSelfId=n0\nbrokerRole=SLAVE\n");
  EXPECT_THAT(loaded.faults, IsEmpty());
  EXPECT_THAT(Joined(loaded.notes), HasSubstr("brokerRole is ignored"));
}

TEST(BrokerConfig, WithoutAGroupItIsAGroupOfOne) {
  const auto loaded = LoadText("brokerName=b\n");
  ASSERT_EQ(loaded.config.members.size(), 1u);
  EXPECT_FALSE(loaded.config.is_group());
  EXPECT_EQ(loaded.config.self, loaded.config.members[0].id);
}

TEST(BrokerConfig, DefaultsAreTheOriginalsExceptTheFlush) {
  const BrokerConfig config = LoadText("").config;
  EXPECT_EQ(config.flush, FlushDiskType::kSyncFlush);
  EXPECT_EQ(config.broker_name, "testhost");
  EXPECT_EQ(config.cluster_name, "DefaultCluster");
  EXPECT_EQ(config.store_root, "/home/someone/store");
  EXPECT_EQ(config.dledger_group, "testhost");
  EXPECT_EQ(config.file_reserved_hours, 72);
  EXPECT_EQ(config.default_topic_queues, 8);
}

TEST(BrokerConfig, TheCommandLineNameServerWinsAndTheEnvironmentLoses) {
  BrokerConfigSource source;
  source.file = "f";
  source.text = "namesrvAddr=a:1\n";
  source.environment_namesrv_addr = "e:1";
  EXPECT_EQ(LoadBrokerConfig(source).config.namesrv_addr, "a:1");
  source.namesrv_addr = "c:1";
  EXPECT_EQ(LoadBrokerConfig(source).config.namesrv_addr, "c:1");
  source.namesrv_addr.clear();
  source.text.clear();
  EXPECT_EQ(LoadBrokerConfig(source).config.namesrv_addr, "e:1");
}

TEST(BrokerConfig, ABadNameServerListIsRefusedByItem) {
  EXPECT_THAT(Joined(LoadText("namesrvAddr=a:1;b\n").faults), HasSubstr("\"b\""));
  EXPECT_THAT(LoadText("namesrvAddr= dead.invalid:9876; 127.0.0.1:9876;\n").faults, IsEmpty());
}

// Access rules that are asked for and not kept would be worse than none.
TEST(BrokerConfig, AccessRulesThatAreAskedForAreRefusedByLine) {
  for (const std::string key : {"aclEnable", "authenticationEnabled", "authorizationEnabled"}) {
    for (const char* value : {"true", "TRUE "}) {
      const auto loaded = LoadText("brokerName=b\n" + key + "=" + value + "\n");
      EXPECT_THAT(Joined(loaded.faults), HasSubstr(":2: " + key + ": there are no users"));
    }
    EXPECT_THAT(LoadText(key + "=false\n").faults, IsEmpty());
  }
}

TEST(BrokerConfig, EncryptionThatIsAskedForIsRefusedByLine) {
  EXPECT_THAT(Joined(LoadText("brokerName=b\nuseTLS=true\n").faults),
              HasSubstr(":2: useTLS: there is no TLS"));
  EXPECT_THAT(LoadText("useTLS=false\n").faults, IsEmpty());
}

TEST(BrokerConfig, AHeartbeatNearTheElectionTimeoutIsWarnedOf) {
  EXPECT_THAT(Joined(LoadText("dLegerHeartbeatIntervalMs=200\n").warnings),
              HasSubstr("dLegerElectionTimeoutMs"));
}

TEST(BrokerConfig, TimingThatCannotWorkIsRefusedAndThatWhichCostsElectionsIsWarnedOf) {
  const auto load = [](const std::string& heartbeat, const std::string& timeout) {
    return LoadText("dLegerHeartbeatIntervalMs=" + heartbeat +
                    "\ndLegerElectionTimeoutMs=" + timeout + "\n");
  };
  for (const char* heartbeat : {"300", "400"}) {
    const LoadedBrokerConfig loaded = load(heartbeat, "300");
    EXPECT_THAT(Joined(loaded.faults), HasSubstr(":1: dLegerHeartbeatIntervalMs: "));
    EXPECT_THAT(Joined(loaded.faults), HasSubstr("not below dLegerElectionTimeoutMs=300"));
  }
  const LoadedBrokerConfig small = load("20", "99");
  EXPECT_THAT(small.faults, IsEmpty());
  EXPECT_THAT(Joined(small.warnings), HasSubstr("three round trips"));
  const LoadedBrokerConfig large = load("20", "3001");
  EXPECT_THAT(large.faults, IsEmpty());
  EXPECT_THAT(Joined(large.warnings), HasSubstr("nobody leads"));
  for (const auto& [heartbeat, timeout] :
       {std::pair{"33", "100"}, {"50", "300"}, {"1000", "3000"}}) {
    const LoadedBrokerConfig good = load(heartbeat, timeout);
    EXPECT_THAT(good.faults, IsEmpty());
    EXPECT_THAT(Joined(good.warnings), Not(HasSubstr("dLeger"))) << timeout;
  }
}

TEST(BrokerConfig, UnknownKeysAreCounted) {
  EXPECT_EQ(LoadText("brokerIp1=a\nuseEpollNativeSelector=true\nbrokerName=b\n").unknown_keys, 1u);
}

TEST(BrokerConfig, TheLeadersAddressIsToldInsteadOfItsOwn) {
  const std::string group =
      "brokerIP1=10.0.0.1\nenableDLegerCommitLog=true\ndLegerSelfId=n0\n"
      "dLegerPeers=n0-10.0.0.1:1;n1-10.0.0.2:1;n2-10.0.0.3:1\n";
  EXPECT_EQ(LoadText(group).config.LeaderAddress(), "10.0.0.1:10911");
  const LoadedBrokerConfig loaded = LoadText(group + "leaderIP=10.0.0.100\n");
  EXPECT_THAT(Messages(loaded), IsEmpty());
  EXPECT_EQ(loaded.config.LeaderAddress(), "10.0.0.100:10911");
  EXPECT_EQ(loaded.config.FullClientAddress(), "10.0.0.1:10911");
}

TEST(BrokerConfig, ALeadersAddressThatCannotWorkIsRefusedWithTheReason) {
  const std::string group =
      "enableDLegerCommitLog=true\ndLegerSelfId=n0\n"
      "dLegerPeers=n0-10.0.0.1:1;n1-10.0.0.2:1;n2-10.0.0.3:1\n";
  const auto faults = [](const std::string& text) { return Joined(LoadText(text).faults); };
  EXPECT_THAT(LoadText(group + "leaderIP=leader.example\n").faults, testing::SizeIs(1));
  EXPECT_THAT(faults(group + "leaderIP=leader.example\n"),
              AllOf(HasSubstr("broker.conf:4: leaderIP"), HasSubstr("no IPv4 address")));
  for (const char* ip : {"0.0.0.0", "127.0.0.9", "224.0.0.1", "255.255.255.255"}) {
    EXPECT_THAT(faults(group + "leaderIP=" + ip + "\n"), HasSubstr("no address of one machine"));
  }
  EXPECT_THAT(faults(group + "leaderIP=fd00::1\n"), HasSubstr("no IPv4 address"));
  EXPECT_THAT(faults(group + "leaderIP=10.0.0.2\n"), HasSubstr("a peer's own address"));
  EXPECT_THAT(faults(group + "brokerIP1=10.1.0.9\nleaderIP=10.1.0.9\n"),
              HasSubstr("a peer's own address"));
  EXPECT_THAT(faults(group + "leaderIP=10.0.0.9\nbindAddress=10.0.0.1\n"),
              HasSubstr("bindAddress is 10.0.0.1"));
  EXPECT_THAT(faults("leaderIP=10.0.0.9\n"), HasSubstr("is for a group"));
  EXPECT_THAT(faults("leaderIPInterface=eth0\n"), HasSubstr("without leaderIP"));
}

TEST(GroupMembers, GRP_1_RefusalsShowTheItemAndTheForm) {
  struct Case {
    const char* name;
    const char* text;
    const char* must_contain;
  };
  const Case cases[] = {
      {"no number in the id", "a-h:1", "a-h:1"},
      {"same number twice", "n1-h:1;m1-h:2", "m1-h:2"},
      {"same address twice", "n1-h:1;n2-h:1", "n2-h:1"},
      {"no port", "n1-h", "n1-h"},
      {"port 0", "n1-h:0", "n1-h:0"},
      {"no host", "n1-:1", "n1-:1"},
      {"nothing", " ; ", "id-host:port"},
      {"open bracket", "n1-[::1:5", "n1-[::1:5"},
      {"number too large", "n99999999999-h:1", "n99999999999"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto members = ParseGroupMembers(c.text);
    ASSERT_FALSE(members.ok());
    EXPECT_THAT(std::string(members.status().message()), HasSubstr(c.must_contain));
    EXPECT_THAT(std::string(members.status().message()), HasSubstr("id-host:port"));
  }
}

TEST(GroupMembers, WhatTheLogCannotKeepIsRefused) {
  const std::string x(250, 'x');
  EXPECT_TRUE(ParseGroupMembers(x + "12345-" + x + ":1234").ok());
  EXPECT_FALSE(ParseGroupMembers(x + "123456-h:1").ok());
  EXPECT_FALSE(ParseGroupMembers("n1-" + x + ":12345").ok());
}

TEST(GroupMembers, AnIpv6AddressStandsInBrackets) {
  const auto members = ParseGroupMembers("n7-[2001:db8::9]:30921");
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_EQ(members->at(0), (GroupMember{PeerId("n7"), "2001:db8::9", 30921, 7}));
}

TEST(DelayLevels, UnitsAndErrors) {
  const auto levels = ParseDelayLevels("1s 2m 3h 1d");
  ASSERT_TRUE(levels.ok());
  EXPECT_EQ(levels.value(), (std::vector<std::int64_t>{1000, 120000, 10800000, 86400000}));
  EXPECT_FALSE(ParseDelayLevels("1s 2x").ok());
  EXPECT_FALSE(ParseDelayLevels("").ok());
  EXPECT_THAT(Joined(LoadText("messageDelayLevel=1s 2x\n").faults), HasSubstr("messageDelayLevel"));
}

TEST(MetricsKeys, AreOffByDefaultAndReadAsTheOriginalSpellsThem) {
  const LoadedBrokerConfig none = LoadText("");
  EXPECT_EQ(none.config.metrics_exporter, MetricsExporter::kDisable);
  EXPECT_EQ(none.config.metrics_port, 5557);
  EXPECT_EQ(none.config.metrics_host, "");
  const LoadedBrokerConfig given = LoadText(
      "metricsExporterType=PROM\nmetricsPromExporterPort=9100\nmetricsPromExporterHost=::1\n");
  EXPECT_EQ(Messages(given), "");
  EXPECT_EQ(given.config.metrics_exporter, MetricsExporter::kProm);
  EXPECT_EQ(given.config.metrics_port, 9100);
  EXPECT_EQ(given.config.metrics_host, "::1");
  EXPECT_THAT(LoadText("metricsPromExporterHost=\n").faults, IsEmpty());
}

TEST(MetricsKeys, WhatCannotBeServedIsRefused) {
  struct Case {
    const char* text;
    const char* must_contain;
  };
  const Case cases[] = {
      {"metricsExporterType=OTLP_GRPC\n", "DISABLE / PROM"},
      {"metricsExporterType=prom\n", "DISABLE / PROM"},
      {"metricsExporterType=LOG\n", "metricsExporterType"},
      {"metricsPromExporterPort=0\n", "metricsPromExporterPort"},
      {"metricsPromExporterPort=65536\n", "metricsPromExporterPort"},
      {"metricsPromExporterHost=somehost\n", "an IP address"},
      {"metricsExporterType=PROM\nmetricsPromExporterPort=10911\n", "listenPort"},
      {"metricsExporterType=PROM\nmetricsPromExporterPort=10909\n", "VIP"},
      {"metricsExporterType=PROM\nmetricsPromExporterPort=40911\nenableDLegerCommitLog=true\n"
       "dLegerSelfId=n0\ndLegerPeers=n0-a:40911;n1-b:40911;n2-c:40911\n",
       "dLegerPeers"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    EXPECT_THAT(Joined(LoadText(c.text).faults), HasSubstr(c.must_contain));
  }
  // Ports only meet when the page is served.
  EXPECT_THAT(LoadText("metricsPromExporterPort=10911\n").faults, IsEmpty());
}

// What changes while the broker runs changes in the whole group; name servers are one machine's.
TEST(KeysOfTheGroup, AreInForceAtOnceAndBesideThemOnlyTwoOfOnePeer) {
  const auto& table = BrokerConfigTable();
  for (const auto& [key, value] : table.Values(BrokerConfig{})) {
    const KeyOptions* const options = table.FindOptions(key);
    ASSERT_NE(options, nullptr) << key;
    const bool is_local = key == "namesrvAddr" || key == "sendThreadPoolQueueCapacity";
    EXPECT_EQ(options->dynamic, options->group || is_local) << key;
  }
}

// docs/configuration.md is the table, printed.
TEST(ConfigurationPage, IsTheTable) {
  const auto page = std::filesystem::path(TRIAD_TEST_DATA) / "../../docs/configuration.md";
  EXPECT_THAT(ReadAll(page), HasSubstr(BrokerConfigTable().Markdown()))
      << "write it again: triad-broker --print_configuration_page > docs/configuration.md";
}

TEST(ShippedFiles, LoadWithoutAnyWarning) {
  const auto conf = std::filesystem::path(TRIAD_TEST_DATA) / "../../conf";
  for (const char* name : {"broker.conf", "dledger/broker-n0.conf", "dledger/broker-n1.conf",
                           "dledger/broker-n2.conf"}) {
    SCOPED_TRACE(name);
    const std::string text = ReadAll(conf / name);
    ASSERT_FALSE(text.empty());
    const auto loaded = LoadText(text);
    EXPECT_EQ(Joined(loaded.faults) + Joined(loaded.warnings), "");
  }
}

}  // namespace
}  // namespace triad::broker
