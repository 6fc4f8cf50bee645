// ConsumerContext: what the parts of one push consumer share.
//
// Built once by PushConsumer::Start; read-only afterwards, but for the members that say they are
// safe on every thread. Parts hold it by shared_ptr, since answers may come after Shutdown.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/broker_calls.h"
#include "client/client_instance.h"
#include "client/offset_store.h"
#include "client/process_queue.h"
#include "client/sender.h"
#include "client/worker_pool.h"
#include "triad/push_consumer.h"

namespace triad::client {

struct Subscription {
  std::string expression = "*";
  std::vector<std::string> tags;  // empty = all
};

struct ConsumerContext {
  PushConsumerOptions options;
  bool orderly = false;
  std::map<std::string, Subscription> subscriptions;  // by topic, %RETRY%group included
  std::int64_t started_at_ms = 0;

  std::shared_ptr<ClientInstance> instance;
  std::unique_ptr<BrokerCalls> calls;  // safe on every thread
  std::unique_ptr<Sender> sender;      // safe on every thread
  std::unique_ptr<WorkerPool> pool;    // safe on every thread
  OffsetStore offsets;                 // safe on every thread
  std::atomic<std::int64_t> sub_version{0};
  std::atomic<bool> stopping{false};
  std::atomic<bool> suspended{false};

  bool clustering() const { return options.model == MessageModel::kClustering; }
  // How often a failed message comes again; < 0: without an end.
  int max_reconsume_times() const {
    if (options.max_reconsume_times >= 0) return options.max_reconsume_times;
    return orderly ? -1 : 16;
  }
};
using ConsumerContextPtr = std::shared_ptr<ConsumerContext>;

// Runs listeners on what was pulled.
class ConsumeService {
 public:
  virtual ~ConsumeService() = default;
  // On the remoting client's thread; must not block.
  virtual void OnMessages(const ProcessQueuePtr& queue, Messages messages) = 0;
};

}  // namespace triad::client
