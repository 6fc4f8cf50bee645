// Clients that do not send or read messages: those that lock queues, and those that make topics.

#include <algorithm>
#include <utility>

#include "remoting/client_bodies.h"
#include "remoting/codes.h"
#include "remoting/headers.h"
#include "remoting/json.h"
#include "tests/sim/group/group_clients.h"

namespace triad::sim {
namespace {

using remoting::Command;

// A client counts a lock for less than half of the broker's lease.
constexpr Micros kLockValid = 20 * kSecond;
// After an unlock of unknown outcome: longer than a lock request's budget.
constexpr Micros kUnlockPause = 5 * kSecond;
constexpr std::uint64_t kPassingTopics = 3;

}  // namespace

// ---- lockers ----

std::vector<TopicQueue> Locker::Queues() const {
  std::vector<TopicQueue> queues;
  for (int i = 0; i < world_.options.queues; ++i) queues.push_back({Topic(kTopic), QueueId(i)});
  return queues;
}

std::string Locker::Body() const {
  remoting::LockBatchRequest body;
  body.client_id = "c" + std::to_string(node_);
  body.consumer_group = "lg";
  for (const TopicQueue& queue : Queues()) {
    remoting::MessageQueue one;
    one.topic = queue.topic.value();
    one.broker_name = "broker-a";
    one.queue_id = queue.queue_id.value();
    body.queues.push_back(one);
  }
  return body.Encode();
}

void Locker::Next() {
  if (finishing_) return;
  Later(60 * kMs, [this] {
    if (finishing_) return;
    if (world_.dice.OneIn(4)) return Unlock();
    Lock();
  });
}

void Locker::Lock() {
  Command command = Command::Request(remoting::kLockBatchMq);
  command.body = Body();
  std::map<TopicQueue, std::uint64_t> known;
  for (const TopicQueue& queue : Queues()) known[queue] = world_.oracle.OnLockAsked(queue);
  Ask(std::move(command), [this, known = std::move(known)](const Result<Command>& answer) {
    Next();
    if (!answer.ok() || answer->code != remoting::kSuccess) return;
    const auto response = remoting::LockBatchResponse::Decode(answer->body);
    if (!response.ok()) return world_.oracle.Fail("M7", response.status().ToString());
    const Result<remoting::Json> json = remoting::Json::Parse(answer->body);
    if (!json.ok()) return world_.oracle.Fail("M7", json.status().ToString());
    const remoting::Json tokens = (*json)["fenceTokens"];
    const Micros now = world_.loop.now();
    world_.journal.Note(now, node_, "locked", response->locked.size());
    for (const TopicQueue& queue : Queues()) {
      const bool held =
          std::any_of(response->locked.begin(), response->locked.end(), [&](const auto& one) {
            return one.topic == queue.topic.value() && one.queue_id == queue.queue_id.value();
          });
      if (held) {
        const auto token = static_cast<std::uint64_t>(tokens[NameOf(queue)].AsInt64());
        world_.oracle.OnGranted(queue, node_, known.at(queue), token);
        world_.oracle.OnBelieves(queue, node_, now, now + kLockValid);
      } else {
        world_.oracle.OnGivesUp(queue, node_);
      }
    }
  });
}

void Locker::Unlock() {
  for (const TopicQueue& queue : Queues()) world_.oracle.OnGivesUp(queue, node_);
  Command command = Command::Request(remoting::kUnlockBatchMq);
  command.body = Body();
  Ask(std::move(command), [this](const Result<Command>& answer) {
    if (answer.ok() && answer->code == remoting::kSuccess) return Next();
    world_.loop.After(kUnlockPause, [this] { Next(); });
  });
}

// ---- topics ----

void TopicKeeper::Create(const std::string& topic, const std::string& attributes,
                         GroupNet::Done done) {
  remoting::CreateTopicRequest header;
  header.topic = topic;
  header.default_topic = "TBW102";
  header.read_queue_nums = header.write_queue_nums = world_.options.queues;
  header.perm = 6;
  header.topic_filter_type = "SINGLE_TAG";
  header.attributes = attributes;
  Command command = Command::Request(remoting::kUpdateAndCreateTopic);
  header.Encode(&command.ext);
  Ask(std::move(command), std::move(done));
}

void TopicKeeper::MakeDedupTopic() {
  Create(kDedupTopic, "+dedup=uniqKey", [this](const Result<Command>& answer) {
    if (answer.ok() && answer->code == remoting::kSuccess) {
      world_.journal.Note(world_.loop.now(), node_, "made the dedup topic");
      world_.has_dedup_topic = true;
      return Next();
    }
    AnotherPeer();
    if (!finishing_) Later(kRetryPause, [this] { MakeDedupTopic(); });
  });
}

void TopicKeeper::Delete(const std::string& topic) {
  remoting::TopicRequest header;
  header.topic = topic;
  Command command = Command::Request(remoting::kDeleteTopicInBroker);
  header.Encode(&command.ext);
  Ask(std::move(command), [this](const Result<Command>&) { Next(); });
}

void TopicKeeper::Next() {
  if (finishing_ || !world_.options.topics) return;
  Later(150 * kMs, [this] {
    if (finishing_) return;
    const std::string topic = "P" + std::to_string(world_.dice.Below(kPassingTopics));
    if (world_.dice.OneIn(2)) return Delete(topic);
    Create(topic, "", [this](const Result<Command>&) { Next(); });
  });
}

}  // namespace triad::sim
