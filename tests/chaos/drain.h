// Drain: reads every queue on every peer from its beginning to its end, into the history.
//
// Repeats until two rounds in a row found the same maxima on all peers. Thread: one at a time.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bin/local_cluster.h"
#include "tests/chaos/history_writer.h"
#include "triad/pull_consumer.h"

namespace triad::chaos {

struct DrainTopic {
  std::string name;
  int queues = 0;
};

class Drain {
 public:
  Drain(LocalCluster* cluster, std::vector<DrainTopic> topics, HistoryWriter* history)
      : cluster_(*cluster), topics_(std::move(topics)), history_(*history) {}

  // Errors: kTimedOut naming the queue and the peers that differ; kUnavailable.
  Status Run(std::chrono::milliseconds limit);

  // The leader's maximum of each queue of `topic`, added up.
  static Result<std::uint64_t> MessagesIn(client::PullConsumer* reader, const std::string& topic,
                                          int queues, const std::string& broker_name);

 private:
  using Maxima = std::map<std::string, std::int64_t>;  // "peer topic/queue"
  Status Round(client::PullConsumer* reader, Maxima* maxima);
  Status Queue(client::PullConsumer* reader, const LocalBroker& peer,
               const client::MessageQueue& queue, std::int64_t* max);
  // Empty when all peers agree.
  std::string DifferenceIn(const Maxima& maxima) const;

  LocalCluster& cluster_;
  const std::vector<DrainTopic> topics_;
  HistoryWriter& history_;
};

}  // namespace triad::chaos
