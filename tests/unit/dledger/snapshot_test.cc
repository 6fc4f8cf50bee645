// State transfer without threads: sender and receiver face to face, and the files between them.

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/crc32c.h"
#include "dledger/snapshot/snapshot_file.h"
#include "dledger/snapshot/snapshot_receiver.h"
#include "dledger/snapshot/snapshot_sender.h"
#include "tests/sim/sim_file_system.h"

namespace triad::dledger {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

StoreBase BaseAt(std::uint64_t first) {
  StoreBase base;
  base.tail.next_index = LogIndex(first);
  base.tail.position = base.tail.segment_base = PhysicalOffset(4096);
  base.tail.header_crc = 77;
  base.tail.last_term = Term(3);
  base.membership = {.group_id = 5, .voters = {PeerId("n0"), PeerId("n1")}, .learners = {}};
  return base;
}

std::string Bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  return bytes;
}

SnapshotHead HeadOf(const std::string& bytes, std::uint64_t first = 11) {
  return {.base = BaseAt(first),
          .applied = LogIndex(20),
          .total_bytes = bytes.size(),
          .crc = Crc32c(bytes)};
}

// A leader and a follower; every message waits in a queue until the test delivers it.
class Transfer : public ::testing::Test, public SenderHands, public ReceiverHands {
 protected:
  static constexpr std::uint64_t kRate = 1u << 30;

  // ---- both ----
  void SendSnapshot(const PeerId& to, SnapshotMessage message) override {
    (to == kFollower ? to_follower_ : to_leader_).push_back(std::move(message));
  }
  // ---- sender's ----
  void MakeImage() override { ++images_made_; }
  void ReadImage(const PeerId& peer, std::uint64_t id, std::uint64_t offset) override {
    ++reads_;
    reader_->OnChunk(peer, id, offset,
                     image_.substr(static_cast<std::size_t>(offset), kSnapshotChunkBytes), now_);
  }
  void DropImage() override { ++images_dropped_; }
  void OnSent(const PeerId&, Term, bool ok, LogIndex base_index) override {
    ended_.emplace_back(ok, base_index.value());
  }
  std::uint64_t NewSnapshotId() override { return ++last_id_; }
  // ---- receiver's ----
  void CreateIncoming(std::uint64_t id, std::uint64_t /*bytes*/) override {
    incoming_.clear();
    work_.push_back(id);
  }
  void WriteIncoming(std::uint64_t id, std::string data) override {
    incoming_ += data;
    work_.push_back(id);
  }
  void SealIncoming(std::uint64_t id, const SnapshotHead& head) override {
    seal_ok_ = Crc32c(incoming_) == head.crc && incoming_.size() == head.total_bytes;
    sealing_ = true;
    work_.push_back(id);
  }
  void Install(const SnapshotHead& head) override { installed_ = head; }

  void Begin(std::size_t bytes) {
    image_ = Bytes(bytes);
    sender_.Start(kFollower, Term(4), LogIndex(11), now_);
    sender_.OnImage(HeadOf(image_), now_);
  }
  // Delivers what waits, in both directions, until nothing does. False: `steps` were not enough.
  bool Run(int steps = 10000) {
    for (; steps > 0; --steps) {
      if (!work_.empty()) {
        const std::uint64_t id = work_.front();
        work_.pop_front();
        receiver_.OnDone(id, !std::exchange(sealing_, false) || seal_ok_, now_);
      } else if (!to_follower_.empty()) {
        const SnapshotMessage message = std::exchange(to_follower_.front(), {});
        to_follower_.pop_front();
        if (const auto* offer = std::get_if<SnapshotOffer>(&message)) {
          receiver_.OnOffer(kLeader, *offer, true, now_);
        } else {
          receiver_.OnChunk(kLeader, std::get<SnapshotChunk>(message), now_);
        }
      } else if (!to_leader_.empty()) {
        const auto answer = std::get<SnapshotAnswer>(to_leader_.front());
        to_leader_.pop_front();
        sender_.OnAnswer(kFollower, answer, now_);
      } else {
        return true;
      }
    }
    return false;
  }
  void LoseEverything() {
    to_follower_.clear();
    to_leader_.clear();
  }
  void Pass(milliseconds time) {
    now_ += time;
    sender_.OnTick(now_);
  }

  const PeerId kLeader{"n0"};
  const PeerId kFollower{"n1"};
  TimePoint now_{seconds(100)};
  SnapshotSender sender_{this, kRate};
  SnapshotSender* reader_ = &sender_;  // that gets the chunks
  SnapshotReceiver receiver_{this};
  std::string image_;
  std::string incoming_;
  std::deque<SnapshotMessage> to_follower_;
  std::deque<SnapshotMessage> to_leader_;
  std::deque<std::uint64_t> work_;
  bool sealing_ = false;
  bool seal_ok_ = true;
  int images_made_ = 0;
  int images_dropped_ = 0;
  int reads_ = 0;
  std::uint64_t last_id_ = 40;
  std::optional<SnapshotHead> installed_;
  std::vector<std::pair<bool, std::uint64_t>> ended_;
};

TEST_F(Transfer, BringsEveryByteAndSaysSoOnlyWhenItIsInstalled) {
  Begin(3 * kSnapshotChunkBytes + 17);
  EXPECT_EQ(images_made_, 1);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Run());
    Pass(milliseconds(10));
  }
  EXPECT_EQ(incoming_, image_);
  ASSERT_TRUE(installed_.has_value());
  EXPECT_EQ(*installed_, HeadOf(image_));
  EXPECT_TRUE(ended_.empty());
  receiver_.OnInstalled();
  ASSERT_TRUE(Run());
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0], std::make_pair(true, std::uint64_t{10}));
  EXPECT_EQ(images_dropped_, 1);
}

TEST_F(Transfer, GoesOnWhereItWasWhenTheConnectionBreaks) {
  Begin(8 * kSnapshotChunkBytes);
  Run(9);
  const std::size_t before = incoming_.size();
  EXPECT_GT(before, 0u);
  LoseEverything();
  Pass(seconds(2));  // offered again
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(Run());
    Pass(milliseconds(10));
  }
  EXPECT_EQ(incoming_, image_);
  EXPECT_TRUE(installed_.has_value());
  EXPECT_LE(reads_, 9 + 1);  // no chunk was read twice, but for the one that was lost
}

TEST_F(Transfer, ADamagedChunkIsAskedForAgain) {
  Begin(2 * kSnapshotChunkBytes);
  while (to_follower_.empty() || !std::holds_alternative<SnapshotChunk>(to_follower_.front())) {
    Run(1);
    Pass(milliseconds(1));
  }
  std::get<SnapshotChunk>(to_follower_.front()).data[5] ^= 1;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Run());
    Pass(milliseconds(10));
  }
  EXPECT_EQ(incoming_, image_);
  EXPECT_TRUE(installed_.has_value());
}

TEST_F(Transfer, WhatIsWholeButWrongIsNeverInstalled) {
  image_ = Bytes(1000);
  SnapshotHead head = HeadOf(image_);
  head.crc ^= 1;
  sender_.Start(kFollower, Term(4), LogIndex(11), now_);
  sender_.OnImage(head, now_);
  ASSERT_TRUE(Run());
  EXPECT_FALSE(installed_.has_value());
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_FALSE(ended_[0].first);
}

TEST_F(Transfer, AnAnswerThatWasLostIsRepeated) {
  Begin(1000);
  ASSERT_TRUE(Run());
  receiver_.OnInstalled();
  LoseEverything();
  Pass(seconds(2));
  ASSERT_TRUE(Run());
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_TRUE(ended_[0].first);
}

TEST_F(Transfer, AnInstallationThatTakesLongIsNotGivenUp) {
  Begin(1000);
  ASSERT_TRUE(Run());
  ASSERT_TRUE(installed_.has_value());
  for (int i = 0; i < 100; ++i) {
    Pass(seconds(1));
    ASSERT_TRUE(Run());
  }
  EXPECT_TRUE(ended_.empty());
}

TEST_F(Transfer, APeerThatDoesNotAnswerIsGivenUp) {
  Begin(1000);
  LoseEverything();
  for (int i = 0; i < 40; ++i) {
    Pass(seconds(1));
    LoseEverything();
  }
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_FALSE(ended_[0].first);
}

TEST_F(Transfer, AnImageThatTheLogHasOutrunIsMadeAnew) {
  Begin(8 * kSnapshotChunkBytes);
  sender_.Start(PeerId("n2"), Term(4), LogIndex(15), now_);
  EXPECT_EQ(images_made_, 2);
}

TEST_F(Transfer, AStrangersOfferIsIgnored) {
  receiver_.OnOffer(kLeader, {.term = Term(4), .id = 9, .head = HeadOf("x")}, false, now_);
  EXPECT_TRUE(work_.empty());
}

TEST_F(Transfer, KeepsToItsRate) {
  SnapshotSender slow(this, 2 * kSnapshotChunkBytes);  // two chunks a second
  reader_ = &slow;
  image_ = Bytes(100 * kSnapshotChunkBytes);
  slow.Start(kFollower, Term(4), LogIndex(11), now_);
  slow.OnImage(HeadOf(image_), now_);
  std::uint64_t offset = 0;
  for (int ms = 0; ms < 10000; ms += 10) {
    now_ += milliseconds(10);
    const int before = reads_;
    slow.OnAnswer(kFollower, {.id = last_id_, .offset = offset}, now_);
    slow.OnTick(now_);
    if (reads_ > before) offset += kSnapshotChunkBytes;
  }
  EXPECT_GE(reads_, 18);
  EXPECT_LE(reads_, 23);
}

// ---- files --------------------------------------------------------------------------------------

class SnapshotFiles : public ::testing::Test {
 protected:
  static constexpr char kLog[] = "/store/log";
  void WriteIncoming(const std::string& bytes, SnapshotHead head) {
    auto file = SnapshotFile::Create(fs_, SnapshotDir(kLog), "in");
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(bytes).ok());
    sealed_ = (*file)->Seal(head);
  }
  std::string ReadyBytes() {
    auto ready = OpenReadySnapshot(fs_, kLog);
    EXPECT_TRUE(ready.ok()) << ready.status();
    if (!ready.ok() || *ready == nullptr) return "(none)";
    const auto pieces = PiecesOf(std::move(*ready));
    std::string bytes;
    std::string piece;
    while (true) {
      const Result<bool> more = pieces->Next(&piece);
      if (!more.ok()) return more.status().ToString();
      if (!*more) return bytes;
      bytes += piece;
    }
  }

  SnapshotFiles() { IgnoreError(fs_.CreateDirs(kLog), "a test's directory"); }
  sim::SimFileSystem fs_{3};
  Status sealed_;
};

TEST_F(SnapshotFiles, APublishedOneSurvivesTheWorstCrash) {
  const std::string bytes = Bytes(kSnapshotChunkBytes + 99);
  WriteIncoming(bytes, HeadOf(bytes));
  ASSERT_TRUE(sealed_.ok()) << sealed_;
  ASSERT_TRUE(PublishSnapshot(fs_, kLog).ok());
  fs_.Crash(sim::CrashMode::kDropAll);
  EXPECT_EQ(ReadyBytes(), bytes);
  const auto ready = OpenReadySnapshot(fs_, kLog);
  EXPECT_EQ((*ready)->head(), HeadOf(bytes));
  EXPECT_EQ((*ready)->head().base.membership, BaseAt(11).membership);
  ASSERT_TRUE(RemoveReadySnapshot(fs_, kLog).ok());
  fs_.Crash(sim::CrashMode::kDropAll);
  EXPECT_EQ(ReadyBytes(), "(none)");
}

TEST_F(SnapshotFiles, OneThatWasNotPublishedIsThrownAway) {
  const std::string bytes = Bytes(1000);
  WriteIncoming(bytes, HeadOf(bytes));
  fs_.Kill();
  EXPECT_EQ(ReadyBytes(), "(none)");
  ASSERT_TRUE(CleanSnapshotDir(fs_, kLog).ok());
  EXPECT_TRUE(fs_.List(SnapshotDir(kLog))->empty());
}

TEST_F(SnapshotFiles, WhatIsNotItsHeadsIsNotSealed) {
  WriteIncoming(Bytes(1000), HeadOf(Bytes(1001)));
  EXPECT_EQ(sealed_.code(), StatusCode::kCorruption);
}

// Whichever operation fails, it is reported; what stays behind is nothing or all of it.
TEST_F(SnapshotFiles, AnOperationThatFailsIsReportedAndLeavesNothingHalf) {
  const std::string bytes = Bytes(2 * kSnapshotChunkBytes + 5);
  const auto live = [&](sim::SimFileSystem& fs) -> Status {
    TRIAD_RETURN_IF_ERROR(fs.CreateDirs(SnapshotDir(kLog)));
    TRIAD_RETURN_IF_ERROR(
        WriteFileAtomically(fs, SnapshotDir(kLog) + "/out", "of an earlier life"));
    TRIAD_RETURN_IF_ERROR(CleanSnapshotDir(fs, kLog));
    Result<std::unique_ptr<SnapshotFile>> file = SnapshotFile::Create(fs, SnapshotDir(kLog), "in");
    if (!file.ok()) return file.status();
    TRIAD_RETURN_IF_ERROR((*file)->Append(bytes));
    TRIAD_RETURN_IF_ERROR((*file)->Seal(HeadOf(bytes)));
    TRIAD_RETURN_IF_ERROR(PublishSnapshot(fs, kLog));
    Result<std::unique_ptr<SnapshotFile>> ready = OpenReadySnapshot(fs, kLog);
    if (!ready.ok()) return ready.status();
    EXPECT_NE(*ready, nullptr);
    const auto pieces = PiecesOf(std::move(*ready));
    std::string piece;
    for (Result<bool> more = true; more.ok() && *more;) {
      more = pieces->Next(&piece);
      if (!more.ok()) return more.status();
    }
    return RemoveReadySnapshot(fs, kLog);
  };
  std::uint64_t count = 0;
  for (bool failed = true; failed && !HasFailure(); ++count) {
    SCOPED_TRACE("operation " + std::to_string(count) + " fails");
    sim::SimFileSystem fs(3 + count);
    fs.FailAfter(count);
    const Status lived = live(fs);
    failed = fs.has_failed();
    EXPECT_EQ(lived.ok(), !failed) << lived;
    fs.Crash(sim::CrashMode::kDropAll);
    const auto ready = OpenReadySnapshot(fs, kLog);
    ASSERT_TRUE(ready.ok()) << ready.status();
    if (*ready != nullptr) {
      EXPECT_EQ((*ready)->head(), HeadOf(bytes));
    }
  }
  EXPECT_GE(count, 20u);
}

TEST_F(SnapshotFiles, RotIsFoundBeforeAnythingIsInstalled) {
  const std::string bytes = Bytes(5000);
  WriteIncoming(bytes, HeadOf(bytes));
  ASSERT_TRUE(PublishSnapshot(fs_, kLog).ok());
  const std::string path = SnapshotDir(kLog) + "/ready";
  fs_.Rot(path, kSnapshotHeadBytes + 4000, 1);
  EXPECT_EQ(OpenReadySnapshot(fs_, kLog).status().code(), StatusCode::kCorruption);
  fs_.Rot(path, kSnapshotHeadBytes + 4000, 1);
  fs_.Rot(path, 20, 1);
  EXPECT_EQ(OpenReadySnapshot(fs_, kLog).status().code(), StatusCode::kCorruption);
}

// Between the start that looked at it and the reading of its pieces.
TEST_F(SnapshotFiles, WhatChangesWhileItIsInstalledIsFound) {
  const std::string bytes = Bytes(kSnapshotChunkBytes + 5000);
  const std::string path = SnapshotDir(kLog) + "/ready";
  const auto read_after = [&](const std::function<void()>& damage) {
    WriteIncoming(bytes, HeadOf(bytes));
    EXPECT_TRUE(PublishSnapshot(fs_, kLog).ok());
    auto ready = OpenReadySnapshot(fs_, kLog);
    EXPECT_TRUE(ready.ok() && *ready != nullptr);
    const auto pieces = PiecesOf(std::move(*ready));
    damage();
    std::string piece;
    Result<bool> more = true;
    while (more.ok() && *more) more = pieces->Next(&piece);
    return more.status().code();
  };
  const auto cut_to = [&](std::uint64_t size) {
    auto file = fs_.Open(path, {});
    ASSERT_TRUE(file.ok() && (*file)->Truncate(size).ok());
  };
  EXPECT_EQ(read_after([] {}), StatusCode::kOk);
  EXPECT_EQ(read_after([&] { fs_.Rot(path, kSnapshotHeadBytes + 4000, 1); }),
            StatusCode::kCorruption);
  EXPECT_EQ(read_after([&] { cut_to(kSnapshotHeadBytes + 4000); }), StatusCode::kCorruption);
  EXPECT_EQ(OpenReadySnapshot(fs_, kLog).status().code(), StatusCode::kCorruption);
  cut_to(30);  // inside its head
  EXPECT_EQ(OpenReadySnapshot(fs_, kLog).status().code(), StatusCode::kCorruption);
}

}  // namespace
}  // namespace triad::dledger
