// LeaderAddressKeeper: a child process that puts leaderIP on this machine's network interface while
// this peer leads, and takes it away again.
//
// A process of its own: it outlives a broker that is killed and stays awake when the broker is
// paused. Should both be killed or stopped, the kernel removes the address by itself. What it does
// when: LeaderAddressRule; how: LeaderAddressPort. It says what it does on the broker's standard
// error; ends when the broker has ended and the address is away. Should it be killed, the broker
// does the same itself as long as it lives: takes the address at a claim, gives it up at once.
// Owner: main, which makes it before the first thread. Thread: Lead on one thread at a time.

#pragma once

#include <sys/types.h>

#include <memory>

#include "broker/config/broker_config.h"
#include "broker/process/leader_address_port.h"
#include "common/status.h"

namespace triad::broker {

class LeaderAddressKeeper {
 public:
  // `config.leader_ip` is set. Errors, ready to print, with the key, what was found and what was
  // expected: no such interface, no permission, an address that is somebody else's.
  static Result<std::unique_ptr<LeaderAddressKeeper>> Start(const BrokerConfig& config);
  ~LeaderAddressKeeper();
  LeaderAddressKeeper(const LeaderAddressKeeper&) = delete;
  LeaderAddressKeeper& operator=(const LeaderAddressKeeper&) = delete;

  // Claims the address, or renews the claim; or gives it up. Waits for nothing but, when the child
  // has ended, the kernel.
  void Lead(bool leads);
  pid_t process() const { return process_; }

 private:
  LeaderAddressKeeper(int pipe, pid_t process, std::unique_ptr<LeaderAddressPort> port);
  void MoveItself(bool leads);

  const int pipe_;
  const pid_t process_;
  const std::unique_ptr<LeaderAddressPort> port_;  // the child's too, as long as there is one
  bool alone_ = false;
};

}  // namespace triad::broker
