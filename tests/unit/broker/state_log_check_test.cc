// What a start makes of LevelDB's logs, its manifest and those with batches, when the power went or
// bytes rot: a torn tail is as if it were not there, damage in front of more is named.
//
// The files are real LevelDB's; a life is recorded, and its appends are cut, garbled and replayed.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "broker/state/leveldb_log_check.h"
#include "common/crc32c.h"
#include "tests/sim/level_env.h"
#include "tests/sim/sim_file_system.h"
#include "tests/unit/broker/state_support.h"

namespace triad::broker {
namespace {

// A life of a state on LevelDB: entry n, then flush n. What is at each moment of it promised and
// on which log LevelDB works is in its trace.
class LevelDbLogs : public testing::Test {
 protected:
  static constexpr char kDir[] = "/state";

  static auto Open(FileSystem& fs) {
    return OpenState([&] { return sim::OpenLevelDbOn(fs, kDir); });
  }
  // With n * `noise_bytes` beside entry n: LevelDB keeps 64 KiB in memory and makes tables of more.
  void Live(std::uint64_t flushes, std::size_t noise_bytes) {
    std::mt19937_64 random(5);
    fs_.Record(true);
    const auto state = Open(fs_);
    ASSERT_TRUE(state.ok()) << state.status();
    for (std::uint64_t index = 1; index <= flushes; ++index) {
      ApplyTopic(state->get(), index);
      std::string noise(index * noise_bytes, '\0');
      for (char& c : noise) c = static_cast<char>(random());
      ASSERT_TRUE((*state)->Flush({{"noise" + std::to_string(index % 4), noise}}).ok());
      fs_.Mark(index);
    }
  }

  // A write to a log, and the moment in front of it.
  struct Append {
    sim::FileDisk before;  // nothing is pending
    std::uint64_t flushed = 0;
    std::string path;
    sim::DiskOp op;
  };
  // Those to logs with `part` in their path.
  std::vector<Append> AppendsTo(const std::string& part) const {
    std::vector<Append> appends;
    sim::FileDisk disk;
    std::uint64_t flushed = 0;
    std::map<std::uint64_t, std::string> paths;
    for (const sim::DiskOp& op : fs_.trace()) {
      if (op.kind == sim::DiskOp::Kind::kLink) paths[op.inode] = op.path;
      if (op.kind == sim::DiskOp::Kind::kMark) flushed = op.offset;
      if (op.kind == sim::DiskOp::Kind::kWrite && paths[op.inode].find(part) != std::string::npos) {
        sim::FileDisk before = disk;
        before.CrashKeepingFirst(before.pending_count());
        appends.push_back({std::move(before), flushed, paths[op.inode], op});
      }
      disk.Apply(op);
    }
    return appends;
  }
  // Those behind the first record of the manifest that CURRENT names.
  std::vector<Append> AppendsToTheManifest() const {
    std::vector<Append> appends = AppendsTo("/MANIFEST-");
    std::erase_if(appends, [](const Append& append) {
      const auto current = append.before.Lookup(std::string(kDir) + "/CURRENT");
      if (!current) return true;
      const std::string name = append.path.substr(append.path.rfind('/') + 1);
      return append.before.Bytes(*current) != name + "\n";
    });
    return appends;
  }

  // A start behind an append of which `bytes` reached the disk.
  static void ExpectFlushed(const Append& append, std::string bytes) {
    sim::FileDisk disk = append.before;
    sim::DiskOp op = append.op;
    op.bytes = std::move(bytes);
    disk.Apply(op);
    disk.CrashKeepingFirst(1);
    sim::SimFileSystem fs(1, disk);
    const auto state = Open(fs);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_GE((*state)->applied_index(), LogIndex(append.flushed));
    EXPECT_EQ((*state)->Topics().size(), (*state)->applied_index().value());
  }
  static void ExpectFlushedWhereverItTears(const Append& append) {
    SCOPED_TRACE(append.path + " behind flush " + std::to_string(append.flushed));
    const std::string& bytes = append.op.bytes;
    const std::size_t step = bytes.size() / 300 + 1;
    for (std::size_t at = 0; at < bytes.size() && !HasFailure(); at += step) {
      SCOPED_TRACE("byte " + std::to_string(at));
      ExpectFlushed(append, bytes.substr(0, at));
      ExpectFlushed(append, std::string(at, '\0') + bytes.substr(at));
      std::string garbled = bytes;
      garbled[at] = static_cast<char>(garbled[at] ^ 0x55);
      ExpectFlushed(append, std::move(garbled));
    }
  }
  // Each byte of `path` in front of `end` rots, one at a time.
  void ExpectCorruptionWhereverItRots(const std::string& path, std::size_t end) {
    const std::string name = path.substr(path.rfind('/') + 1);
    const sim::FileDisk disk = fs_.disk();
    for (std::size_t at = 0; at < end && !HasFailure(); ++at) {
      SCOPED_TRACE(path + ", byte " + std::to_string(at));
      sim::SimFileSystem fs(1, disk);
      fs.Rot(path, at, 0x10);
      const std::string rotten = fs.Bytes(path);
      const auto state = Open(fs);
      ASSERT_EQ(state.status().code(), StatusCode::kCorruption);
      EXPECT_NE(state.status().message().find(name + ": damaged behind byte "), std::string::npos)
          << state.status();
      EXPECT_EQ(fs.Bytes(path), rotten) << "a start that refuses leaves the file alone";
    }
  }

  sim::SimFileSystem fs_{7};
};

TEST_F(LevelDbLogs, AManifestTornInItsLastRecordIsTheOneBefore) {
  Live(14, 3'000);
  const std::vector<Append> appends = AppendsToTheManifest();
  ASSERT_GE(appends.size(), 2u);
  for (const Append& append : appends) ExpectFlushedWhereverItTears(append);
}

TEST_F(LevelDbLogs, ALogTornInItsLastBatchEndsInFrontOfIt) {
  Live(3, 10);
  const std::vector<Append> appends = AppendsTo(".log");
  ASSERT_EQ(appends.size(), 3u);
  for (const Append& append : appends) ExpectFlushedWhereverItTears(append);
}

TEST_F(LevelDbLogs, AByteThatRotsInFrontOfALaterRecordOfTheManifestIsNamed) {
  Live(14, 3'000);
  const Append last = AppendsToTheManifest().back();
  ASSERT_GT(last.op.offset, 100u);
  ExpectCorruptionWhereverItRots(last.path, last.op.offset);
}

TEST_F(LevelDbLogs, AByteThatRotsInFrontOfALaterBatchIsNamed) {
  Live(4, 10);
  const Append last = AppendsTo(".log").back();
  ASSERT_GT(last.op.offset, 200u);
  ExpectCorruptionWhereverItRots(last.path, last.op.offset);
}

// A store of an earlier life's whole records is read as LevelDB wrote it.
TEST_F(LevelDbLogs, WholeLogsAreReadToTheirEnds) {
  Live(3, 50'000);  // more than a block each
  fs_.Crash(sim::CrashMode::kDropAll);
  const auto state = Open(fs_);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ((*state)->applied_index(), LogIndex(3));
}

// Of a batch in two fragments the second one fails: nothing may be written behind its first.
TEST_F(LevelDbLogs, NothingIsWrittenBehindHalfABatch) {
  {
    const auto state = Open(fs_);
    ASSERT_TRUE(state.ok()) << state.status();
    ApplyTopic(state->get(), 1);
    ASSERT_TRUE((*state)->Flush({}).ok());
    ApplyTopic(state->get(), 2);
    fs_.FailNext(sim::SimFault::kWrite, ".log", 1);
    ASSERT_EQ((*state)->Flush({{"noise", std::string(40'000, 'x')}}).code(), StatusCode::kIoError);
    ASSERT_EQ(fs_.met().errors, 1u);
    const Status again = (*state)->Flush({});
    EXPECT_EQ(again.code(), StatusCode::kIoError);
    EXPECT_NE(again.message().find("a write failed before this one"), std::string::npos) << again;
  }
  fs_.Crash(sim::CrashMode::kKeepAll);
  const auto state = Open(fs_);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ((*state)->applied_index(), LogIndex(1));
}

// ---- the bytes alone ----------------------------------------------------------------------------

constexpr std::size_t kBlock = 32u << 10;
constexpr std::size_t kSector = sim::kSectorBytes;

class LevelDbLogBytes : public LevelDbLogs {
 protected:
  // Of the log that holds all flushes of a life of three: where each one's record ends.
  void Write(std::size_t noise_bytes) {
    Live(3, noise_bytes);
    std::uint64_t flushed = 0;
    for (const Append& append : AppendsTo(".log")) {
      if (append.flushed > flushed) ends_.push_back(log_.size());
      flushed = append.flushed;
      ASSERT_LE(log_.size(), append.op.offset);
      log_.resize(append.op.offset);
      log_ += append.op.bytes;
    }
    ends_.push_back(log_.size());
    ASSERT_EQ(ends_.size(), 3u);
    const Result<std::size_t> whole = WholeRecordsEnd(log_);
    ASSERT_TRUE(whole.ok()) << whole.status();
    ASSERT_EQ(*whole, log_.size());
  }
  static void ExpectEnd(std::string_view log, std::size_t end) {
    const Result<std::size_t> found = WholeRecordsEnd(log);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(*found, end);
  }

  std::string log_;
  std::vector<std::size_t> ends_;
};

TEST_F(LevelDbLogBytes, AnEmptyOneEndsAtItsBeginning) {
  ExpectEnd("", 0);
  ExpectEnd(std::string(100'000, '\0'), 0);
}

TEST_F(LevelDbLogBytes, CutAnywhereItEndsBehindTheLastWholeRecord) {
  Write(10);
  for (std::size_t cut = 0; cut < log_.size(); ++cut) {
    std::size_t end = 0;
    for (const std::size_t whole : ends_) end = whole <= cut ? whole : end;
    ExpectEnd(std::string_view(log_).substr(0, cut), end);
  }
}

// A record of several fragments: firsts, middles and lasts that are whole remain of it.
TEST_F(LevelDbLogBytes, OfATornRecordAnySectorsMayBeLeft) {
  Write(18'000);
  const std::size_t begin = ends_[1];
  ASSERT_GE(log_.size() / kBlock, begin / kBlock + 2) << "a first, a middle and a last";
  std::mt19937_64 random(9);
  const std::size_t first = begin / kSector;
  const std::size_t last = (log_.size() - 1) / kSector;
  for (int round = 0; round < 400; ++round) {
    std::string torn = log_;
    const bool garbage = round % 2 == 0;
    // Few lost, many lost.
    const std::uint64_t of = round % 4 < 2 ? last - first + 1 : 2;
    bool lost = false;
    for (std::size_t sector = first; sector <= last; ++sector) {
      if (random() % of != 0) continue;
      lost = true;
      for (std::size_t at = std::max(begin, sector * kSector);
           at < std::min(torn.size(), (sector + 1) * kSector); ++at) {
        torn[at] = garbage ? static_cast<char>(random()) : '\0';
      }
    }
    ExpectEnd(torn, lost ? begin : log_.size());
  }
}

TEST_F(LevelDbLogBytes, AnyByteOfAnEarlierRecordIsCorruption) {
  Write(18'000);
  std::set<std::size_t> places;
  for (std::size_t at = 0; at < ends_[1]; at += 97) places.insert(at);
  for (std::size_t i = 0; i < 16; ++i) {  // headers, and what stands in front of them
    places.insert(
        {i, ends_[0] + i, ends_[0] - 1 - i, kBlock + i, kBlock - 1 - i, ends_[1] - 1 - i});
  }
  for (const std::size_t at : places) {
    const std::size_t end = at < ends_[0] ? 0 : ends_[0];
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::string rotten = log_;
      rotten[at] = static_cast<char>(rotten[at] ^ mask);
      const Status found = WholeRecordsEnd(rotten).status();
      ASSERT_EQ(found.code(), StatusCode::kCorruption) << "byte " << at;
      ASSERT_EQ(found.message().find("damaged behind byte " + std::to_string(end) + ", "), 0u)
          << found;
    }
  }
}

// The beginning of a record proves that the one before had been synced.
TEST_F(LevelDbLogBytes, DamageInFrontOfARecordThatIsTornItselfIsCorruption) {
  Write(18'000);
  std::string rotten = log_.substr(0, log_.size() - 1);
  ASSERT_EQ(WholeRecordsEnd(rotten).value(), ends_[1]);
  rotten[ends_[0] + 100] ^= 0x01;
  EXPECT_EQ(WholeRecordsEnd(rotten).status().code(), StatusCode::kCorruption);
}

// A record without its end in front of another: fragments that are all whole.
TEST_F(LevelDbLogBytes, ARecordWithoutItsEndInFrontOfAnotherIsCorruption) {
  Write(18'000);
  const std::string_view log = log_;
  const std::string joined =
      std::string(log.substr(0, kBlock)) + std::string(log.substr(0, ends_[0]));
  const Status found = WholeRecordsEnd(joined).status();
  EXPECT_EQ(found.code(), StatusCode::kCorruption);
  EXPECT_NE(found.message().find("begins at byte " + std::to_string(kBlock)), std::string::npos);
}

// A whole record of one fragment, as LevelDB's doc/log_format.md says.
std::string FullRecord(std::size_t payload_bytes) {
  const std::string checked = '\1' + std::string(payload_bytes, 'p');
  const std::uint32_t crc = Crc32c(checked);
  const std::uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8;
  std::string record;
  for (int shift = 0; shift < 32; shift += 8) record += static_cast<char>(masked >> shift);
  record += static_cast<char>(payload_bytes & 0xff);
  record += static_cast<char>(payload_bytes >> 8);
  return record + checked;
}

TEST(LevelDbLogBlocks, WhatIsLeftOfABlockIsPassedOver) {
  constexpr std::size_t kHeader = 7;
  for (std::size_t left = 0; left < kHeader; ++left) {
    SCOPED_TRACE(left);
    std::string log = FullRecord(kBlock - left - kHeader) + std::string(left, '\0');
    ASSERT_EQ(log.size(), kBlock);
    log += FullRecord(20);
    const Result<std::size_t> end = WholeRecordsEnd(log);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(*end, log.size());
  }
}

TEST(LevelDbLogBlocks, NoFragmentSpansTwo) {
  const std::string first = FullRecord(kBlock - 100);
  const Result<std::size_t> end = WholeRecordsEnd(first + FullRecord(200));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, first.size());
}

}  // namespace
}  // namespace triad::broker
