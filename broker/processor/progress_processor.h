// ProgressProcessor: who consumes what, and how far: connections (203, 204, 328), progress (208),
// groups of a topic (300), topics of a group (343), one subscription (345), offset reset (222),
// offset tables (43, 45).
//
// Connections are answered from this peer's own table (clients heartbeat every peer); progress and
// reset by the leader. A reset commits the new offsets through the log and pushes them to the
// members that are online; commits of a queue are ignored until its consumer pulls again. Thread:
// safe on every thread. Source: wire.md §7.4, §12; admin.md §2.6, §6.2, §6.3.

#pragma once

#include <vector>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "remoting/bodies.h"
#include "remoting/headers.h"

namespace triad::broker {

class ProgressProcessor {
 public:
  explicit ProgressProcessor(BrokerContext& context) : context_(context) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnConsumerConnections(const RequestPtr& request, const Reply& reply);
  void OnProducerConnections(const RequestPtr& request, const Reply& reply);
  void OnAllProducers(const RequestPtr& request, const Reply& reply);
  void OnConsumeStats(const RequestPtr& request, const Reply& reply);
  void OnGroupsOfTopic(const RequestPtr& request, const Reply& reply);
  void OnTopicsOfGroup(const RequestPtr& request, const Reply& reply);
  void OnSubscription(const RequestPtr& request, const Reply& reply);
  void OnAllOffsets(const RequestPtr& request, const Reply& reply);
  void OnDelayOffsets(const RequestPtr& request, const Reply& reply);
  void OnReset(const RequestPtr& request, const Reply& reply);

  std::vector<Topic> TopicsFor(const remoting::GetConsumeStatsRequest& header) const;
  void ReadConsumeStats(const RequestPtr& request, const Reply& reply, const GroupName& group,
                        const std::vector<Topic>& topics);
  void ReadReset(const RequestPtr& request, const Reply& reply,
                 const remoting::ResetOffsetRequest& header, const TopicConfig& topic);
  void CommitReset(const RequestPtr& request, const Reply& reply,
                   const remoting::ResetOffsetRequest& header, std::vector<OffsetCommit> commits);
  void PushReset(const remoting::ResetOffsetRequest& header, const remoting::ResetOffsetBody& body);
  remoting::MessageQueue Name(const TopicQueue& queue) const;

  BrokerContext& context_;
};

}  // namespace triad::broker
