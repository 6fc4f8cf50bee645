#include "tests/chaos/drain.h"

#include "tests/chaos/load.h"
#include "tests/chaos/shell.h"

namespace triad::chaos {
namespace {

constexpr int kBatch = 200;
constexpr int kTriesPerPull = 40;
constexpr std::chrono::milliseconds kBetweenTries{250};

}  // namespace

Result<std::uint64_t> Drain::MessagesIn(client::PullConsumer* reader, const std::string& topic,
                                        int queues, const std::string& broker_name) {
  std::uint64_t sum = 0;
  for (int i = 0; i < queues; ++i) {
    const Result<std::int64_t> max = reader->MaxOffset({topic, broker_name, i});
    if (!max.ok()) return max.status();
    sum += static_cast<std::uint64_t>(*max);
  }
  return sum;
}

Status Drain::Queue(client::PullConsumer* reader, const LocalBroker& peer,
                    const client::MessageQueue& queue, std::int64_t* max) {
  std::int64_t offset = 0;
  std::int64_t min = 0;
  *max = 0;
  for (int tries = 0;;) {
    Result<client::PullResult> pull =
        reader->PullFrom(peer.client_address, queue, "*", offset, kBatch);
    if (!pull.ok()) {
      if (++tries >= kTriesPerPull || Pause(kBetweenTries)) {
        return Status::Unavailable(peer.peer_id + " does not give " + QueueName(queue) +
                                   " offset " + std::to_string(offset) + ": " +
                                   pull.status().ToString());
      }
      continue;
    }
    min = pull->min_offset;
    *max = pull->max_offset;
    for (const client::ReceivedMessage& message : pull->messages) {
      Event read;
      read.op = Op::kRead;
      read.node = peer.peer_id;
      read.key = QueueName(queue);
      read.offset = message.queue_offset;
      read.value = ValueOf(message.body);
      read.hash = HashOf(message.body);
      read.times = message.reconsume_times;
      read.born = message.born_time_ms;
      history_.Note(read);
    }
    if (pull->messages.empty() && pull->next_begin_offset <= offset) break;
    offset =
        pull->messages.empty() ? pull->next_begin_offset : pull->messages.back().queue_offset + 1;
    if (offset >= *max) break;
  }
  Event drained;
  drained.op = Op::kDrained;
  drained.node = peer.peer_id;
  drained.key = QueueName(queue);
  drained.min = min;
  drained.offset = *max;
  history_.Note(drained);
  return Status::Ok();
}

Status Drain::Round(client::PullConsumer* reader, Maxima* maxima) {
  for (const LocalBroker& peer : cluster_.brokers()) {
    for (const DrainTopic& topic : topics_) {
      for (int i = 0; i < topic.queues; ++i) {
        const client::MessageQueue queue{topic.name, cluster_.broker_name(), i};
        std::int64_t max = 0;
        TRIAD_RETURN_IF_ERROR(Queue(reader, peer, queue, &max));
        (*maxima)[peer.peer_id + " " + QueueName(queue)] = max;
      }
    }
  }
  return Status::Ok();
}

std::string Drain::DifferenceIn(const Maxima& maxima) const {
  std::map<std::string, std::string> first;  // queue -> "peer max"
  for (const auto& [where, max] : maxima) {
    const std::size_t blank = where.find(' ');
    const std::string queue = where.substr(blank + 1);
    const std::string mine = where.substr(0, blank) + " " + std::to_string(max);
    const auto [found, is_new] = first.try_emplace(queue, mine);
    if (is_new) continue;
    const std::string& other = found->second;
    if (other.substr(other.find(' ') + 1) != std::to_string(max)) {
      return queue + ": " + other + ", " + mine;
    }
  }
  return "";
}

Status Drain::Run(std::chrono::milliseconds limit) {
  client::PullConsumerOptions options;
  options.client.namesrv_address = cluster_.namesrv_address();
  options.client.instance_name = "drain";
  client::PullConsumer reader(options);
  TRIAD_RETURN_IF_ERROR(reader.Start());
  const std::int64_t end_ns = NowNs() + std::chrono::nanoseconds(limit).count();
  Maxima before;
  std::string difference = "one round only";
  while (NowNs() < end_ns) {
    Maxima now;
    TRIAD_RETURN_IF_ERROR(Round(&reader, &now));
    difference = DifferenceIn(now);
    if (difference.empty() && now == before) return Status::Ok();
    if (difference.empty()) difference = "the maxima still change";
    before = std::move(now);
    if (Pause(std::chrono::milliseconds(200))) return Status::Cancelled("stopped");
  }
  return Status::TimedOut("the peers do not agree after healing: " + difference);
}

}  // namespace triad::chaos
