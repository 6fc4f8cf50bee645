// GroupOptions: what one seed decides before a schedule of sim_broker starts: sizes, work, and
// which kinds of faults exist. Most schedules have few kinds, some have one only.
//
// Pure. Times in microseconds of simulated time; 0 = this fault does not exist in the run.

#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/group/event_loop.h"

namespace triad::sim {

inline constexpr int kPeers = 3;

struct GroupOptions {
  std::uint64_t seed = 0;
  Micros fault_time = 0;  // then everything heals

  // sizes
  std::uint64_t segment_bytes = 16384;
  std::size_t cache_bytes = 32768;
  Micros state_flush_every = 0;
  Micros queue_checkpoint_every = 0;

  // work
  int queues = 2;
  int producers = 2;
  int consumers = 1;
  int lockers = 0;
  Micros send_every = 0;
  bool batches = false;
  bool delayed = false;
  int body_max = 200;

  // network
  Micros delay_max = 500;
  Micros tail_delay_max = 0;  // one message in 100
  Micros cut_every = 0;       // one-way, both ways, isolated peer; connections stall
  Micros cut_time = 0;
  Micros break_every = 0;  // a connection breaks

  // clocks
  bool skewed_clocks = false;  // each peer at 0.5 to 2 times the speed
  Micros wall_jump_every = 0;
  Micros pause_every = 0;
  Micros pause_time = 0;

  // processes
  Micros crash_every = 0;
  bool power_loss = false;  // else the page cache survives
  bool crash_all = false;   // now and then everybody at once
  Micros restart_after_max = 0;
  Micros stop_every = 0;  // an orderly end
  Micros transfer_every = 0;

  // disks
  Micros disk_latency_max = 500;
  Micros disk_hang_max = 0;  // one sync in 200
  bool short_writes = false;
  Micros clean_every = 0;       // a log forgets its oldest segment, if the state allows it
  Micros disk_error_every = 0;  // EIO of one write, sync or read
  Micros disk_full_every = 0;   // no space for a while
  Micros rot_every = 0;         // a bit of a stopped peer's log, within the fault budget
};

GroupOptions GroupOptionsOf(std::uint64_t seed);
std::string ToString(const GroupOptions& options);

}  // namespace triad::sim
