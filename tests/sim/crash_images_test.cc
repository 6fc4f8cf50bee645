// Crash images: for every prefix of what a log store did to its disk, every way the power may have
// gone just then; each image is recovered and compared with what had been promised.
//
// The method of "All file systems are not created equal" (ALICE), applied to our own code;
// testing.md §3. TRIAD_SEED chooses other random subsets; a failure names workload, prefix and
// image.

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/log_workload.h"
#include "tests/sim/sim_file_system.h"

namespace triad::sim {
namespace {

using dledger::EntryRef;
using dledger::LogStore;

constexpr std::uint64_t kImagesMin = 30'000;
constexpr int kRandomImages = 6;
constexpr std::size_t kTornMax = 12;        // places where one write is torn
constexpr std::uint64_t kCrashedMod = 150;  // of the images so many have their recovery crashed too

struct Found {
  Status status;
  bool recovering = false;
  dledger::HardState vote;
  std::size_t dropped = 0;  // before the first entry
  std::vector<std::string> entries;
  bool operator==(const Found& other) const {
    return recovering == other.recovering && vote == other.vote && dropped == other.dropped &&
           entries == other.entries;
  }
};

class CrashImages : public ::testing::Test {
 protected:
  CrashImages() {
    FLAGS_minloglevel = google::GLOG_FATAL;
    const char* seed = std::getenv("TRIAD_SEED");
    seed_ = seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
  }

  static Found Recover(SimFileSystem& fs, const LogWorkload& workload) {
    Found found;
    Result<std::unique_ptr<LogStore>> opened =
        LogStore::Open(fs, workload.options(), workload.stamp());
    found.status = opened.status();
    if (!opened.ok()) return found;
    LogStore& store = **opened;
    found.recovering = store.recovered().recovering;
    found.vote = store.recovered().hard_state;
    const LogIndex behind = store.recovered().last_index + 1;
    const LogIndex first = store.recovered().first_index;
    found.dropped = static_cast<std::size_t>(first.value() - 1);
    for (LogIndex next = first; next < behind;) {
      const auto range = store.ReadRange(next, behind, 1 << 20);
      if (!range.ok()) {
        found.status = range.status();
        return found;
      }
      for (const EntryRef& entry : *range) found.entries.push_back(entry->bytes);
      next = range->back()->index + 1;
    }
    return found;
  }

  // The entries behind the dropped ones are of `of`, and `durable` of all are there.
  static bool Fits(const Found& found, const std::vector<EntryRef>& of, std::size_t dropped,
                   std::size_t durable) {
    if (found.dropped != dropped) return false;
    const std::size_t end = dropped + found.entries.size();
    if (end > of.size() || end < durable) return false;
    for (std::size_t i = dropped; i < end; ++i) {
      if (found.entries[i - dropped] != of[i]->bytes) return false;
    }
    return true;
  }

  // What is wrong with it; empty = nothing.
  static std::string Judge(const Found& found, const LogPromise& promise) {
    if (!found.status.ok()) return "does not open: " + found.status.ToString();
    if (found.recovering) return "takes a crash for corruption";
    if (found.vote != promise.saved && found.vote != promise.tried) return "the vote went back";
    const bool fits = Fits(found, promise.entries, promise.dropped, promise.durable) ||
                      Fits(found, promise.entries, promise.dropping, promise.durable);
    const bool uncut =
        promise.cutting && Fits(found, promise.uncut, promise.uncut_dropped, promise.uncut_durable);
    if (fits || uncut) return {};
    return "holds " + std::to_string(found.entries.size()) + " entries behind " +
           std::to_string(found.dropped) + ", of which " + std::to_string(promise.durable) +
           " of " + std::to_string(promise.entries.size()) + " behind " +
           std::to_string(promise.dropped) + " had to be there, or an entry that nobody wrote";
  }

  // Recovers `image`, twice, and now and then with a crash at each step of the recovery.
  void Try(const LogWorkload& workload, const FileDisk& image, const LogPromise& promise,
           const std::string& what) {
    ++images_;
    SimFileSystem fs(seed_ + images_, image);
    const Found first = Recover(fs, workload);
    const std::string wrong = Judge(first, promise);
    EXPECT_EQ(wrong, "") << what;
    fs.Crash(CrashMode::kDropAll);
    const Found second = Recover(fs, workload);
    EXPECT_TRUE(first == second) << what << ": a second recovery found something else";
    if (images_ % kCrashedMod == 0) TryCrashedRecovery(workload, image, promise, what);
  }

  void TryCrashedRecovery(const LogWorkload& workload, const FileDisk& image,
                          const LogPromise& promise, const std::string& what) {
    for (std::uint64_t stop = 0;; ++stop) {
      SimFileSystem fs(seed_ + images_ + stop, image);
      fs.StopAfter(stop);
      IgnoreError(Recover(fs, workload).status, "it is about to be judged after the crash");
      const bool crashed = fs.stopped();
      fs.CrashRandomly();
      const std::string wrong = Judge(Recover(fs, workload), promise);
      EXPECT_EQ(wrong, "") << what << ", recovery crashed after " << stop << " operations";
      ++images_;
      if (!crashed || HasFailure()) return;
    }
  }

  void TryMoment(const LogWorkload& workload, const FileDisk& disk, const LogPromise& promise,
                 const std::string& where) {
    const auto image = [&](const std::string& what, const std::function<void(FileDisk&)>& crash) {
      FileDisk copy = disk;
      crash(copy);
      Try(workload, copy, promise, where + ": " + what);
    };
    Random random(seed_ + images_);
    const std::size_t pending = disk.pending_count();
    image("nothing kept", [](FileDisk& d) { d.CrashKeepingFirst(0); });
    if (pending == 0) return;
    for (std::size_t i = 0; i < pending; ++i) {
      image("kept up to " + std::to_string(i), [i](FileDisk& d) { d.CrashKeepingFirst(i + 1); });
      image("lost " + std::to_string(i), [i](FileDisk& d) { d.CrashLosing(i); });
      const DiskOp& op = disk.pending(i);
      if (op.kind != DiskOp::Kind::kWrite) continue;
      const std::size_t sectors = op.bytes.size() / kSectorBytes + 1;
      const std::size_t step = std::max<std::size_t>(1, sectors / kTornMax);
      for (std::size_t kept = 1; kept < sectors; kept += step) {
        image("torn " + std::to_string(i) + " at sector " + std::to_string(kept),
              [i, kept](FileDisk& d) { d.CrashTearing(i, kept); });
      }
    }
    for (const CrashMode mode : {CrashMode::kGrownZeros, CrashMode::kGrownGarbage}) {
      image("grown", [mode, &random](FileDisk& d) { d.Crash(mode, &random); });
    }
    for (int i = 0; i < kRandomImages; ++i) {
      image("any sectors", [&random](FileDisk& d) { d.Crash(CrashMode::kSubset, &random); });
      image("any mode per file", [&random](FileDisk& d) { d.CrashRandomly(&random); });
    }
  }

  std::uint64_t seed_ = 1;
  std::uint64_t images_ = 0;
};

TEST_F(CrashImages, EveryImageRecoversToWhatWasPromised) {
  for (const auto& workload : LogWorkloads(seed_)) {
    const std::uint64_t before = images_;
    FileDisk disk;
    std::uint64_t mark = 0;
    std::size_t prefix = 0;
    for (const DiskOp& op : workload->trace()) {
      ++prefix;
      disk.Apply(op);
      if (op.kind == DiskOp::Kind::kMark) {
        mark = op.offset;
        continue;
      }
      TryMoment(*workload, disk, workload->promise(mark),
                workload->name() + ", " + std::to_string(prefix) + " operations");
      if (HasFailure()) return;
    }
    std::printf("%-28s %5zu operations %7llu images\n", workload->name().c_str(), prefix,
                static_cast<unsigned long long>(images_ - before));
  }
  std::printf("crash_images: %llu images, seed %llu\n", static_cast<unsigned long long>(images_),
              static_cast<unsigned long long>(seed_));
  EXPECT_GE(images_, kImagesMin) << "the floor may only rise";
}

}  // namespace
}  // namespace triad::sim
