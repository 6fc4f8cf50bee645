// What a message store makes of directories that are older, newer, damaged or gone: everything
// comes back from the log.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tests/unit/broker/message_store_fixture.h"

namespace triad::broker {
namespace {

using testing::ElementsAre;

// Copies of the directories as they stand at some moment are what a kill leaves behind.
class MessageStoreCrashTest : public MessageStoreTest {
 protected:
  void Save(const std::string& part) {
    stdfs::remove_all(dir_.path() + "/saved-" + part);
    if (!stdfs::exists(root() + "/" + part)) return;
    stdfs::copy(root() + "/" + part, dir_.path() + "/saved-" + part,
                stdfs::copy_options::recursive);
  }
  void Restore(const std::string& part) {
    stdfs::remove_all(root() + "/" + part);
    if (!stdfs::exists(dir_.path() + "/saved-" + part)) return;
    stdfs::copy(dir_.path() + "/saved-" + part, root() + "/" + part,
                stdfs::copy_options::recursive);
  }
  static std::string Keyed(const std::string& key) { return "KEYS\x01" + key + "\x02"; }
  // Messages to two queues; those to U are remembered.
  void SendPairs(int count, const std::string& to_t, const std::string& to_u) {
    for (int i = 0; i < count; ++i) {
      const std::string body = to_u + std::to_string(i);
      Send("T", 0, to_t + std::to_string(i), Keyed("k"));
      Send("U", 1, body, Keyed(body + " all"));
      expected_u_.push_back(body);
    }
  }
  void Work() {
    Create("T");
    Create("U");
    SendPairs(20, "t", "u");
  }
  void DeleteAndRecreate() {
    Delete("T");
    Create("T");
    SendPairs(5, "n", "v");
  }
  void ExpectEverything() {
    EXPECT_THAT(Bodies(Queue("T", 0)), ElementsAre("n0", "n1", "n2", "n3", "n4"));
    EXPECT_EQ(Bodies(Queue("U", 1)), expected_u_);
    // The deleted topic's messages are not those of the new one.
    EXPECT_THAT(ByKey("T", "k"), ElementsAre("n0", "n1", "n2", "n3", "n4"));
    EXPECT_EQ(ByKey("U", "all"), expected_u_);
    for (const std::string& body : expected_u_) EXPECT_THAT(ByKey("U", body), ElementsAre(body));
    EXPECT_EQ(Send("T", 0, "next").queue_offset, QueueOffset{5});
    EXPECT_EQ(Send("U", 1, "next").queue_offset,
              QueueOffset{static_cast<std::int64_t>(expected_u_.size())});
  }

  std::vector<std::string> expected_u_;
};

TEST_F(MessageStoreCrashTest, AStateThatWasNeverFlushedIsBuiltFromTheLog) {
  Begin();
  Work();
  DeleteAndRecreate();
  Close();
  stdfs::remove_all(root() + "/state");
  stdfs::remove_all(root() + "/consumequeue");
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, AnOlderStateAndQueuesCatchUp) {
  Begin();
  Work();
  Close();
  Save("state");
  Save("consumequeue");
  Begin();
  DeleteAndRecreate();
  Close();
  Restore("state");
  Restore("consumequeue");
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, AnOlderStateCutsNewerQueues) {
  Begin();
  Work();
  Close();
  Save("state");
  Begin();
  DeleteAndRecreate();
  Close();
  Restore("state");  // the queues know of the deletion, the state does not
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, LostQueuesAreRebuilt) {
  Begin();
  Work();
  DeleteAndRecreate();
  Close();
  stdfs::remove_all(root() + "/consumequeue");
  Open();
  EXPECT_EQ(Bodies(Queue("U", 1)), expected_u_);
  Start();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, ALostKeyIndexIsRebuilt) {
  Begin();
  Work();
  DeleteAndRecreate();
  Close();
  stdfs::remove_all(root() + "/keyindex");
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, ADamagedKeyIndexIsRebuilt) {
  Begin();
  Work();
  Close();
  Begin();
  DeleteAndRecreate();
  Close();
  std::ofstream(root() + "/keyindex/00000000000000000000", std::ios::in | std::ios::binary)
      << "damaged";
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, AnOlderKeyIndexCatchesUp) {
  Begin();
  Work();
  Close();
  Save("state");
  Save("keyindex");
  Begin();
  DeleteAndRecreate();
  Close();
  Restore("keyindex");
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, OneLostQueueIsRebuilt) {
  Begin();
  Work();
  DeleteAndRecreate();
  Close();
  stdfs::remove_all(root() + "/consumequeue/U");
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, AShortQueueIsRebuilt) {
  Begin();
  Work();
  DeleteAndRecreate();
  Close();
  const std::string file = root() + "/consumequeue/U/1/00000000000000000000";
  stdfs::resize_file(file, stdfs::file_size(file) - 30);
  Begin();
  ExpectEverything();
}

// A bit or the last bytes of any file of the queues and the key index: found, whoever asks first,
// and rebuilt from the log while everything else is served.
TEST_F(MessageStoreCrashTest, WhateverRotsInADerivedFileIsRebuiltWhileItServes) {
  Begin();
  Work();
  DeleteAndRecreate();
  Close();
  const std::uint64_t base = std::random_device{}();
  for (std::uint64_t seed = base; seed < base + 30; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::string> files;
    for (const char* part : {"/consumequeue", "/keyindex"}) {
      for (const auto& entry : stdfs::recursive_directory_iterator(root() + part)) {
        if (entry.is_regular_file() && entry.file_size() > 0) files.push_back(entry.path());
      }
    }
    std::sort(files.begin(), files.end());
    const std::string file = files[random() % files.size()];
    const std::uint64_t size = stdfs::file_size(file);
    const std::uint64_t at = random() % size;
    const bool is_cut = random() % 3 == 0;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + file + (is_cut ? " cut at " : " bit at ") +
                 std::to_string(at));
    if (is_cut) {
      stdfs::resize_file(file, at);
    } else {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(static_cast<std::streamoff>(at));
      const char byte = static_cast<char>(stream.get() ^ (1 << random() % 8));
      stream.seekp(static_cast<std::streamoff>(at));
      stream.put(byte);
    }
    Open();
    EXPECT_EQ(store_->RangeOf(Queue("T", 0)).max, QueueOffset{5}) << "never a smaller one";
    EXPECT_EQ(store_->RangeOf(Queue("U", 1)).max.value(),
              static_cast<std::int64_t>(expected_u_.size()));
    Start();
    EXPECT_THAT(Bodies(Queue("T", 0)), ElementsAre("n0", "n1", "n2", "n3", "n4"));
    EXPECT_EQ(Bodies(Queue("U", 1)), expected_u_);
    EXPECT_THAT(ByKey("T", "k"), ElementsAre("n0", "n1", "n2", "n3", "n4"));
    EXPECT_EQ(ByKey("U", "all"), expected_u_);
    Close();
    if (HasFailure()) return;
  }
  Begin();
  ExpectEverything();
}

TEST_F(MessageStoreCrashTest, NobodyHasToAskForWhatRotted) {
  Begin();
  Work();
  DeleteAndRecreate();
  Close();
  const std::string file = root() + "/consumequeue/U/1/00000000000000000000";
  const std::string whole = ReadFile(PosixFileSystem(), file).value();
  std::string rotten = whole;
  rotten[100] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), file, rotten).ok());
  Begin();
  EXPECT_TRUE(Eventually([&] { return ReadFile(PosixFileSystem(), file).value() == whole; }));
}

// The state and the queues need entries that rotted behind what the log's own start looks at.
TEST_F(MessageStoreCrashTest, DamageInWhatAStartReplaysMakesThePeerRecoverAndKeepsItsFile) {
  Begin();
  Work();
  Close();
  Save("state");
  Save("consumequeue");
  Begin();
  DeleteAndRecreate();
  Close();
  Restore("state");
  Restore("consumequeue");
  const std::string segment = root() + "/dledger-n0/00000000000000000000";
  std::string bytes = ReadFile(PosixFileSystem(), segment).value();
  const std::size_t at = bytes.find("n2");
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), segment, bytes).ok());
  Open();
  ASSERT_TRUE(store_->Start().ok());
  EXPECT_TRUE(Eventually([&] { return store_->node().leader_info().recovering; }));
  EXPECT_EQ(ByKey("U", "u3"), std::vector<std::string>{"u3"}) << "what is whole is served";
  Close();
  EXPECT_EQ(ReadFile(PosixFileSystem(), segment)->substr(8192), bytes.substr(8192));
}

TEST_F(MessageStoreCrashTest, FlushesAndCheckpointsByTimeLeaveAConsistentWhole) {
  flush_ms_ = 1;
  Begin();
  Work();
  DeleteAndRecreate();
  // More work until a flush has passed this point.
  const LogIndex here = store_->state().applied_index();
  for (int i = 0; store_->state().flushed_index() < here; ++i) {
    ASSERT_LT(i, 10000);
    Send("U", 1, "w" + std::to_string(i), Keyed("w" + std::to_string(i) + " all"));
    expected_u_.push_back("w" + std::to_string(i));
  }
  Close();
  Begin();
  ExpectEverything();
}

}  // namespace
}  // namespace triad::broker
