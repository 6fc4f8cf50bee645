// OffsetProcessor: QUERY_CONSUMER_OFFSET (14) and UPDATE_CONSUMER_OFFSET (15). The leader only.
//
// A query never gets an error for "I cannot tell": old clients take any error for "nothing stored"
// and jump to the end of the queue. At the end of the budget it gets silence. Rule when nothing is
// stored (wire.md §6.1): 0 for a queue never written, and for a queue whose message 0 is still
// there and within accessMessageInMemoryMaxRatio percent of the machine's memory of the log's end;
// else 22. Thread: safe on every thread.

#pragma once

#include <cstdint>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "broker/service/state_creator.h"

namespace triad::broker {

class OffsetProcessor {
 public:
  // memory_bytes: of the machine.
  OffsetProcessor(BrokerContext& context, std::int64_t memory_bytes)
      : context_(context), memory_bytes_(memory_bytes), creator_(context.store.appender()) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnQuery(const RequestPtr& request, const Reply& reply);
  void AnswerWithoutStored(const RequestPtr& request, const Reply& reply, const TopicQueue& queue);
  void AnswerByDistance(const RequestPtr& request, const Reply& reply, const QueueUnit& first);
  void OnUpdate(const RequestPtr& request, const Reply& reply);
  bool IsQueueOf(const TopicConfig& topic, const GroupQueue& key) const;
  // A pull consumer may commit before its first heartbeat: its group is created then.
  void CommitInNewGroup(const RequestPtr& request, const Reply& reply, const OffsetCommit& commit);
  void Commit(const RequestPtr& request, const Reply& reply, OffsetCommit commit);

  BrokerContext& context_;
  const std::int64_t memory_bytes_;
  StateCreator creator_;
};

}  // namespace triad::broker
