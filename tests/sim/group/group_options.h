// GroupOptions: what one seed decides before a schedule of sim_broker starts: sizes, work, and
// which kinds of faults exist. Most schedules have few kinds, some have one only.
//
// Pure. Times in microseconds of simulated time; 0 = this fault does not exist in the run.

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "tests/sim/group/event_loop.h"

namespace triad::sim {

inline constexpr int kPeersMax = 7;  // machines

struct GroupOptions {
  std::uint64_t seed = 0;
  Micros fault_time = 0;  // then everything heals
  int peers = 3;          // that found the group
  int spares = 0;         // machines that may join it

  // Another class of runs: more is damaged than the group can be expected to survive. Then it need
  // not serve, but what it serves and acknowledges must be right.
  enum class Beyond { kNo, kRotTwo, kRotAll, kLie };
  Beyond beyond = Beyond::kNo;

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
  bool dedup = false;  // some go to a topic that stores nothing twice
  bool one_way = false;
  bool resets = false;     // consumers go back, and ahead
  bool send_back = false;  // consumers send messages back
  bool topics = false;     // topics come and go
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
  int preferred = -1;       // the peer that is to lead, if any
  Micros member_every = 0;  // peers are added, promoted, removed; removed ones return under new ids

  // disks
  Micros disk_latency_max = 500;
  Micros disk_hang_max = 0;  // one sync in 200
  bool short_writes = false;
  Micros clean_every = 0;       // a log forgets its oldest segment, if the state allows it
  Micros retention_age = 0;     // by the product's rule, else (0) whatever may go
  int disk_segments = 0;        // of that rule: the disk seems to hold so many; 0: endless
  Micros disk_error_every = 0;  // EIO of one write, sync or read
  Micros disk_full_every = 0;   // no space for a while
  bool reads_old = false;       // what a failed sync lost cannot be read (btrfs)
  bool names_full = false;      // a full disk takes no new names either
  bool long_hang = false;       // one disk, once: 30 seconds
  // Within the fault budget: one peer's at a time, while the others hold everything.
  Micros rot_every = 0;         // of a stopped peer's files
  Micros bad_sector_every = 0;  // cannot be read until overwritten
  Micros misdirect_every = 0;   // a write to the log lands elsewhere in its file
  Micros wipe_every = 0;        // a disk is lost

  int machines() const { return peers + spares; }
  // Two voters need both: fewer than three are no group for what takes one away.
  int voters_min() const {
    return damages() || wipe_every > 0 || wall_jump_every > 0 || peers > 3 ? 3 : std::min(peers, 2);
  }
  int voters_max() const { return std::min(machines(), peers + 2); }
  // Whether bytes on disks may be other than what was written.
  bool damages() const {
    return rot_every > 0 || disk_error_every > 0 || bad_sector_every > 0 || misdirect_every > 0 ||
           beyond != Beyond::kNo;
  }
};

GroupOptions GroupOptionsOf(std::uint64_t seed);
// The same seed's schedule in the class beyond the fault budget.
GroupOptions BeyondOptionsOf(std::uint64_t seed);
std::string ToString(const GroupOptions& options);

}  // namespace triad::sim
