// The contract of StateStore, held against every implementation.

#include "broker/state/state_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/broker/state_support.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {
namespace {

using Opener = Result<std::unique_ptr<StateStore>> (*)(const std::string& dir);

struct Implementation {
  const char* name;
  Opener open;
};

class StateStoreContract : public testing::TestWithParam<Implementation> {
 protected:
  std::unique_ptr<StateStore> Open() {
    Result<std::unique_ptr<StateStore>> store = GetParam().open(dir_.path() + "/a/state");
    CHECK(store.ok()) << store.status();
    return std::move(store.value());
  }
  static std::vector<std::pair<std::string, std::string>> Records(StateStore& store) {
    std::vector<std::pair<std::string, std::string>> records;
    const Status read = store.ForEach(
        [&](std::string_view key, std::string_view value) { records.emplace_back(key, value); });
    CHECK(read.ok()) << read;
    return records;
  }
  const std::string& path() const { return dir_.path(); }

 private:
  StoreTempDir dir_;
};

using Record = std::pair<std::string, std::string>;

TEST_P(StateStoreContract, IsEmptyAtFirst) {
  EXPECT_TRUE(Records(*Open()).empty());
}

TEST_P(StateStoreContract, VisitsInKeyOrder) {
  const auto store = Open();
  ASSERT_TRUE(store->Write({.puts = {{"b", "2"}, {"a", "1"}, {"c", ""}}, .deletes = {}}).ok());
  EXPECT_THAT(Records(*store),
              testing::ElementsAre(Record("a", "1"), Record("b", "2"), Record("c", "")));
}

TEST_P(StateStoreContract, ABatchPutsReplacesAndDeletes) {
  const auto store = Open();
  ASSERT_TRUE(store->Write({.puts = {{"a", "1"}, {"b", "2"}}, .deletes = {}}).ok());
  ASSERT_TRUE(store->Write({.puts = {{"b", "3"}}, .deletes = {"a", "absent"}}).ok());
  EXPECT_THAT(Records(*store), testing::ElementsAre(Record("b", "3")));
}

TEST_P(StateStoreContract, KeepsAnyBytes) {
  const std::string key("\0\xff/k", 4);
  const std::string value(100000, '\0');
  const auto store = Open();
  ASSERT_TRUE(store->Write({.puts = {{key, value}}, .deletes = {}}).ok());
  EXPECT_THAT(Records(*store), testing::ElementsAre(Record(key, value)));
}

TEST_P(StateStoreContract, RemembersAcrossReopening) {
  {
    const auto store = Open();
    for (int i = 0; i < 300; ++i) {
      const std::string key = "k" + std::to_string(i % 7);
      ASSERT_TRUE(store
                      ->Write({.puts = {{key, std::string(5000, 'v') + std::to_string(i)}},
                               .deletes = {"k" + std::to_string((i + 1) % 7)}})
                      .ok());
    }
  }
  const auto store = Open();
  const auto records = Records(*store);
  ASSERT_EQ(records.size(), 6u);
  for (const auto& [key, value] : records) EXPECT_NE(key, "k" + std::to_string(300 % 7));
  EXPECT_EQ(records.back().second, std::string(5000, 'v') + "299");
}

INSTANTIATE_TEST_SUITE_P(All, StateStoreContract,
                         testing::Values(Implementation{"LevelDb", OpenLevelDbStateStore},
                                         Implementation{"Memory", OpenMemory}),
                         [](const auto& which) { return std::string(which.param.name); });

TEST(MemoryStateStore, ATornBatchIsAbsentAsAWhole) {
  StoreTempDir dir;
  FileSystem& fs = PosixFileSystem();
  const std::string journal = dir.path() + "/journal";
  std::string before;
  {
    const auto store = OpenMemoryStateStore(fs, dir.path()).value();
    ASSERT_TRUE(store->Write({.puts = {{"a", "1"}}, .deletes = {}}).ok());
    before = ReadFile(fs, journal).value();
    ASSERT_TRUE(store->Write({.puts = {{"b", "2"}, {"c", "3"}}, .deletes = {"a"}}).ok());
  }
  const std::string whole = ReadFile(fs, journal).value();
  for (std::size_t size = before.size(); size < whole.size(); ++size) {
    ASSERT_TRUE(WriteFileAtomically(fs, journal, whole.substr(0, size)).ok());
    const auto store = OpenMemoryStateStore(fs, dir.path()).value();
    std::map<std::string, std::string> records;
    ASSERT_TRUE(
        store
            ->ForEach([&](auto key, auto value) { records[std::string(key)] = std::string(value); })
            .ok());
    EXPECT_EQ(records, (std::map<std::string, std::string>{{"a", "1"}})) << size;
  }
}

}  // namespace
}  // namespace triad::broker
