// ReplicationStatus: one peer about its replication group, for TRIAD_GROUP_STATUS and runtime
// information.
//
// Thread: Describe may read the log: reader threads only. Owns nothing.

#pragma once

#include "broker/config/broker_config.h"
#include "broker/service/disk_guard.h"
#include "broker/service/log_alarm.h"
#include "broker/store/message_store.h"
#include "remoting/bodies.h"

namespace triad::broker {

class ReplicationStatus {
 public:
  // All references outlive the object.
  ReplicationStatus(const BrokerConfig& config, const DiskGuard& disk, const LogAlarm& alarm,
                    MessageStore& store)
      : config_(config), disk_(disk), alarm_(alarm), store_(store) {}

  remoting::GroupStatusBody Describe() const;

 private:
  void AddMembers(const dledger::NodeStatus& status, remoting::GroupStatusBody* body) const;
  // What `member` lacks, as the leader sees it.
  void AddLag(const dledger::NodeStatus& status, LogIndex match,
              remoting::GroupStatusBody::Member* member) const;

  const BrokerConfig& config_;
  const DiskGuard& disk_;
  const LogAlarm& alarm_;
  MessageStore& store_;
};

// Whether this peer does its part; `reason`: why not. A follower that hears its leader does.
struct Readiness {
  bool ready = false;
  std::string reason;
};
Readiness ReadinessOf(const dledger::NodeStatus& status, const PeerId& self, const Status& disk);

}  // namespace triad::broker
