#include "tests/sim/key_workload.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>

#include "broker/store/key_index.h"
#include "tests/unit/broker/key_index_support.h"

namespace triad::sim {
namespace {

using broker::EntryAt;
using broker::KeyIndex;

constexpr char kDir[] = "/store/keyindex";
constexpr std::uint64_t kKeys = 7;
constexpr std::uint64_t kReplayed = 25;

struct KeyPromise {
  std::uint64_t synced = 0;     // the last run that is durable, as the checkpoint says
  std::uint64_t last = 0;       // its last entry
  std::uint64_t log_first = 1;  // the log begins there
};

// Entry n has key n % kKeys, and every third one another.
std::vector<std::uint64_t> KeysOf(std::uint64_t entry) {
  std::vector<std::uint64_t> keys = {entry % kKeys};
  if (entry % 3 == 0) keys.push_back((entry / 3) % kKeys);
  for (std::uint64_t& key : keys) key = broker::KeyHash(broker::kTopicSeed, std::to_string(key));
  return keys;
}

void Record(KeyIndex* index, std::uint64_t number) {
  const dledger::Entry entry = EntryAt(number);
  index->BeginEntry(entry);
  std::int64_t at = 1;
  for (const std::uint64_t key : KeysOf(number)) index->Add(key, entry.position + at++);
  index->EndEntry(entry);
}

// A life of the index: entries, runs at the ends of segments and at stops, checkpoints, retention,
// kills. Promise: everything up to the checkpoint is found, nothing else is, and the rest comes
// back by replay.
class KeyWorkload final : public CrashWorkload {
 public:
  struct Life {
    std::string name;
    std::uint64_t entries = 0;
    std::uint64_t sync_every = 1;
    std::uint64_t seal_every = 1;
    std::uint64_t drop_every = 1;
    std::uint64_t kill_every = 1;
  };
  KeyWorkload(Life life, std::uint64_t seed) : life_(std::move(life)), fs_(seed) {
    fs_.Record(true);
    Mark();
    Open();
    for (std::uint64_t n = 1; n <= life_.entries; ++n) {
      Put(n);
      if (n % life_.seal_every == 0) Seal(n);
      if (n % life_.sync_every == 0) Sync();
      if (n % life_.drop_every == 0) DropSegmentsBefore(n);
      if (n % life_.kill_every != 0) continue;
      fs_.Kill();
      Open();
      for (std::uint64_t again = now_.last + 1; again <= n; ++again) Put(again);
    }
  }

  const std::string& name() const override { return life_.name; }
  std::vector<DiskOp> trace() const override { return fs_.trace(); }

  std::string Recover(SimFileSystem& fs, std::uint64_t mark, std::string* found) const override {
    const KeyPromise& promise = promises_.at(static_cast<std::size_t>(mark));
    const PhysicalOffset log_begin = EntryAt(promise.log_first).position;
    auto index = KeyIndex::Open(fs, kDir, promise.synced, log_begin);
    if (!index.ok()) return "does not open: " + index.status().ToString();
    const std::uint64_t last = (*index)->last().value();
    *found = std::to_string(last);
    if (last != promise.last) {
      return "ends with entry " + *found + ", not " + std::to_string(promise.last);
    }
    const Status begun = (*index)->SetLogBegin(log_begin);
    if (!begun.ok()) return begun.ToString();
    std::string wrong = Compare(**index, promise.log_first, last);
    if (!wrong.empty()) return wrong;
    const std::uint64_t end = last + kReplayed;
    for (std::uint64_t n = last + 1; n <= end; ++n) Record(index->get(), n);
    wrong = Compare(**index, promise.log_first, end);
    return wrong.empty() ? wrong : "after the replay: " + wrong;
  }

 private:
  void Open() {
    index_.reset();
    auto opened = KeyIndex::Open(fs_, kDir, now_.synced, EntryAt(now_.log_first).position);
    CHECK(opened.ok()) << opened.status();
    index_ = std::move(*opened);
    CHECK_EQ(index_->last(), LogIndex(now_.last));
    run_last_ = now_.last;
  }
  void Put(std::uint64_t n) {
    if (n % broker::kSegmentEntries == 1) run_last_ = n - 1;  // the end of a segment ends a run
    Record(index_.get(), n);
  }
  void Seal(std::uint64_t n) {
    index_->Seal();
    run_last_ = n;
  }
  // What is in memory is not promised.
  void Sync() {
    const KeyIndex::PendingSync pending = index_->PrepareSync();
    CHECK(pending.sync().ok());
    now_.synced = pending.synced;
    now_.last = run_last_;
    Mark();
  }
  // The log forgets first, then the index.
  void DropSegmentsBefore(std::uint64_t n) {
    const std::uint64_t keep = std::min(n, now_.last + 1);
    now_.log_first = (keep - 1) / broker::kSegmentEntries * broker::kSegmentEntries + 1;
    Mark();
    CHECK(index_->SetLogBegin(EntryAt(now_.log_first).position).ok());
  }
  void Mark() {
    fs_.Mark(promises_.size());
    promises_.push_back(now_);
  }

  // Entries [first, last] are found under their keys, newest first, and nothing else is.
  static std::string Compare(const KeyIndex& index, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      const std::uint64_t hash = broker::KeyHash(broker::kTopicSeed, std::to_string(key));
      std::vector<PhysicalOffset> expected;
      for (std::uint64_t n = last; n >= first; --n) {
        const std::vector<std::uint64_t> keys = KeysOf(n);
        for (std::size_t i = keys.size(); i > 0; --i) {
          if (keys[i - 1] != hash) continue;
          expected.push_back(EntryAt(n).position + static_cast<std::int64_t>(i));
        }
      }
      std::vector<PhysicalOffset> found;
      const Status status = index.Find(hash, {}, [&found](PhysicalOffset at) {
        found.push_back(at);
        return true;
      });
      if (!status.ok()) return status.ToString();
      if (found != expected) {
        return "key " + std::to_string(key) + " has " + std::to_string(found.size()) +
               " positions, or others than the " + std::to_string(expected.size()) +
               " of entries " + std::to_string(first) + " to " + std::to_string(last);
      }
    }
    return {};
  }

  const Life life_;
  SimFileSystem fs_;
  std::unique_ptr<KeyIndex> index_;
  std::uint64_t run_last_ = 0;  // the last entry of a run that is written
  KeyPromise now_;
  std::vector<KeyPromise> promises_;
};

}  // namespace

std::vector<std::unique_ptr<CrashWorkload>> KeyWorkloads(std::uint64_t seed) {
  std::vector<std::unique_ptr<CrashWorkload>> all;
  const auto add = [&](const KeyWorkload::Life& life) {
    all.push_back(std::make_unique<KeyWorkload>(life, seed + 20 + all.size()));
  };
  add({.name = "key index",
       .entries = 260,
       .sync_every = 30,
       .seal_every = 45,
       .drop_every = 100,
       .kill_every = 1000});
  add({.name = "key index, killed and replayed",
       .entries = 220,
       .sync_every = 53,
       .seal_every = 11,
       .drop_every = 130,
       .kill_every = 37});
  return all;
}

}  // namespace triad::sim
