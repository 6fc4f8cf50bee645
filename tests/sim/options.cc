#include "tests/sim/options.h"

#include <sstream>

#include "tests/sim/random.h"
#include "tests/sim/sim_log.h"

namespace triad::sim {
namespace {

// Network faults of a run.
void DrawNetwork(Random& dice, Options* o) {
  o->delay_max = dice.OneIn(4) ? 20 * kMillisecond : 1 * kMillisecond;
  if (dice.OneIn(3)) o->drop = static_cast<std::uint32_t>(dice.Between(1'000, 300'000));
  if (dice.OneIn(4)) o->duplicate = static_cast<std::uint32_t>(dice.Between(1'000, 100'000));
  if (dice.OneIn(4)) {
    o->tail_delay = static_cast<std::uint32_t>(dice.Between(1'000, 100'000));
    o->tail_delay_max = dice.Between(100, 4000) * kMillisecond;
  }
  o->reorder = dice.OneIn(3);
  if (dice.OneIn(3)) o->replay = static_cast<std::uint32_t>(dice.Between(1'000, 100'000));
  if (dice.OneIn(2)) {
    o->cut_every = dice.Between(200, 1500) * kMillisecond;
    o->cut_time = dice.Between(100, 2000) * kMillisecond;
  }
  if (dice.OneIn(6)) o->flap_every = dice.Between(20, 400) * kMillisecond;
  if (dice.OneIn(4)) o->disconnect_every = dice.Between(50, 1500) * kMillisecond;
}

void DrawProcesses(Random& dice, Options* o) {
  o->skewed_clocks = dice.OneIn(3);
  o->aim_at_leader = dice.OneIn(2) ? 700'000 : 0;
  if (dice.OneIn(4)) {
    o->pause_every = dice.Between(200, 2000) * kMillisecond;
    o->pause_time = dice.Between(50, 2500) * kMillisecond;
  }
  o->restart_after_max = dice.Between(10, 2000) * kMillisecond;
  o->power_loss = dice.OneIn(3) ? 1'000'000 : 500'000;
  o->crash_noticed = dice.OneIn(2) ? 800'000 : 0;
  if (dice.OneIn(2)) {
    o->crash_every = dice.Between(50, 1500) * kMillisecond;
    o->crash_all = dice.OneIn(4) ? 300'000 : 0;
  }
  if (dice.OneIn(4)) o->crash_in_step = static_cast<std::uint32_t>(dice.Between(200, 10'000));
  if (dice.OneIn(6)) o->wipe_every = dice.Between(300, 2000) * kMillisecond;
}

void DrawDisk(Random& dice, Options* o) {
  o->disk_latency_max = dice.OneIn(3) ? dice.Between(5, 200) * kMillisecond : 500;
  if (dice.OneIn(6)) {
    o->disk_hang = static_cast<std::uint32_t>(dice.Between(1'000, 30'000));
    o->disk_hang_max = dice.Between(200, 3000) * kMillisecond;
  }
  if (dice.OneIn(4)) o->load_fails = 200'000;
}

void DrawWork(Random& dice, Options* o) {
  o->propose_every = dice.Between(3, 120) * kMillisecond;
  o->burst_max = dice.OneIn(3) ? 8 : 1;
  o->payload_max = dice.OneIn(3) ? 300 : 40;
  if (dice.OneIn(2)) o->read_every = dice.Between(10, 200) * kMillisecond;
  if (dice.OneIn(4)) o->transfer_every = dice.Between(100, 1500) * kMillisecond;
  if (dice.OneIn(2)) {  // many elections
    o->heartbeat_ticks = static_cast<int>(dice.Between(1, 3));
    o->election_ticks_min = static_cast<int>(dice.Between(6, 20));
    o->election_ticks_max = o->election_ticks_min + static_cast<int>(dice.Between(3, 30));
  }
  if (dice.OneIn(3)) o->max_inflight_bytes = static_cast<std::size_t>(dice.Between(1, 600));
  if (dice.OneIn(3)) o->max_append_bytes = static_cast<std::size_t>(dice.Between(1, 400));
  if (dice.OneIn(3)) o->max_window_bytes = static_cast<std::size_t>(dice.Between(1, 600));
}

void DrawMembership(Random& dice, Options* o) {
  if (dice.OneIn(3)) {
    o->spares = static_cast<int>(dice.Between(1, o->voters < 7 ? 3 : 2));
    o->member_every = dice.Between(50, 800) * kMillisecond;
    o->fresh_recovering = dice.OneIn(2);
  }
  if (dice.OneIn(3)) o->purge_every = dice.Between(20, 800) * kMillisecond;
  o->snapshot_time_max = dice.Between(1, 800) * kMillisecond;
  if (dice.OneIn(3)) o->snapshot_fails = static_cast<std::uint32_t>(dice.Between(1, 500'000));
  if (dice.OneIn(3)) o->snapshot_again = static_cast<std::uint32_t>(dice.Between(1, 500'000));
  o->slow_apply = dice.OneIn(4);
  if (o->transfer_every > 0 && dice.OneIn(3)) o->transfer_twice = 500'000;
  if (dice.OneIn(8)) {
    o->preferred = static_cast<int>(dice.Below(static_cast<std::uint64_t>(o->nodes())));
    o->preferred_wait_ticks = static_cast<int>(dice.Between(5, 100));
  }
}

}  // namespace

dledger::Membership Options::Founders() const {
  dledger::Membership membership;
  for (int n = 0; n < voters; ++n) membership.voters.push_back(IdOf(n));
  for (int n = voters; n < voters + learners; ++n) membership.learners.push_back(IdOf(n));
  return membership;
}

Options OptionsOf(std::uint64_t seed) {
  Random dice(seed ^ 0x6f7074696f6e73u);
  Options options;
  options.seed = seed;
  options.voters = dice.OneIn(3) ? 5 : 3;
  if (dice.OneIn(25)) options.voters = 1;
  if (dice.OneIn(25)) options.voters = 7;
  if (options.voters == 3 && dice.OneIn(12)) options.learners = 1;
  options.fault_time = dice.Between(800, 4000) * kMillisecond;
  DrawNetwork(dice, &options);
  DrawProcesses(dice, &options);
  DrawDisk(dice, &options);
  DrawWork(dice, &options);
  DrawMembership(dice, &options);
  options.leave_one_down = options.voters > 1 && dice.OneIn(4);
  return options;
}

std::string ToString(const Options& o) {
  std::ostringstream out;
  out << "seed=" << o.seed << " voters=" << o.voters << " learners=" << o.learners
      << " spares=" << o.spares << " fault_time=" << o.fault_time << "\n  network: drop=" << o.drop
      << " duplicate=" << o.duplicate << " delay_max=" << o.delay_max
      << " tail_delay=" << o.tail_delay << "/" << o.tail_delay_max << " reorder=" << o.reorder
      << " replay=" << o.replay << " cut_every=" << o.cut_every << "/" << o.cut_time
      << " flap_every=" << o.flap_every << " disconnect_every=" << o.disconnect_every
      << "\n  clocks: skewed=" << o.skewed_clocks << " pause_every=" << o.pause_every << "/"
      << o.pause_time << "\n  processes: crash_every=" << o.crash_every
      << " crash_in_step=" << o.crash_in_step << " restart_after_max=" << o.restart_after_max
      << " power_loss=" << o.power_loss << " crash_all=" << o.crash_all
      << " crash_noticed=" << o.crash_noticed << " wipe_every=" << o.wipe_every
      << "\n  disk: latency_max=" << o.disk_latency_max << " hang=" << o.disk_hang << "/"
      << o.disk_hang_max << " load_fails=" << o.load_fails
      << "\n  work: propose_every=" << o.propose_every << " burst_max=" << o.burst_max
      << " payload_max=" << o.payload_max << " read_every=" << o.read_every
      << " transfer_every=" << o.transfer_every << " transfer_twice=" << o.transfer_twice
      << " preferred=" << o.preferred << "/" << o.preferred_wait_ticks
      << " aim_at_leader=" << o.aim_at_leader << "\n  membership: member_every=" << o.member_every
      << " fresh_recovering=" << o.fresh_recovering << " purge_every=" << o.purge_every
      << " snapshot_time_max=" << o.snapshot_time_max << " snapshot_fails=" << o.snapshot_fails
      << " snapshot_again=" << o.snapshot_again << " slow_apply=" << o.slow_apply
      << "\n  core: heartbeat=" << o.heartbeat_ticks << " election=" << o.election_ticks_min << ".."
      << o.election_ticks_max << " inflight=" << o.max_inflight_bytes
      << " append=" << o.max_append_bytes << " window=" << o.max_window_bytes
      << " leave_one_down=" << o.leave_one_down;
  return out.str();
}

}  // namespace triad::sim
