// Crash images: for every prefix of what a store did to its disk, every way the power may have gone
// just then; each image is recovered and compared with what had been promised.
//
// The method of "All file systems are not created equal" (ALICE), applied to our own code;
// testing.md §3. TRIAD_SEED chooses other random subsets; TRIAD_CRASH_LONG=P makes P % of a long
// run; TRIAD_CRASH_ONLY=TEXT tries the workloads with that in their name. A failure names workload,
// prefix and image.

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/mutant.h"
#include "tests/sim/key_workload.h"
#include "tests/sim/log_workload.h"
#include "tests/sim/peer_workload.h"
#include "tests/sim/sim_file_system.h"
#include "tests/sim/store_workload.h"

namespace triad::sim {
namespace {

constexpr std::uint64_t kImagesMin = 30'000;
constexpr std::uint64_t kLongImagesMin = 2'000'000;
constexpr int kRandomImages = 6;
constexpr std::uint64_t kLongRandomImages = 440;
constexpr std::size_t kTornMax = 12;        // places where one write is torn
constexpr std::uint64_t kCrashedMod = 150;  // of the images so many have their recovery crashed too

class CrashImages : public ::testing::Test {
 protected:
  CrashImages() {
    FLAGS_minloglevel = google::GLOG_FATAL;
    const char* seed = std::getenv("TRIAD_SEED");
    seed_ = seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
#ifdef TRIAD_MUTANTS
    const char* mutant = std::getenv("TRIAD_MUTANT");
    active_mutant = mutant == nullptr ? 0 : std::atoi(mutant);
#endif
    const char* share = std::getenv("TRIAD_CRASH_LONG");
    if (share != nullptr) {
      const std::uint64_t percent = std::strtoull(share, nullptr, 10);
      random_images_ += static_cast<int>(kLongRandomImages * percent / 100);
      images_min_ = std::max(kImagesMin, kLongImagesMin * percent / 100);
    }
  }

  using Workloads = std::vector<std::unique_ptr<CrashWorkload>>;
  static Workloads PartsOfAStore(std::uint64_t seed) {
    Workloads all = LogWorkloads(seed);
    for (auto& workload : StoreWorkloads(seed)) all.push_back(std::move(workload));
    for (auto& workload : KeyWorkloads(seed)) all.push_back(std::move(workload));
    return all;
  }

  // How many images of one kind are made of one moment.
  struct Density {
    std::size_t pending = SIZE_MAX;  // single operations lost, and kept up to, spread evenly
    std::size_t torn = kTornMax;     // places where one write is torn
    int random = 0;
  };

  // Recovers `image`, twice, and now and then with a crash at each step of the recovery.
  void Try(const CrashWorkload& workload, const FileDisk& image, std::uint64_t mark,
           const std::string& what) {
    ++images_;
    SimFileSystem fs(seed_ + images_, image);
    std::string first;
    EXPECT_EQ(workload.Recover(fs, mark, &first), "") << what;
    fs.Crash(CrashMode::kDropAll);
    std::string second;
    EXPECT_EQ(workload.Recover(fs, mark, &second), "") << what << ", recovered again";
    EXPECT_TRUE(first == second) << what << ": a second recovery found something else";
    if (images_ % kCrashedMod == 0) TryCrashedRecovery(workload, image, mark, what);
  }

  void TryCrashedRecovery(const CrashWorkload& workload, const FileDisk& image, std::uint64_t mark,
                          const std::string& what) {
    for (std::uint64_t stop = 0;; ++stop) {
      SimFileSystem fs(seed_ + images_ + stop, image);
      fs.StopAfter(stop);
      std::string found;
      workload.Recover(fs, mark, &found);  // judged after the crash
      const bool crashed = fs.stopped();
      fs.CrashRandomly();
      EXPECT_EQ(workload.Recover(fs, mark, &found), "")
          << what << ", recovery crashed after " << stop << " operations";
      ++images_;
      if (!crashed || HasFailure()) return;
    }
  }

  void TryMoment(const CrashWorkload& workload, const Density& density, const FileDisk& disk,
                 std::uint64_t mark, const std::string& where) {
    const auto image = [&](const std::string& what, const std::function<void(FileDisk&)>& crash) {
      FileDisk copy = disk;
      crash(copy);
      Try(workload, copy, mark, where + ": " + what);
    };
    Random random(seed_ + images_);
    const std::size_t pending = disk.pending_count();
    image("nothing kept", [](FileDisk& d) { d.CrashKeepingFirst(0); });
    if (pending == 0) return;
    const std::size_t next = pending / density.pending + 1;
    for (std::size_t i = (pending - 1) % next; i < pending; i += next) {  // the last one always
      image("kept up to " + std::to_string(i), [i](FileDisk& d) { d.CrashKeepingFirst(i + 1); });
      image("lost " + std::to_string(i), [i](FileDisk& d) { d.CrashLosing(i); });
      const DiskOp& op = disk.pending(i);
      if (op.kind != DiskOp::Kind::kWrite) continue;
      const std::size_t sectors = op.bytes.size() / kSectorBytes + 1;
      const std::size_t step = std::max<std::size_t>(1, sectors / density.torn);
      for (std::size_t kept = 1; kept < sectors; kept += step) {
        image("torn " + std::to_string(i) + " at sector " + std::to_string(kept),
              [i, kept](FileDisk& d) { d.CrashTearing(i, kept); });
      }
    }
    for (const CrashMode mode : {CrashMode::kGrownZeros, CrashMode::kGrownGarbage}) {
      image("grown", [mode, &random](FileDisk& d) { d.Crash(mode, &random); });
    }
    for (int i = 0; i < density.random; ++i) {
      image("any sectors", [&random](FileDisk& d) { d.Crash(CrashMode::kSubset, &random); });
      image("any mode per file", [&random](FileDisk& d) { d.CrashRandomly(&random); });
    }
  }

  void TryAll(const Workloads& workloads, const Density& density) {
    for (const auto& workload : workloads) {
      if (only_ != nullptr && workload->name().find(only_) == std::string::npos) continue;
      if (!HasFailure()) TryLife(*workload, density);
    }
  }

  void TryLife(const CrashWorkload& workload, const Density& density) {
    const std::uint64_t before = images_;
    FileDisk disk = workload.begin();
    std::uint64_t mark = 0;
    std::size_t prefix = 0;
    for (const DiskOp& op : workload.trace()) {
      ++prefix;
      disk.Apply(op);
      if (op.kind == DiskOp::Kind::kMark) {
        mark = op.offset;
        continue;
      }
      TryMoment(workload, density, disk, mark,
                workload.name() + ", " + std::to_string(prefix) + " operations");
      if (HasFailure()) return;
    }
    std::printf("%-34s %5zu operations %7llu images\n", workload.name().c_str(), prefix,
                static_cast<unsigned long long>(images_ - before));
    std::fflush(stdout);
  }

  std::uint64_t seed_ = 1;
  const char* const only_ = std::getenv("TRIAD_CRASH_ONLY");
  std::uint64_t images_ = 0;
  std::uint64_t images_min_ = kImagesMin;
  int random_images_ = kRandomImages;
};

TEST_F(CrashImages, EveryImageRecoversToWhatWasPromised) {
  TryAll(PartsOfAStore(seed_), {.random = random_images_});
  // Whole stores take long to recover.
  const bool is_long = random_images_ > kRandomImages;
  TryAll(PeerWorkloads(seed_), is_long ? Density{.random = random_images_ / 10}
                                       : Density{.pending = 5, .torn = 3, .random = 2});
  std::printf("crash_images: %llu images, seed %llu\n", static_cast<unsigned long long>(images_),
              static_cast<unsigned long long>(seed_));
  if (only_ != nullptr) return;
  EXPECT_GE(images_, images_min_) << "the floor may only rise";
}

}  // namespace
}  // namespace triad::sim
