// What apply does with an entry of its own disk that it cannot read.

#include "dledger/apply_thread.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "dledger/log/segment_file.h"
#include "tests/unit/dledger/log_fixture.h"
#include "tests/unit/dledger/node_harness.h"

namespace triad::dledger {
namespace {

class ApplyDamage : public ::testing::Test {
 protected:
  ApplyDamage() {
    options_.dir = dir_.path() + "/log";
    options_.prepare_bytes = options_.first_prepare_bytes = 64 << 10;
    options_.cache_bytes = 1;  // every read goes to the file
  }
  std::unique_ptr<LogStore> Open() {
    Result<std::unique_ptr<LogStore>> opened = LogStore::Open(PosixFileSystem(), options_, stamp_);
    CHECK(opened.ok()) << opened.status();
    return std::move(opened).value();
  }
  // Never returns when an entry up to `upto` is damaged.
  void ApplyUpTo(LogIndex upto) {
    const std::unique_ptr<LogStore> log = Open();
    CHECK(!log->recovered().recovering) << "found by the start already";
    Board board;
    Recorder recorder(board);
    ApplyThread apply(*log, recorder, LogIndex(0), [] {});
    apply.Start();
    apply.Commit(upto, {}, upto);  // as behind a long queue: it reads them back
    board.Await([&] { return apply.applied() == upto; });
    apply.Stop();
  }

  TempDir dir_;
  LogStoreOptions options_;
  const StoreStamp stamp_{.group = "g", .peer_id = "n0"};
};

// A peer that lost an entry which it acknowledged must not count any more, at once. The end of the
// process does that: its connections close, another peer leads. The start after it is recovering.
TEST_F(ApplyDamage, EndsTheProcessAndTheNextStartRecoversInFrontOfIt) {
  ModelLog model;
  const std::vector<EntryRef> entries = model.MakeMany(40, 500);
  {
    const std::unique_ptr<LogStore> log = Open();
    ASSERT_TRUE(log->Append(entries).ok());
    ASSERT_TRUE(log->Close().ok());
  }
  const EntryRef& bad = entries[30];
  {
    std::fstream file(options_.dir + "/" + SegmentName(bad->segment_base),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(
        kSegmentHeadBytes + static_cast<std::uint64_t>(bad->position - bad->segment_base) + 80));
    file.put('?');
  }
  ApplyUpTo(LogIndex(10));  // is not disturbed
  EXPECT_DEATH(ApplyUpTo(LogIndex(40)),
               "committed entry .* cannot be read: .*repaired from the others at its next start");
  const std::unique_ptr<LogStore> log = Open();
  EXPECT_TRUE(log->recovered().recovering);
  EXPECT_EQ(log->recovered().last_index, bad->index - 1);
}

}  // namespace
}  // namespace triad::dledger
