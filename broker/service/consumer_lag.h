// ConsumerLag: what the consumer groups have not consumed yet: how many messages, how old.
//
// From the offsets that the log holds, so of groups that are offline too. What an online group does
// not subscribe to any more is not its lag. An offset in front of a queue's first message counts
// from that one on. Ages are of the store times; each costs a read, so at most `ages_max` are
// looked up, and none after `ages_time`. Thread: reader threads only (files may be read). Bounds:
// `queues_max` rows.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "broker/service/client_registry.h"
#include "broker/store/message_store.h"
#include "common/clock.h"
#include "common/ids.h"

namespace triad::broker {

struct ConsumerLagLimits {
  std::size_t queues_max = 20000;
  std::size_t ages_max = 2000;
  std::chrono::milliseconds ages_time{500};
};

struct QueueLag {
  GroupName group;
  TopicQueue queue;
  std::int64_t messages = 0;
  // Of the first message that is not consumed; nothing: not looked up, or 0 messages.
  std::optional<std::int64_t> stored_ms;
};

struct ConsumerLag {
  std::vector<QueueLag> queues;  // by group, then by queue
  std::size_t queues_left_out = 0;
  std::size_t ages_left_out = 0;
};

ConsumerLag ReadConsumerLag(MessageStore& store, const ConsumerRegistry& consumers,
                            const Clock& clock, const ConsumerLagLimits& limits = {});

}  // namespace triad::broker
