// Retention (background thread) beside a snapshot's installation (disk thread): every place where
// the one can stand still between two operations on the disk, against every place of the other.

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "tests/unit/dledger/hooked_file_system.h"
#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

constexpr std::chrono::milliseconds kBlocked{4};  // then it waits for a lock, or is slow: go on

// A task on a thread of its own that stands still in front of its nth operation.
class Stepper {
 public:
  Stepper(int nth, std::function<void()> task) : nth_(nth) {
    thread_ = std::thread([this, task = std::move(task)] {
      current_ = this;
      task();
      const std::lock_guard hold(mutex_);
      is_done_ = true;
      changed_.notify_all();
    });
  }
  ~Stepper() {
    GoOn();
    thread_.join();
  }
  static void Step() {
    if (current_ != nullptr) current_->Operation();
  }
  // Until it stands still, is done, or has had its time. True: it stood still.
  bool AwaitRest(std::chrono::milliseconds patience = kBlocked) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [this] { return stands_ || is_done_; });
    return stands_;
  }
  void GoOn() {
    const std::lock_guard hold(mutex_);
    may_go_ = true;
    stands_ = false;
    changed_.notify_all();
  }
  int operations() {
    const std::lock_guard hold(mutex_);
    return operations_;
  }

 private:
  void Operation() {
    std::unique_lock lock(mutex_);
    if (++operations_ != nth_ || may_go_) return;
    stands_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return may_go_; });
  }

  static thread_local Stepper* current_;
  const int nth_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int operations_ = 0;
  bool stands_ = false;
  bool may_go_ = false;
  bool is_done_ = false;
  std::thread thread_;
};
thread_local Stepper* Stepper::current_ = nullptr;

class LogRace : public LogStoreFixture {
 protected:
  LogRace() {
    all_ = model_.MakeMany(60, 500);  // 7 to a segment
    std::size_t at = 25;
    while (all_[at]->segment_base == all_[at - 1]->segment_base) ++at;
    rest_.assign(all_.begin() + static_cast<std::ptrdiff_t>(at), all_.end());
    base_.tail = TailAfter(*all_[at - 1]);
    base_.membership = {.group_id = 9, .voters = {PeerId("n0")}, .learners = {}};
    base_.tail.position = base_.tail.segment_base = rest_.front()->segment_base;
  }
  std::unique_ptr<LogStore> OpenIn(FileSystem& fs) {
    Result<std::unique_ptr<LogStore>> opened = LogStore::Open(fs, options_, stamp_);
    CHECK(opened.ok()) << opened.status();
    return std::move(opened).value();
  }
  // The drop stands in front of its `drop_at`th operation while the restart goes to its
  // `restart_at`th; then the drop ends, then the restart. Operations of both.
  std::pair<int, int> Race(int drop_at, int restart_at);

  std::vector<EntryRef> all_;
  std::vector<EntryRef> rest_;  // what the new log holds
  StoreBase base_;              // its first segment is named as one that the drop removes
};

std::pair<int, int> LogRace::Race(int drop_at, int restart_at) {
  sim::SimFileSystem disk(kSeed);
  HookedFileSystem hooked(disk, [](HookedFileSystem::Operation) { Stepper::Step(); });
  std::pair<int, int> operations;
  {
    const std::unique_ptr<LogStore> store = OpenIn(hooked);
    EXPECT_TRUE(store->Append(all_).ok() && store->Sync().ok());
    Result<std::size_t> dropped = std::size_t{0};
    Status restarted;
    {
      Stepper drop(drop_at, [&] { dropped = store->DropBefore(LogIndex(50)); });
      drop.AwaitRest(std::chrono::seconds(10));
      Stepper restart(restart_at, [&] { restarted = store->Restart(base_); });
      restart.AwaitRest();
      drop.GoOn();
      drop.AwaitRest();
      restart.GoOn();
      restart.AwaitRest(std::chrono::seconds(10));
      drop.AwaitRest(std::chrono::seconds(10));
      operations = {drop.operations(), restart.operations()};
    }
    EXPECT_TRUE(dropped.ok()) << dropped.status();
    EXPECT_TRUE(restarted.ok()) << restarted;
    EXPECT_EQ(store->begin_position(), rest_.front()->position);
    EXPECT_TRUE(store->Append(rest_).ok() && store->Close().ok());
  }
  disk.Crash(sim::CrashMode::kDropAll);
  const std::unique_ptr<LogStore> store = OpenIn(disk);
  EXPECT_FALSE(store->recovered().recovering);
  EXPECT_EQ(store->recovered().first_index, rest_.front()->index);
  EXPECT_EQ(store->recovered().last_index, rest_.back()->index);
  const auto read = store->ReadRange(rest_.front()->index, rest_.back()->index + 1, 1 << 20);
  EXPECT_TRUE(read.ok() && BytesOf(*read) == BytesOf(rest_)) << read.status();
  return operations;
}

TEST_F(LogRace, ARestartBesideADropLeavesTheNewLogWhole) {
  const auto [drops, restarts] = Race(0, 0);  // one after the other
  ASSERT_GT(drops, 10);
  ASSERT_GT(restarts, 10);
  for (int drop_at = 1; drop_at <= drops; ++drop_at) {
    for (int restart_at = 1; restart_at <= restarts + 1; ++restart_at) {
      SCOPED_TRACE("drop in front of operation " + std::to_string(drop_at) +
                   ", restart in front of " + std::to_string(restart_at));
      Race(drop_at, restart_at);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace triad::dledger
