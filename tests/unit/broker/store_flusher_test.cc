// A full disk does not end the process: queues and state wait for room, and nothing is lost
// meanwhile.

#include "broker/store/store_flusher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/sim/sim_file_system.h"
#include "tests/unit/broker/state_support.h"
#include "tests/unit/log_lines.h"

namespace triad::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kAmple = 1u << 30;

// State and queues on one small disk, as in production; message n in queue 0.
class StoreFlusherTest : public ::testing::Test {
 protected:
  StoreFlusherTest()
      : h_([this](const std::string&) { return OpenMemoryStateStore(disk_, "/state"); }),
        queues_(ConsumeQueueStore::Open(disk_, "/cq", PhysicalOffset{0}).value()),
        keys_(KeyIndex::Open(disk_, "/keys", 0, PhysicalOffset{0}).value()),
        flusher_({}, clock_, &h_.state(), queues_.get(), keys_.get()) {
    disk_.set_capacity(kAmple);
  }

  void Message() {
    const PhysicalOffset position = h_.next_position();
    queues_->Append(Queue("T", 0), QueueOffset{stored_}, {position, 100, 0});
    h_.Message(Queue("T", 0), ++stored_);
    flusher_.NoteEntry(100);
  }
  void TickAfter(milliseconds time) {
    clock_.Advance(time);
    flusher_.Tick();
  }

  sim::SimFileSystem disk_{1};
  ManualClock clock_;
  StateHarness h_;
  std::unique_ptr<ConsumeQueueStore> queues_;
  std::unique_ptr<KeyIndex> keys_;
  StoreFlusher flusher_;
  std::int64_t stored_ = 0;
};

TEST_F(StoreFlusherTest, QueuesAreWrittenForTheirCheckpointAndNotWithEveryState) {
  Message();
  TickAfter(seconds(2));
  ASSERT_FALSE(h_.state().dirty());
  EXPECT_FALSE(disk_.Exists("/cq/T")) << "ten thousand queues would be as many writes a second";
  flusher_.FlushAll();
  EXPECT_TRUE(disk_.Exists("/cq/T"));
}

TEST_F(StoreFlusherTest, ManyQueuesAreSyncedInOneGo) {
  constexpr std::int32_t kMany = 100;
  Message();
  flusher_.FlushAll();
  EXPECT_EQ(disk_.whole_syncs(), 0) << "others may have much to write on this file system";
  for (std::int32_t queue = 1; queue <= kMany; ++queue) {
    const PhysicalOffset position = h_.next_position();
    queues_->Append(Queue("T", queue), QueueOffset{0}, {position, 100, 0});
    h_.Message(Queue("T", queue), 1);
  }
  ASSERT_TRUE(queues_->WriteOut().ok());
  flusher_.FlushAll();
  EXPECT_EQ(disk_.whole_syncs(), 1);
  disk_.Crash(sim::CrashMode::kDropAll);
  const auto again = ConsumeQueueStore::Open(disk_, "/cq", h_.next_position()).value();
  for (std::int32_t queue = 0; queue <= kMany; ++queue) {
    EXPECT_TRUE(again->Range(Queue("T", queue)).has_value()) << queue;
  }
}

TEST_F(StoreFlusherTest, ManyQueuesThatMemoryHoldsTakeOneFile) {
  for (std::int32_t queue = 0; queue < 100; ++queue) {
    queues_->Append(Queue("T", queue), QueueOffset{0}, {h_.next_position(), 100, 0});
    h_.Message(Queue("T", queue), 1);
  }
  flusher_.FlushAll();
  EXPECT_FALSE(disk_.Exists("/cq/T"));
  EXPECT_EQ(disk_.whole_syncs(), 0);
  disk_.Crash(sim::CrashMode::kDropAll);
  const auto again = ConsumeQueueStore::Open(disk_, "/cq", h_.next_position()).value();
  for (std::int32_t queue = 0; queue < 100; ++queue) {
    EXPECT_TRUE(again->Range(Queue("T", queue)).has_value()) << queue;
  }
}

TEST_F(StoreFlusherTest, AFullDiskIsWaitedForAndThenEverythingIsWritten) {
  Message();
  TickAfter(seconds(2));
  ASSERT_FALSE(h_.state().dirty());
  disk_.set_capacity(0);
  for (int i = 0; i < 500; ++i) {
    Message();
    TickAfter(milliseconds(200));  // also past the interval of the queues' sync
  }
  EXPECT_TRUE(h_.state().dirty()) << "the state was written in front of the queues";
  flusher_.FlushAll();  // an orderly stop does not insist either
  EXPECT_TRUE(h_.state().dirty());
  EXPECT_EQ(queues_->Range(Queue("T", 0))->max, QueueOffset{501}) << "reads go on";
  disk_.set_capacity(kAmple);
  TickAfter(seconds(2));
  EXPECT_FALSE(h_.state().dirty());
  flusher_.FlushAll();
  const auto again = ConsumeQueueStore::Open(disk_, "/cq", h_.next_position());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again.value()->Range(Queue("T", 0))->max, QueueOffset{501});
}

TEST_F(StoreFlusherTest, AWaitForRoomIsOneLineForEachWhoWaits) {
  Message();
  flusher_.FlushAll();
  ASSERT_FALSE(h_.state().dirty());
  disk_.set_capacity(0);
  StateCommand command;  // the queues have nothing to write
  command.put_topics.push_back(TopicOf("U"));
  h_.Apply(command);
  const test::LogLines errors(google::GLOG_ERROR);
  const test::LogLines news(google::GLOG_INFO);
  for (int i = 0; i < 50; ++i) TickAfter(seconds(2));
  EXPECT_TRUE(h_.state().dirty());
  EXPECT_EQ(errors.lines().size(), 1u);
  EXPECT_TRUE(news.lines().empty()) << news.lines().front();
  disk_.set_capacity(kAmple);
  TickAfter(seconds(2));
  EXPECT_FALSE(h_.state().dirty());
  EXPECT_EQ(news.lines().size(), 1u);
}

TEST_F(StoreFlusherTest, WhatWaitedForRoomComesBackFromTheLogAfterACrash) {
  Message();
  TickAfter(seconds(2));
  const LogIndex written = h_.state().applied_index();
  disk_.set_capacity(0);
  Message();
  TickAfter(seconds(2));
  ASSERT_TRUE(h_.state().dirty());
  disk_.Crash(sim::CrashMode::kDropAll);
  disk_.set_capacity(kAmple);
  ASSERT_TRUE(h_.Reopen().ok());
  EXPECT_EQ(h_.state().applied_index(), written) << "the replay has to begin there";
}

// What a topic's deletion rests on.
TEST_F(StoreFlusherTest, AFlushThatMustBeWaitsForRoom) {
  Message();
  disk_.set_capacity(0);
  std::atomic<bool> is_done{false};
  std::thread apply([&] {
    EXPECT_TRUE(flusher_.FlushState());
    is_done = true;
  });
  EXPECT_FALSE(is_done);
  disk_.set_capacity(kAmple);
  apply.join();
  EXPECT_FALSE(h_.state().dirty());
}

TEST_F(StoreFlusherTest, AStopEndsTheWaitAndNothingMoreIsMadeDurable) {
  Message();
  TickAfter(seconds(2));
  Message();
  disk_.set_capacity(0);
  std::thread apply([&] { EXPECT_FALSE(flusher_.FlushState()); });
  flusher_.BeginStop();
  apply.join();
  disk_.set_capacity(kAmple);  // too late: the deletion was not carried out
  TickAfter(seconds(100));
  flusher_.FlushAll();
  EXPECT_TRUE(h_.state().dirty());
}

}  // namespace
}  // namespace triad::broker
