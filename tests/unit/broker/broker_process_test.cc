// What a broker does around its services: choosing an address, claiming a store, explaining a port
// in use (cases.md OPS-1, OPS-2, OPS-3).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/process/advertised_address.h"
#include "broker/process/banner.h"
#include "broker/process/store_claim.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(AdvertisedAddress, OPS_3_BridgesLoopbackAndDownInterfacesAreSkipped) {
  const ChosenAddress chosen = ChooseAddress({{"lo", "127.0.0.1", true, true},
                                              {"docker0", "172.17.0.1", true, false},
                                              {"eth9", "10.0.0.1", false, false},
                                              {"eth0", "192.0.2.20", true, false, true},
                                              {"eth0", "192.0.2.21", true, false},
                                              {"eth1", "192.0.2.22", true, false}});
  EXPECT_EQ(chosen.address, "192.0.2.21");
  EXPECT_FALSE(chosen.fallback);
  EXPECT_THAT(chosen.how, HasSubstr("eth0"));
  EXPECT_THAT(chosen.candidates, AllOf(HasSubstr("docker0 172.17.0.1 (bridge)"),
                                       HasSubstr("eth0 192.0.2.20 (leaderIP)"),
                                       HasSubstr("eth9 10.0.0.1 (down)"), HasSubstr("eth1")));
}

TEST(AdvertisedAddress, WithoutAUsableInterfaceItIsLoopbackAndSaysSo) {
  const ChosenAddress chosen = ChooseAddress({{"lo", "127.0.0.1", true, true}});
  EXPECT_EQ(chosen.address, "127.0.0.1");
  EXPECT_TRUE(chosen.fallback);
}

TEST(AdvertisedAddress, AddressesResolveToThemselvesAndBadNamesAreErrors) {
  EXPECT_EQ(ResolveHost("192.0.2.21").value(), "192.0.2.21");
  EXPECT_EQ(ResolveHost("no such host.invalid").status().code(), StatusCode::kInvalidArgument);
}

TEST(StoreClaim, AStoreInUseNamesDirectoryAndProcess) {
  const StoreTempDir dir;
  const auto first = StoreClaim::Make(PosixFileSystem(), dir.path(), "g", "n0");
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = StoreClaim::Make(PosixFileSystem(), dir.path(), "g", "n0");
  EXPECT_EQ(second.status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr(dir.path()), HasSubstr(std::to_string(::getpid()))));
}

TEST(StoreClaim, TheSamePeerMayComeBack) {
  const StoreTempDir dir;
  ASSERT_TRUE(StoreClaim::Make(PosixFileSystem(), dir.path() + "/new", "g", "n0").ok());
  EXPECT_TRUE(StoreClaim::Make(PosixFileSystem(), dir.path() + "/new", "g", "n0").ok());
}

TEST(StoreClaim, AnotherPeersStoreIsRefusedWithItsOwner) {
  const StoreTempDir dir;
  ASSERT_TRUE(StoreClaim::Make(PosixFileSystem(), dir.path(), "g", "n0").ok());
  for (const auto& [group, peer] : {std::pair("g", "n1"), std::pair("h", "n0")}) {
    const auto claim = StoreClaim::Make(PosixFileSystem(), dir.path(), group, peer);
    EXPECT_EQ(claim.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(claim.status().message()), HasSubstr("group=g peer=n0"));
  }
}

TEST(StoreClaim, AFlippedBitInTheOwnerIsDamageAndNoStrangersStore) {
  const StoreTempDir dir;
  const std::string path = dir.path() + "/owner";
  ASSERT_TRUE(StoreClaim::Make(PosixFileSystem(), dir.path(), "g", "n0").ok());
  const std::string whole = ReadFile(PosixFileSystem(), path).value();
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), path, flipped).ok());
    const auto claim = StoreClaim::Make(PosixFileSystem(), dir.path(), "g", "n0");
    ASSERT_EQ(claim.status().code(), StatusCode::kCorruption) << bit << ": " << claim.status();
    ASSERT_THAT(std::string(claim.status().message()), HasSubstr(path + " is damaged"));
  }
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), path, "").ok());
  EXPECT_EQ(StoreClaim::Make(PosixFileSystem(), dir.path(), "g", "n0").status().code(),
            StatusCode::kCorruption);
}

TEST(StoreClaim, AnOwnerOfAnOlderVersionHasNoChecksum) {
  const StoreTempDir dir;
  const std::string path = dir.path() + "/owner";
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), path, "group=g\npeer=n0\n").ok());
  EXPECT_TRUE(StoreClaim::Make(PosixFileSystem(), dir.path(), "g", "n0").ok());
  const auto other = StoreClaim::Make(PosixFileSystem(), dir.path(), "g", "n1");
  EXPECT_EQ(other.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("group=g peer=n0"));
}

TEST(StoreClaim, UPG_1_AJavaStoreIsRefusedUntouched) {
  const StoreTempDir dir;
  ASSERT_TRUE(PosixFileSystem().CreateDirs(dir.path() + "/commitlog").ok());
  const auto claim = StoreClaim::Make(PosixFileSystem(), dir.path(), "g", "n0");
  EXPECT_EQ(claim.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(claim.status().message()), HasSubstr("Java"));
  EXPECT_EQ(PosixFileSystem().List(dir.path()).value().size(), 1u);
}

TEST(Banner, SaysInWordsWhatAnAcknowledgementMeans) {
  BrokerConfigSource source;
  source.file = "f";
  source.text =
      "brokerIP1=192.0.2.21\nenableDLegerCommitLog=true\ndLegerSelfId=n0\n"
      "dLegerPeers=n0-a:1;n1-b:1;n2-c:1\n";
  BrokerConfig config = LoadBrokerConfig(source).config;
  std::string sync;
  for (const auto& line : BannerLines(config, {"as brokerIP1 says", ""})) sync += line + "\n";
  EXPECT_THAT(sync, AllOf(HasSubstr("a majority (2 of 3 peers) has it on disk"),
                          HasSubstr("192.0.2.21:10911"), HasSubstr("brokerIP1")));
  config.flush = FlushDiskType::kAsyncFlush;
  std::string async;
  for (const auto& line : BannerLines(config, {"as brokerIP1 says", ""})) async += line + "\n";
  EXPECT_THAT(async, HasSubstr("may lose acknowledged messages"));
}

TEST(Banner, TheBootLineIsTheClassicOne) {
  BrokerConfig config;
  config.broker_name = "b";
  config.broker_ip1 = "192.0.2.21";
  EXPECT_EQ(BootLineOf(config), "The broker[b, 192.0.2.21:10911] boot success. serializeType=JSON");
  config.namesrv_addr = "n:9876";
  EXPECT_EQ(BootLineOf(config),
            "The broker[b, 192.0.2.21:10911] boot success. serializeType=JSON and name server is "
            "n:9876");
}

TEST(Banner, SaysWhereTheMetricsAre) {
  BrokerConfig config;
  const auto banner = [&] {
    std::string all;
    for (const auto& line : BannerLines(config, {"as brokerIP1 says", ""})) all += line + "\n";
    return all;
  };
  EXPECT_THAT(banner(), Not(HasSubstr("metrics")));
  config.metrics_exporter = MetricsExporter::kProm;
  EXPECT_THAT(banner(), HasSubstr("metrics at http://0.0.0.0:5557/metrics\n"));
  config.metrics_host = "::1";
  EXPECT_THAT(banner(), HasSubstr("metrics at http://[::1]:5557/metrics\n"));
}

TEST(ListenError, ThePortOfTheMetricsIsNamedWithItsOption) {
  const Status error = ExplainMetricsError(
      BrokerConfig(), Status::Unavailable("cannot listen on 0.0.0.0:5557: Address already in use"));
  EXPECT_EQ(error.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(error.message()),
              AllOf(HasSubstr("port 5557 (for metrics; the option metricsPromExporterPort"),
                    HasSubstr("Address already in use")));
}

TEST(ListenError, OPS_2_NamesThePortItsPurposeAndTheOption) {
  BrokerConfig config;
  const auto explain = [&](const char* text) {
    return std::string(ExplainListenError(config, Status::Unavailable(text)).message());
  };
  EXPECT_THAT(
      explain("cannot listen on 0.0.0.0:10911: Address already in use"),
      AllOf(HasSubstr("port 10911 (for clients; the option listenPort"), Not(HasSubstr("VIP"))));
  EXPECT_THAT(explain("cannot listen on 0.0.0.0:10909: Address already in use"),
              AllOf(HasSubstr("port 10909 (for the VIP channel"), HasSubstr("listenPort")));
}

}  // namespace
}  // namespace triad::broker
