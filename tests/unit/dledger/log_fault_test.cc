// Every operation of a log store on its disk fails once: nothing is acknowledged that is not there,
// and the next start finds what was.

#include <functional>
#include <string>

#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

constexpr std::uint64_t kOperationsMin = 60;

class LogFault : public LogStoreFixture {
 protected:
  // A whole life: rolls, cuts, votes, marks, checkpoints, reads, an end and another start. Stops at
  // the first error.
  Status Live(sim::SimFileSystem& fs) {
    model_ = ModelLog{};
    durable_ = 0;
    options_.cache_bytes = 0;
    TRIAD_RETURN_IF_ERROR(OpenOn(fs));
    TRIAD_RETURN_IF_ERROR(store_->SaveHardState({.term = Term(1), .voted_for = PeerId("n1")}));
    for (int i = 0; i < 4; ++i) {
      TRIAD_RETURN_IF_ERROR(store_->Append(model_.MakeMany(2, 900)));
      TRIAD_RETURN_IF_ERROR(Sync());
      TRIAD_RETURN_IF_ERROR(store_->Prepare());
    }
    const Result<std::vector<EntryRef>> read = store_->ReadRange(LogIndex(1), LogIndex(4), 1 << 20);
    if (!read.ok()) return read.status();
    TRIAD_RETURN_IF_ERROR(store_->WriteCheckpoint());
    durable_ = 2;  // while it is being cut
    TRIAD_RETURN_IF_ERROR(store_->Cut(LogIndex(3)));
    model_.CutFrom(LogIndex(3));
    TRIAD_RETURN_IF_ERROR(store_->SaveRecovering(true));
    TRIAD_RETURN_IF_ERROR(store_->Append(model_.MakeMany(5, 1000)));
    TRIAD_RETURN_IF_ERROR(Sync());
    TRIAD_RETURN_IF_ERROR(store_->SaveRecovering(false));
    TRIAD_RETURN_IF_ERROR(store_->Close());
    TRIAD_RETURN_IF_ERROR(OpenOn(fs));
    TRIAD_RETURN_IF_ERROR(store_->Append(model_.MakeMany(1, 5000)));
    return Sync();
  }

  Status OpenOn(sim::SimFileSystem& fs) {
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

  // What was acknowledged is there; behind it may be what was on its way.
  void ExpectHeld(std::size_t acknowledged) {
    ASSERT_GE(last().value(), acknowledged);
    ASSERT_GE(model_.entries.size(), acknowledged);
    std::vector<std::string> want = BytesOf(model_.entries);
    std::vector<std::string> held = Contents(*store_, last());
    want.resize(acknowledged);
    held.resize(acknowledged);
    EXPECT_TRUE(held == want);
  }

  std::size_t durable_ = 0;  // entries of the model that were acknowledged
};

TEST_F(LogFault, EveryOperationThatFailsIsReportedAndCostsNothingAcknowledged) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  std::uint64_t count = 0;
  bool failed = true;
  for (; failed && !HasFailure(); ++count) {
    SCOPED_TRACE("operation " + std::to_string(count) + " fails");
    sim::SimFileSystem fs(kSeed + count);
    fs.FailAfter(count);
    const Status lived = Live(fs);
    failed = fs.has_failed();
    EXPECT_TRUE(failed || lived.ok()) << lived;
    const std::size_t acknowledged = durable_;
    store_.reset();
    fs.Crash(sim::CrashMode::kDropAll);
    const Status again = OpenOn(fs);
    EXPECT_TRUE(again.ok()) << again;
    // A mark that could not be cleared, or an entry that could not be read: it asks the group.
    if (again.ok() && !store_->recovered().recovering) ExpectHeld(acknowledged);
    store_.reset();  // before its disk
  }
  EXPECT_GE(count, kOperationsMin);
}

}  // namespace
}  // namespace triad::dledger
