#include <gtest/gtest.h>

#include <string>

#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

using sim::CrashMode;
using sim::FileDisk;
using sim::SimFileSystem;

class LogRecoveryTest : public LogStoreFixture {
 protected:
  // Opens a copy of what is on the disk now, leaving the fixture's alone.
  struct Opened {
    std::unique_ptr<SimFileSystem> fs;
    std::unique_ptr<LogStore> store;
  };
  Opened OpenCopy(FileDisk disk) {
    Opened opened;
    opened.fs = std::make_unique<SimFileSystem>(kSeed, std::move(disk));
    Result<std::unique_ptr<LogStore>> store = LogStore::Open(*opened.fs, options_, stamp_);
    EXPECT_TRUE(store.ok()) << store.status();
    if (store.ok()) opened.store = std::move(store).value();
    return opened;
  }
  // A disk on which `path` was changed by hand, durably.
  static FileDisk Changed(FileDisk disk, const std::string& path, std::uint64_t offset,
                          std::string bytes) {
    const std::uint64_t inode = disk.Lookup(path).value();
    disk.Apply({.kind = sim::DiskOp::Kind::kWrite,
                .inode = inode,
                .offset = offset,
                .bytes = std::move(bytes)});
    disk.Apply({.kind = sim::DiskOp::Kind::kSync, .inode = inode});
    return disk;
  }
};

TEST_F(LogRecoveryTest, ATailTornAtAnyByteIsCutToTheLastWholeEntry) {
  Open();
  Write(model_.MakeMany(3, 64));
  const std::size_t synced = model_.entries.size();
  const PhysicalOffset synced_end = model_.tail.position;
  ASSERT_TRUE(store_->Append(model_.MakeMany(3, 64)).ok());
  const FileDisk disk = fs_.disk();
  for (PhysicalOffset cut = synced_end; cut <= model_.tail.position; cut += 1) {
    SCOPED_TRACE(cut.value());
    // Only the bytes before `cut` reached the disk.
    const std::uint64_t offset = FileOffset(cut, PhysicalOffset(0));
    const auto lost = static_cast<std::size_t>(model_.tail.position - cut);
    const Opened opened = OpenCopy(Changed(disk, SegmentPath(0), offset, std::string(lost, '\0')));
    ASSERT_NE(opened.store, nullptr);
    std::size_t whole = synced;
    while (whole < model_.entries.size() && model_.entries[whole]->end() <= cut) ++whole;
    EXPECT_EQ(opened.store->recovered().last_index.value(), whole);
    EXPECT_FALSE(opened.store->recovered().recovering);
    const std::string bytes = opened.fs->DurableBytes(SegmentPath(0));
    const std::uint64_t end = FileOffset(opened.store->end_position(), PhysicalOffset(0));
    EXPECT_EQ(bytes.find_first_not_of('\0', end), std::string::npos) << "remains were not zeroed";
  }
}

TEST_F(LogRecoveryTest, AFileCutShortAtAnyByteKeepsItsWholeEntries) {
  options_.first_prepare_bytes = 0;
  Open();
  ASSERT_TRUE(store_->Append(model_.MakeMany(4, 64)).ok());
  fs_.Kill();
  const FileDisk disk = fs_.disk();
  for (PhysicalOffset cut; cut <= model_.tail.position; cut += 1) {
    SCOPED_TRACE(cut.value());
    FileDisk shortened = disk;
    const std::uint64_t inode = shortened.Lookup(SegmentPath(0)).value();
    shortened.Apply({.kind = sim::DiskOp::Kind::kTruncate,
                     .inode = inode,
                     .offset = FileOffset(cut, PhysicalOffset(0))});
    const Opened opened = OpenCopy(std::move(shortened));
    std::size_t whole = 0;
    while (whole < model_.entries.size() && model_.entries[whole]->end() <= cut) ++whole;
    EXPECT_EQ(opened.store->recovered().last_index.value(), whole);
    EXPECT_FALSE(opened.store->recovered().recovering);
  }
}

TEST_F(LogRecoveryTest, EveryFlippedByteBelowTheHintIsCorruptionAndNothingIsTouched) {
  options_.segment_bytes = model_.segment_bytes = 1024;
  Open();
  for (int i = 0; i < 8; ++i) Write(model_.MakeMany(1, 210 + static_cast<std::size_t>(i) % 8));
  const FileDisk disk = fs_.disk();
  for (std::size_t i = 0; i < model_.entries.size(); ++i) {
    const Entry& entry = *model_.entries[i];
    const std::string path = SegmentPath(entry.segment_base.value());
    for (PhysicalOffset at = entry.position; at < entry.end(); at += 1) {
      SCOPED_TRACE(at.value());
      FileDisk damaged = disk;
      const std::uint64_t inode = damaged.Lookup(path).value();
      damaged.Rot(inode, FileOffset(at, entry.segment_base), 0x10);
      const std::string before = damaged.Bytes(inode);
      const Opened opened = OpenCopy(std::move(damaged));
      ASSERT_NE(opened.store, nullptr);
      EXPECT_TRUE(opened.store->recovered().recovering);
      EXPECT_EQ(opened.store->recovered().last_index.value(), i) << "the last good entry";
      const std::string after = opened.fs->Bytes(path);
      EXPECT_TRUE(after.starts_with(before)) << "the file was touched";
    }
  }
}

TEST_F(LogRecoveryTest, DamageWithALaterSyncedBatchBehindItIsCorruptionEvenWithoutTheHint) {
  Open();
  Write(model_.MakeMany(1, 100));
  // A power loss that takes the hints, which are never synced by themselves.
  const std::string old_hint = fs_.Bytes(std::string(kLogDir) + "/synced");
  Write(model_.MakeMany(1, 100));
  Write(model_.MakeMany(1, 100));
  Write(model_.MakeMany(1, 100));
  FileDisk disk = Changed(fs_.disk(), std::string(kLogDir) + "/synced", 0, old_hint);
  disk.Rot(disk.Lookup(SegmentPath(0)).value(),
           FileOffset(model_.entries[1]->position + 80, PhysicalOffset(0)), 1);
  const Opened opened = OpenCopy(disk);
  EXPECT_TRUE(opened.store->recovered().recovering);
  EXPECT_EQ(opened.store->recovered().last_index, LogIndex(1));
}

TEST_F(LogRecoveryTest, AnUnsyncedBatchThatReachedTheDiskOutOfOrderIsATornTail) {
  Open();
  Write(model_.MakeMany(2, 100));
  // Several entries wait for one sync; the power goes when only the last ones are on the disk.
  ASSERT_TRUE(store_->Append(model_.MakeMany(3, 600)).ok());
  const Entry& lost = *model_.entries[2];
  const Opened opened =
      OpenCopy(Changed(fs_.disk(), SegmentPath(0), FileOffset(lost.position, PhysicalOffset(0)),
                       std::string(lost.size(), '\0')));
  EXPECT_FALSE(opened.store->recovered().recovering) << "nobody was told of them";
  EXPECT_EQ(opened.store->recovered().last_index, LogIndex(2));
}

TEST_F(LogRecoveryTest, AWindowWhoseEntriesWereLostIsForgotten) {
  Open();
  ASSERT_TRUE(store_->Prepare().ok());
  Write(model_.MakeMany(2, 100));
  // The power goes during a sync; its window is on the disk, its entries are not.
  ASSERT_TRUE(store_->Append(ModelLog(model_).MakeMany(1, 100)).ok());
  fs_.StopAfter(1);
  EXPECT_FALSE(store_->Sync().ok());
  FileDisk disk = fs_.disk();
  const std::size_t pending = disk.pending_count();
  ASSERT_GE(pending, 2u);
  disk.CrashLosing(pending - 2);
  Opened opened = OpenCopy(disk);
  ASSERT_EQ(opened.store->recovered().last_index, LogIndex(2));
  // And again, with entries that reach behind that window: they were never synced.
  ASSERT_TRUE(opened.store->Append(model_.MakeMany(1, 40)).ok());
  ASSERT_TRUE(opened.store->Append(model_.MakeMany(1, 400)).ok());
  ASSERT_TRUE(opened.store->Append(model_.MakeMany(1, 400)).ok());
  disk = opened.fs->disk();
  disk.CrashLosing(disk.pending_count() - 3);
  const Opened again = OpenCopy(disk);
  EXPECT_EQ(again.store->recovered().last_index, LogIndex(2));
  EXPECT_FALSE(again.store->recovered().recovering);
}

TEST_F(LogRecoveryTest, ATornFirstEntryOfANewSegmentIsCut) {
  Open();
  Write(model_.MakeMany(1, 3000));
  ASSERT_TRUE(store_->Append(model_.MakeMany(1, 3000)).ok());
  const FileDisk disk = fs_.disk();
  ASSERT_EQ(model_.entries[1]->segment_base, PhysicalOffset(4096));
  for (std::size_t kept = 0; kept < model_.entries[1]->size(); kept += 8) {
    SCOPED_TRACE(kept);
    const std::string zeros(model_.entries[1]->size() - kept, '\0');
    const Opened opened =
        OpenCopy(Changed(disk, SegmentPath(4096), kSegmentHeadBytes + kept, zeros));
    EXPECT_FALSE(opened.store->recovered().recovering);
    EXPECT_EQ(opened.store->recovered().last_index, LogIndex(1));
    ASSERT_TRUE(opened.store->Append(std::vector<EntryRef>{model_.entries[1]}).ok());
    ASSERT_TRUE(opened.store->Sync().ok());
    EXPECT_TRUE(Contents(*opened.store, LogIndex(2)) == BytesOf(model_.entries));
  }
}

TEST_F(LogRecoveryTest, ACutIsDurableAndOtherEntriesTakeThePlace) {
  Open();
  for (int i = 0; i < 9; ++i) Write(model_.MakeMany(1, 900));
  ASSERT_TRUE(store_->Cut(LogIndex(3)).ok());
  model_.CutFrom(LogIndex(3));
  EXPECT_EQ(store_->end_position(), model_.tail.position);
  EXPECT_EQ(store_->CachedIndex(LogIndex(3)), nullptr);
  EXPECT_EQ(store_->ReadRange(LogIndex(3), LogIndex(4), 1).status().code(), StatusCode::kNotFound);
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(2);
  model_.term = Term(2);
  Write(model_.MakeMany(1, 30));
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(3);
}

TEST_F(LogRecoveryTest, ACutOfEverythingLeavesAnEmptyLog) {
  Open();
  for (int i = 0; i < 9; ++i) Write(model_.MakeMany(1, 900));
  ASSERT_TRUE(store_->Cut(LogIndex(1)).ok());
  model_.CutFrom(LogIndex(1));
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(0);
  EXPECT_FALSE(store_->recovered().recovering);
  Write(model_.MakeMany(2, 900));
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(2);
}

// After a crash at any operation of a cut the log holds a prefix, at least what was to stay, and
// new entries are never followed by remains of the old ones.
TEST_F(LogRecoveryTest, ACutThatCrashesAnywhereIsFinishedByTheNextStart) {
  Open();
  for (int i = 0; i < 9; ++i) Write(model_.MakeMany(2, 400));
  const FileDisk disk = fs_.disk();
  for (std::uint64_t stop = 0;; ++stop) {
    SCOPED_TRACE(stop);
    bool finished = false;
    for (int mode = 0; mode < sim::kCrashModes; ++mode) {
      SCOPED_TRACE(mode);
      SimFileSystem fs(kSeed + stop, disk);
      Result<std::unique_ptr<LogStore>> store = LogStore::Open(fs, options_, stamp_);
      ASSERT_TRUE(store.ok()) << store.status();
      fs.StopAfter(stop);
      finished = (*store)->Cut(LogIndex(4)).ok();
      store->reset();
      fs.Crash(static_cast<CrashMode>(mode));
      store = LogStore::Open(fs, options_, stamp_);
      ASSERT_TRUE(store.ok()) << store.status();
      EXPECT_FALSE((*store)->recovered().recovering);
      const std::uint64_t last = (*store)->recovered().last_index.value();
      // All or nothing: before the record is durable all of it stands.
      EXPECT_TRUE(last == 3 || (last == 18 && !finished)) << last;
      ModelLog other = model_;
      other.CutFrom(LogIndex(last + 1));
      other.term = Term(2);
      ASSERT_TRUE((*store)->Append(other.MakeMany(1, 400)).ok());
      ASSERT_TRUE((*store)->Sync().ok());
      store->reset();
      fs.Crash(CrashMode::kDropAll);
      store = LogStore::Open(fs, options_, stamp_);
      ASSERT_TRUE(store.ok()) << store.status();
      EXPECT_FALSE((*store)->recovered().recovering);
      EXPECT_TRUE(Contents(**store, (*store)->recovered().last_index) == BytesOf(other.entries));
    }
    if (finished) break;
  }
}

TEST_F(LogRecoveryTest, VotesNeverGoBackWhereverTheCrash) {
  for (std::uint64_t stop = 0; stop < 40; ++stop) {
    for (int mode = 0; mode < sim::kCrashModes; ++mode) {
      SimFileSystem fs(kSeed + stop);
      Result<std::unique_ptr<LogStore>> store = LogStore::Open(fs, options_, stamp_);
      ASSERT_TRUE(store.ok()) << store.status();
      fs.StopAfter(stop);
      HardState saved;
      HardState tried;
      for (std::uint64_t term = 1; term < 30; ++term) {
        tried = HardState{.term = Term(term), .voted_for = PeerId(term % 2 == 0 ? "n1" : "n2")};
        if (!(*store)->SaveHardState(tried).ok()) break;
        saved = tried;
      }
      store->reset();
      fs.Crash(static_cast<CrashMode>(mode));
      store = LogStore::Open(fs, options_, stamp_);
      ASSERT_TRUE(store.ok()) << store.status();
      const HardState& found = (*store)->recovered().hard_state;
      EXPECT_TRUE(found == saved || found == tried) << found.term << " after " << saved.term;
      EXPECT_FALSE((*store)->recovered().recovering);
    }
  }
}

// What a life only read may not be durable; the next vote must not cost it.
TEST_F(LogRecoveryTest, VotesOfALifeThatWasKilledSurviveThePowerLossOfTheNext) {
  const auto vote = [](std::uint64_t term) {
    return HardState{.term = Term(term), .voted_for = PeerId(term % 2 == 0 ? "n1" : "n2")};
  };
  for (std::uint64_t stop = 0; stop < 30; ++stop) {
    for (int mode = 0; mode < sim::kCrashModes; ++mode) {
      SCOPED_TRACE("stopped after " + std::to_string(stop) + ", mode " + std::to_string(mode));
      SimFileSystem fs(kSeed + stop);
      std::uint64_t saved = 0;
      for (std::uint64_t life = 0; life < 2; ++life) {
        if (life == 1) fs.StopAfter(stop);
        Result<std::unique_ptr<LogStore>> store = LogStore::Open(fs, options_, stamp_);
        for (int i = 0; store.ok() && i < 2; ++i) {
          if (!(*store)->SaveHardState(vote(saved + 1)).ok()) break;
          ++saved;
        }
        if (life == 0) fs.Kill();
      }
      fs.Crash(static_cast<CrashMode>(mode));
      const Result<std::unique_ptr<LogStore>> store = LogStore::Open(fs, options_, stamp_);
      ASSERT_TRUE(store.ok()) << store.status();
      const HardState& found = (*store)->recovered().hard_state;
      EXPECT_TRUE(found == vote(saved) || found == vote(saved + 1)) << found.term << ", " << saved;
      EXPECT_FALSE((*store)->recovered().recovering);
    }
  }
}

TEST_F(LogRecoveryTest, OneBadVoteSlotIsSurvivedTwoMeanRecovering) {
  Open();
  ASSERT_TRUE(store_->SaveHardState({.term = Term(6), .voted_for = PeerId("n1")}).ok());
  ASSERT_TRUE(store_->SaveHardState({.term = Term(7), .voted_for = PeerId("n2")}).ok());
  const std::string path = std::string(kLogDir) + "/vote";
  const FileDisk disk = fs_.disk();
  for (const std::size_t slot : {std::size_t{0}, kSlotStride}) {
    FileDisk damaged = disk;
    damaged.Rot(damaged.Lookup(path).value(), slot + 20, 1);
    const Opened opened = OpenCopy(damaged);
    EXPECT_FALSE(opened.store->recovered().recovering);
    // Not the vote before it: in term 7 this peer must not vote again.
    EXPECT_EQ(opened.store->recovered().hard_state,
              (HardState{.term = Term(7), .voted_for = PeerId("n2")}));
    damaged.Rot(damaged.Lookup(path).value(), (kSlotStride - slot) + 20, 1);
    const Opened both = OpenCopy(damaged);
    EXPECT_TRUE(both.store->recovered().recovering);
  }
  ASSERT_TRUE(fs_.Remove(path).ok());
  Open();
  EXPECT_TRUE(store_->recovered().recovering) << "a lost vote file is no fresh store";
}

TEST_F(LogRecoveryTest, TheRecoveringMarkStaysUntilItIsTakenOff) {
  Open();
  ASSERT_TRUE(store_->SaveRecovering(true).ok());
  CrashAndOpen(CrashMode::kDropAll);
  EXPECT_TRUE(store_->recovered().recovering);
  ASSERT_TRUE(store_->SaveHardState({.term = Term(3), .voted_for = {}}).ok());
  CrashAndOpen(CrashMode::kDropAll);
  EXPECT_TRUE(store_->recovered().recovering);
  ASSERT_TRUE(store_->SaveRecovering(false).ok());
  CrashAndOpen(CrashMode::kDropAll);
  EXPECT_FALSE(store_->recovered().recovering);
  EXPECT_EQ(store_->recovered().hard_state.term, Term(3));
}

TEST_F(LogRecoveryTest, ADamagedLogIsRepairedInPlaceFromTheLeader) {
  Open();
  for (int i = 0; i < 12; ++i) Write(model_.MakeMany(1, 900));
  store_.reset();
  fs_.Rot(SegmentPath(4096), FileOffset(model_.entries[5]->position + 90, PhysicalOffset(4096)), 1);
  Open();
  ASSERT_TRUE(store_->recovered().recovering);
  ASSERT_EQ(last(), LogIndex(5));
  const std::vector<EntryRef> missing(model_.entries.begin() + 5, model_.entries.end());
  Write({missing.front()});
  CrashAndOpen(CrashMode::kDropAll);
  EXPECT_TRUE(store_->recovered().recovering) << "the mark was kept";
  ExpectHolds(12);  // the rest was never lost
  ASSERT_TRUE(store_->SaveRecovering(false).ok());
  CrashAndOpen(CrashMode::kDropAll);
  EXPECT_FALSE(store_->recovered().recovering);
  ExpectHolds(12);
}

TEST_F(LogRecoveryTest, RemainsBehindARepairedLogAreGoneOnceItVotesAgain) {
  Open();
  for (int i = 0; i < 12; ++i) Write(model_.MakeMany(1, 900));
  store_.reset();
  fs_.Rot(SegmentPath(0), FileOffset(model_.entries[2]->position + 90, PhysicalOffset(0)), 1);
  Open();
  ASSERT_TRUE(store_->recovered().recovering);
  // The leader's log is another one from entry 3 on.
  ModelLog other = model_;
  other.CutFrom(LogIndex(3));
  other.term = Term(2);
  Write(other.MakeMany(2, 300));
  ASSERT_TRUE(store_->SaveRecovering(false).ok());
  CrashAndOpen(CrashMode::kDropAll);
  EXPECT_FALSE(store_->recovered().recovering);
  EXPECT_EQ(last(), LogIndex(4));
  EXPECT_TRUE(Contents(*store_, last()) == BytesOf(other.entries));
  Write(other.MakeMany(10, 800));
  CrashAndOpen(CrashMode::kDropAll);
  EXPECT_TRUE(Contents(*store_, last()) == BytesOf(other.entries));
}

TEST_F(LogRecoveryTest, ADamagedSyncedFileMeansRecovering) {
  Open();
  Write(model_.MakeMany(3, 100));
  store_.reset();
  fs_.Rot(std::string(kLogDir) + "/synced", 20, 1);
  fs_.Rot(std::string(kLogDir) + "/synced", kSlotStride + 20, 1);
  Open();
  EXPECT_TRUE(store_->recovered().recovering);
  ExpectHolds(3);
}

TEST_F(LogRecoveryTest, AMissingSegmentMeansRecovering) {
  Open();
  for (int i = 0; i < 12; ++i) Write(model_.MakeMany(1, 900));
  const FileDisk disk = fs_.disk();
  struct Case {
    std::int64_t base;
    std::uint64_t last_good;
  };
  for (const Case& c : {Case{0, 0}, Case{4096, 4}, Case{8192, 8}}) {
    SCOPED_TRACE(c.base);
    SimFileSystem fs(kSeed, disk);
    ASSERT_TRUE(fs.Remove(SegmentPath(c.base)).ok());
    store_.reset();
    Result<std::unique_ptr<LogStore>> store = LogStore::Open(fs, options_, stamp_);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_TRUE((*store)->recovered().recovering);
    EXPECT_EQ((*store)->recovered().last_index.value(), c.last_good);
    store->reset();
  }
}

TEST_F(LogRecoveryTest, ACheckpointSparesTheScanAndABadOneCostsNothingElse) {
  Open();
  Write(model_.MakeMany(30, 200));
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  Write(model_.MakeMany(3, 200));
  const std::string path = std::string(kLogDir) + "/checkpoint";
  const std::size_t size = fs_.Bytes(path).size();
  const FileDisk disk = fs_.disk();
  for (std::size_t at = 0; at <= size; at += 3) {
    FileDisk damaged = disk;
    if (at < size) damaged.Rot(damaged.Lookup(path).value(), at, 1);
    const Opened opened = OpenCopy(damaged);
    EXPECT_FALSE(opened.store->recovered().recovering);
    EXPECT_TRUE(Contents(*opened.store, opened.store->recovered().last_index) ==
                BytesOf(model_.entries));
  }
  // Proof that a good one is used: damage before it goes unseen until somebody reads it.
  FileDisk damaged = disk;
  damaged.Rot(damaged.Lookup(SegmentPath(0)).value(), kSegmentHeadBytes + 100, 1);
  const Opened opened = OpenCopy(damaged);
  EXPECT_FALSE(opened.store->recovered().recovering);
  EXPECT_EQ(opened.store->ReadAt(PhysicalOffset(0)).status().code(), StatusCode::kCorruption);
}

// Found by simulating whole brokers: the process ended between making a segment and syncing its
// name, the next one acknowledged entries in it, and the power took the file.
TEST_F(LogRecoveryTest, AFileMadeByALifeThatEndedThereSurvivesThePowerLossOfTheNext) {
  bool stopped = true;
  for (std::uint64_t count = 0; stopped; ++count) {
    SCOPED_TRACE("the process ends after " + std::to_string(count) + " operations");
    sim::SimFileSystem fs(kSeed + count);
    const auto open = [&] {
      store_.reset();
      auto opened = LogStore::Open(fs, options_, stamp_);
      ASSERT_TRUE(opened.ok()) << opened.status();
      store_ = std::move(opened).value();
    };
    model_ = ModelLog{};
    ASSERT_NO_FATAL_FAILURE(open());
    Write(model_.MakeMany(3, 1000));
    fs.StopAfter(count);
    Status lived = store_->Append(model_.MakeMany(1, 1000));  // rolls
    if (lived.ok()) lived = store_->Sync();
    stopped = fs.stopped();
    fs.Kill();
    ASSERT_NO_FATAL_FAILURE(open());
    model_.CutFrom(last() + 1);
    Write(model_.MakeMany(1, 1000));  // and no more: the next roll syncs the directory
    fs.Crash(sim::CrashMode::kDropAll);
    ASSERT_NO_FATAL_FAILURE(open());
    ExpectHolds(model_.entries.size());
    store_.reset();  // before its disk
  }
}

TEST_F(LogRecoveryTest, ACheckpointOfALogThatWasCutIsNotBelieved) {
  Open();
  Write(model_.MakeMany(20, 200));
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  ASSERT_TRUE(store_->Cut(LogIndex(10)).ok());
  model_.CutFrom(LogIndex(10));
  model_.term = Term(2);
  Write(model_.MakeMany(20, 200));
  CrashAndOpen(CrashMode::kDropAll);
  ExpectHolds(29);
}

TEST_F(LogRecoveryTest, AfterARebootInAsyncFlushThePeerBeginsRecovering) {
  fs_.set_boot_id("first");
  options_.sync = false;
  Open();
  ASSERT_TRUE(store_->Append(model_.MakeMany(3, 100)).ok());
  fs_.Kill();
  Open();
  EXPECT_FALSE(store_->recovered().recovering) << "only the process died";
  ExpectHolds(3);
  fs_.Crash(CrashMode::kDropAll);
  fs_.set_boot_id("second");
  Open();
  EXPECT_TRUE(store_->recovered().recovering);
}

TEST_F(LogRecoveryTest, ARebootAfterACleanStopOrInSyncFlushIsHarmless) {
  for (const bool sync : {false, true}) {
    SCOPED_TRACE(sync);
    SimFileSystem fs(kSeed);
    fs.set_boot_id("first");
    options_.sync = sync;
    Result<std::unique_ptr<LogStore>> store = LogStore::Open(fs, options_, stamp_);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Append(ModelLog(model_).MakeMany(3, 100)).ok());
    if (!sync) {
      ASSERT_TRUE((*store)->Close().ok());
    }
    store->reset();
    fs.Crash(CrashMode::kDropAll);
    fs.set_boot_id("second");
    store = LogStore::Open(fs, options_, stamp_);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_FALSE((*store)->recovered().recovering);
  }
}

// Found by fuzz_segment: no disk makes such an entry, and yet it must not end the process.
TEST_F(LogRecoveryTest, AnEntryThatSaysItBeginsASegmentInTheMiddleOfOneIsNone) {
  Open();
  Write(model_.MakeMany(3, 100));
  store_.reset();
  const PhysicalOffset at = model_.tail.position;
  LogTail tail = model_.tail;
  tail.segment_base = at;
  const EntryRef liar = MakeEntry(Term(1), EntryType::kBatch, 2000, "payload", &tail);
  {
    auto file = fs_.Open(SegmentPath(0), {});
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Write(FileOffset(at, PhysicalOffset(0)), liar->bytes).ok());
    ASSERT_TRUE((*file)->Sync().ok());
  }
  Open();
  ExpectHolds(3);
}

}  // namespace
}  // namespace triad::dledger
