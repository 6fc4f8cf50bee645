#include "tests/sim/log_workload.h"

#include <glog/logging.h>

#include <functional>
#include <utility>

namespace triad::sim {

using dledger::EntryBytes;
using dledger::EntryRef;
using dledger::EntryType;
using dledger::LogStore;
using dledger::LogStoreOptions;
using dledger::LogTail;

LogWorkload::LogWorkload(std::string name, LogStoreOptions options, std::uint64_t seed)
    : name_(std::move(name)), options_(std::move(options)), fs_(seed) {
  fs_.Record(true);
  Mark();
}

void LogWorkload::Mark() {
  fs_.Mark(promises_.size());
  promises_.push_back(now_);
}

void LogWorkload::Open() {
  store_.reset();
  Result<std::unique_ptr<LogStore>> opened = LogStore::Open(fs_, options_, stamp_);
  CHECK(opened.ok()) << opened.status();
  store_ = std::move(opened).value();
  CHECK_EQ(store_->recovered().last_index.value(), now_.entries.size());
  now_.durable = now_.entries.size();
  Mark();
}

void LogWorkload::Append(int count, std::size_t payload_bytes) {
  std::vector<EntryRef> made;
  for (int i = 0; i < count; ++i) {
    const char fill = static_cast<char>('a' + now_.entries.size() % 26);
    dledger::RollIfNeeded(EntryBytes(payload_bytes), options_.segment_bytes, &tail_);
    made.push_back(
        dledger::MakeEntry(term_, EntryType::kBatch, 1, std::string(payload_bytes, fill), &tail_));
    now_.entries.push_back(made.back());
  }
  Mark();
  CHECK(store_->Append(made).ok());
}

void LogWorkload::Sync() {
  CHECK(store_->Sync().ok());
  now_.durable = now_.entries.size();
  Mark();
}

void LogWorkload::Cut(std::uint64_t from) {
  now_.cutting = true;
  now_.uncut = now_.entries;
  now_.uncut_durable = now_.durable;
  now_.uncut_dropped = now_.dropped;
  now_.entries.resize(static_cast<std::size_t>(from - 1));
  now_.durable = std::min(now_.durable, now_.entries.size());
  tail_ = now_.entries.empty() ? LogTail{} : TailAfter(*now_.entries.back());
  Mark();
  CHECK(store_->Cut(LogIndex(from)).ok());
  now_.cutting = false;
  now_.uncut.clear();
  Mark();
  NextTerm();
}

void LogWorkload::Drop(std::uint64_t keep_from) {
  const std::vector<dledger::SegmentFacts> segments = store_->segments();
  now_.dropping = now_.dropped;
  for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
    const LogIndex first = segments[i + 1].first;
    if (first <= LogIndex(keep_from)) now_.dropping = first.value() - 1;
  }
  Mark();
  CHECK(store_->DropBefore(LogIndex(keep_from)).ok());
  now_.dropped = now_.dropping;
  Mark();
}

void LogWorkload::Restart(int count, std::size_t payload_bytes) {
  now_.cutting = true;
  now_.uncut = now_.entries;
  now_.uncut_durable = now_.durable;
  now_.uncut_dropped = now_.dropped;
  term_ = term_ + 1;
  for (int i = 0; i < count; ++i) {
    dledger::RollIfNeeded(EntryBytes(payload_bytes), options_.segment_bytes, &tail_);
    now_.entries.push_back(
        dledger::MakeEntry(term_, EntryType::kBatch, 1, std::string(payload_bytes, 'z'), &tail_));
  }
  dledger::RollIfNeeded(options_.segment_bytes, options_.segment_bytes, &tail_);
  now_.dropped = now_.dropping = now_.durable = now_.entries.size();
  Mark();
  const dledger::StoreBase base{.tail = tail_, .membership = {}};
  CHECK(store_->Restart(base).ok());
  now_.cutting = false;
  now_.uncut.clear();
  Mark();
}

void LogWorkload::Vote() {
  now_.tried = dledger::HardState{.term = now_.saved.term + 1, .voted_for = PeerId("n1")};
  Mark();
  CHECK(store_->SaveHardState(now_.tried).ok());
  now_.saved = now_.tried;
  Mark();
}

void LogWorkload::Prepare() {
  CHECK(store_->Prepare().ok());
}

void LogWorkload::Checkpoint() {
  CHECK(store_->WriteCheckpoint().ok());
}

void LogWorkload::Close() {
  CHECK(store_->Close().ok());
  now_.durable = now_.entries.size();
  Mark();
}

void LogWorkload::KillAndOpen() {
  fs_.Kill();
  Open();
}

namespace {

// The entries found behind the first `dropped` are of `of`, and `durable` of all are there.
bool Fits(const std::vector<std::string>& found, std::size_t found_dropped,
          const std::vector<EntryRef>& of, std::size_t dropped, std::size_t durable) {
  if (found_dropped != dropped) return false;
  const std::size_t end = dropped + found.size();
  if (end > of.size() || end < durable) return false;
  for (std::size_t i = dropped; i < end; ++i) {
    if (found[i - dropped] != of[i]->bytes) return false;
  }
  return true;
}

std::string Judge(const std::vector<std::string>& found, std::size_t dropped,
                  const LogPromise& promise) {
  const bool fits = Fits(found, dropped, promise.entries, promise.dropped, promise.durable) ||
                    Fits(found, dropped, promise.entries, promise.dropping, promise.durable);
  const bool uncut = promise.cutting && Fits(found, dropped, promise.uncut, promise.uncut_dropped,
                                             promise.uncut_durable);
  if (fits || uncut) return {};
  return "holds " + std::to_string(found.size()) + " entries behind " + std::to_string(dropped) +
         ", of which " + std::to_string(promise.durable) + " of " +
         std::to_string(promise.entries.size()) + " behind " + std::to_string(promise.dropped) +
         " had to be there, or an entry that nobody wrote";
}

}  // namespace

std::string LogWorkload::Recover(SimFileSystem& fs, std::uint64_t mark, std::string* found) const {
  const LogPromise& promise = promises_.at(static_cast<std::size_t>(mark));
  Result<std::unique_ptr<LogStore>> opened = LogStore::Open(fs, options_, stamp_);
  if (!opened.ok()) return "does not open: " + opened.status().ToString();
  LogStore& store = **opened;
  if (store.recovered().recovering) return "takes a crash for corruption";
  const dledger::HardState vote = store.recovered().hard_state;
  if (vote != promise.saved && vote != promise.tried) return "the vote went back";
  *found = std::to_string(vote.term.value()) + vote.voted_for.value() +
           std::to_string(store.recovered().first_index.value());
  std::vector<std::string> entries;
  const LogIndex behind = store.recovered().last_index + 1;
  const LogIndex begin = store.recovered().first_index;
  for (LogIndex next = begin; next < behind;) {
    const auto range = store.ReadRange(next, behind, 1 << 20);
    if (!range.ok()) return "cannot be read: " + range.status().ToString();
    for (const EntryRef& entry : *range) {
      entries.push_back(entry->bytes);
      *found += entry->bytes;
    }
    next = range->back()->index + 1;
  }
  return Judge(entries, static_cast<std::size_t>(begin.value() - 1), promise);
}

std::vector<std::unique_ptr<CrashWorkload>> LogWorkloads(std::uint64_t seed) {
  LogStoreOptions options;
  options.dir = "/store/log";
  options.segment_bytes = 4096;
  options.prepare_bytes = 3072;
  options.first_prepare_bytes = 1024;
  std::vector<std::unique_ptr<CrashWorkload>> all;
  const auto add = [&](const char* name, const std::function<void(LogWorkload&)>& script) {
    auto workload = std::make_unique<LogWorkload>(name, options, seed + all.size());
    workload->Open();
    script(*workload);
    all.push_back(std::move(workload));
  };
  add("append", [](LogWorkload& w) {
    for (int i = 0; i < 12; ++i) w.AppendAndSync(1, 40 + static_cast<std::size_t>(i) * 90);
  });
  add("group commit", [](LogWorkload& w) {
    for (int i = 0; i < 8; ++i) {
      w.Append(1, 100);
      w.Append(3, 250);
      w.Append(1, 600);
      w.Sync();
    }
  });
  add("rollover", [](LogWorkload& w) {
    for (int i = 0; i < 10; ++i) {
      w.Prepare();
      w.Append(2, 700);
      if (i % 3 != 2) w.Sync();
    }
  });
  add("rollover, nothing prepared", [](LogWorkload& w) {
    for (int i = 0; i < 10; ++i) {
      w.Append(2, 900);
      if (i % 2 == 0) w.Sync();
    }
  });
  add("cut", [](LogWorkload& w) {
    w.AppendAndSync(4, 300);
    w.Append(3, 300);
    w.Cut(3);
    w.Append(2, 100);
    w.Cut(4);
    w.AppendAndSync(3, 200);
    w.Cut(6);
    w.AppendAndSync(1, 300);
  });
  add("cut across segments", [](LogWorkload& w) {
    w.AppendAndSync(6, 1000);
    w.Prepare();
    w.Append(6, 1000);
    w.Cut(3);
    w.Prepare();
    w.AppendAndSync(6, 800);
    w.Cut(1);
    w.AppendAndSync(2, 800);
  });
  add("votes", [](LogWorkload& w) {
    for (int i = 0; i < 10; ++i) {
      w.Vote();
      w.Append(1, 200);
      w.Vote();
      if (i % 2 == 0) w.Sync();
    }
  });
  add("checkpoints and restarts", [](LogWorkload& w) {
    for (int i = 0; i < 5; ++i) {
      w.AppendAndSync(3, 500);
      w.Checkpoint();
      w.Append(2, 300);
      if (i % 2 == 0) w.KillAndOpen();
      if (i == 3) w.Cut(7);
    }
    w.Close();
    w.Open();
    w.AppendAndSync(2, 100);
  });
  add("large entries", [](LogWorkload& w) {
    w.AppendAndSync(1, 100);
    w.AppendAndSync(1, 9000);
    w.Append(2, 3000);
    w.Append(1, 6000);
    w.Sync();
    w.AppendAndSync(1, 10);
  });
  add("retention", [](LogWorkload& w) {
    w.AppendAndSync(9, 1000);
    w.Checkpoint();
    w.Drop(5);
    w.AppendAndSync(4, 1000);
    w.Drop(5);
    w.Checkpoint();
    w.Append(2, 700);
    w.Drop(12);
    w.KillAndOpen();
    w.AppendAndSync(3, 1000);
    w.Cut(16);
    w.AppendAndSync(3, 1000);
    w.Drop(18);
    w.Close();
    w.Open();
  });
  add("snapshot installed", [](LogWorkload& w) {
    w.AppendAndSync(5, 1000);
    w.Checkpoint();
    w.Append(1, 500);
    w.Restart(20, 900);
    w.AppendAndSync(3, 900);
    w.Checkpoint();
    w.Vote();
    w.KillAndOpen();
    w.Append(3, 900);
    w.Restart(1, 100);
    w.AppendAndSync(2, 300);
    w.Drop(28);
  });
  add("sync now and then", [](LogWorkload& w) {
    for (int i = 0; i < 12; ++i) {
      w.Append(2, 150);
      if (i % 4 == 3) w.Sync();
      if (i % 5 == 4) w.KillAndOpen();
    }
  });
  return all;
}

}  // namespace triad::sim
