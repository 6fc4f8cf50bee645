// Every operation of a log store on its disk fails once, in each kind of life a log has: nothing is
// acknowledged that is not there, and the next start finds what was.

#include <glog/logging.h>

#include <functional>
#include <string>

#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

using sim::SimFileSystem;

class LogFault : public LogStoreFixture {
 protected:
  using Prepare = std::function<void(SimFileSystem&)>;
  using Live = std::function<Status(SimFileSystem&)>;

  LogFault() {
    FLAGS_minloglevel = google::GLOG_FATAL;
    options_.cache_bytes = 0;
  }

  // The first, second, ... operation of `live` fails, on a disk as `prepare` leaves it, until a
  // life meets no failure; each is followed by a power loss and a start.
  void FailEach(const Prepare& prepare, const Live& live, std::uint64_t operations_min,
                const std::function<void()>& look) {
    std::uint64_t count = 0;
    for (bool failed = true; failed && !HasFailure(); ++count) {
      SCOPED_TRACE("operation " + std::to_string(count) + " fails");
      model_ = ModelLog{};
      durable_ = 0;
      SimFileSystem fs(kSeed + count);
      prepare(fs);
      fs.FailAfter(count);
      const Status lived = live(fs);
      failed = fs.has_failed();
      EXPECT_TRUE(failed || lived.ok()) << lived;
      store_.reset();
      fs.Crash(sim::CrashMode::kDropAll);
      const Status again = OpenOn(fs);
      EXPECT_TRUE(again.ok()) << again;
      // A mark that could not be cleared, or an entry that could not be read: it asks the group.
      if (again.ok() && !store_->recovered().recovering) look();
      store_.reset();  // before its disk
    }
    EXPECT_GE(count, operations_min);
  }
  void FailEach(const Prepare& prepare, const Live& live, std::uint64_t operations_min) {
    FailEach(prepare, live, operations_min, [this] { ExpectHeld(); });
  }

  Status OpenOn(FileSystem& fs) {
    store_.reset();
    Result<std::unique_ptr<LogStore>> opened = LogStore::Open(fs, options_, stamp_);
    if (!opened.ok()) return opened.status();
    store_ = std::move(opened).value();
    return {};
  }
  Status Sync() {
    TRIAD_RETURN_IF_ERROR(store_->Sync());
    durable_ = model_.entries.size();
    return {};
  }
  Status AppendAndSync(int count, std::size_t bytes) {
    TRIAD_RETURN_IF_ERROR(store_->Append(model_.MakeMany(count, bytes)));
    return Sync();
  }
  // A disk that holds so many entries, and whose process is gone.
  void Fill(SimFileSystem& fs, int count, std::size_t bytes) {
    ASSERT_TRUE(OpenOn(fs).ok());
    ASSERT_TRUE(AppendAndSync(count, bytes).ok());
  }
  // A life that opens it and adds so many.
  std::function<Status(SimFileSystem&)> OpenAndAppend(int count, std::size_t bytes) {
    return [this, count, bytes](SimFileSystem& fs) -> Status {
      TRIAD_RETURN_IF_ERROR(OpenOn(fs));
      return AppendAndSync(count, bytes);
    };
  }
  void End(SimFileSystem& fs) {
    store_.reset();
    fs.Kill();
  }

  // What was acknowledged and not dropped is there; behind it may be what was on its way.
  void ExpectHeld() {
    const std::size_t gone = store_->recovered().first_index.value() - 1;
    ASSERT_GE(last().value(), durable_);
    ASSERT_GE(model_.entries.size(), durable_);
    std::vector<std::string> held;
    for (LogIndex next(gone + 1); next <= LogIndex(durable_);) {
      const auto range = store_->ReadRange(next, LogIndex(durable_ + 1), 1 << 20);
      ASSERT_TRUE(range.ok()) << range.status();
      for (const EntryRef& entry : *range) held.push_back(entry->bytes);
      next = range->back()->index + 1;
    }
    std::vector<std::string> want = BytesOf(model_.entries);
    want.resize(durable_);
    want.erase(want.begin(), want.begin() + static_cast<std::ptrdiff_t>(std::min(gone, durable_)));
    EXPECT_TRUE(held == want);
  }
  // As a peer states it that begins anew at the first entry of the model's third segment.
  StoreBase BaseOfThirdSegment() const {
    std::vector<EntryRef> firsts;  // of their segments
    for (const EntryRef& entry : model_.entries) {
      if (firsts.empty() || firsts.back()->segment_base != entry->segment_base) {
        firsts.push_back(entry);
      }
    }
    const EntryRef& first = firsts.at(2);
    StoreBase base;
    base.tail = TailAfter(*model_.entries[static_cast<std::size_t>(first->index.value()) - 2]);
    base.tail.position = base.tail.segment_base = first->segment_base;
    base.membership = {.group_id = 9, .voters = {PeerId("n0"), PeerId("n1")}, .learners = {}};
    return base;
  }

  static void AnEmptyDisk(SimFileSystem& /*fs*/) {}

  std::size_t durable_ = 0;  // entries of the model that were acknowledged
};

TEST_F(LogFault, EveryOperationThatFailsIsReportedAndCostsNothingAcknowledged) {
  // A whole life: rolls, cuts, votes, marks, checkpoints, reads, an end and another start.
  FailEach(
      AnEmptyDisk,
      [this](SimFileSystem& fs) -> Status {
        TRIAD_RETURN_IF_ERROR(OpenOn(fs));
        TRIAD_RETURN_IF_ERROR(store_->SaveHardState({.term = Term(1), .voted_for = PeerId("n1")}));
        for (int i = 0; i < 4; ++i) {
          TRIAD_RETURN_IF_ERROR(AppendAndSync(2, 900));
          TRIAD_RETURN_IF_ERROR(store_->Prepare());
        }
        const auto read = store_->ReadRange(LogIndex(1), LogIndex(4), 1 << 20);
        if (!read.ok()) return read.status();
        TRIAD_RETURN_IF_ERROR(store_->WriteCheckpoint());
        durable_ = 2;  // while it is being cut
        TRIAD_RETURN_IF_ERROR(store_->Cut(LogIndex(3)));
        model_.CutFrom(LogIndex(3));
        TRIAD_RETURN_IF_ERROR(store_->SaveRecovering(true));
        TRIAD_RETURN_IF_ERROR(AppendAndSync(5, 1000));
        TRIAD_RETURN_IF_ERROR(store_->SaveRecovering(false));
        TRIAD_RETURN_IF_ERROR(store_->Close());
        TRIAD_RETURN_IF_ERROR(OpenOn(fs));
        return AppendAndSync(1, 5000);
      },
      60);
}

TEST_F(LogFault, UnderAsyncFlushAnEndThatFailedIsNoEnd) {
  options_.sync = false;
  FailEach(
      AnEmptyDisk,
      [this](SimFileSystem& fs) -> Status {
        TRIAD_RETURN_IF_ERROR(OpenOn(fs));
        TRIAD_RETURN_IF_ERROR(store_->Append(model_.MakeMany(3, 900)));
        TRIAD_RETURN_IF_ERROR(store_->Close());
        durable_ = 3;
        return OpenOn(fs);
      },
      30);
}

TEST_F(LogFault, AFirstStartThatWasBrokenOffIsDoneAgain) {
  FailEach(
      [](SimFileSystem& fs) {
        ASSERT_TRUE(fs.CreateDirs(kLogDir).ok());
        ASSERT_TRUE(SegmentFile::Create(fs, kLogDir, PhysicalOffset(0)).ok());
        ASSERT_TRUE(fs.SyncDir(kLogDir).ok());
      },
      OpenAndAppend(2, 900), 25);
}

TEST_F(LogFault, ACutThatWasBrokenOffIsFinished) {
  FailEach(
      [this](SimFileSystem& fs) {
        Fill(fs, 12, 900);
        fs.StopAfter(3);  // it is recorded
        ASSERT_FALSE(store_->Cut(LogIndex(3)).ok());
        End(fs);
        model_.CutFrom(LogIndex(3));
        durable_ = 2;
      },
      [this](SimFileSystem& fs) -> Status {
        TRIAD_RETURN_IF_ERROR(OpenOn(fs));
        // The record could not be read: nobody was told that it is cut.
        if (last() != LogIndex(2)) return Status::IoError("the old tail is there");
        return AppendAndSync(3, 700);
      },
      25);
}

TEST_F(LogFault, ATornTailIsCutOrCutLater) {
  FailEach(
      [this](SimFileSystem& fs) {
        Fill(fs, 3, 900);
        const EntryRef torn = model_.Make(std::string(900, 'x'));
        ASSERT_TRUE(store_->Append({&torn, 1}).ok());
        fs.Rot(SegmentPath(torn->segment_base.value()),
               FileOffset(torn->position, torn->segment_base) + 500, 1);
        End(fs);
        model_.CutFrom(torn->index);
      },
      OpenAndAppend(3, 700), 25);
}

// Its window reached the disk and nothing else of it.
TEST_F(LogFault, ABatchOfWhichOnlyTheWindowIsThereLeavesNone) {
  FailEach(
      [this](SimFileSystem& fs) {
        Fill(fs, 3, 900);
        const LogTail before = model_.tail;
        const EntryRef lost = model_.Make(std::string(900, 'x'));
        ASSERT_EQ(lost->segment_base, before.segment_base);
        ASSERT_TRUE(store_->Append({&lost, 1}).ok());
        fs.StopAfter(1);
        ASSERT_FALSE(store_->Sync().ok());
        End(fs);
        const auto file = fs.Open(SegmentPath(lost->segment_base.value()), {});
        ASSERT_TRUE(file.ok()) << file.status();
        const std::uint64_t at = FileOffset(lost->position, lost->segment_base);
        ASSERT_TRUE((*file)->Write(at, std::string(lost->size(), '\0')).ok());
        model_.CutFrom(lost->index);
      },
      OpenAndAppend(3, 700), 25);
}

// Written by a process that ended, and maybe in the page cache alone.
TEST_F(LogFault, WhatNobodySyncedIsMadeDurableByAStart) {
  FailEach(
      [this](SimFileSystem& fs) {
        Fill(fs, 3, 900);
        ASSERT_TRUE(store_->Append(model_.MakeMany(2, 300)).ok());
        End(fs);
      },
      [this](SimFileSystem& fs) -> Status {
        TRIAD_RETURN_IF_ERROR(OpenOn(fs));
        if (last() != LogIndex(5)) return Status::IoError("less could be read");
        durable_ = 5;
        return {};
      },
      15);
}

// Rot in the middle: what lies behind is kept until the others gave it again.
TEST_F(LogFault, ADamagedLogIsFilledAgainAndThenItsRemainsGo) {
  FailEach(
      [this](SimFileSystem& fs) {
        Fill(fs, 12, 900);
        End(fs);
        fs.Rot(SegmentPath(0), FileOffset(model_.entries[2]->position, PhysicalOffset(0)) + 100, 1);
        durable_ = 2;
      },
      [this](SimFileSystem& fs) -> Status {
        TRIAD_RETURN_IF_ERROR(OpenOn(fs));
        if (last() != LogIndex(2)) return Status::IoError("less could be read");
        for (std::size_t i = 2; i < model_.entries.size(); ++i) {
          TRIAD_RETURN_IF_ERROR(store_->Append({&model_.entries[i], 1}));
        }
        TRIAD_RETURN_IF_ERROR(Sync());
        return store_->SaveRecovering(false);
      },
      60);
}

TEST_F(LogFault, ALogWithoutItsFirstSegmentBeginsRecovering) {
  FailEach(
      [this](SimFileSystem& fs) {
        Fill(fs, 2, 900);
        End(fs);
        ASSERT_TRUE(fs.Remove(SegmentPath(0)).ok());
        ASSERT_TRUE(fs.SyncDir(kLogDir).ok());
        durable_ = 0;
      },
      [this](SimFileSystem& fs) -> Status {
        TRIAD_RETURN_IF_ERROR(OpenOn(fs));
        EXPECT_TRUE(store_->recovered().recovering);
        return {};
      },
      15, [] { ADD_FAILURE() << "it does not recover"; });
}

TEST_F(LogFault, APreparedSegmentIsTakenOver) {
  options_.prepare_bytes = 10000;
  FailEach(
      [this](SimFileSystem& fs) {
        Fill(fs, 1, 900);
        ASSERT_TRUE(store_->Prepare().ok());
        End(fs);
      },
      OpenAndAppend(6, 900), 25);
}

// The leader's segments are longer or shorter than this peer's: what it prepared is in the way.
TEST_F(LogFault, APreparedSegmentInTheWrongPlaceGoes) {
  options_.prepare_bytes = 10000;
  for (const std::uint64_t segment_bytes : {std::uint64_t{2048}, std::uint64_t{8192}}) {
    FailEach(
        [this](SimFileSystem& fs) {
          Fill(fs, 1, 900);
          ASSERT_TRUE(store_->Prepare().ok());
        },
        [&](SimFileSystem&) -> Status {
          model_.segment_bytes = segment_bytes;
          for (int i = 0; i < 9; ++i) TRIAD_RETURN_IF_ERROR(AppendAndSync(1, 900));
          return {};
        },
        10);
  }
}

TEST_F(LogFault, ASegmentPreparedWhereNoneIsExpectedAnyMoreGoes) {
  options_.prepare_bytes = 10000;
  FailEach(
      [this](SimFileSystem& fs) {
        options_.segment_bytes = 4096;
        Fill(fs, 1, 900);
        ASSERT_TRUE(store_->Prepare().ok());
        End(fs);
      },
      [this](SimFileSystem& fs) -> Status {
        options_.segment_bytes = 8192;
        TRIAD_RETURN_IF_ERROR(OpenOn(fs));
        // Unless an entry could not be read: it may go on there.
        EXPECT_TRUE(store_->recovered().recovering || !fs.Exists(SegmentPath(4096)));
        return AppendAndSync(1, 900);
      },
      15);
}

// ---- retention and snapshots --------------------------------------------------------------------

TEST_F(LogFault, ADropTakesNothingThatIsToBeKept) {
  FailEach([this](SimFileSystem& fs) { Fill(fs, 20, 900); },
           [this](SimFileSystem& fs) -> Status {
             const Result<std::size_t> dropped = store_->DropBefore(store_->segments()[2].first);
             if (!dropped.ok()) return dropped.status();
             EXPECT_EQ(*dropped, 2u);
             TRIAD_RETURN_IF_ERROR(store_->WriteCheckpoint());
             TRIAD_RETURN_IF_ERROR(store_->Close());
             return OpenOn(fs);
           },
           30);
}

TEST_F(LogFault, ADropThatWasBrokenOffIsFinished) {
  FailEach(
      [this](SimFileSystem& fs) {
        Fill(fs, 20, 900);
        const StoreBase base = BaseOfThirdSegment();
        ASSERT_TRUE(WriteBegin(fs, kLogDir, {.base = base, .fresh = false}).ok());
        End(fs);
      },
      [this](SimFileSystem& fs) -> Status {
        TRIAD_RETURN_IF_ERROR(OpenOn(fs));
        EXPECT_GT(store_->recovered().first_index, LogIndex(1));
        return {};
      },
      15);
}

TEST_F(LogFault, ADropWhoseBorderCannotBeReadIsReported) {
  SimFileSystem fs(kSeed);
  Fill(fs, 20, 900);
  const LogIndex keep = store_->segments()[2].first;
  for (const std::uint64_t index : {keep.value() - 1, keep.value()}) {
    const EntryRef& entry = model_.entries[static_cast<std::size_t>(index) - 1];
    fs.Rot(SegmentPath(entry->segment_base.value()),
           FileOffset(entry->position, entry->segment_base) + 10, 1);
  }
  EXPECT_EQ(store_->DropBefore(keep).status().code(), StatusCode::kCorruption);
  EXPECT_EQ(store_->segments().front().first, LogIndex(1));
  store_.reset();
}

TEST_F(LogFault, ALogThatBeginsAnewIsTheOldOneOrTheNewOne) {
  StoreBase base;
  const auto look = [&] {
    const LogIndex first = store_->recovered().first_index;
    EXPECT_TRUE(first == LogIndex(1) || first == base.tail.next_index) << first;
    EXPECT_TRUE(first == LogIndex(1) || last() >= LogIndex(durable_)) << last();
  };
  const auto fill = [&](SimFileSystem& fs) {
    Fill(fs, 3, 700);
    model_ = ModelLog{};
    model_.MakeMany(20, 900);
    base = BaseOfThirdSegment();
    durable_ = static_cast<std::size_t>(base.tail.next_index.value()) - 1;
  };
  FailEach(
      fill,
      [&](SimFileSystem& fs) -> Status {
        TRIAD_RETURN_IF_ERROR(store_->Restart(base));
        for (std::size_t i = durable_; i < model_.entries.size(); ++i) {
          TRIAD_RETURN_IF_ERROR(store_->Append({&model_.entries[i], 1}));
        }
        TRIAD_RETURN_IF_ERROR(Sync());
        TRIAD_RETURN_IF_ERROR(store_->Close());
        return OpenOn(fs);
      },
      30, look);
  // The same by a start that finds a snapshot.
  FailEach(
      [&](SimFileSystem& fs) {
        options_.restart_at.reset();
        fill(fs);
        End(fs);
        options_.restart_at = base;
      },
      [&](SimFileSystem& fs) { return OpenOn(fs); }, 20, look);
}

// ---- the bytes as they stand --------------------------------------------------------------------

TEST_F(LogFault, WhatCannotBeComparedOrMendedIsReported) {
  FailEach(
      [this](SimFileSystem& fs) {
        Fill(fs, 3, 60'000);  // alone in their blocks
        fs.Rot(SegmentPath(model_.entries[1]->segment_base.value()), kSegmentHeadBytes + 100, 1);
      },
      [this](SimFileSystem&) -> Status {
        RawLog& raw = store_->raw();
        const PhysicalOffset end = model_.tail.position;
        const auto digest = raw.Digest(PhysicalOffset(0), end);
        if (!digest.ok()) return digest.status();
        const auto records = raw.Records(PhysicalOffset(0), end);
        if (!records.ok()) return records.status();
        const auto behind = raw.EndOf(LogIndex(2));
        if (!behind.ok()) return behind.status();
        const auto bytes = raw.Bytes(model_.entries[1]->position, 800);
        if (!bytes.ok()) return bytes.status();
        return raw.Replace(model_.entries[1]);
      },
      8, [] {});
}

// ---- afterwards ---------------------------------------------------------------------------------

TEST_F(LogFault, NothingIsWrittenAfterTheFirstFailure) {
  SimFileSystem fs(kSeed);
  Fill(fs, 3, 900);
  fs.FailNext(sim::SimFault::kWrite, SegmentPath(0));
  ASSERT_EQ(store_->Append(model_.MakeMany(1, 8)).code(), StatusCode::kIoError);
  model_.CutFrom(LogIndex(4));
  const std::uint64_t changes = fs.changes();
  EXPECT_FALSE(store_->Append(model_.MakeMany(1, 8)).ok());
  EXPECT_FALSE(store_->Sync().ok());
  EXPECT_FALSE(store_->Cut(LogIndex(2)).ok());
  EXPECT_FALSE(store_->Restart(StoreBase{}).ok());
  EXPECT_FALSE(store_->SaveHardState({.term = Term(5), .voted_for = PeerId("n1")}).ok());
  EXPECT_FALSE(store_->SaveRecovering(true).ok());
  EXPECT_FALSE(store_->Close().ok());
  EXPECT_EQ(fs.changes(), changes);
  store_.reset();
}

}  // namespace
}  // namespace triad::dledger
