// The simulated file system does what the machine's does, and its crashes what they promise.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/file_system.h"
#include "tests/sim/sim_file_system.h"

namespace triad {
namespace {

using sim::CrashMode;
using sim::Random;
using sim::SimFault;
using sim::SimFileSystem;

// One random operation on `fs` under `root`; what it answered, in words without the root.
class Script {
 public:
  Script(FileSystem& fs, std::string root, std::uint64_t seed)
      : fs_(fs), root_(std::move(root)), random_(seed) {}

  std::string Step() {
    const std::string path = root_ + "/" + Name();
    switch (random_.Below(10)) {
      case 0: return Open(path);
      case 1: return Write();
      case 2: return Read();
      case 3: return Word(fs_.Rename(path, root_ + "/" + Name()));
      case 4: return Word(fs_.Remove(root_ + "/f" + std::to_string(random_.Below(4))));
      case 5: return Word(fs_.CreateDirs(root_ + "/d" + std::to_string(random_.Below(2))));
      case 6: return List();
      case 7: return fs_.Exists(path) ? "there" : "not there";
      case 8: return Resize();
      default: return Sync(path);
    }
  }

 private:
  static std::string Word(const Status& status) {
    return std::string(StatusCodeName(status.code()));
  }
  std::string Name() {
    const std::string file = "f" + std::to_string(random_.Below(4));
    return random_.OneIn(3) ? "d" + std::to_string(random_.Below(2)) + "/" + file : file;
  }
  File* Any() { return files_.empty() ? nullptr : files_[random_.Below(files_.size())].get(); }
  std::string Open(const std::string& path) {
    OpenFlags flags{
        .create = !random_.OneIn(3), .exclusive = random_.OneIn(4), .truncate = random_.OneIn(4)};
    Result<std::unique_ptr<File>> file = fs_.Open(path, flags);
    if (file.ok()) files_.push_back(std::move(file).value());
    return Word(file.status());
  }
  std::string Write() {
    File* file = Any();
    const std::uint64_t offset = random_.Below(3000);
    const std::string a(random_.Below(700), static_cast<char>('a' + random_.Below(26)));
    const std::string b(random_.Below(30), static_cast<char>('A' + random_.Below(26)));
    const std::string_view parts[] = {a, b};
    return file == nullptr ? "" : Word(file->Write(offset, parts));
  }
  std::string Read() {
    File* file = Any();
    const std::uint64_t offset = random_.Below(4000);
    std::string buffer(random_.Below(1000), '\0');
    if (file == nullptr) return "";
    const Result<std::size_t> n = file->Read(offset, std::span<char>(buffer));
    return n.ok() ? buffer.substr(0, *n) : Word(n.status());
  }
  std::string Resize() {
    File* file = Any();
    const std::uint64_t size = random_.Below(4000);
    if (file == nullptr) return "";
    return Word(file->Truncate(size)) + std::to_string(file->Size().value());
  }
  std::string Sync(const std::string& path) {
    File* file = Any();
    const std::string dir = path.substr(0, path.rfind('/'));
    return Word(fs_.SyncDir(dir)) + (file == nullptr ? "" : Word(file->Sync()));
  }
  std::string List() {
    const Result<std::vector<DirEntry>> entries = fs_.List(root_);
    if (!entries.ok()) return Word(entries.status());
    std::string text;
    for (const DirEntry& entry : *entries) {
      text +=
          entry.name + (entry.is_directory ? "/" : " " + std::to_string(entry.size_bytes)) + ";";
    }
    return text;
  }

  FileSystem& fs_;
  const std::string root_;
  Random random_;
  std::vector<std::unique_ptr<File>> files_;
};

TEST(SimFileSystem, AnswersAsTheMachineDoes) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    const std::string root = std::filesystem::path(::testing::TempDir()) /
                             ("triad-script-" + std::to_string(::getpid()));
    SimFileSystem sim(seed);
    sim.set_short_writes(seed % 2 == 0);
    ASSERT_TRUE(sim.CreateDirs(root).ok());
    ASSERT_TRUE(PosixFileSystem().CreateDirs(root).ok());
    Script real(PosixFileSystem(), root, seed);
    Script simulated(sim, root, seed);
    for (int step = 0; step < 200; ++step) ASSERT_EQ(simulated.Step(), real.Step()) << step;
    std::filesystem::remove_all(root);
  }
}

class SimCrash : public ::testing::Test {
 protected:
  SimCrash() {
    EXPECT_TRUE(fs_.CreateDirs("/d").ok());
    Result<std::unique_ptr<File>> file = fs_.Open("/d/f", OpenFlags{.create = true});
    file_ = std::move(file).value();
    EXPECT_TRUE(fs_.SyncDir("/d").ok());
    EXPECT_TRUE(file_->Write(0, std::string(1024, 'd')).ok());
    EXPECT_TRUE(file_->Sync().ok());
  }
  SimFileSystem fs_{3};
  std::unique_ptr<File> file_;
};

TEST_F(SimCrash, LosesWhatWasNotSyncedAndNothingElse) {
  ASSERT_TRUE(file_->Write(0, std::string(2048, 'p')).ok());
  EXPECT_EQ(fs_.Bytes("/d/f"), std::string(2048, 'p'));
  fs_.Crash(CrashMode::kDropAll);
  EXPECT_EQ(fs_.Bytes("/d/f"), std::string(1024, 'd'));
}

TEST_F(SimCrash, KeepsAllWhenOnlyTheProcessDies) {
  ASSERT_TRUE(file_->Write(0, std::string(2048, 'p')).ok());
  fs_.Kill();
  EXPECT_EQ(fs_.Bytes("/d/f"), std::string(2048, 'p'));
  EXPECT_EQ(file_->Sync().code(), StatusCode::kIoError) << "the handle died with it";
  EXPECT_EQ(fs_.DurableBytes("/d/f"), std::string(1024, 'd'));
}

TEST_F(SimCrash, ASubsetMixesOldAndNewSectors) {
  std::set<std::string> seen;
  const sim::FileDisk disk = [this] {
    EXPECT_TRUE(file_->Write(0, std::string(1024, 'p')).ok());
    return fs_.disk();
  }();
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    sim::FileDisk copy = disk;
    Random random(seed);
    copy.Crash(CrashMode::kSubset, &random);
    seen.insert(copy.Bytes(copy.Lookup("/d/f").value()));
  }
  const std::string old(512, 'd');
  const std::string now(512, 'p');
  EXPECT_EQ(seen, (std::set<std::string>{old + old, old + now, now + old, now + now}));
}

TEST_F(SimCrash, ANameWithoutDirectorySyncMayBeLost) {
  int kept = 0;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    SimFileSystem fs(seed);
    ASSERT_TRUE(fs.CreateDirs("/d").ok());
    ASSERT_TRUE(WriteFileAtomically(fs, "/d/atomic", "x").ok());
    Result<std::unique_ptr<File>> file = fs.Open("/d/new", OpenFlags{.create = true});
    ASSERT_TRUE((*file)->Write(0, std::string("x")).ok());
    ASSERT_TRUE((*file)->Sync().ok());
    fs.Crash(CrashMode::kPrefix);
    EXPECT_EQ(fs.Bytes("/d/atomic"), "x");
    kept += fs.Exists("/d/new") ? 1 : 0;
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 64);
}

TEST_F(SimCrash, AfterAFailedSyncTheNextOneSaysOkThoughBytesAreLost) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    SimFileSystem fs(seed, fs_.disk());
    Result<std::unique_ptr<File>> file = fs.Open("/d/f", OpenFlags{});
    ASSERT_TRUE((*file)->Write(0, std::string(1024, 'p')).ok());
    fs.FailNext(SimFault::kSync, "/d/f");
    EXPECT_EQ((*file)->Sync().code(), StatusCode::kIoError);
    EXPECT_EQ(fs.Bytes("/d/f"), std::string(1024, 'p')) << "reads see it still";
    fs.Crash(CrashMode::kKeepAll);
    lost += fs.Bytes("/d/f") == std::string(1024, 'd') ? 1 : 0;
  }
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, 16);
}

TEST_F(SimCrash, AfterAFailedSyncReadersMaySeeTheOldBytesAtOnce) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    SimFileSystem fs(seed, fs_.disk());
    fs.set_reads_old_after_failed_sync(true);
    Result<std::unique_ptr<File>> file = fs.Open("/d/f", OpenFlags{});
    ASSERT_TRUE((*file)->Write(0, std::string(1024, 'p')).ok());
    fs.FailNext(SimFault::kSync, "/d/f");
    EXPECT_EQ((*file)->Sync().code(), StatusCode::kIoError);
    EXPECT_EQ(fs.Bytes("/d/f"), fs.DurableBytes("/d/f"));
    EXPECT_TRUE((*file)->Sync().ok());
    seen.insert(fs.Bytes("/d/f"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{std::string(1024, 'd'), std::string(1024, 'p')}));
}

TEST_F(SimCrash, ALyingSyncSaysOkAndTheNextCrashTellsTheTruth) {
  fs_.FailNext(SimFault::kLie, "/d/f");
  ASSERT_TRUE(file_->Sync().ok());
  EXPECT_EQ(fs_.met().lies, 0u) << "that one had nothing to lose";
  ASSERT_TRUE(file_->Write(0, std::string(512, 'p')).ok());
  ASSERT_TRUE(file_->Sync().ok());
  ASSERT_TRUE(file_->Write(512, std::string(512, 'q')).ok());
  ASSERT_TRUE(file_->Sync().ok());
  EXPECT_EQ(fs_.met().lies, 1u);
  EXPECT_EQ(fs_.Bytes("/d/f"), std::string(512, 'p') + std::string(512, 'q'));
  EXPECT_TRUE(fs_.IsSpoiled("/d/f", 0, 1));
  EXPECT_FALSE(fs_.IsSpoiled("/d/f", 512, 512));
  fs_.Crash(CrashMode::kKeepAll);
  EXPECT_EQ(fs_.Bytes("/d/f"), std::string(512, 'd') + std::string(512, 'q'));
}

TEST_F(SimCrash, AMisdirectedWriteLeavesItsPlaceAndSpoilsAnother) {
  ASSERT_TRUE(file_->Write(1024, std::string(3072, 'd')).ok());
  ASSERT_TRUE(file_->Sync().ok());
  fs_.FailNext(SimFault::kMisdirect, "/d/f");
  for (int tries = 0; tries < 64 && fs_.met().misdirected == 0; ++tries) {
    ASSERT_TRUE(file_->Write(700, std::string(100, 'p')).ok());
  }
  ASSERT_EQ(fs_.met().misdirected, 1u);
  EXPECT_FALSE(fs_.IsSick()) << "it comes once";
  ASSERT_TRUE(file_->Sync().ok());
  fs_.Crash(CrashMode::kDropAll);
  const std::string bytes = fs_.Bytes("/d/f");
  const std::size_t at = bytes.rfind('p');
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ((at + 1 - 800) % 512, 0u) << "another sector, the same place in it";
  EXPECT_TRUE(fs_.IsSpoiled("/d/f", 700, 1));
  EXPECT_TRUE(fs_.IsSpoiled("/d/f", at, 1));
}

TEST_F(SimCrash, ABadSectorFailsUntilItIsOverwritten) {
  std::string buffer(1024, '\0');
  fs_.BreakSector("/d/f", 1);
  EXPECT_EQ(file_->Read(0, std::span<char>(buffer)).status().code(), StatusCode::kIoError);
  EXPECT_TRUE(file_->Read(0, std::span<char>(buffer).first(512)).ok());
  EXPECT_EQ(file_->Write(600, std::string(4, 'p')).code(), StatusCode::kIoError);
  fs_.Kill();
  file_ = std::move(fs_.Open("/d/f", OpenFlags{})).value();
  EXPECT_EQ(file_->Read(1023, std::span<char>(buffer)).status().code(), StatusCode::kIoError);
  EXPECT_TRUE(file_->Write(0, std::string(511, 'p')).ok()) << "the sector in front is good";
  EXPECT_TRUE(fs_.IsSick());
  ASSERT_TRUE(file_->Write(400, std::string(624, 'p')).ok()) << "all of it and more";
  EXPECT_FALSE(fs_.IsSick());
  EXPECT_TRUE(file_->Read(0, std::span<char>(buffer)).ok());
  EXPECT_EQ(fs_.met().bad_sectors, 3u);
}

TEST_F(SimCrash, ARottenSectorIsZerosOrAnotherOne) {
  ASSERT_TRUE(file_->Write(0, std::string(512, 'a')).ok());
  ASSERT_TRUE(file_->Sync().ok());
  fs_.CopySector("/d/f", 0, 1);
  EXPECT_EQ(fs_.DurableBytes("/d/f"), std::string(1024, 'a'));
  fs_.ZeroSector("/d/f", 0);
  EXPECT_EQ(fs_.Bytes("/d/f"), std::string(512, '\0') + std::string(512, 'a'));
  ASSERT_TRUE(file_->Write(0, std::string(512, 'b')).ok());
  EXPECT_TRUE(fs_.IsSpoiled("/d/f", 0, 512)) << "not durable yet";
  ASSERT_TRUE(file_->Sync().ok());
  EXPECT_FALSE(fs_.IsSpoiled("/d/f", 0, 512));
  EXPECT_TRUE(fs_.IsSpoiled("/d/f", 512, 512));
}

TEST_F(SimCrash, AFullDirectoryTakesNoNamesButBytes) {
  fs_.set_names_full(true);
  EXPECT_EQ(fs_.Open("/d/g", OpenFlags{.create = true}).status().code(), StatusCode::kNoSpace);
  EXPECT_EQ(fs_.Rename("/d/f", "/d/g").code(), StatusCode::kNoSpace);
  EXPECT_EQ(fs_.CreateDirs("/e").code(), StatusCode::kNoSpace);
  EXPECT_TRUE(file_->Write(0, std::string(2000, 'p')).ok());
  EXPECT_EQ(fs_.met().no_space, 3u);
  fs_.set_names_full(false);
  EXPECT_TRUE(fs_.Rename("/d/f", "/d/g").ok());
}

TEST_F(SimCrash, ATraceReplaysTheSameDisk) {
  SimFileSystem fs(5);
  fs.Record(true);
  ASSERT_TRUE(fs.CreateDirs("/d").ok());
  ASSERT_TRUE(WriteFileAtomically(fs, "/d/a", "one").ok());
  ASSERT_TRUE(WriteFileAtomically(fs, "/d/a", "three").ok());
  ASSERT_TRUE(fs.Remove("/d/a").ok());
  ASSERT_TRUE(WriteFileAtomically(fs, "/d/b", "four").ok());
  sim::FileDisk replayed;
  for (const sim::DiskOp& op : fs.trace()) replayed.Apply(op);
  const sim::FileDisk disk = fs.disk();
  EXPECT_EQ(replayed.List("/d"), disk.List("/d"));
  EXPECT_EQ(replayed.Bytes(replayed.Lookup("/d/b").value()), "four");
  EXPECT_EQ(replayed.pending_count(), disk.pending_count());
}

}  // namespace
}  // namespace triad
