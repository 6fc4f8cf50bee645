// fuzz_segment: any bytes as the first segment of a store, into its recovery.
//
// Input: one byte of options, then the file (its head of two window slots first). Must hold: it
// opens, or says what is wrong; every entry that an independent walk from the front finds valid is
// there, and no other; entries below the synced hint are missing only while recovering, and then
// nothing of the file is changed; a second recovery finds the same.

#include <string>
#include <vector>

#include "common/byte_order.h"
#include "common/crc32c.h"
#include "dledger/log/log_store.h"
#include "dledger/log/segment_file.h"
#include "tests/fuzz/input.h"
#include "tests/sim/sim_file_system.h"

namespace triad::fuzz {
namespace {

using dledger::EntryRef;
using dledger::LogStore;
using dledger::LogTail;

constexpr std::size_t kHead = dledger::kSegmentHeadBytes;
constexpr std::size_t kSyncedBytes = 3 * 96;  // of the store with entries
const char kSegment[] = "/s/00000000000000000000";

dledger::LogStoreOptions Options() {
  dledger::LogStoreOptions options;
  options.dir = "/s";
  options.segment_bytes = 1u << 16;
  options.prepare_bytes = 4096;
  options.first_prepare_bytes = 4096;
  return options;
}
const dledger::StoreStamp kStamp{.group = "g", .peer_id = "n0"};

// A closed store whose one segment holds `count` synced entries.
sim::FileDisk MakeStore(int count) {
  sim::SimFileSystem fs(1);
  auto store = LogStore::Open(fs, Options(), kStamp);
  CHECK(store.ok()) << store.status();
  LogTail tail;
  std::vector<EntryRef> entries;
  for (int i = 0; i < count; ++i) {
    entries.push_back(dledger::MakeEntry(Term(1), dledger::EntryType::kBatch, 1,
                                         std::string(static_cast<std::size_t>(20 + i), 'a'),
                                         &tail));
  }
  if (count > 0) CHECK((*store)->Append(entries).ok());
  CHECK_EQ(static_cast<std::size_t>(tail.position.value()), count > 0 ? kSyncedBytes : 0);
  CHECK((*store)->Sync().ok());
  CHECK((*store)->Close().ok());
  return fs.disk();
}

const sim::FileDisk& StoreWith(bool entries) {
  static const sim::FileDisk empty = MakeStore(0);
  static const sim::FileDisk some = MakeStore(3);
  return entries ? some : empty;
}

// The entries from the front that are whole and follow each other within this file.
std::vector<std::string> WalkFromTheFront(std::string_view file) {
  std::vector<std::string> found;
  if (file.size() <= kHead) return found;
  std::string_view rest = file.substr(kHead);
  LogTail tail;
  while (true) {
    const auto entry = dledger::DecodeEntry(rest, true);
    if (!entry.ok() || !dledger::CheckFollows(tail, **entry).ok()) return found;
    if ((*entry)->segment_base != PhysicalOffset(0) || (*entry)->position != tail.position) {
      return found;
    }
    tail = TailAfter(**entry);
    rest.remove_prefix((*entry)->size());
    found.push_back((*entry)->bytes);
  }
}

std::size_t BytesOf(const std::vector<std::string>& entries) {
  std::size_t bytes = 0;
  for (const std::string& entry : entries) bytes += entry.size();
  return bytes;
}

struct Found {
  Status status;
  bool recovering = false;
  std::vector<std::string> entries;
};

Found Recover(sim::SimFileSystem& fs) {
  Found found;
  auto store = LogStore::Open(fs, Options(), kStamp);
  found.status = store.status();
  if (!store.ok()) return found;
  const dledger::Recovered& recovered = (*store)->recovered();
  found.recovering = recovered.recovering;
  const LogIndex behind = recovered.last_index + 1;
  for (LogIndex next{1}; next < behind;) {
    const auto range = (*store)->ReadRange(next, behind, 1 << 20);
    CHECK(range.ok()) << "recovered, but not readable: " << range.status();
    for (const EntryRef& entry : *range) found.entries.push_back(entry->bytes);
    next = range->back()->index + 1;
  }
  CHECK_EQ(found.entries.size(), recovered.last_index.value());
  return found;
}

// Checksums and the chain of whatever looks like an entry; with `move` also its place.
void RepairEntries(char* file, std::size_t size, bool move) {
  std::size_t at = kHead;
  std::uint32_t previous = 0;
  std::uint64_t index = 1;
  while (at + dledger::kEntryHeaderBytes <= size) {
    char* const head = file + at;
    if (LoadBe32(head) != dledger::kEntryMagic) return;
    const std::size_t room = size - at - dledger::kEntryHeaderBytes;
    const std::size_t payload = std::min<std::size_t>(LoadBe32(head + 12), room) & ~std::size_t{7};
    const std::size_t total = dledger::EntryBytes(payload);
    StoreBe32(head + 4, static_cast<std::uint32_t>(total));
    StoreBe32(head + 12, static_cast<std::uint32_t>(payload));
    if (move) {
      StoreBe64(head + 24, index);
      StoreBe64(head + 32, at - kHead);
      StoreBe64(head + 40, 0);
    }
    StoreBe32(head + 56, Crc32c(std::string_view(head + dledger::kEntryHeaderBytes, payload)));
    StoreBe32(head + 60, previous);
    StoreBe32(head + 68, Crc32c(std::string_view(head, 68)));
    previous = LoadBe32(head + 68);
    at += total;
    ++index;
  }
}

}  // namespace
}  // namespace triad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace triad;
  using namespace triad::fuzz;
  FLAGS_minloglevel = google::GLOG_FATAL;
  Input input(data, size);
  const bool has_hint = input.Flag();  // three entries were synced once
  const std::string file(input.Rest());
  sim::FileDisk disk = StoreWith(has_hint);
  const auto inode = disk.Lookup(kSegment);
  CHECK(inode.has_value());
  disk.Apply({.kind = sim::DiskOp::Kind::kTruncate, .inode = *inode});
  disk.Apply({.kind = sim::DiskOp::Kind::kWrite, .inode = *inode, .bytes = file});
  disk.Apply({.kind = sim::DiskOp::Kind::kSync, .inode = *inode});

  sim::SimFileSystem fs(1, std::move(disk));
  const Found first = Recover(fs);
  if (!first.status.ok()) {
    CHECK(!first.status.message().empty());
    return 0;
  }
  const std::vector<std::string> expected = WalkFromTheFront(file);
  CHECK(first.entries == expected)
      << "recovered " << first.entries.size() << " entries, there are " << expected.size();
  if (has_hint && BytesOf(expected) < kSyncedBytes) {
    CHECK(first.recovering) << "synced entries were given up";
  }
  if (first.recovering) {
    const std::string after = fs.Bytes(kSegment);
    CHECK(after.compare(0, file.size(), file) == 0) << "a damaged log was changed";
  }
  const Found second = Recover(fs);
  CHECK(second.status.ok()) << second.status;
  CHECK(second.entries == first.entries);
  CHECK_EQ(second.recovering, first.recovering);
  return 0;
}

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                    unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 4 == 0 || size <= 1) return size;
  triad::fuzz::RepairEntries(reinterpret_cast<char*>(data) + 1, size - 1, seed % 4 == 1);
  return size;
}
