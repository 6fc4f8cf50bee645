// OffsetCopyProcessor: offsets of one group seen from another: QUERY_CORRECTION_OFFSET (308) and
// CLONE_GROUP_OFFSET (314).
//
// The leader answers. Thread: safe on every thread; nothing waits. Source: admin.md §2.6.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"

namespace triad::broker {

class OffsetCopyProcessor {
 public:
  // `context` outlives the processor.
  explicit OffsetCopyProcessor(BrokerContext& context) : context_(context) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnCorrection(const RequestPtr& request, const Reply& reply);
  void OnClone(const RequestPtr& request, const Reply& reply);
  void Clone(const RequestPtr& request, const Reply& reply, const GroupName& from,
             const GroupName& to, const std::string& topic);
  // The smallest offset of each queue over all groups but those left out.
  std::map<QueueId, QueueOffset> Smallest(const Topic& topic,
                                          const std::vector<std::string>& left_out) const;

  BrokerContext& context_;
};

}  // namespace triad::broker
