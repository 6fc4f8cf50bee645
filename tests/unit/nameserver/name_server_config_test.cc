#include "nameserver/name_server_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/file_system.h"

namespace triad::nameserver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

LoadedNameServerConfig Load(const std::string& text, const std::string& file = "n.conf") {
  return LoadNameServerConfig(
      {.file = file, .text = text, .home = "/home/u", .rocketmq_home = "/opt/triad"});
}

TEST(NameServerConfig, DefaultsAreTheOriginals) {
  const auto loaded = Load("", "");
  EXPECT_THAT(loaded.faults, IsEmpty());
  EXPECT_THAT(loaded.warnings, IsEmpty());
  EXPECT_EQ(loaded.config.listen_port, 9876);
  EXPECT_EQ(loaded.config.bind_address, "0.0.0.0");
  EXPECT_EQ(loaded.config.rocketmq_home, "/opt/triad");
  EXPECT_EQ(loaded.config.kv_config_path, "/home/u/namesrv/kvConfig.json");
  EXPECT_EQ(loaded.config.config_store_path, "/home/u/namesrv/namesrv.properties");
  EXPECT_FALSE(loaded.config.order_message_enable);
  EXPECT_EQ(loaded.config.scan_interval, std::chrono::milliseconds(5000));
}

TEST(NameServerConfig, TheGivenFileIsWhereChangesGo) {
  EXPECT_EQ(Load("configStorePath=/elsewhere").config.config_store_path, "n.conf");
}

TEST(NameServerConfig, ReadsTheSpecFileAsExpected) {
  const std::string path = std::string(TRIAD_TEST_DATA) + "/spec/namesrv.conf";
  const auto loaded = Load(ReadFile(PosixFileSystem(), path).value());
  EXPECT_THAT(loaded.faults, IsEmpty());
  EXPECT_EQ(loaded.config.listen_port, 19876);
  EXPECT_EQ(loaded.config.kv_config_path, "/var/lib/rmq/namesrv/kvConfig.json");
  EXPECT_TRUE(loaded.config.order_message_enable);
  EXPECT_EQ(loaded.config.bind_address, "127.0.0.1");
  EXPECT_THAT(loaded.warnings, ElementsAre(HasSubstr("notARealKey: unknown key, ignored")));
  EXPECT_THAT(loaded.notes, ElementsAre("n.conf: clusterTest has no effect here"));
}

TEST(NameServerConfig, TheShippedFileHasNoFaultAndNoWarning) {
  const std::string path = std::string(TRIAD_TEST_DATA) + "/../../conf/namesrv.conf";
  const auto loaded = Load(ReadFile(PosixFileSystem(), path).value());
  EXPECT_THAT(loaded.faults, IsEmpty());
  EXPECT_THAT(loaded.warnings, IsEmpty());
  EXPECT_THAT(loaded.notes, IsEmpty());
}

TEST(NameServerConfig, BadValuesAndABadEscapeAreFaultsWithTheirLines) {
  EXPECT_THAT(Load("listenPort=70000\norderMessageEnable=yes").faults,
              ElementsAre(HasSubstr("n.conf:1: listenPort=70000"),
                          HasSubstr("n.conf:2: orderMessageEnable=yes")));
  EXPECT_THAT(Load("a=\\u1").faults, ElementsAre(HasSubstr("n.conf: line 1")));
}

// docs/configuration-namesrv.md is the table, printed.
TEST(NameServerConfigurationPage, IsTheTable) {
  const std::string path = std::string(TRIAD_TEST_DATA) + "/../../docs/configuration-namesrv.md";
  const Result<std::string> page = ReadFile(PosixFileSystem(), path);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, HasSubstr(NameServerConfigTable().Markdown()))
      << "write it again: triad-namesrv --print_configuration_page > docs/configuration-namesrv.md";
}

}  // namespace
}  // namespace triad::nameserver
