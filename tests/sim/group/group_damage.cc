// What goes wrong with the bytes on the disks of a schedule of sim_broker: within the fault budget
// (one peer's at a time, while the others hold everything), and beyond it.

#include <algorithm>

#include "dledger/log/segment_file.h"
#include "tests/sim/group/group_world.h"

namespace triad::sim {
namespace {

constexpr char kStore[] = "/store";
constexpr Micros kHang = 30 * kSecond;
constexpr Micros kLookAtLiar = 2 * kMs;

struct FoundFile {
  std::string path;
  std::uint64_t size = 0;
};

// What only says whose the directory is has no checksum: a start refuses it, whatever is wrong.
bool IsName(const std::string& name) {
  return name == "stamp" || name == "lock" || name == "owner";
}

void FilesUnder(SimFileSystem& fs, const std::string& dir, std::vector<FoundFile>* found) {
  const auto entries = fs.List(dir);
  if (!entries.ok()) return;
  for (const DirEntry& entry : *entries) {
    const std::string path = dir + "/" + entry.name;
    if (entry.is_directory) {
      FilesUnder(fs, path, found);
    } else if (entry.size_bytes > 0 && !IsName(entry.name)) {
      found->push_back({path, entry.size_bytes});
    }
  }
}

bool IsSegment(const std::string& path) {
  return path.find("/dledger-") != std::string::npos &&
         dledger::ParseSegmentName(path.substr(path.rfind('/') + 1)).has_value();
}

}  // namespace

bool GroupWorld::MayHurt(int victim) {
  return peer(victim).up() && !peer(victim).fs().IsSick() && oracle_.MayDamage(victim);
}

// Half of the time one of the log, else any.
bool GroupWorld::PickFile(int victim, std::string* path, std::uint64_t* size) {
  std::vector<FoundFile> files;
  const bool log_only = nemesis_dice_.OneIn(2);
  FilesUnder(peer(victim).fs(), log_only ? peer(victim).log_dir() : kStore, &files);
  if (files.empty()) return false;
  const FoundFile& file = files[nemesis_dice_.Below(files.size())];
  *path = file.path;
  *size = file.size;
  return true;
}

// A bit, a sector of zeros, or one of another place.
void GroupWorld::Damage(int victim, const std::string& path, std::uint64_t size) {
  SimFileSystem& fs = peer(victim).fs();
  const std::uint64_t begin = IsSegment(path) && size > 8192 ? 8192 : 0;
  const std::uint64_t at = begin + nemesis_dice_.Below(std::min<std::uint64_t>(size - begin, 4096));
  const std::uint64_t kind = nemesis_dice_.Below(4);
  const std::uint64_t sectors = (size + kSectorBytes - 1) / kSectorBytes;
  if (kind == 0) return fs.ZeroSector(path, at / kSectorBytes);
  if (kind == 1) return fs.CopySector(path, nemesis_dice_.Below(sectors), at / kSectorBytes);
  fs.Rot(path, at, static_cast<char>(1u << nemesis_dice_.Below(8)));
}

// Stops a peer and damages one of its files.
void GroupWorld::RotOne() {
  const int victim = Any();
  std::string path;
  std::uint64_t size = 0;
  if (!MayHurt(victim) || !PickFile(victim, &path, &size)) return;
  ++counts_.rot;
  journal_.Note(loop_.now(), victim, "rots", size);
  peer(victim).Die(false);
  Damage(victim, path, size);
  if (path.find("/state/") != std::string::npos) {
    has_rotten_state_[static_cast<std::size_t>(victim)] = true;
  }
  RestartLater(victim);
}

void GroupWorld::BreakSector() {
  const int victim = Any();
  std::string path;
  std::uint64_t size = 0;
  if (!MayHurt(victim) || !PickFile(victim, &path, &size)) return;
  journal_.Note(loop_.now(), victim, "has a bad sector", size);
  peer(victim).fs().BreakSector(path, nemesis_dice_.Below(size) / kSectorBytes);
  // The next peer may be hit when this disk was looked after.
  loop_.After(nemesis_dice_.Between(50 * kMs, 2 * kSecond),
              [this, victim] { peer(victim).fs().MendSectors(); });
}

void GroupWorld::MisdirectOne() {
  const int victim = Any();
  if (!MayHurt(victim)) return;
  journal_.Note(loop_.now(), victim, "is to write elsewhere");
  peer(victim).fs().FailNext(SimFault::kMisdirect, peer(victim).log_dir() + "/0");
}

void GroupWorld::WipeOne() {
  const int victim = Any();
  if (!MayHurt(victim)) return;
  ++counts_.wipes;
  journal_.Note(loop_.now(), victim, "loses its disk");
  peer(victim).LoseDisk();
  RestartLater(victim);
}

void GroupWorld::HangOne() {
  const int victim = Victim();
  ++counts_.hangs;
  journal_.Note(loop_.now(), victim, "its disk hangs");
  peer(victim).HangDisk(kHang);
}

// ---- beyond the budget ----

void GroupWorld::GoBeyond() {
  options_.beyond == GroupOptions::Beyond::kLie ? LieOnce() : RotMany();
}

// Two or all three logs at once.
void GroupWorld::RotMany() {
  const int spared = options_.beyond == GroupOptions::Beyond::kRotAll ? -1 : Any();
  for (int i = 0; i < options_.peers; ++i) {
    if (i == spared) continue;
    if (peer(i).up()) RestartLater(i);
    peer(i).Die(false);
    std::vector<FoundFile> files;
    FilesUnder(peer(i).fs(), peer(i).log_dir(), &files);
    std::erase_if(files, [](const FoundFile& file) { return !IsSegment(file.path); });
    if (files.empty()) continue;
    ++counts_.beyond;
    journal_.Note(loop_.now(), i, "rots beyond the budget");
    for (std::uint64_t times = 1 + nemesis_dice_.Below(3); times > 0; --times) {
      const FoundFile& file = files[nemesis_dice_.Below(files.size())];
      Damage(i, file.path, file.size);
    }
  }
  oracle_.OnBeyond(spared != -1);
}

// A disk says that it has what it has not; then, when it has what came later, the power goes.
void GroupWorld::LieOnce() {
  const int liar = Any();
  if (!peer(liar).up()) return;
  peer(liar).fs().FailNext(SimFault::kLie, peer(liar).log_dir() + "/0");
  WatchLiar(liar, LogIndex(0));
}

// `told`: the log's last entry soon after the lie; 0: it did not lie yet.
void GroupWorld::WatchLiar(int liar, LogIndex told) {
  SimPeer& p = peer(liar);
  if (healed_ || !p.up()) return;
  if (told == LogIndex(0)) {
    if (p.fs().met().lies > 0) told = p.node()->status().last_index;
  } else if (oracle_.HoldsDurablyBehind(liar, told)) {
    ++counts_.beyond;
    ++counts_.power_losses;
    journal_.Note(loop_.now(), liar, "lied, and loses its power");
    p.Die(true);
    oracle_.OnBeyond(true);
    return RestartLater(liar);
  }
  loop_.After(kLookAtLiar, [this, liar, told] { WatchLiar(liar, told); });
}

}  // namespace triad::sim
