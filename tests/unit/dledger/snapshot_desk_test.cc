// What the application and the log are to each other while a received snapshot is installed.

#include "dledger/snapshot_desk.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "common/crc32c.h"
#include "tests/unit/dledger/log_fixture.h"
#include "tests/unit/dledger/node_harness.h"

namespace triad::dledger {
namespace {

const PeerId kLeader("n1");
constexpr Term kTerm{1};

// A peer that receives: its threads are one queue of tasks, which the test runs.
class Installation : public LogStoreFixture {
 protected:
  Installation() {
    Open();
    Write(model_.MakeMany(3, 100));
    EXPECT_TRUE(fs_.CreateDirs(SnapshotDir(kLogDir)).ok());
    SnapshotDesk::Links links;
    links.send = [this](const PeerId&, const SnapshotMessage& message) {
      ++sent_;
      answer_ = std::get<SnapshotAnswer>(message);
    };
    links.connected = [](const PeerId&) { return true; };
    links.post_reader = [this](std::function<void()> task) {
      tasks_.push_back(std::move(task));
      return true;
    };
    links.post_log = [this](std::function<void()> task) { tasks_.push_back(std::move(task)); };
    links.post_apply = [this](const std::function<void()>& task) {
      if (before_apply_) before_apply_();
      task();
    };
    links.random = [] { return std::uint64_t{1}; };
    links.on_sent = [](const PeerId&, Term, bool, LogIndex) {};
    links.install = [this](const SnapshotHead& head) { offered_ = head; };
    desk_.emplace(fs_, kLogDir, SystemClock(), *store_, application_, 1u << 30, std::move(links));
  }
  void RunTasks() {
    while (!tasks_.empty()) {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }
  // A state up to entry `applied` of a log that begins at `first`: offered, and, when it is asked
  // for, received whole.
  void Receive(std::uint64_t first, std::uint64_t applied) {
    sent_ = 0;
    Recorder source(board_, true, {.index = LogIndex(applied), .crc = 5});
    const Result<StateImage> image = source.TakeImage();
    std::string bytes;
    for (std::string piece; *image->pieces->Next(&piece);) bytes += piece;
    SnapshotHead head;
    head.applied = LogIndex(applied);
    head.total_bytes = bytes.size();
    head.crc = Crc32c(bytes);
    head.base.tail.next_index = LogIndex(first);
    head.base.tail.position = head.base.tail.segment_base = PhysicalOffset(8192);
    head.base.membership = {.group_id = 9, .voters = {PeerId("n0"), kLeader}, .learners = {}};
    desk_->OnMessage(kLeader, SnapshotOffer{.term = kTerm, .id = 4, .head = head}, true, kTerm);
    RunTasks();
    if (sent_ == 0) return;
    for (std::size_t at = 0; at < bytes.size(); at += kSnapshotChunkBytes) {
      if (before_chunk_) before_chunk_();
      std::string data = bytes.substr(at, kSnapshotChunkBytes);
      const std::uint32_t crc = Crc32c(data);
      desk_->OnMessage(kLeader,
                       SnapshotChunk{.id = 4, .offset = at, .crc = crc, .data = std::move(data)},
                       true, kTerm);
      RunTasks();
    }
  }
  LogIndex FirstOfLog() const { return store_->base().tail.next_index; }

  Board board_;
  Recorder application_{board_, true, {.index = LogIndex(2), .crc = 1}};
  std::deque<std::function<void()>> tasks_;
  std::function<void()> before_apply_;
  std::function<void()> before_chunk_;
  std::optional<SnapshotHead> offered_;
  int sent_ = 0;                          // messages to the leader since the last offer
  std::optional<SnapshotAnswer> answer_;  // the last of them
  std::optional<SnapshotDesk> desk_;
};

TEST_F(Installation, TheApplicationNeverSeesTheNewLogBesideItsOldState) {
  Receive(11, 20);
  ASSERT_TRUE(offered_.has_value());
  bool is_asked = false;
  // What the apply thread did until it took the task: it may read the log at any of these moments.
  before_apply_ = [&] {
    is_asked = true;
    EXPECT_EQ(application_.state().index, LogIndex(2));
    EXPECT_EQ(FirstOfLog(), LogIndex(1)) << "the log is the new one already";
  };
  std::optional<LogIndex> taken_over;
  const Status installed = desk_->InstallPending([&](LogIndex applied) {
    taken_over = applied;
    EXPECT_EQ(application_.state().index, LogIndex(20));
    EXPECT_EQ(FirstOfLog(), LogIndex(11));
  });
  ASSERT_TRUE(installed.ok()) << installed;
  EXPECT_TRUE(is_asked);
  EXPECT_EQ(taken_over, LogIndex(20));
  EXPECT_FALSE(fs_.Exists(SnapshotDir(kLogDir) + "/ready"));
}

TEST_F(Installation, WithoutRoomNothingIsTakenAndALaterOfferCounts) {
  fs_.set_capacity(60u << 20);
  Receive(11, 20);
  EXPECT_EQ(sent_, 0) << "silence: the leader offers it again";
  EXPECT_FALSE(offered_.has_value());
  EXPECT_FALSE(fs_.Exists(SnapshotDir(kLogDir) + "/in"));
  fs_.set_capacity(1u << 30);
  Receive(11, 20);
  EXPECT_TRUE(offered_.has_value());
}

TEST_F(Installation, ALogThatCannotBeginAnewIsReportedAndTheStateStays) {
  Receive(11, 20);
  ASSERT_TRUE(offered_.has_value());
  before_apply_ = [&] { fs_.FailAfter(0); };
  bool is_taken_over = false;
  const Status installed = desk_->InstallPending([&](LogIndex) { is_taken_over = true; });
  EXPECT_FALSE(installed.ok());
  EXPECT_FALSE(is_taken_over);
  EXPECT_EQ(application_.state().index, LogIndex(2));
  EXPECT_TRUE(fs_.Exists(SnapshotDir(kLogDir) + "/ready")) << "the next start finishes it";
}

TEST_F(Installation, WithoutRoomToBeginTheLogAnewTheNextStartTriesAgain) {
  Receive(11, 20);
  ASSERT_TRUE(offered_.has_value());
  before_apply_ = [&] { fs_.set_capacity(0); };
  const Status installed = desk_->InstallPending([](LogIndex) {});
  EXPECT_EQ(installed.code(), StatusCode::kNoSpace) << installed;
  EXPECT_EQ(application_.state().index, LogIndex(2));
  EXPECT_TRUE(fs_.Exists(SnapshotDir(kLogDir) + "/ready"));
}

TEST_F(Installation, ADiskThatFillsWhileItComesLeavesNothingAndALaterOneCounts) {
  before_chunk_ = [&] { fs_.set_capacity(0); };
  Receive(11, 20);
  EXPECT_FALSE(offered_.has_value());
  EXPECT_FALSE(fs_.Exists(SnapshotDir(kLogDir) + "/in"));
  ASSERT_TRUE(answer_.has_value());
  EXPECT_EQ(answer_->kind, SnapshotAnswer::Kind::kRefused);
  before_chunk_ = nullptr;
  fs_.set_capacity(1u << 30);
  Receive(11, 20);
  EXPECT_TRUE(offered_.has_value());
}

// The log thread, which refuses it, does no file work.
TEST_F(Installation, ARefusedOneIsRemovedByAReaderAndOnlyThenAnswered) {
  Receive(11, 20);
  ASSERT_TRUE(offered_.has_value());
  answer_.reset();
  desk_->OnRefused();
  EXPECT_TRUE(fs_.Exists(SnapshotDir(kLogDir) + "/in"));
  EXPECT_FALSE(answer_.has_value());
  RunTasks();
  EXPECT_FALSE(fs_.Exists(SnapshotDir(kLogDir) + "/in"));
  ASSERT_TRUE(answer_.has_value());
  EXPECT_EQ(answer_->kind, SnapshotAnswer::Kind::kInstalled) << "I have no use for it";
}

TEST_F(Installation, AnOfferOfAnImpossibleSizeIsNotTaken) {
  fs_.set_capacity(1u << 30);
  SnapshotHead head;
  head.applied = LogIndex(20);
  head.base.tail.next_index = LogIndex(11);
  head.total_bytes = ~std::uint64_t{0} / 3;  // three times of it seem to be little
  desk_->OnMessage(kLeader, SnapshotOffer{.term = kTerm, .id = 4, .head = head}, true, kTerm);
  RunTasks();
  EXPECT_FALSE(fs_.Exists(SnapshotDir(kLogDir) + "/in"));
}

}  // namespace
}  // namespace triad::dledger
