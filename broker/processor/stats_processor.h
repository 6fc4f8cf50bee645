// StatsProcessor: figures that tools and the exporter ask for: QUERY_CONSUME_TIME_SPAN (303),
// VIEW_BROKER_STATS_DATA (315), GET_BROKER_CONSUME_STATS (317), QUERY_CONSUME_QUEUE (321),
// GET_BROKER_HA_STATUS (907), GET_TIMER_METRICS (61); and the clean requests: 329, and 306
// and 316, for which there is nothing to do here.
//
// 303 and 317 are answered by the leader (offsets), the others by the peer that is asked. Files are
// read on reader threads. Thread: safe on every thread. Source: admin.md §2.6, §2.7, §2.10.

#pragma once

#include <functional>
#include <optional>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "broker/service/broker_stats.h"
#include "remoting/headers.h"
#include "remoting/json.h"

namespace triad::broker {

class StatsProcessor {
 public:
  // Both outlive the processor.
  StatsProcessor(BrokerContext& context, const BrokerStats& stats)
      : context_(context), stats_(stats) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnTimeSpan(const RequestPtr& request, const Reply& reply);
  void OnStats(const RequestPtr& request, const Reply& reply);
  void OnBrokerConsumeStats(const RequestPtr& request, const Reply& reply);
  void OnConsumeQueue(const RequestPtr& request, const Reply& reply);
  void OnHaStatus(const RequestPtr& request, const Reply& reply);
  void OnCleanLog(const RequestPtr& request, const Reply& reply);
  static void OnTimerMetrics(const RequestPtr& request, const Reply& reply);

  bool IsKnown(const std::string& name, const std::string& key) const;
  void WriteTimeSpan(const TopicQueue& queue, const GroupName& group, remoting::JsonWriter* writer);
  // Messages, over all groups.
  struct Behind {
    std::int64_t diff = 0;       // not consumed
    std::int64_t in_flight = 0;  // of them, handed out
  };
  // The queues of a topic that a group has consumed; nullopt: not its topic any more.
  std::optional<std::string> ConsumeStatsOf(const GroupName& group, const TopicConfig& topic,
                                            Behind* behind);
  void ReadBrokerConsumeStats(const RequestPtr& request, const Reply& reply, bool ordered_only);
  void ReadConsumeQueue(const RequestPtr& request, const Reply& reply,
                        const remoting::QueryConsumeQueueRequest& header);
  void OnReader(const RequestPtr& request, const Reply& reply, std::function<void()> task);
  remoting::MessageQueue Name(const TopicQueue& queue) const;

  BrokerContext& context_;
  const BrokerStats& stats_;
};

}  // namespace triad::broker
