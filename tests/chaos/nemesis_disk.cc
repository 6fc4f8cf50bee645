#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>

#include "tests/chaos/nemesis.h"
#include "tests/chaos/shell.h"

namespace triad::chaos {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr seconds kComesBack{60};

// Returns what the disk reports.
std::string Order(World* world, std::size_t peer, const std::string& words) {
  const Result<std::string> done = world->disks()->Order(peer, words);
  if (!done.ok()) world->Problem(done.status().ToString());
  return done.ok() ? *done : "";
}

// How often a disk did something (a word of its report) since `before`: then the fault took effect.
void JudgeDisk(Fault* fault, const std::string& before, const std::string& after,
               const std::string& word) {
  const std::int64_t count = NumberBehind(after, word + " ") - NumberBehind(before, word + " ");
  fault->Saw(word + " " + std::to_string(count) + " times");
  if (count > 0) fault->TookEffect();
}

// The power of dead peers' disks goes; an effect when one of them lost something.
void CutPower(World* world, const std::vector<std::size_t>& peers, Fault* fault) {
  bool lost = false;
  for (std::size_t peer : peers) {
    const std::string report =
        Order(world, peer, "crash " + std::to_string(world->random().Below(1u << 30)));
    const std::string line = report.substr(0, report.find('\n'));
    fault->Saw(world->HostOf(peer) + " " + line);
    std::cerr << "chaos:   " << world->HostOf(peer) << " " << line << "\n";
    for (const char* word : {"lost ", "torn ", "names "}) {
      lost = lost || NumberBehind(line, word) > 0;
    }
  }
  if (lost) fault->TookEffect();
}

// Waits for the process to end by itself; restarts it with a good disk.
bool EndedWithin(World* world, std::size_t peer, milliseconds limit) {
  const std::int64_t end_ns = NowNs() + std::chrono::nanoseconds(limit).count();
  while (NowNs() < end_ns && !world->stopped()) {
    if (!world->cluster().Running(peer)) return true;
    world->Wait(milliseconds(50));
  }
  return !world->cluster().Running(peer);
}

// A store that is refused at the start is replaced by an empty one, as the operations page says.
void StartOrReplace(World* world, std::size_t peer) {
  world->MayEnd(peer);
  world->Start(peer);
  if (EndedWithin(world, peer, seconds(3))) {
    std::cerr << "chaos:   " << world->HostOf(peer) << " refuses its store, gets an empty one\n";
    std::filesystem::remove_all(world->cluster().brokers()[peer].store_dir);
    world->Start(peer);
  }
  world->MustStay(peer);
  world->WaitCaughtUp(peer, kComesBack);
}

// Damages one file below `dir`: a bit, or its last bytes. Says what was done; empty: nothing found.
std::string Damage(World* world, const std::string& dir) {
  // By folder first: there are many files of queues, and few of the log.
  std::map<std::string, std::vector<std::string>> folders;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    if (!entry.is_regular_file() || entry.file_size() == 0) continue;
    const std::string path = entry.path().string();
    const std::string inside = path.substr(dir.size() + 1);
    folders[inside.substr(0, inside.find('/'))].push_back(path);
  }
  if (folders.empty()) return "";
  const auto& files =
      std::next(folders.begin(), static_cast<std::ptrdiff_t>(world->random().Below(folders.size())))
          ->second;
  const std::string path = files[world->random().Below(files.size())];
  const std::uint64_t size = std::filesystem::file_size(path);
  if (world->random().OneIn(3)) {
    const std::uint64_t cut = std::min(size, 1 + world->random().Below(4096));
    std::filesystem::resize_file(path, size - cut);
    return path.substr(dir.size()) + " lost its last " + std::to_string(cut) + " bytes";
  }
  const std::uint64_t at = world->random().Below(size);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return "";
  char byte = 0;
  const char bit = static_cast<char>(1 << world->random().Below(8));
  const bool read = ::pread(fd, &byte, 1, static_cast<off_t>(at)) == 1;
  byte = static_cast<char>(byte ^ bit);
  const bool wrote = read && ::pwrite(fd, &byte, 1, static_cast<off_t>(at)) == 1;
  ::close(fd);
  return wrote ? path.substr(dir.size()) + " byte " + std::to_string(at) : "";
}

}  // namespace

// What was not synced is gone, or torn; all three at once in half of the cases.
void StrikePower(World* world) {
  std::vector<std::size_t> victims{world->LeaderOrAny()};
  if (world->random().OneIn(2)) victims = {0, 1, 2};
  std::string names;
  for (std::size_t peer : victims) names += (names.empty() ? "n" : ",n") + std::to_string(peer);
  FaultPtr fault = world->Begin("power", names);
  for (std::size_t peer : victims) world->Kill(peer, fault);
  CutPower(world, victims, fault.get());
  fault.reset();
  world->WaitBetween(0, 800);
  for (std::size_t peer : victims) world->Start(peer);
  if (world->random().OneIn(4)) {  // and again while they recover
    world->WaitBetween(0, 400);
    fault = world->Begin("power", names);
    for (std::size_t peer : victims) world->Kill(peer, fault);
    CutPower(world, victims, fault.get());
    fault.reset();
    for (std::size_t peer : victims) world->Start(peer);
  }
  world->AllUp(kComesBack);
  world->WaitBetween(1500, 3500);
}

// The disk says it is full. In half of the cases the reserve that is kept is there: the process
// must go on. Else not a byte is left: it may end, and comes back when there is room again.
void StrikeDiskFull(World* world) {
  constexpr std::int64_t kReserve = 64 << 20;
  const std::size_t peer = world->LeaderOrAny();
  const bool reserve = world->random().OneIn(2);
  FaultPtr fault = world->Begin(
      "diskfull", world->HostOf(peer) + (reserve ? ", reserve left" : ", not a byte left"));
  if (!reserve) world->MayEnd(peer);
  const std::string before = Order(world, peer, "full " + std::to_string(reserve ? kReserve : 0));
  world->WaitBetween(4000, 9000);
  JudgeDisk(fault.get(), before, Order(world, peer, "heal"), "full");
  fault.reset();
  world->Start(peer);
  world->MustStay(peer);
  world->WaitBetween(1000, 3000);
}

void StrikeEio(World* world) {
  static constexpr const char* kKinds[] = {"sync", "write", "read"};
  const std::size_t peer = world->LeaderOrAny();
  const std::string kind = kKinds[world->random().Below(3)];
  if (!world->cluster().Running(peer)) return;
  FaultPtr fault = world->Begin("eio", kind + " on " + world->HostOf(peer));
  world->MayEnd(peer);
  const std::string before =
      Order(world, peer, "eio " + kind + " " + std::to_string(world->random().Between(1, 20)));
  const bool ended = EndedWithin(world, peer, seconds(8));
  // Reads of a healthy process come from memory; everything else must have met the fault.
  if (!ended && kind != "read" && !world->stopped()) {
    world->Problem(world->HostOf(peer) + " goes on although every " + kind + " fails");
  }
  JudgeDisk(fault.get(), before, Order(world, peer, "heal"), "failed");
  fault.reset();
  if (!ended) world->Kill(peer);
  StartOrReplace(world, peer);
  world->WaitBetween(500, 2000);
}

void StrikeSlowDisk(World* world) {
  const std::size_t peer = world->LeaderOrAny();
  const std::int64_t ms = world->random().OneIn(2) ? world->random().Between(5, 100)
                                                   : world->random().Between(100, 2000);
  FaultPtr fault = world->Begin("slowdisk", world->HostOf(peer) + " " + std::to_string(ms) + " ms");
  const std::string before = Order(world, peer, "slow " + std::to_string(ms));
  world->WaitBetween(4000, 9000);
  JudgeDisk(fault.get(), before, Order(world, peer, "heal"), "slowed");
  fault.reset();
  world->WaitBetween(500, 2000);
}

void StrikeRot(World* world) {
  world->AllUp(kComesBack);
  const std::size_t peer = world->LeaderOrAny();
  world->Kill(peer);
  const std::string what =
      Damage(world, world->disks()->BackingOf(peer, world->cluster().brokers()[peer].store_dir));
  {
    const FaultPtr fault = world->Begin("rot", world->HostOf(peer) + ": " + what);
    if (!what.empty()) fault->TookEffect();
  }
  StartOrReplace(world, peer);
  world->WaitBetween(500, 2000);
}

void StrikeWipe(World* world) {
  world->AllUp(kComesBack);
  const std::size_t peer = world->LeaderOrAny();
  FaultPtr fault = world->Begin("wipe", world->HostOf(peer));
  world->Kill(peer);
  const auto removed = std::filesystem::remove_all(world->cluster().brokers()[peer].store_dir);
  fault->Saw(std::to_string(removed) + " files removed");
  if (removed > 1) fault->TookEffect();
  fault.reset();
  world->Start(peer);
  world->WaitCaughtUp(peer, kComesBack);
  world->WaitBetween(500, 2000);
}

}  // namespace triad::chaos
