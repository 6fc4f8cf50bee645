#include "tests/sim/group/group_options.h"

#include <sstream>

#include "tests/sim/random.h"

namespace triad::sim {
namespace {

void ChooseNetwork(Random& dice, GroupOptions* o) {
  if (dice.OneIn(2)) o->delay_max = dice.Between(100, 20 * kMs);
  if (dice.OneIn(4)) o->tail_delay_max = dice.Between(10 * kMs, kSecond);
  if (dice.OneIn(3)) {
    o->cut_every = dice.Between(200 * kMs, 2 * kSecond);
    o->cut_time = dice.Between(50 * kMs, 2 * kSecond);
  }
  if (dice.OneIn(4)) o->break_every = dice.Between(100 * kMs, kSecond);
}

void ChooseProcesses(Random& dice, GroupOptions* o) {
  if (dice.OneIn(2)) {
    o->crash_every = dice.Between(300 * kMs, 2 * kSecond);
    o->power_loss = !dice.OneIn(4);
    o->crash_all = dice.OneIn(3);
  }
  o->restart_after_max = dice.Between(kMs, kSecond);
  if (dice.OneIn(8)) o->stop_every = dice.Between(500 * kMs, 2 * kSecond);
  if (dice.OneIn(5)) o->transfer_every = dice.Between(200 * kMs, 2 * kSecond);
  if (dice.OneIn(8))
    o->preferred = static_cast<int>(dice.Below(static_cast<std::uint64_t>(o->peers)));
}

void ChooseClocks(Random& dice, GroupOptions* o) {
  o->skewed_clocks = dice.OneIn(4);
  // The log's time is that of most clocks.
  if (o->peers > 1 && dice.OneIn(5)) o->wall_jump_every = dice.Between(200 * kMs, kSecond);
  if (dice.OneIn(4)) {
    o->pause_every = dice.Between(300 * kMs, 2 * kSecond);
    o->pause_time = dice.Between(20 * kMs, 3 * kSecond);
  }
}

void ChooseDisks(Random& dice, GroupOptions* o) {
  o->disk_latency_max = dice.Between(50, dice.OneIn(3) ? 20 * kMs : 2 * kMs);
  if (dice.OneIn(5)) o->disk_hang_max = dice.Between(10 * kMs, 2 * kSecond);
  o->short_writes = dice.OneIn(4);
  if (dice.OneIn(4)) o->disk_error_every = dice.Between(300 * kMs, 2 * kSecond);
  if (dice.OneIn(8)) o->disk_full_every = dice.Between(500 * kMs, 2 * kSecond);
  if (dice.OneIn(4)) o->rot_every = dice.Between(500 * kMs, 2 * kSecond);
  if (dice.OneIn(3)) o->clean_every = dice.Between(50 * kMs, 500 * kMs);
  if (o->clean_every > 0 && dice.OneIn(2)) {
    o->retention_age = dice.Between(200 * kMs, 3 * kSecond);
    if (dice.OneIn(2)) o->disk_segments = static_cast<int>(dice.Between(6, 30));
  }
  // Apply waits for room before it deletes a topic, and here nothing else would go on meanwhile.
  if (o->topics) o->disk_full_every = o->disk_segments = 0;
  o->reads_old = dice.OneIn(2);
  o->names_full = dice.OneIn(2);
  o->long_hang = dice.OneIn(40);
  if (dice.OneIn(8)) o->bad_sector_every = dice.Between(500 * kMs, 2 * kSecond);
  if (dice.OneIn(10)) o->wipe_every = dice.Between(500 * kMs, 2 * kSecond);
  if (dice.OneIn(8)) {
    o->misdirect_every = dice.Between(500 * kMs, 2 * kSecond);
    // The last batch misdirected and its hint lost looks like a torn tail (rule G's known limit).
    o->power_loss = false;
  }
}

void ChooseWork(Random& dice, GroupOptions* o) {
  o->queues = static_cast<int>(dice.Between(1, 4));
  o->producers = static_cast<int>(dice.Between(1, 3));
  o->consumers = static_cast<int>(dice.Between(0, 2));
  o->lockers = dice.OneIn(3) ? 2 : 0;
  o->send_every = dice.Between(5 * kMs, 60 * kMs);
  o->batches = dice.OneIn(3);
  o->delayed = dice.OneIn(4);
  o->dedup = dice.OneIn(3);
  o->one_way = dice.OneIn(4);
  o->resets = dice.OneIn(3);
  o->send_back = dice.OneIn(4);
  o->topics = dice.OneIn(6);
  o->body_max = static_cast<int>(dice.Between(20, 400));
}

// Drawn from dice of its own: what a seed meant before there were changes, it means still.
void ChooseMembers(std::uint64_t seed, GroupOptions* o) {
  Random dice(seed ^ 0x6d656d6265727375u);
  if (!dice.OneIn(4)) return;
  o->spares = static_cast<int>(dice.Between(1, 2));
  o->member_every = dice.Between(40 * kMs, 400 * kMs);
  // One peer alone can lose nothing.
  if (o->peers < o->voters_min()) o->spares = 0, o->member_every = 0;
}

}  // namespace

GroupOptions GroupOptionsOf(std::uint64_t seed) {
  Random dice(seed ^ 0x6f7074696f6eu);
  GroupOptions o;
  o.seed = seed;
  o.fault_time = dice.Between(1500 * kMs, 4 * kSecond);
  o.segment_bytes = std::uint64_t{4096} << dice.Below(5);
  o.cache_bytes = std::size_t{2048} << dice.Below(6);
  o.state_flush_every = dice.Between(50 * kMs, 1500 * kMs);
  o.queue_checkpoint_every = dice.Between(100 * kMs, 3 * kSecond);
  if (dice.OneIn(12)) o.peers = dice.OneIn(2) ? 1 : 5;
  ChooseWork(dice, &o);
  ChooseNetwork(dice, &o);
  ChooseProcesses(dice, &o);
  ChooseClocks(dice, &o);
  ChooseDisks(dice, &o);
  ChooseMembers(seed, &o);
  return o;
}

GroupOptions BeyondOptionsOf(std::uint64_t seed) {
  GroupOptions o = GroupOptionsOf(seed);
  Random dice(seed ^ 0x6265796f6e64u);
  o.beyond = static_cast<GroupOptions::Beyond>(dice.Between(1, 3));
  o.peers = 3;
  o.preferred = -1;
  o.spares = 0;
  o.member_every = 0;
  // The damage of this class is dealt out once, and alone.
  o.rot_every = o.bad_sector_every = o.misdirect_every = o.wipe_every = o.disk_error_every = 0;
  o.long_hang = false;
  o.power_loss = false;
  if (o.beyond == GroupOptions::Beyond::kLie) o.crash_every = o.stop_every = 0;
  return o;
}

std::string ToString(const GroupOptions& o) {
  std::ostringstream out;
  out << (o.beyond == GroupOptions::Beyond::kNo
              ? ""
              : "beyond=" + std::to_string(static_cast<int>(o.beyond)) + " ")
      << "seed=" << o.seed << " fault_ms=" << o.fault_time / kMs << " segment=" << o.segment_bytes
      << " cache=" << o.cache_bytes << " flush_ms=" << o.state_flush_every / kMs
      << " checkpoint_ms=" << o.queue_checkpoint_every / kMs << " queues=" << o.queues
      << " producers=" << o.producers << " consumers=" << o.consumers << " lockers=" << o.lockers
      << " send_us=" << o.send_every << " batches=" << o.batches << " delayed=" << o.delayed
      << " dedup=" << o.dedup << " one_way=" << o.one_way << " resets=" << o.resets
      << " send_back=" << o.send_back << " topics=" << o.topics << " peers=" << o.peers << "+"
      << o.spares << " member=" << o.member_every << "\n  delay_us=" << o.delay_max
      << " tail_us=" << o.tail_delay_max << " cut_every=" << o.cut_every
      << " cut_time=" << o.cut_time << " break=" << o.break_every << "\n  skew=" << o.skewed_clocks
      << " wall_jump=" << o.wall_jump_every << " pause=" << o.pause_every << "/" << o.pause_time
      << "\n  crash=" << o.crash_every << " power=" << o.power_loss << " all=" << o.crash_all
      << " restart_max=" << o.restart_after_max << " stop=" << o.stop_every
      << " transfer=" << o.transfer_every << "\n  disk_us=" << o.disk_latency_max
      << " hang=" << o.disk_hang_max << " short=" << o.short_writes << " eio=" << o.disk_error_every
      << " full=" << o.disk_full_every << " rot=" << o.rot_every << " clean=" << o.clean_every
      << "/" << o.retention_age << "/" << o.disk_segments << " reads_old=" << o.reads_old
      << " names_full=" << o.names_full << " long_hang=" << o.long_hang
      << " bad_sector=" << o.bad_sector_every << " misdirect=" << o.misdirect_every
      << " wipe=" << o.wipe_every << " preferred=" << o.preferred;
  return out.str();
}

}  // namespace triad::sim
