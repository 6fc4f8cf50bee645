// Random lives of a log store against a naive model: append, sync, cut, checkpoint, prepare, votes,
// crashes of every kind, reopening. The seed of a failure is in its message; TRIAD_SEED repeats it,
// TRIAD_SEEDS tries so many.

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "tests/unit/dledger/log_fixture.h"

namespace triad::dledger {
namespace {

using sim::Random;
using sim::SimFileSystem;

class Life {
 public:
  explicit Life(std::uint64_t seed) : random_(seed), fs_(seed) {
    options_.dir = kLogDir;
    options_.segment_bytes = model_.segment_bytes = 1024u << random_.Below(4);
    options_.prepare_bytes = 512u << random_.Below(6);
    options_.first_prepare_bytes = random_.Below(2048);
    options_.cache_bytes = random_.Below(20'000);
    fs_.set_short_writes(random_.OneIn(2));
  }

  void Run(int steps) {
    Open();
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) Step();
    store_.reset();
  }

 private:
  void Step() {
    switch (random_.Below(14)) {
      case 0:
      case 1:
      case 2:
      case 3: return Append();
      case 4:
      case 5: return Sync();
      case 6: return Cut();
      case 7: return Do(store_->Prepare());
      case 8: return Do(store_->WriteCheckpoint());
      case 9: return Vote();
      case 10: return ReadSome();
      case 11: return Crash();
      case 12: return StopInTheMiddle();
      default: return CloseAndOpen();
    }
  }

  // The status of an operation that nothing disturbs unless the power is going off.
  void Do(const Status& status) { EXPECT_TRUE(status.ok() || fs_.stopped()) << status; }

  void Append() {
    const int count = 1 + static_cast<int>(random_.Below(4));
    if (random_.OneIn(5)) model_.term = model_.term + 1;
    std::vector<EntryRef> made;
    for (int i = 0; i < count; ++i) {
      const std::size_t size = random_.OneIn(20) ? random_.Below(12'000) : random_.Below(400);
      made.push_back(model_.Make(std::string(size, static_cast<char>('a' + random_.Below(26)))));
    }
    Do(store_->Append(made));
  }
  void Sync() {
    const Status status = store_->Sync();
    Do(status);
    if (status.ok()) durable_ = model_.entries.size();
  }
  void Cut() {
    if (model_.entries.empty() || !random_.OneIn(3)) return;
    const LogIndex from(1 + random_.Below(model_.entries.size()));
    const std::vector<EntryRef> before = model_.entries;
    const Status status = store_->Cut(from);
    Do(status);
    model_.CutFrom(from);
    if (!status.ok()) uncut_ = before;
    durable_ = std::min(durable_, model_.entries.size());
    model_.term = model_.term + 1;
  }
  void Vote() {
    tried_ = HardState{.term = saved_.term + 1, .voted_for = PeerId("n1")};
    const Status status = store_->SaveHardState(tried_);
    Do(status);
    if (status.ok()) saved_ = tried_;
  }
  void ReadSome() {
    if (model_.entries.empty()) return;
    const EntryRef& want = model_.entries[random_.Below(model_.entries.size())];
    const auto inside = static_cast<std::int64_t>(random_.Below(want->size()));
    const Result<EntryRef> read = store_->ReadAt(want->position + inside);
    if (!read.ok()) return Do(read.status());
    EXPECT_EQ((*read)->bytes, want->bytes);
  }
  void Crash() {
    fs_.CrashRandomly();
    Open();
  }
  // The power goes off during one of the next operations.
  void StopInTheMiddle() {
    fs_.StopAfter(random_.Below(12));
    for (int i = 0; i < 30 && !fs_.stopped(); ++i) {
      switch (random_.Below(6)) {
        case 0: Append(); break;
        case 1: Sync(); break;
        case 2: Cut(); break;
        case 3: Do(store_->Prepare()); break;
        case 4: Do(store_->WriteCheckpoint()); break;
        default: Vote(); break;
      }
    }
    const bool kill = random_.OneIn(3);
    if (kill) fs_.Crash(sim::CrashMode::kKeepAll);
    if (!kill) fs_.CrashRandomly();
    Open();
  }
  void CloseAndOpen() {
    Do(store_->Close());
    durable_ = model_.entries.size();
    fs_.CrashRandomly();
    Open();
  }

  void Open() {
    store_.reset();
    if (random_.OneIn(4)) {  // the first attempts crash
      fs_.StopAfter(random_.Below(15));
      IgnoreError(LogStore::Open(fs_, options_, stamp_).status(), "it may fail, not lie");
      fs_.CrashRandomly();
    }
    Result<std::unique_ptr<LogStore>> opened = LogStore::Open(fs_, options_, stamp_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = std::move(opened).value();
    CheckOpened();
  }

  void CheckOpened() {
    const Recovered& recovered = store_->recovered();
    ASSERT_FALSE(recovered.recovering);
    const std::uint64_t last = recovered.last_index.value();
    const std::vector<std::string> found = Contents(*store_, recovered.last_index);
    // Everything that was synced, then entries that were written, in order; nothing else.
    if (uncut_ && last > model_.entries.size()) model_.entries = *uncut_;  // it did not begin
    if (uncut_ && !Matches(found)) model_.entries = *uncut_;
    ASSERT_GE(last, durable_);
    ASSERT_TRUE(Matches(found));
    model_.CutFrom(LogIndex(last + 1));
    uncut_.reset();
    durable_ = model_.entries.size();
    ASSERT_EQ(store_->end_position(), model_.tail.position);
    const HardState& vote = recovered.hard_state;
    ASSERT_TRUE(vote == saved_ || vote == tried_) << vote.term << " after " << saved_.term;
    saved_ = tried_ = vote;
  }
  bool Matches(const std::vector<std::string>& found) const {
    if (found.size() > model_.entries.size()) return false;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] != model_.entries[i]->bytes) return false;
    }
    return true;
  }

  Random random_;
  SimFileSystem fs_;
  LogStoreOptions options_;
  StoreStamp stamp_{.group = "g", .peer_id = "n0"};
  std::unique_ptr<LogStore> store_;
  ModelLog model_;
  std::size_t durable_ = 0;                     // entries that must survive
  std::optional<std::vector<EntryRef>> uncut_;  // before a cut that did not finish
  HardState saved_;
  HardState tried_;
};

TEST(LogProperty, TenThousandStepsAgainstANaiveModel) {
  const char* wanted = std::getenv("TRIAD_SEED");
  const std::uint64_t first = wanted == nullptr ? 1 : std::strtoull(wanted, nullptr, 10);
  const char* many = std::getenv("TRIAD_SEEDS");
  const std::uint64_t count =
      many == nullptr ? (wanted == nullptr ? 200 : 1) : std::strtoull(many, nullptr, 10);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("TRIAD_SEED=" + std::to_string(seed));
    Life(seed).Run(100);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace triad::dledger
