// BrokerContext: what processors may use. References to objects that broker.cc owns; all of them
// outlive every processor, and all of them are safe on every thread.

#pragma once

#include <atomic>
#include <memory>

#include "broker/config/broker_config.h"
#include "broker/processor/leader_gate.h"
#include "broker/service/broker_stats.h"
#include "broker/service/client_registry.h"
#include "broker/service/counters.h"
#include "broker/service/disk_guard.h"
#include "broker/service/leader_reads.h"
#include "broker/service/lock_service.h"
#include "broker/service/offset_service.h"
#include "broker/service/pending_resets.h"
#include "broker/service/pulled_offsets.h"
#include "broker/service/registration.h"
#include "broker/service/timer_queue.h"
#include "broker/store/message_store.h"
#include "common/clock.h"

namespace triad::broker {

class LongPolling;
class OtherGroups;
class PeerMembers;

struct BrokerContext {
  const BrokerConfig& config;
  const Clock& clock;
  MessageStore& store;
  TimerQueue& timers;
  LeaderGate& gate;
  ConsumerRegistry& consumers;
  ProducerRegistry& producers;
  LeaderReads& reads;          // batched ReadIndex
  OffsetService& offsets;      // consumer offsets (leader)
  LockService& locks;          // queue locks (leader)
  Registration& registration;  // at the name servers
  DiskGuard& disk;             // may messages be written?
  Counters& counters;
  LongPolling* long_polling = nullptr;
  // Where records say they are: leaderIP, else brokerIP1 as an address.
  HostPort store_host{};
  HostPort own_host{};  // brokerIP1 as an address: no other peer has it
  std::shared_ptr<BrokerStats> stats =
      std::make_shared<BrokerStats>(config.cluster_name, clock.MonoNow());
  std::shared_ptr<PendingResets> resets = std::make_shared<PendingResets>();
  std::shared_ptr<PulledOffsets> pulled = std::make_shared<PulledOffsets>();
  PeerMembers* peer_members = nullptr;  // null: there are no other peers
  OtherGroups* other_groups = nullptr;  // null: nobody is asked
  std::int64_t memory_bytes = 0;        // of the machine; 0: unknown, every message counts as in it
};

}  // namespace triad::broker
