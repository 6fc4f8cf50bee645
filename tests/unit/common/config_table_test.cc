#include "common/config_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace triad {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

enum class Flush { kSync, kAsync };

struct Sample {
  std::int32_t port = 10911;
  std::int64_t size = 1024;
  std::uint16_t small = 1;
  bool flag = true;
  double ratio = 0.5;
  std::string name = "n";
  std::string path = "/a";
  Flush flush = Flush::kSync;
  std::chrono::milliseconds beat{50};
  std::chrono::hours kept{72};
};

ConfigTable<Sample> MakeTable() {
  ConfigTable<Sample> t;
  t.Section("Addresses");
  t.Int("listenPort", &Sample::port,
        {.help = "main port", .min = 1, .max = 65535, .important = true});
  t.Section("Other");
  t.Int("maxMessageSize", &Sample::size, {.help = "body limit", .min = 0, .unit = "bytes"});
  t.Int("small", &Sample::small, {.help = "a narrow member"});
  t.Bool("autoCreateTopicEnable", &Sample::flag, {.help = "create topics"});
  t.Double("ratio", &Sample::ratio, {.help = "a ratio", .min = 0, .max = 1});
  t.Text("brokerName", &Sample::name,
         {.help = "group name",
          .important = true,
          .default_text = "host name",
          .check = [](const std::string& v) {
            return v == "bad" ? std::string("a good name") : std::string();
          }});
  t.Path("storePathRootDir", &Sample::path, {.help = "root"});
  t.Choice("flushDiskType", &Sample::flush,
           {{"SYNC_FLUSH", Flush::kSync}, {"ASYNC_FLUSH", Flush::kAsync}}, {.help = "flush"});
  t.Duration("heartBeatTimeIntervalMs", &Sample::beat, {.help = "beat", .min = 10});
  t.Duration("fileReservedTime", &Sample::kept, {.help = "retention", .min = 1});
  t.Alias("keepHours", "fileReservedTime", "old name");
  t.NoEffect({"useEpollNativeSelector", "brokerIP2"});
  return t;
}

struct Outcome {
  Sample config;
  ConfigReport report;
};

Outcome Apply(const std::string& text) {
  Outcome outcome;
  outcome.report = MakeTable().Apply(Properties::Parse(text).value(), "b.conf", &outcome.config);
  return outcome;
}

TEST(ConfigTable, CFG_2_FillsEveryTypeAndTrimsScalars) {
  const Outcome o = Apply(
      "listenPort=30911 \nmaxMessageSize=+4194304\nautoCreateTopicEnable=FALSE\t\nratio= 0.75\n"
      "brokerName=  a b  \nstorePathRootDir=/x/y\nflushDiskType=ASYNC_FLUSH\n"
      "heartBeatTimeIntervalMs=100\nfileReservedTime=48\nsmall=65535\n");
  EXPECT_THAT(o.report.warnings, IsEmpty());
  ASSERT_TRUE(o.report.ok()) << o.report.faults[0].ToString();
  EXPECT_EQ(o.config.port, 30911);
  EXPECT_EQ(o.config.size, 4194304);
  EXPECT_EQ(o.config.small, 65535);
  EXPECT_FALSE(o.config.flag);
  EXPECT_EQ(o.config.ratio, 0.75);
  EXPECT_EQ(o.config.name, "a b");
  EXPECT_EQ(o.config.path, "/x/y");
  EXPECT_EQ(o.config.flush, Flush::kAsync);
  EXPECT_EQ(o.config.beat, std::chrono::milliseconds(100));
  EXPECT_EQ(o.config.kept, std::chrono::hours(48));
}

TEST(ConfigTable, AnAbsentKeyKeepsTheMemberInitialiser) {
  const Outcome o = Apply("");
  EXPECT_EQ(o.config.port, 10911);
  EXPECT_EQ(o.config.flush, Flush::kSync);
}

TEST(ConfigTable, CFG_4_ListsEveryFaultInFileOrderAndLeavesTheMembersAlone) {
  const Outcome o = Apply(
      "maxMessageSize=4M\nlistenPort=70000\n\nautoCreateTopicEnable=yes\nratio=1.5\n"
      "flushDiskType=SYNC\nbrokerName=bad\nfileReservedTime=\nsmall=-1\n");
  std::vector<std::string> faults;
  for (const ConfigFault& fault : o.report.faults) faults.push_back(fault.ToString());
  EXPECT_THAT(faults,
              ElementsAre("b.conf:1: maxMessageSize=4M: expected a whole number from 0 (bytes)",
                          "b.conf:2: listenPort=70000: expected a whole number from 1 to 65535",
                          "b.conf:4: autoCreateTopicEnable=yes: expected true or false",
                          "b.conf:5: ratio=1.5: expected a number from 0 to 1",
                          "b.conf:6: flushDiskType=SYNC: expected one of SYNC_FLUSH / ASYNC_FLUSH",
                          "b.conf:7: brokerName=bad: expected a good name",
                          "b.conf:8: fileReservedTime=: expected a whole number from 1 (h)",
                          "b.conf:9: small=-1: expected a whole number from 0 to 65535"));
  EXPECT_EQ(o.config.size, 1024);
  EXPECT_EQ(o.config.port, 10911);
  EXPECT_EQ(o.config.name, "n");
}

TEST(ConfigTable, RefusesNumbersThatOverflowOrHaveTwoSigns) {
  for (const char* bad : {"99999999999999999999", "+-5", "--5", "0x10", "1 2", "1.0", "+"}) {
    EXPECT_FALSE(Apply(std::string("listenPort=") + bad).report.ok()) << bad;
  }
  for (const char* bad : {"nan", "inf", "", "0.5x"}) {
    EXPECT_FALSE(Apply(std::string("ratio=") + bad).report.ok()) << bad;
  }
}

TEST(ConfigTable, CFG_3_ExplainsACommentBehindAValue) {
  const Outcome o = Apply("listenPort=30911 # main\nbrokerName=a # b\n");
  ASSERT_EQ(o.report.faults.size(), 1u);
  EXPECT_THAT(o.report.faults[0].expected, HasSubstr("a comment must stand on a line of its own"));
  EXPECT_THAT(o.report.warnings,
              ElementsAre(HasSubstr("b.conf:2: brokerName: the value is \"a # b\"")));
  EXPECT_EQ(o.config.name, "a # b");
}

TEST(ConfigTable, AHashInsideATextIsNoComment) {
  const Outcome o = Apply("brokerName=RaftNode00#1\n");
  EXPECT_THAT(o.report.warnings, IsEmpty());
  EXPECT_EQ(o.config.name, "RaftNode00#1");
}

TEST(ConfigTable, CFG_1_WarnsOfAnUnknownKeyWithTheNearestKnownOne) {
  const Outcome o =
      Apply("listenport=1\nautoCreateTopicEnabled=false\nbrokerIp2=x\nnotARealKey=1\n");
  EXPECT_TRUE(o.report.ok());
  EXPECT_EQ(o.config.port, 10911);
  ASSERT_EQ(o.report.unknown.size(), 4u);
  EXPECT_EQ(o.report.unknown[0].suggestion, "listenPort");
  EXPECT_EQ(o.report.unknown[1].suggestion, "autoCreateTopicEnable");
  EXPECT_EQ(o.report.unknown[2].suggestion, "brokerIP2");
  EXPECT_EQ(o.report.unknown[3].suggestion, "");
  EXPECT_EQ(o.report.warnings[0],
            "b.conf:1: listenport: unknown key, ignored; did you mean listenPort?");
  EXPECT_EQ(o.report.warnings[3], "b.conf:4: notARealKey: unknown key, ignored");
}

TEST(ConfigTable, AcceptsAGenuineKeyWithoutEffectWithoutAWarning) {
  const Outcome o = Apply("useEpollNativeSelector=true\n");
  EXPECT_THAT(o.report.warnings, IsEmpty());
  EXPECT_THAT(o.report.no_effect, ElementsAre("useEpollNativeSelector"));
}

TEST(ConfigTable, ReadsAnAliasWithANote) {
  const Outcome o = Apply("keepHours=5\n");
  EXPECT_EQ(o.config.kept, std::chrono::hours(5));
  EXPECT_THAT(o.report.warnings,
              ElementsAre("b.conf:1: keepHours is read as fileReservedTime: old name"));
}

TEST(ConfigTable, TheProperSpellingWinsOverAnAlias) {
  EXPECT_EQ(Apply("fileReservedTime=6\nkeepHours=5\n").config.kept, std::chrono::hours(6));
}

TEST(ConfigTable, WarnsOfOverwrittenKeysWithBothLinesAndOfAByteOrderMark) {
  const Outcome o = Apply(
      "\xef\xbb\xbf"
      "brokerName=a\nbrokerName=b\n");
  EXPECT_THAT(o.report.warnings, ElementsAre(HasSubstr("byte order mark"),
                                             "b.conf:1: brokerName is overwritten by line 2"));
  EXPECT_EQ(o.config.name, "b");
}

TEST(ConfigTable, CFG_5_RefusesAPathWithControlCharactersAndWarnsOfALostBackslash) {
  const Outcome bad = Apply("storePathRootDir=C:\\Users\\rmq\\new\n");
  ASSERT_EQ(bad.report.faults.size(), 1u);
  EXPECT_THAT(bad.report.faults[0].ToString(), HasSubstr("C:Users\\x0dmq\\x0aew"));
  const Outcome lost = Apply("storePathRootDir=C:\\Data\\Store\n");
  EXPECT_TRUE(lost.report.ok());
  EXPECT_THAT(lost.report.warnings, ElementsAre(HasSubstr("\"C:DataStore\"")));
  EXPECT_THAT(Apply("storePathRootDir=C:\\\\data\n").report.warnings, IsEmpty());
}

TEST(ConfigTable, PrintsAllOrTheImportantKeys) {
  const auto table = MakeTable();
  EXPECT_EQ(table.PrintImportant(Sample{}), "listenPort=10911\nbrokerName=n\n");
  EXPECT_THAT(table.Print(Sample{}),
              HasSubstr("flushDiskType=SYNC_FLUSH\nheartBeatTimeIntervalMs=50\n"));
}

TEST(ConfigTable, WhatItPrintsItReadsBackUnchanged) {
  const auto table = MakeTable();
  const Outcome o = Apply("listenPort=1\nratio=0.25\nflushDiskType=ASYNC_FLUSH\nbrokerName=x\n");
  EXPECT_EQ(table.Print(Apply(table.Print(o.config)).config), table.Print(o.config));
}

TEST(ConfigTable, DocumentsSectionsDefaultsRangesAliasesAndKeysWithoutEffect) {
  const std::string page = MakeTable().Markdown();
  EXPECT_THAT(page, HasSubstr("## Addresses"));
  EXPECT_THAT(page,
              HasSubstr("| `listenPort` | integer | `10911` | from 1 to 65535 | main port |"));
  EXPECT_THAT(page, HasSubstr("| `brokerName` | text | host name |  | group name |"));
  EXPECT_THAT(page, HasSubstr("| `keepHours` | `fileReservedTime` | old name |"));
  EXPECT_THAT(page, HasSubstr("`brokerIP2`, `useEpollNativeSelector`"));
}

TEST(ConfigTable, AKeyThatIsInTheTableTwiceEndsTheProgram) {
  EXPECT_DEATH(
      {
        auto table = MakeTable();
        table.NoEffect({"listenPort"});
      },
      "listenPort is in the table twice");
}

}  // namespace
}  // namespace triad
