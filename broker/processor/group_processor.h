// GroupProcessor: configurations of consumer groups: put (200, 225), delete (207), list (201), one
// (352); and what a group may do with a topic (353), how it consumes it (401).
//
// Changes go through the log. Thread: safe on every thread. Source: wire.md §8.5, admin.md §2.5.

#pragma once

#include <vector>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"

namespace triad::broker {

class GroupProcessor {
 public:
  explicit GroupProcessor(BrokerContext& context) : context_(context) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnUpdate(const RequestPtr& request, const Reply& reply);
  void OnUpdateList(const RequestPtr& request, const Reply& reply);
  void OnDelete(const RequestPtr& request, const Reply& reply);
  void OnGetAll(const RequestPtr& request, const Reply& reply);
  void OnGet(const RequestPtr& request, const Reply& reply);
  static void OnForbidden(const RequestPtr& request, const Reply& reply);
  void OnRequestMode(const RequestPtr& request, const Reply& reply);
  // What is not so yet. `confirmed`: the state misses nothing.
  void Put(const RequestPtr& request, const Reply& reply, const std::vector<GroupConfig>& groups,
           bool confirmed);
  void Submit(const RequestPtr& request, const Reply& reply, Proposal proposal);

  BrokerContext& context_;
};

}  // namespace triad::broker
