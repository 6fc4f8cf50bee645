// What a power loss takes back, on real files.

#include "tests/chaos/crash_journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

namespace triad::chaos {
namespace {

class CrashJournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/triad-crash-journal-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    dir_ = name;
    std::filesystem::create_directories(dir_ + "/files");
    std::filesystem::create_directories(dir_ + "/trash");
    Fresh();
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void Fresh() { journal_ = std::make_unique<CrashJournal>(dir_ + "/files", dir_ + "/trash"); }
  std::string Path(const std::string& name) const { return dir_ + "/files" + name; }
  int Make(const std::string& name) {
    const int fd = ::open(Path(name).c_str(), O_RDWR | O_CREAT, 0644);
    EXPECT_EQ(journal_->Created(name), 0);
    return fd;
  }
  void Write(int fd, const std::string& bytes, std::uint64_t offset) {
    ASSERT_EQ(journal_->Write(fd, bytes.data(), bytes.size(), offset), 0);
  }
  std::string Content(const std::string& name) const {
    std::ifstream in(Path(name), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return in ? text.str() : "absent";
  }
  // A synced file of `size` bytes `c`.
  int Synced(const std::string& name, std::size_t size, char c) {
    const int fd = Make(name);
    Write(fd, std::string(size, c), 0);
    journal_->Synced(fd, true);
    return fd;
  }

  std::string dir_;
  std::unique_ptr<CrashJournal> journal_;
};

TEST_F(CrashJournalTest, WhatWasSyncedSurvivesEveryCrash) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const int fd = Synced("/a", 20000, 'x');
    Write(fd, std::string(5000, 'y'), 30000);
    ::close(fd);
    journal_->Crash(seed);
    const std::string content = Content("/a");
    ASSERT_GE(content.size(), 20000u) << seed;
    EXPECT_EQ(content.substr(0, 20000), std::string(20000, 'x')) << seed;
  }
}

TEST_F(CrashJournalTest, UnsyncedPagesAreLostKeptOrTornAtASector) {
  std::set<std::string> kinds;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const int fd = Synced("/a", 16384, 'x');
    Write(fd, std::string(16384, 'y'), 0);
    ::close(fd);
    journal_->Crash(seed);
    const std::string content = Content("/a");
    ASSERT_EQ(content.size(), 16384u);
    for (std::size_t page = 0; page < 4; ++page) {
      const std::string bytes = content.substr(page * 4096, 4096);
      const std::size_t new_bytes = std::min(bytes.find('x'), bytes.size());
      EXPECT_EQ(bytes, std::string(new_bytes, 'y') + std::string(4096 - new_bytes, 'x')) << seed;
      EXPECT_EQ(new_bytes % 512, 0u) << seed;
      kinds.insert(new_bytes == 0 ? "lost" : new_bytes == 4096 ? "kept" : "torn");
    }
    Fresh();
  }
  EXPECT_EQ(kinds.size(), 3u);
}

TEST_F(CrashJournalTest, ASyncOfOneFileKeepsNothingOfAnother) {
  bool lost = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const int a = Synced("/a", 4096, 'x');
    const int b = Synced("/b", 4096, 'x');
    Write(a, "new", 0);
    Write(b, "new", 0);
    journal_->Synced(a, false);
    ::close(a);
    ::close(b);
    journal_->Crash(seed);
    EXPECT_EQ(Content("/a").substr(0, 3), "new");
    lost = lost || Content("/b").substr(0, 3) == "xxx";
  }
  EXPECT_TRUE(lost);
}

TEST_F(CrashJournalTest, NamesComeBackInPrefixes) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    ::close(Synced("/old", 10, 'o'));
    ::close(Synced("/target", 10, 't'));
    ASSERT_EQ(journal_->Rename("/old", "/target"), 0);
    ::close(Make("/fresh"));
    ASSERT_EQ(journal_->Remove("/target"), 0);
    journal_->Crash(seed);
    const std::string state = Content("/old") + " " + Content("/target") + " " + Content("/fresh");
    seen.insert(state);
    std::filesystem::remove(Path("/fresh"));
  }
  const std::set<std::string> expected{"oooooooooo tttttttttt absent", "absent oooooooooo absent",
                                       "absent oooooooooo ", "absent absent "};
  for (const std::string& state : seen) EXPECT_TRUE(expected.contains(state)) << state;
  EXPECT_GE(seen.size(), 3u);
}

TEST_F(CrashJournalTest, ACutThatWasNotSyncedHappensWhollyOrNotAtAll) {
  std::set<std::size_t> sizes;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const int fd = Synced("/a", 20000, 'x');
    ASSERT_EQ(journal_->Truncate(fd, 5000), 0);
    ::close(fd);
    journal_->Crash(seed);
    const std::string content = Content("/a");
    sizes.insert(content.size());
    EXPECT_EQ(content, std::string(content.size(), 'x')) << seed;
  }
  EXPECT_EQ(sizes, (std::set<std::size_t>{5000, 20000}));
}

TEST_F(CrashJournalTest, ASyncedNameStays) {
  const int fd = Make("/a");
  journal_->Synced(fd, false);  // its creation is metadata: it goes with the data
  ::close(fd);
  ASSERT_EQ(journal_->MakeDir("/d", 0755), 0);
  journal_->SyncedNames();
  journal_->Crash(1);
  EXPECT_EQ(Content("/a"), "");
  EXPECT_TRUE(std::filesystem::is_directory(Path("/d")));
}

}  // namespace
}  // namespace triad::chaos
