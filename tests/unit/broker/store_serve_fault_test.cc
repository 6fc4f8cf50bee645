// What a message store reads or is asked for by its log fails once: it is reported, and the next
// attempt is right.

#include "broker/store/key_run.h"
#include "broker/store/state_transfer.h"
#include "tests/unit/broker/open_fault_fixture.h"

namespace triad::broker {
namespace {

// What `pieces` hands out, kept.
class KeptPieces final : public dledger::StoredPieces {
 public:
  explicit KeptPieces(dledger::StatePieces* pieces) {
    for (std::string piece; pieces->Next(&piece).value();) pieces_.push_back(piece);
  }
  Result<bool> Next(std::string* piece) override {
    if (at_ == pieces_.size()) return false;
    *piece = pieces_[at_++];
    return true;
  }
  void Rewind() override { at_ = 0; }

 private:
  std::vector<std::string> pieces_;
  std::size_t at_ = 0;
};

// ---- reads --------------------------------------------------------------------------------------

TEST_F(OpenFault, AReadThatFailsIsReportedAndTheNextOneIsRight) {
  const FileDisk disk = Stopped();
  const auto fail_each = [&](const std::function<Status()>& read) {
    std::uint64_t count = 0;
    for (bool failed = true; failed && !HasFailure(); ++count) {
      SCOPED_TRACE("operation " + std::to_string(count) + " fails");
      SimFileSystem fs(7 + count, disk);
      fs_ = &fs;
      Open();
      fs.FailAfter(count);
      const Status done = Guarded(read);
      failed = fs.has_failed();
      EXPECT_EQ(done.ok(), !failed) << done;
      fs.ClearFaults();
      const Status again = Guarded(read);
      EXPECT_TRUE(again.ok()) << again;
      store_.reset();  // before its disk
    }
    EXPECT_GE(count, 2u);
  };
  for (const bool upper : {false, true}) {
    fail_each(
        [&, upper] { return store_->OffsetByTime(Queue("T", 0), 1700000000000, upper).status(); });
  }
  fail_each([this] { return store_->ReadMessageAt(positions_[2]).status(); });
  fail_each([this] { return store_->FindMessages(ByKeyOfT()).status(); });
  fail_each([this]() -> Status {
    const auto units = store_->queues().Read(Queue("U", 1), QueueOffset(0), 2);
    if (!units.ok()) return units.status();
    return store_->ReadMessage(units->front()).status();
  });
}

TEST_F(OpenFault, ABodyThatIsNotItsChecksumsIsNeverRead) {
  SimFileSystem fs(5, Stopped());
  fs_ = &fs;
  {
    const auto log = OpenLog(fs);
    dledger::LogTail tail = log->tail();
    std::string payload(8, '\0');  // no command
    StoredPlace place;
    place.queue_offset = QueueOffset(kMessages);
    place.physical_offset = tail.position + static_cast<std::int64_t>(dledger::kEntryHeaderBytes) +
                            static_cast<std::int64_t>(payload.size());
    place.store_time_ms = tail.last_store_time_ms;
    place.store_host = Host("10.0.0.1:10911");
    EncodeMessage(Draft("T", 0, "right"), place, &payload);
    payload.replace(payload.find("right"), 5, "wrong");
    const dledger::EntryRef entry = dledger::MakeEntry(tail.last_term, dledger::EntryType::kBatch,
                                                       tail.last_store_time_ms, payload, &tail);
    ASSERT_TRUE(log->Append({&entry, 1}).ok());
    ASSERT_TRUE(log->Sync().ok());
    ASSERT_TRUE(log->Close().ok());
  }
  Open();
  Start();
  const auto units = store_->queues().Read(Queue("T", 0), QueueOffset(kMessages), 1);
  EXPECT_TRUE(units.ok() && units->size() == 1) << units.status();
  if (units.ok() && !units->empty()) {
    EXPECT_EQ(store_->ReadMessage(units->front()).status().code(), StatusCode::kCorruption);
  }
  store_.reset();  // before its disk
}

// ---- what the log asks of it --------------------------------------------------------------------

TEST_F(OpenFault, AStateThatCannotBeReadIsNotSent) {
  SimFileSystem fs(5, Stopped());
  fs_ = &fs;
  for (const bool fails : {true, false}) {
    without_images_ = fails;
    Open();
    EXPECT_EQ(application_->TakeImage().ok(), !fails);
    store_.reset();  // before its disk
  }
}

TEST_F(OpenFault, AnInstallationThatFailsIsReportedAndTheStartFindsEverything) {
  const FileDisk disk = Stopped();
  std::uint64_t count = 0;
  for (bool failed = true; failed && !HasFailure(); ++count) {
    SCOPED_TRACE("operation " + std::to_string(count) + " fails");
    SimFileSystem fs(7 + count, disk);
    fs_ = &fs;
    Open();
    const LogIndex applied = store_->state().applied_index();
    KeptPieces pieces(PiecesOf(store_->state().NewImage().value()).get());
    fs.FailAfter(count);
    const Status installed =
        Guarded([&] { return application_->InstallImage(&pieces, applied, applied + 1); });
    failed = fs.has_failed();
    EXPECT_EQ(installed.ok(), !failed) << installed;
    fs.Crash(sim::CrashMode::kDropAll);
    (void)Guarded([this] {
      store_->Stop();
      return Status::Ok();
    });
    store_.reset();
    fs.Crash(sim::CrashMode::kDropAll);
    Open();
    EXPECT_EQ(store_->state().applied_index(), applied);
    ExpectEverything();
    store_.reset();  // before its disk
  }
  EXPECT_GE(count, 8u);
}

TEST_F(OpenFault, AKeyIndexThatCannotBeRebuiltNowIsRebuiltLater) {
  SimFileSystem fs(5, Stopped());
  fs_ = &fs;
  Open();
  ASSERT_TRUE(fs.Open(KeyFile(fs), {}).value()->Truncate(kRunHeaderBytes).ok());
  EXPECT_EQ(store_->FindMessages(ByKeyOfT()).status().code(), StatusCode::kUnavailable);
  fs.FailNext(sim::SimFault::kRead, "dledger-n0");
  application_->OnApplyIdle();
  EXPECT_EQ(store_->FindMessages(ByKeyOfT()).status().code(), StatusCode::kUnavailable);
  application_->OnApplyIdle();
  EXPECT_EQ(ByKey("T", "k"), bodies_t_);
  store_.reset();  // before its disk
}

TEST_F(OpenFault, AKeyIndexWhoseDamagedFileCannotBeRemovedIsRebuiltInItsPlace) {
  SimFileSystem fs(5, Stopped());
  fs_ = &fs;
  Open();
  const std::string path = KeyFile(fs);
  fs.Rot(path, kRunHeaderBytes + 1, 0x40);
  EXPECT_EQ(store_->FindMessages(ByKeyOfT()).status().code(), StatusCode::kUnavailable);
  fs.FailNext(sim::SimFault::kRemove, path);
  for (int start = 0; start < 2; ++start) {
    application_->OnApplyIdle();
    EXPECT_EQ(ByKey("T", "k"), bodies_t_);
    store_->Stop();
    store_.reset();  // before its disk
    Open();
    EXPECT_EQ(ByKey("T", "k"), bodies_t_);
  }
  EXPECT_EQ(fs.met().errors, 1u);
  store_.reset();  // before its disk
}

TEST_F(OpenFault, AKeyIndexWithADamagedTableIsRebuilt) {
  SimFileSystem fs(5, Stopped());
  fs_ = &fs;
  Open();
  for (std::uint64_t bucket = 0; bucket < 4; ++bucket) {  // ends behind the last record
    fs.Rot(KeyFile(fs), kRunHeaderBytes + 8 * bucket, 0x40);
  }
  EXPECT_EQ(store_->FindMessages(ByKeyOfT()).status().code(), StatusCode::kUnavailable);
  application_->OnApplyIdle();
  EXPECT_EQ(ByKey("T", "k"), bodies_t_);
  store_.reset();  // before its disk
}

}  // namespace
}  // namespace triad::broker
