// Messages as mqadmin shows them, and as it finds them.
//
// Blocking. Thread: main.

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bin/admin/verbs.h"
#include "triad/message.h"
#include "triad/producer.h"
#include "triad/pull_consumer.h"

namespace triad::admin {

// Everything that there is to say of it.
Record Describe(const client::ReceivedMessage& message);

// A producer of this run.
client::ProducerOptions ProducerOptionsOf(Session* session);

// What is wanted of a topic.
struct Range {
  std::string topic;
  std::string route_topic;  // whose queues they are; empty: the topic's own
  std::string expression = "*";
  std::string broker_name;         // empty: of all
  std::int64_t queue_id = -1;      // < 0: of all
  std::int64_t from_offset = -1;   // < 0: from the oldest
  std::int64_t begin_ms = 0;       // stored not before
  std::int64_t end_ms = 0;         // stored not after; 0: any time
  std::int64_t count = INT64_MAX;  // at most
};

// Calls `use` with each, queue after queue. Errors: kNotFound (no such topic or queue), and what
// the brokers say.
Status ForEach(const Range& range, client::PullConsumer* consumer,
               const std::function<void(const client::ReceivedMessage&)>& use);

// "" is 0. Errors: kInvalidArgument.
Result<std::int64_t> TimeOrZero(const std::string& text);

}  // namespace triad::admin
