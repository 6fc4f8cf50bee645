#include "bin/quickstart_read.h"

#include <chrono>

namespace triad {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::seconds;

}  // namespace

Result<std::map<int, std::vector<std::string>>> ReadTopic(client::PullConsumer* reader,
                                                          const std::string& topic,
                                                          const std::string& address) {
  Result<std::vector<client::MessageQueue>> queues = reader->Queues(topic);
  if (!queues.ok()) return queues.status();
  std::map<int, std::vector<std::string>> bodies;
  for (const client::MessageQueue& queue : *queues) {
    Result<std::int64_t> offset = reader->MinOffset(queue);
    Result<std::int64_t> max = reader->MaxOffset(queue);
    if (!offset.ok()) return offset.status();
    if (!max.ok()) return max.status();
    const auto end = SteadyClock::now() + seconds(30);
    while (*offset < *max) {
      Result<client::PullResult> pulled = address.empty()
                                              ? reader->Pull(queue, "*", *offset, 256)
                                              : reader->PullFrom(address, queue, "*", *offset, 256);
      if (SteadyClock::now() > end) {
        return Status::TimedOut("queue " + std::to_string(queue.queue_id) + " of " + topic +
                                " cannot be read to " + std::to_string(*max) +
                                (pulled.ok() ? "" : ": " + pulled.status().ToString()));
      }
      if (!pulled.ok() || pulled->status != client::PullStatus::kFound) continue;
      for (const client::ReceivedMessage& message : pulled->messages) {
        if (message.queue_offset != *offset + (&message - pulled->messages.data())) {
          return Status::Corruption("gap in queue " + std::to_string(queue.queue_id) + " at " +
                                    std::to_string(message.queue_offset));
        }
        bodies[queue.queue_id].push_back(message.body);
      }
      *offset = pulled->next_begin_offset;
    }
  }
  return bodies;
}

}  // namespace triad
