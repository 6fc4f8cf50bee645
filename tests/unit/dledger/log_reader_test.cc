// Readers beside a cut, at the worst moment: between the look at the index and the read.

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "tests/unit/dledger/hooked_file_system.h"
#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

class LogReader : public LogStoreFixture {
 protected:
  LogReader() {
    options_.cache_bytes = 1;  // every read goes to the file
    options_.segment_bytes = model_.segment_bytes = 64 << 10;
    Result<std::unique_ptr<LogStore>> opened = LogStore::Open(hooked_, options_, stamp_);
    CHECK(opened.ok()) << opened.status();
    store_ = std::move(opened).value();
    Write(model_.MakeMany(10, 200));
  }
  ~LogReader() override { store_.reset(); }
  // Cuts at `from` and writes `count` others of `bytes` in their place.
  void Replace(LogIndex from, int count, std::size_t bytes) {
    ASSERT_TRUE(store_->Cut(from).ok());
    model_.CutFrom(from);
    model_.term = model_.term + 1;
    Write(model_.MakeMany(count, bytes));
  }

  std::function<void()> before_read_;
  HookedFileSystem hooked_{fs_, [this](HookedFileSystem::Operation operation) {
                             if (operation != HookedFileSystem::Operation::kRead) return;
                             // Once: what it does reads too.
                             const auto hook = std::exchange(before_read_, nullptr);
                             if (hook) hook();
                           }};
};

TEST_F(LogReader, ACutAndANewTailUnderARunningReadAreNoDamage) {
  before_read_ = [this] { Replace(LogIndex(8), 3, 500); };
  const auto range = store_->ReadRange(LogIndex(5), LogIndex(6), 1);
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(range->front()->bytes, model_.entries[4]->bytes);
  // And the store did not take it for damage: a start has a checkpoint.
  ASSERT_TRUE(store_->WriteCheckpoint().ok());
  EXPECT_TRUE(fs_.Exists(std::string(kLogDir) + "/checkpoint"));
}

TEST_F(LogReader, AnEntryThatWasCutUnderARunningReadIsNotFound) {
  before_read_ = [this] { Replace(LogIndex(8), 1, 900); };  // fewer entries in the same bytes
  const auto gone = store_->ReadRange(LogIndex(10), LogIndex(11), 1);
  EXPECT_EQ(gone.status().code(), StatusCode::kNotFound) << gone.status();
}

TEST_F(LogReader, ADropUnderARunningReadIsNoDamage) {
  Write(model_.MakeMany(200, 1000));
  before_read_ = [this] { ASSERT_TRUE(store_->DropBefore(LogIndex(150)).ok()); };
  const auto read = store_->ReadRange(LogIndex(3), LogIndex(4), 1);
  if (read.ok()) {
    EXPECT_EQ(read->front()->bytes, model_.entries[2]->bytes);
  } else {
    EXPECT_EQ(read.status().code(), StatusCode::kNotFound);
  }
  EXPECT_EQ(store_->ReadRange(LogIndex(3), LogIndex(4), 1).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace triad::dledger
