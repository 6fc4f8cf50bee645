// Options: what one seed decides before a schedule starts. Most schedules have few kinds of faults,
// some have one only: all faults all the time hide bugs.
//
// Pure. Times in microseconds of simulated time, probabilities in millionths; 0 = this fault does
// not exist in the run.

#pragma once

#include <cstdint>
#include <string>

#include "dledger/raft/types.h"

namespace triad::sim {

using Micros = std::int64_t;
inline constexpr Micros kMillisecond = 1000;

struct Options {
  std::uint64_t seed = 0;
  int voters = 3;
  int learners = 0;
  int spares = 0;         // peers that belong to nobody yet
  Micros fault_time = 0;  // then everything heals

  // network
  std::uint32_t drop = 0;
  std::uint32_t duplicate = 0;
  std::uint32_t tail_delay = 0;  // a message that takes up to `tail_delay_max`
  Micros delay_max = 1000;
  Micros tail_delay_max = 0;
  bool reorder = false;      // false: each connection keeps its order
  std::uint32_t replay = 0;  // an old message comes once more
  Micros cut_every = 0;      // one-way cuts, partitions, bridges, an isolated peer
  Micros cut_time = 0;
  Micros flap_every = 0;        // one link goes down and up
  Micros disconnect_every = 0;  // a connection breaks, both ends notice

  // clocks
  bool skewed_clocks = false;  // 0.5x to 2x
  Micros pause_every = 0;
  Micros pause_time = 0;

  // processes
  Micros crash_every = 0;
  std::uint32_t crash_in_step = 0;  // between two outputs of one step
  Micros restart_after_max = 0;
  std::uint32_t power_loss = 0;     // of the crashes: what was not synced may be lost
  std::uint32_t crash_all = 0;      // of the crashes: everybody at once
  std::uint32_t crash_noticed = 0;  // of the crashes: the peers see their connections close
  Micros wipe_every = 0;

  // disk
  Micros disk_latency_max = 500;
  std::uint32_t disk_hang = 0;
  Micros disk_hang_max = 0;
  std::uint32_t load_fails = 0;

  // work
  Micros propose_every = 0;
  int burst_max = 1;
  int payload_max = 40;
  Micros read_every = 0;
  Micros transfer_every = 0;
  std::uint32_t transfer_twice = 0;  // of the transfers: another one at once
  int preferred = -1;                // the peer that is to lead, if any
  int preferred_wait_ticks = 100;

  // membership, retention
  Micros member_every = 0;
  bool fresh_recovering = true;  // a new peer begins as one that may have forgotten
  Micros purge_every = 0;
  Micros snapshot_time_max = 0;
  std::uint32_t snapshot_fails = 0;
  std::uint32_t snapshot_again = 0;  // an old one comes once more
  bool slow_apply = false;

  std::uint32_t aim_at_leader = 0;  // of the cuts, pauses and crashes

  // core
  int heartbeat_ticks = 5;
  int election_ticks_min = 30;
  int election_ticks_max = 60;
  std::size_t max_inflight_bytes = 1 << 20;
  std::size_t max_append_bytes = 1 << 16;
  std::size_t max_window_bytes = 1 << 20;

  bool leave_one_down = false;  // after healing a majority alone must serve

  int nodes() const { return voters + learners + spares; }
  dledger::Membership Founders() const;
};

Options OptionsOf(std::uint64_t seed);
std::string ToString(const Options& options);

}  // namespace triad::sim
