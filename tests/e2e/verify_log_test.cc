// mqadmin verifyLog on real files: what rotted at one peer is found, shown and mended.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "dledger/log/segment_file.h"
#include "remoting/json.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/run_admin.h"

namespace triad {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

// The bytes of message bodies, so that a place in the middle of a record is easy to find.
const std::string kFiller(3000, 'F');

class VerifyLog : public ClusterTest {
 protected:
  AdminRun Run(const std::vector<std::string>& words) {
    return RunAdmin(cluster_->namesrv_address(), words);
  }
  // More than a segment of messages.
  void Fill(const std::string& topic, int count) {
    CreateTopic(topic, 4);
    client::ProducerOptions options;
    options.client = ClientOf("filler");
    client::Producer producer(options);
    ASSERT_TRUE(producer.Start().ok());
    for (int i = 0; i < count; ++i) {
      client::Message message;
      message.topic = topic;
      message.body = kFiller;
      ASSERT_TRUE(producer.Send(message).ok());
    }
    producer.Shutdown();
  }
  std::vector<std::filesystem::path> Segments(std::size_t peer) const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(cluster_->brokers()[peer].store_dir)) {
      const std::string path = entry.path();
      const std::string name = entry.path().filename();
      if (path.find("dledger-") == std::string::npos || name.size() != 20) continue;
      if (name.find_first_not_of("0123456789") == std::string::npos) found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  // Turns one bit in the middle of the `nth` body of a segment file. The log position of that byte.
  static std::int64_t Rot(const std::filesystem::path& segment, int nth) {
    std::string bytes(std::filesystem::file_size(segment), '\0');
    const int fd = ::open(segment.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_GE(fd, 0);
    EXPECT_EQ(::pread(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    std::size_t at = 0;
    for (int i = 0; i <= nth; ++i) {
      at = bytes.find(kFiller, at == 0 ? 0 : at + kFiller.size());
      EXPECT_NE(at, std::string::npos);
    }
    at += kFiller.size() / 2;
    const char rotten = static_cast<char>(bytes[at] ^ 0x10);
    EXPECT_EQ(::pwrite(fd, &rotten, 1, static_cast<off_t>(at)), 1);
    ::close(fd);
    return std::stoll(segment.filename()) + static_cast<std::int64_t>(at) -
           static_cast<std::int64_t>(dledger::kSegmentHeadBytes);
  }
  // Rows of verifyLog -o json about `peer` whose CRC is wrong.
  static std::vector<remoting::Json> Wrong(const std::string& out, const std::string& peer) {
    const Result<remoting::Json> rows = remoting::Json::Parse(out.substr(0, out.find('\n')));
    EXPECT_TRUE(rows.ok()) << out;
    std::vector<remoting::Json> wrong;
    if (!rows.ok()) return wrong;
    for (const remoting::Json& row : rows->items()) {
      EXPECT_EQ(row["CRC"].AsString() == "wrong", row["Peer"].AsString() == peer) << out;
      if (row["Peer"].AsString() == peer) wrong.push_back(row);
    }
    return wrong;
  }
  // All peers have applied the same.
  void AwaitCaughtUp() {
    ASSERT_TRUE(Eventually(
        [&] {
          const AdminRun run = Run({"raftStatus", "-o", "json"});
          const Result<remoting::Json> rows = remoting::Json::Parse(run.out);
          if (!rows.ok() || rows->items().size() != 3) return false;
          std::set<std::string> applied;
          for (const remoting::Json& row : rows->items()) {
            if (row["Ready"].AsString() != "yes") return false;
            applied.insert(row["Applied"].AsString());
          }
          return applied.size() == 1;
        },
        seconds(30)));
  }
};

TEST_F(VerifyLog, AFlippedByteIsFoundShownAndRepairedInSealedAndActiveSegments) {
  // The background comparison is off: this test is about the command.
  StartCluster({{"mappedFileSizeCommitLog", "1048576"},
                {"logVerifyBytesPerSecond", "0"},
                {"shutdownWaitTimeSeconds", "1"}});
  Fill("Rot", 800);
  AwaitCaughtUp();
  AdminRun run = Run({"verifyLog"});
  EXPECT_EQ(run.exit_code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("identical"));

  const std::size_t victim = (Leader() + 1) % 3;
  const std::string id = cluster_->brokers()[victim].peer_id;
  ASSERT_TRUE(cluster_->Signal(victim, SIGTERM).ok());
  run = Run({"verifyLog"});
  EXPECT_EQ(run.exit_code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("not compared: " + id));
  std::vector<std::filesystem::path> segments = Segments(victim);
  ASSERT_GE(segments.size(), 3u);
  const std::int64_t sealed = Rot(segments[0], 50);
  // The active one: the last that holds messages.
  std::int64_t active = -1;
  for (auto it = segments.rbegin(); it != segments.rend() && active < 0; ++it) {
    std::ifstream in(*it, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    if (bytes.find(kFiller) != std::string::npos) active = Rot(*it, 0);
  }
  ASSERT_GT(active, sealed);
  ASSERT_TRUE(cluster_->StartBroker(victim).ok());
  ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());
  AwaitCaughtUp();

  run = Run({"verifyLog", "-o", "json"});
  EXPECT_EQ(run.exit_code, 1) << run.out;
  const std::vector<remoting::Json> wrong = Wrong(run.out, id);
  ASSERT_EQ(wrong.size(), 2u) << run.out;
  const std::int64_t places[] = {sealed, active};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t begin = wrong[i]["Position"].AsInt64();
    EXPECT_LE(begin, places[i]);
    EXPECT_GT(begin + wrong[i]["Bytes"].AsInt64(), places[i]);
    EXPECT_THAT(wrong[i]["Verdict"].AsString(), HasSubstr("damaged"));
  }

  run = Run({"verifyLog", "--repair"});
  EXPECT_EQ(run.exit_code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("2 records repaired"));
  run = Run({"verifyLog"});
  EXPECT_EQ(run.exit_code, 0) << run.out;
  CheckLogsIdentical();
}

TEST_F(VerifyLog, TheBackgroundComparisonRaisesAnAlarmThatEndsWithTheRepair) {
  StartCluster({{"mappedFileSizeCommitLog", "1048576"},
                {"logVerifyBytesPerSecond", "4194304"},
                {"shutdownWaitTimeSeconds", "1"}});
  Fill("Alarm", 300);
  AwaitCaughtUp();
  const std::size_t victim = (Leader() + 1) % 3;
  ASSERT_TRUE(cluster_->Signal(victim, SIGTERM).ok());
  Rot(Segments(victim)[0], 20);
  ASSERT_TRUE(cluster_->StartBroker(victim).ok());
  ASSERT_TRUE(cluster_->WaitForMembers(3, seconds(30)).ok());
  const std::string address = cluster_->brokers()[victim].client_address;
  const auto alarm = [&] {
    const auto info = admin_->RuntimeInfo(address);
    return info.ok() && info->contains("triadLogAlarm") ? info->at("triadLogAlarm") : "";
  };
  EXPECT_TRUE(Eventually([&] { return !alarm().empty(); }, seconds(30)));
  EXPECT_THAT(Run({"raftStatus"}).out, HasSubstr("position"));
  EXPECT_THAT(LocalCluster::Tail(cluster_->brokers()[victim].log_file, 200),
              HasSubstr("log alarm: "));
  const AdminRun run = Run({"verifyLog", "--repair"});
  EXPECT_EQ(run.exit_code, 0) << run.out;
  EXPECT_TRUE(Eventually([&] { return alarm().empty(); }, seconds(30)));
}

TEST_F(VerifyLog, WithOnePeerAloneThereIsNothingToCompareWith) {
  StartCluster();
  const std::size_t leader = Leader();
  ASSERT_TRUE(cluster_->Signal((leader + 1) % 3, SIGKILL).ok());
  ASSERT_TRUE(cluster_->Signal((leader + 2) % 3, SIGKILL).ok());
  const AdminRun run = Run({"verifyLog", "-b", cluster_->brokers()[leader].client_address});
  EXPECT_EQ(run.exit_code, 2) << run.out;
  EXPECT_THAT(run.out, HasSubstr("two peers at least must answer"));
}

}  // namespace
}  // namespace triad
