// QueryProcessor: VIEW_MESSAGE_BY_ID (33) and QUERY_MESSAGE (12) on every peer;
// SEARCH_OFFSET_BY_TIMESTAMP (29), GET_MAX_OFFSET (30), GET_MIN_OFFSET (31),
// GET_EARLIEST_MSG_STORETIME (32) on the leader.
//
// The maximum, and whatever depends on it, is read after leadership was confirmed: a client without
// a stored offset starts there (wire.md §6.3, §6.4). Files are read on reader threads. Thread: safe
// on every thread; never blocks.

#pragma once

#include <functional>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"

namespace triad::broker {

class QueryProcessor {
 public:
  // `context` outlives the processor.
  explicit QueryProcessor(BrokerContext& context) : context_(context) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnViewMessage(const RequestPtr& request, const Reply& reply);
  void OnQueryMessage(const RequestPtr& request, const Reply& reply);
  void ReadByKey(const RequestPtr& request, const Reply& reply, const KeyQuery& query);
  void OnMaxOffset(const RequestPtr& request, const Reply& reply);
  void OnMinOffset(const RequestPtr& request, const Reply& reply);
  void OnSearchOffset(const RequestPtr& request, const Reply& reply);
  void OnEarliestTime(const RequestPtr& request, const Reply& reply);

  // Runs `task` on a reader thread, else answers busy.
  void OnReader(const RequestPtr& request, const Reply& reply, std::function<void()> task);

  BrokerContext& context_;
};

}  // namespace triad::broker
