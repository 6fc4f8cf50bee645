#include "nameserver/kv_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temp_dir.h"

namespace triad::nameserver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class KvConfigTest : public testing::Test {
 protected:
  FileSystem& fs_ = PosixFileSystem();
  TempDir dir_;
  const std::string path_ = dir_.Path("deep/kvConfig.json");
  KvConfig kv_{fs_, path_};
};

TEST_F(KvConfigTest, AnAbsentFileIsAnEmptyTable) {
  EXPECT_TRUE(kv_.Load().ok());
  EXPECT_EQ(kv_.Get("n", "k"), std::nullopt);
  EXPECT_EQ(kv_.List("n"), std::nullopt);
}

TEST_F(KvConfigTest, WhatWasPutIsThereAgainAfterARestart) {
  ASSERT_TRUE(kv_.Put("n", "k", "v \"1\"\n\xe6\xb6\x88").ok());
  ASSERT_TRUE(kv_.Put("n", "gone", "x").ok());
  ASSERT_TRUE(kv_.Delete("n", "gone").ok());
  KvConfig again(fs_, path_);
  ASSERT_TRUE(again.Load().ok());
  EXPECT_THAT(again.List("n"), testing::Optional(ElementsAre(Pair("k", "v \"1\"\n\xe6\xb6\x88"))));
}

TEST_F(KvConfigTest, ReadsTheOriginalsFile) {
  ASSERT_TRUE(fs_.CreateDirs(dir_.Path("deep")).ok());
  ASSERT_TRUE(WriteFileAtomically(
                  fs_, path_, "{\"configTable\":{\"ORDER_TOPIC_CONFIG\":{\"T\":\"broker-a:4\"}}}\n")
                  .ok());
  ASSERT_TRUE(kv_.Load().ok());
  EXPECT_EQ(kv_.Get("ORDER_TOPIC_CONFIG", "T"), "broker-a:4");
}

TEST_F(KvConfigTest, ADamagedFileIsRefusedByNameAndLeftAlone) {
  ASSERT_TRUE(fs_.CreateDirs(dir_.Path("deep")).ok());
  for (const std::string text : {"", "{\"configTable\":{\"n\":", "[]", "{}"}) {
    ASSERT_TRUE(WriteFileAtomically(fs_, path_, text).ok());
    const Status status = kv_.Load();
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
    EXPECT_EQ(ReadFile(fs_, path_).value(), text);
  }
}

TEST_F(KvConfigTest, AChangeThatCannotBeWrittenDoesNotCount) {
  ASSERT_TRUE(kv_.Put("n", "k", "old").ok());
  ASSERT_TRUE(fs_.CreateDirs(path_ + ".tmp").ok());  // in the way of the new file
  EXPECT_FALSE(kv_.Put("n", "k", "new").ok());
  EXPECT_FALSE(kv_.Delete("n", "k").ok());
  EXPECT_EQ(kv_.Get("n", "k"), "old");
}

TEST_F(KvConfigTest, DeletingWhatIsNotThereIsFine) {
  EXPECT_TRUE(kv_.Delete("n", "k").ok());
  EXPECT_FALSE(fs_.Exists(path_));
}

TEST_F(KvConfigTest, RefusesAnEmptyNamespaceOrKey) {
  EXPECT_EQ(kv_.Put("", "k", "v").message(), "namespace or key is null");
  EXPECT_EQ(kv_.Put("n", "", "v").message(), "namespace or key is null");
}

TEST_F(KvConfigTest, RefusesMoreThanItsLimit) {
  EXPECT_EQ(kv_.Put("n", "k", std::string(kMaxKvBytes, 'x')).code(), StatusCode::kBusy);
  EXPECT_EQ(kv_.Get("n", "k"), std::nullopt);
}

TEST_F(KvConfigTest, ORD_4_AnOrderValueMustBeReadableByClients) {
  EXPECT_TRUE(kv_.Put("ORDER_TOPIC_CONFIG", "T", "broker-a:4;broker-b:12").ok());
  for (const char* bad : {"", "broker-a", "broker-a:", ":4", "broker-a:x", "broker-a:4;",
                          "broker-a:0", "broker-a:-1", ";", "a:4,b:4", "a:4;;b:4"}) {
    EXPECT_FALSE(kv_.Put("ORDER_TOPIC_CONFIG", "T", bad).ok()) << bad;
  }
  EXPECT_EQ(kv_.Get("ORDER_TOPIC_CONFIG", "T"), "broker-a:4;broker-b:12");
}

}  // namespace
}  // namespace triad::nameserver
