#include "tests/sim/group/group_clients.h"

#include <algorithm>
#include <utility>

#include "common/byte_order.h"
#include "remoting/client_bodies.h"
#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::sim {
namespace {

using remoting::Command;

constexpr Micros kTimeout = 3 * kSecond;
constexpr int kTriesMax = 4;

// Certainly not stored: refused in words, or never sent.
bool IsRefused(const Result<Command>& answer) {
  if (!answer.ok()) return remoting::NeverSent(answer.status());
  return answer->code == remoting::kServiceNotAvailable || answer->code == remoting::kSystemBusy ||
         answer->code == remoting::kTopicNotExist;
}

std::string BatchItem(const std::string& body, const std::string& properties) {
  std::string item;
  AppendBe32(&item, static_cast<std::uint32_t>(22 + body.size() + properties.size()));
  item.append(12, '\0');
  AppendBe32(&item, static_cast<std::uint32_t>(body.size()));
  item += body;
  AppendBe16(&item, static_cast<std::uint16_t>(properties.size()));
  return item + properties;
}

std::string PropertiesOf(const std::string& value, int delay_level) {
  std::string properties = "UNIQ_KEY\x01" + value + "\x02";
  if (delay_level > 0) properties += "DELAY\x01" + std::to_string(delay_level) + "\x02";
  return properties;
}

}  // namespace

// ---- all ----

void GroupClient::Ask(Command request, GroupNet::Done done) {
  world_.net.Call(node_, target_, std::move(request), kTimeout,
                  [this, done = std::move(done)](Result<Command> answer) {
                    if (!answer.ok()) AnotherPeer();
                    done(std::move(answer));
                  });
}

void GroupClient::Later(Micros gap, std::function<void()> task) {
  world_.loop.After(world_.dice.Gap(gap), std::move(task));
}

TopicQueue GroupClient::AnyQueue() {
  const auto queue = world_.dice.Below(static_cast<std::uint64_t>(world_.options.queues));
  return {Topic(kTopic), QueueId(static_cast<std::int32_t>(queue))};
}

// ---- producers ----

void Producer::Next() {
  if (finishing_) return;
  Later(world_.options.send_every, [this] {
    if (finishing_) return;
    Try(std::make_shared<Send>(MakeSend()));
  });
}

Producer::Send Producer::MakeSend() {
  Send send;
  send.queue = AnyQueue();
  const std::uint64_t count =
      world_.options.batches && world_.dice.OneIn(4) ? 2 + world_.dice.Below(4) : 1;
  for (std::uint64_t i = 0; i < count; ++i) send.values.push_back(NextValue());
  if (count == 1 && world_.options.delayed && world_.dice.OneIn(4)) {
    send.delay_level = static_cast<int>(world_.dice.Between(1, 3));
  } else if (count == 1 && world_.has_dedup_topic && world_.dice.OneIn(3)) {
    send.queue.topic = Topic(kDedupTopic);
  } else if (world_.options.one_way && world_.dice.OneIn(4)) {
    send.one_way = true;
  }
  send.done = [this] { Next(); };
  return send;
}

void Producer::SendLast(std::function<void()> done) {
  Send send;
  send.queue = AnyQueue();
  send.values.push_back(NextValue());
  send.must = true;
  send.done = std::move(done);
  Try(std::make_shared<Send>(std::move(send)));
}

Command Producer::CommandOf(const Send& send) {
  const bool batch = send.values.size() > 1;
  remoting::SendMessageRequest header;
  header.producer_group = "pg";
  header.topic = send.queue.topic.value();
  header.default_topic = "TBW102";
  header.default_topic_queue_nums = world_.options.queues;
  header.queue_id = send.queue.queue_id.value();
  header.born_timestamp_ms = 1'700'000'000'000;
  header.batch = batch;
  Command command =
      Command::Request(batch ? remoting::kSendBatchMessage : remoting::kSendMessageV2);
  for (const std::string& value : send.values) {
    const std::string body =
        value + " " +
        std::string(world_.dice.Below(static_cast<std::uint64_t>(world_.options.body_max)), 'x');
    if (batch) {
      command.body += BatchItem(body, PropertiesOf(value, 0));
    } else {
      header.properties = PropertiesOf(value, send.delay_level);
      command.body = body;
    }
  }
  header.EncodeV2(&command.ext);
  return command;
}

void Producer::Try(const std::shared_ptr<Send>& send) {
  ++send->tries;
  for (const std::string& value : send->values) {
    world_.oracle.OnAttempt(value, {.delayed = send->delay_level > 0,
                                    .dedup = send->queue.topic.value() == kDedupTopic});
  }
  if (send->one_way) {
    world_.net.CallOneWay(node_, target_, CommandOf(*send));
    return send->done();
  }
  Ask(CommandOf(*send), [this, send](const Result<Command>& answer) { OnAnswer(send, answer); });
}

void Producer::OnAnswer(const std::shared_ptr<Send>& send, const Result<Command>& answer) {
  const bool stored = answer.ok() && answer->code == remoting::kSuccess;
  world_.journal.Note(world_.loop.now(), node_, stored ? "sent" : "send failed", sequence_,
                      answer.ok() ? static_cast<std::uint64_t>(answer->code) : 999);
  if (stored) {
    const auto header = remoting::SendMessageResponse::Decode(answer->ext);
    if (!header.ok()) return world_.oracle.Fail("M1", header.status().ToString());
    const TopicQueue queue{send->queue.topic, QueueId(header->queue_id)};
    std::int64_t offset = header->queue_offset;
    for (const std::string& value : send->values) world_.oracle.OnAcked(value, queue, offset++);
    if (send->again) return send->done();
    if (send->delay_level == 0) {
      const auto last = last_offset_.find(queue);
      if (last != last_offset_.end() && header->queue_offset <= last->second) {
        world_.oracle.Fail("M4", send->values.front() + " stands before an earlier message");
      }
      last_offset_[queue] = offset - 1;
    }
    if (send->queue.topic.value() != kDedupTopic || !world_.dice.OneIn(4)) return send->done();
    send->again = true;
    send->tries = 0;
    return Try(send);
  }
  if (IsRefused(answer)) {
    for (const std::string& value : send->values) world_.oracle.OnNotSent(value);
  }
  if (!send->must && (finishing_ || send->tries >= kTriesMax)) return send->done();
  if (world_.dice.OneIn(2)) AnotherPeer();
  Later(kRetryPause, [this, send] { Try(send); });
}

// ---- consumers ----

broker::GroupQueue Consumer::KeyOf(const TopicQueue& queue) const {
  return {GroupName("g" + std::to_string(node_)), queue};
}

void Consumer::Register() {
  remoting::HeartbeatData heartbeat;
  heartbeat.client_id = "c" + std::to_string(node_);
  remoting::ConsumerData group;
  group.group_name = KeyOf({}).group.value();
  remoting::SubscriptionData subscription;
  subscription.topic = kTopic;
  subscription.sub_string = "*";
  group.subscriptions.push_back(subscription);
  heartbeat.consumers.push_back(group);
  Command command = Command::Request(remoting::kHeartBeat);
  command.body = heartbeat.Encode();
  Ask(std::move(command), [this](const Result<Command>& answer) {
    if (answer.ok() && answer->code == remoting::kSuccess) return Next();
    if (!finishing_) Later(kRetryPause, [this] { Register(); });
  });
}

void Consumer::Next() {
  if (finishing_) return;
  Later(20 * kMs, [this] {
    if (finishing_) return;
    if (chosen_) return SendBack();
    const TopicQueue queue = AnyQueue();
    if (world_.dice.OneIn(20)) next_.clear();  // begins again with what is stored
    if (!next_.contains(queue) || world_.dice.OneIn(6)) return Query(queue);
    if (world_.dice.OneIn(8)) return QueryMax(queue);
    if (world_.options.resets && world_.dice.OneIn(8)) {
      // To anywhere; the commit that follows is the reset.
      const auto end = static_cast<std::uint64_t>(world_.oracle.MaxOffset(queue));
      next_[queue] = static_cast<std::int64_t>(world_.dice.Below(end + 1));
      return Commit(queue);
    }
    if (world_.dice.OneIn(4)) return Commit(queue);
    Pull(queue);
  });
}

void Consumer::Pull(const TopicQueue& queue) {
  remoting::PullMessageRequest header;
  header.consumer_group = KeyOf(queue).group.value();
  header.topic = queue.topic.value();
  header.queue_id = queue.queue_id.value();
  header.queue_offset = next_[queue];
  header.max_msg_nums = static_cast<std::int32_t>(world_.dice.Between(1, 32));
  header.sys_flag = world_.dice.OneIn(2) ? 0x4 | 0x2 : 0x4;
  header.suspend_timeout_ms = 100;
  header.subscription = "*";
  Command command = Command::Request(remoting::kPullMessage);
  header.Encode(&command.ext);
  AnotherPeer();
  const std::int64_t from = header.queue_offset;
  Ask(std::move(command), [this, queue, from, peer = target_](const Result<Command>& answer) {
    Next();
    if (!answer.ok()) return;
    const auto response = remoting::PullMessageResponse::Decode(answer->ext);
    if (response.ok() && response->max_offset > world_.oracle.MaxOffset(queue)) {
      world_.oracle.Fail("M5", "a maximum offset beyond what is committed");
    }
    if (answer->code == remoting::kPullOffsetMoved && response.ok()) {
      world_.oracle.OnMoved(queue, from, response->next_begin_offset);
      next_[queue] = response->next_begin_offset;
    }
    if (answer->code != remoting::kSuccess || !response.ok()) return;
    world_.journal.Note(world_.loop.now(), node_, "pulled", static_cast<std::uint64_t>(from),
                        answer->body.size());
    world_.oracle.OnPulled(peer, queue, from, answer->body, response->next_begin_offset);
    next_[queue] = response->next_begin_offset;
    if (world_.options.send_back && world_.dice.OneIn(6)) Choose(answer->body);
  });
}

void Consumer::Choose(std::string_view records) {
  const auto message = broker::ParseMessage(records, true);
  if (!message.ok()) return;  // the oracle has said so
  chosen_ = Chosen{.at = message->physical_offset, .value = ValueOf(message->body)};
}

void Consumer::SendBack() {
  const Chosen chosen = *std::exchange(chosen_, std::nullopt);
  remoting::SendBackRequest header;
  header.offset = chosen.at.value();
  header.group = KeyOf({}).group.value();
  header.delay_level = static_cast<std::int32_t>(world_.dice.Between(1, 3));
  header.origin_topic = kTopic;
  Command command = Command::Request(remoting::kConsumerSendMsgBack);
  header.Encode(&command.ext);
  const std::string value = SentBackValue(header.group, chosen.value, chosen.at);
  world_.oracle.OnAttempt(value, {.delayed = true, .dedup = true});
  Ask(std::move(command), [this, chosen, value](const Result<Command>& answer) {
    if (answer.ok() && answer->code == remoting::kSuccess) {
      world_.oracle.OnAcked(value, {}, 0);
    } else {
      // Every other answer leaves it open: what is sent back again is stored once.
      if (!answer.ok() && IsRefused(answer)) world_.oracle.OnNotSent(value);
      if (world_.dice.OneIn(2)) chosen_ = chosen;
    }
    Next();
  });
}

void Consumer::Commit(const TopicQueue& queue) {
  remoting::UpdateConsumerOffsetRequest header;
  header.consumer_group = KeyOf(queue).group.value();
  header.topic = queue.topic.value();
  header.queue_id = queue.queue_id.value();
  header.commit_offset = next_[queue];
  Command command = Command::Request(remoting::kUpdateConsumerOffset);
  header.Encode(&command.ext);
  world_.oracle.OnCommitSent(KeyOf(queue), header.commit_offset, world_.loop.now());
  Ask(std::move(command), [this, queue,
                           offset = header.commit_offset](const Result<Command>& answer) {
    Next();
    if (!answer.ok() || answer->code != remoting::kSuccess) return;
    world_.journal.Note(world_.loop.now(), node_, "committed", static_cast<std::uint64_t>(offset));
    world_.oracle.OnCommitAcked(KeyOf(queue), offset, world_.loop.now());
  });
}

void Consumer::Query(const TopicQueue& queue) {
  remoting::QueryConsumerOffsetRequest header;
  header.consumer_group = KeyOf(queue).group.value();
  header.topic = queue.topic.value();
  header.queue_id = queue.queue_id.value();
  header.set_zero_if_not_found = true;
  Command command = Command::Request(remoting::kQueryConsumerOffset);
  header.Encode(&command.ext);
  Ask(std::move(command), [this, queue](const Result<Command>& answer) {
    Next();
    if (!answer.ok()) return;
    if (answer->code == remoting::kQueryNotFound) {
      world_.oracle.OnQueried(KeyOf(queue), std::nullopt);
      next_[queue] = 0;
      return;
    }
    const auto response = remoting::OffsetResponse::Decode(answer->ext);
    if (answer->code != remoting::kSuccess || !response.ok()) return;
    world_.oracle.OnQueried(KeyOf(queue), response->offset);
    next_[queue] = response->offset;
  });
}

void Consumer::QueryMax(const TopicQueue& queue) {
  remoting::GetMaxOffsetRequest header;
  header.topic = queue.topic.value();
  header.queue_id = queue.queue_id.value();
  Command command = Command::Request(remoting::kGetMaxOffset);
  header.Encode(&command.ext);
  const std::int64_t known = world_.oracle.OnMaxAsked(queue);
  AnotherPeer();
  Ask(std::move(command), [this, queue, known](const Result<Command>& answer) {
    Next();
    if (!answer.ok() || answer->code != remoting::kSuccess) return;
    const auto response = remoting::OffsetResponse::Decode(answer->ext);
    if (!response.ok()) return world_.oracle.Fail("M5", response.status().ToString());
    world_.oracle.OnMaxTold(queue, known, response->offset);
  });
}

// ---- at the end ----

void Drainer::Begin() {
  queues_ = world_.oracle.Queues();
  target_ = peer_;
  Next();
}

std::string Drainer::ToString() const {
  if (done_) return "all read";
  if (at_ >= queues_.size()) return "nothing read";
  return queues_[at_].topic.value() + "@" + std::to_string(queues_[at_].queue_id.value()) +
         " read up to " + std::to_string(offset_) + " of " +
         std::to_string(world_.oracle.MaxOffset(queues_[at_])) + ": " + last_refusal_;
}

void Drainer::OnRefused(const Result<Command>& answer) {
  constexpr int kReadErrorsMax = 10;
  const bool read_error = answer.ok() && answer->code == remoting::kSystemError;
  read_errors_ = read_error ? read_errors_ + 1 : 0;
  last_refusal_ = answer.ok() ? std::to_string(answer->code) + " " + answer->remark
                              : answer.status().ToString();
  if (read_errors_ == kReadErrorsMax) {
    read_errors_ = 0;
    on_damaged_();
  }
  world_.loop.After(20 * kMs, [this] { Next(); });
}

void Drainer::Next() {
  while (at_ < queues_.size() && offset_ >= world_.oracle.MaxOffset(queues_[at_])) {
    ++at_;
    offset_ = 0;
  }
  done_ = at_ == queues_.size();
  if (done_) return;
  const TopicQueue& queue = queues_[at_];
  remoting::PullMessageRequest header;
  header.consumer_group = "drain";
  header.topic = queue.topic.value();
  header.queue_id = queue.queue_id.value();
  header.queue_offset = offset_;
  header.max_msg_nums = 32;
  header.sys_flag = 0x4;
  header.subscription = "*";
  Command command = Command::Request(remoting::kPullMessage);
  header.Encode(&command.ext);
  target_ = peer_;
  Ask(std::move(command), [this, queue](const Result<Command>& answer) {
    const bool moved = answer.ok() && answer->code == remoting::kPullOffsetMoved;
    if (!moved && (!answer.ok() || answer->code != remoting::kSuccess)) return OnRefused(answer);
    read_errors_ = 0;
    const auto response = remoting::PullMessageResponse::Decode(answer->ext);
    if (!response.ok()) return world_.oracle.Fail("M1", response.status().ToString());
    if (moved) {
      world_.oracle.OnMoved(queue, offset_, response->next_begin_offset);
    } else {
      world_.oracle.OnPulled(peer_, queue, offset_, answer->body, response->next_begin_offset);
    }
    offset_ = response->next_begin_offset;
    Next();
  });
}

}  // namespace triad::sim
