#include "tests/chaos/message_checker.h"

#include <algorithm>
#include <charconv>

namespace triad::chaos {
namespace {

constexpr std::uint64_t kMaxHole = 1'000'000;       // in a sender's numbers
constexpr std::int64_t kMaxOffset = 1'000'000'000;  // of a queue

std::string Place(const std::string& queue, std::int64_t offset) {
  return queue + " offset " + std::to_string(offset);
}

std::string TopicOf(const std::string& queue) {
  return queue.substr(0, queue.rfind('/'));
}

}  // namespace

void MessageChecker::Complain(std::uint64_t* count, std::uint64_t line, const std::string& text) {
  ++*count;
  AddExample(&verdict_,
             (line == 0 ? "at the end: " : "line " + std::to_string(line) + ": ") + text);
}

Result<std::uint64_t> MessageChecker::Reference(const std::string& value) {
  const std::size_t dash = value.rfind('-');
  std::uint64_t number = 0;
  const char* const end = value.data() + value.size();
  if (dash == std::string::npos || dash == 0 ||
      std::from_chars(value.data() + dash + 1, end, number).ptr != end || number == 0) {
    return Status::InvalidArgument("value '" + value + "' is not name-number");
  }
  const std::string name = value.substr(0, dash);
  const auto [found, is_new] =
      sender_ids_.try_emplace(name, static_cast<std::uint32_t>(senders_.size()));
  if (is_new) senders_.push_back({name, {}});
  Sender& sender = senders_[found->second];
  if (number > sender.attempts.size() + kMaxHole) {
    return Status::InvalidArgument("value '" + value + "' leaves too large a hole in its numbers");
  }
  if (number > sender.attempts.size()) sender.attempts.resize(number);
  return Pack(found->second, number);
}

std::string MessageChecker::ValueOf(std::uint64_t slot) const {
  return senders_[Bare(slot) >> 40].name + "-" + std::to_string(slot & 0xffffffffffu);
}

std::int32_t MessageChecker::QueueOf(const std::string& name) {
  if (name.find('/') == std::string::npos) return -1;  // only a topic
  const auto [found, is_new] =
      queue_ids_.try_emplace(name, static_cast<std::int32_t>(queues_.size()));
  if (is_new) {
    queues_.emplace_back();
    queues_.back().name = name;
  }
  return found->second;
}

std::uint64_t* MessageChecker::Slot(std::int32_t queue, std::int64_t offset) {
  std::vector<std::uint64_t>& slots = queues_[static_cast<std::size_t>(queue)].slots;
  if (static_cast<std::size_t>(offset) >= slots.size()) {
    slots.resize(static_cast<std::size_t>(offset) + 1);
  }
  return &slots[static_cast<std::size_t>(offset)];
}

Status MessageChecker::OnSendBegins(const Event& event) {
  const Result<std::uint64_t> reference = Reference(event.value);
  if (!reference.ok()) return reference.status();
  Attempt& attempt = At(*reference);
  if (attempt.begun) return Status::InvalidArgument("value '" + event.value + "' was sent before");
  attempt.begun = true;
  attempt.hash = static_cast<std::uint32_t>(event.hash);
  attempt.allowed = static_cast<std::uint8_t>(std::clamp<std::int64_t>(event.attempts, 0, 255));
  attempt.queue = QueueOf(event.key);
  attempt.delayed = event.delayed;
  if (attempt.queue >= 0 && !attempt.delayed) {
    attempt.offset = queues_[static_cast<std::size_t>(attempt.queue)].acked_max;
  }
  if (!event.order.empty())
    attempt.offset = std::max(attempt.offset, orders_[event.order].acked_max);
  ++verdict_.attempts;
  return Status::Ok();
}

Status MessageChecker::OnSendEnds(const Event& begun, const Event& end, std::uint64_t line) {
  const Result<std::uint64_t> reference = Reference(begun.value);
  if (!reference.ok()) return reference.status();
  Attempt& attempt = At(*reference);
  attempt.outcome = end.outcome;
  if (end.outcome == Outcome::kFail) ++verdict_.failed;
  if (end.outcome != Outcome::kOk) return Status::Ok();
  ++verdict_.acked;
  if (attempt.delayed) return Status::Ok();
  const std::int32_t queue = end.key.empty() ? attempt.queue : QueueOf(end.key);
  if (queue < 0 || end.offset < 0 || end.offset > kMaxOffset) {
    return Status::InvalidArgument("an acknowledgement without queue or offset");
  }
  Queue& place = queues_[static_cast<std::size_t>(queue)];
  if (attempt.queue >= 0 && attempt.queue != queue) {
    Complain(&verdict_.unexpected, line, begun.value + " was stored in " + place.name);
  }
  attempt.queue = queue;
  if (end.offset <= attempt.offset) {
    Complain(&verdict_.order_violations, line,
             begun.value + " stands at " + Place(place.name, end.offset) + ", but offset " +
                 std::to_string(attempt.offset) + " was acknowledged before it was sent");
  }
  attempt.offset = end.offset;
  place.acked_max = std::max(place.acked_max, end.offset);
  if (!begun.order.empty()) {
    OrderKey& order = orders_[begun.order];
    if (order.queue >= 0 && order.queue != queue) {
      Complain(&verdict_.order_violations, line,
               "order key " + begun.order + " moved to " + place.name);
    }
    order.queue = queue;
    order.acked_max = std::max(order.acked_max, end.offset);
  }
  std::uint64_t* const slot = Slot(queue, end.offset);
  if (*slot != 0 && Bare(*slot) != *reference) {
    Complain(&verdict_.corrupt, line,
             Place(place.name, end.offset) + " was given to " + ValueOf(*slot) + " and to " +
                 begun.value);
  } else if (*slot == 0) {
    *slot = *reference;
  }
  return Status::Ok();
}

Status MessageChecker::Observe(const Event& event, std::int32_t queue, std::uint64_t line) {
  if (queue < 0 || event.offset < 0 || event.offset > kMaxOffset) {
    return Status::InvalidArgument("a reading without queue or offset");
  }
  const std::string& name = queues_[static_cast<std::size_t>(queue)].name;
  const std::string where =
      Place(name, event.offset) + (event.node.empty() ? "" : " on " + event.node);
  const Result<std::uint64_t> reference = Reference(event.value);
  if (!reference.ok()) {  // bytes that no client of ours wrote
    Complain(&verdict_.unexpected, line, where + ": " + std::string(reference.status().message()));
    return Status::Ok();
  }
  Attempt& attempt = At(*reference);
  std::uint64_t* const slot = Slot(queue, event.offset);
  if (*slot != 0 && Bare(*slot) != *reference) {
    Complain(&verdict_.corrupt, line, where + " was " + ValueOf(*slot) + " and is " + event.value);
    return Status::Ok();
  }
  if (attempt.begun && static_cast<std::uint32_t>(event.hash) != attempt.hash) {
    Complain(&verdict_.corrupt, line, where + ": the bytes of " + event.value + " have changed");
  }
  if ((*slot & kSeen) != 0) return Status::Ok();
  *slot = *reference | kSeen;
  if (!attempt.begun) {
    Complain(&verdict_.unexpected, line, where + ": nobody sent " + event.value);
    return Status::Ok();
  }
  if (attempt.outcome == Outcome::kFail) {
    Complain(&verdict_.unexpected, line, where + ": " + event.value + " was refused");
  }
  if (attempt.queue >= 0 && attempt.queue != queue) {
    Complain(&verdict_.unexpected, line, where + ": " + event.value + " was sent elsewhere");
  }
  if (attempt.outcome == Outcome::kInfo && attempt.queue >= 0 && attempt.allowed != 0 &&
      event.offset <= attempt.offset) {
    Complain(&verdict_.order_violations, line,
             where + ": " + event.value + " was sent after a later offset was acknowledged");
  }
  ++attempt.stored;
  if (attempt.stored > 1 && attempt.allowed == 0) ++verdict_.resent;
  if (attempt.allowed != 0 && attempt.stored > attempt.allowed) {
    Complain(
        &verdict_.duplicated, line,
        where + ": " + event.value + " is stored " + std::to_string(attempt.stored) + " times");
  }
  return Status::Ok();
}

// What a group refused stands there, as many times as RetryChecker says.
Status MessageChecker::ObserveCopy(const Event& event, std::int32_t queue, std::uint64_t line) {
  if (queue < 0 || event.offset < 0 || event.offset > kMaxOffset) {
    return Status::InvalidArgument("a reading without queue or offset");
  }
  const std::string where = Place(event.key, event.offset) + " on " + event.node;
  const Result<std::uint64_t> reference = Reference(event.value);
  if (!reference.ok() || !At(*reference).begun) {
    Complain(&verdict_.unexpected, line, where + ": nobody sent " + event.value);
    return Status::Ok();
  }
  std::uint64_t* const slot = Slot(queue, event.offset);
  if (*slot != 0 && Bare(*slot) != *reference) {
    Complain(&verdict_.corrupt, line, where + " was " + ValueOf(*slot) + " and is " + event.value);
  } else if ((*slot & kSeen) == 0 &&
             static_cast<std::uint32_t>(event.hash) != At(*reference).hash) {
    Complain(&verdict_.corrupt, line, where + ": the bytes of " + event.value + " have changed");
  }
  if (*slot == 0) *slot = *reference | kSeen;
  return Status::Ok();
}

Status MessageChecker::OnRead(const Event& event, std::uint64_t line) {
  const std::int32_t queue = QueueOf(event.key);
  if (RetryChecker::IsCopies(event.key)) {
    TRIAD_RETURN_IF_ERROR(ObserveCopy(event, queue, line));
    retries_.OnRead(event);
  } else {
    TRIAD_RETURN_IF_ERROR(Observe(event, queue, line));
  }
  Replica& replica = queues_[static_cast<std::size_t>(queue)].replicas[event.node];
  if (replica.next == kNowhere) {
    replica.first = event.offset;
  } else if (event.offset != replica.next) {
    Complain(&verdict_.lost, line,
             event.node + " gave " + Place(event.key, event.offset) + " where " +
                 std::to_string(replica.next) + " was next");
  }
  replica.next = event.offset + 1;
  return Status::Ok();
}

Status MessageChecker::OnDrained(const Event& event, std::uint64_t line) {
  const std::int32_t queue = QueueOf(event.key);
  if (queue < 0 || event.node.empty()) {
    return Status::InvalidArgument("a drained queue without queue or node");
  }
  Replica& replica = queues_[static_cast<std::size_t>(queue)].replicas[event.node];
  const std::int64_t first = replica.next == kNowhere ? event.offset : replica.first;
  const std::int64_t next = replica.next == kNowhere ? event.offset : replica.next;
  if (first != event.min || next != event.offset) {
    Complain(&verdict_.lost, line,
             event.node + " says " + event.key + " is [" + std::to_string(event.min) + ", " +
                 std::to_string(event.offset) + ") and gave [" + std::to_string(first) + ", " +
                 std::to_string(next) + ")");
  }
  replica.min = event.min;
  replica.max = event.offset;
  replica.next = kNowhere;
  return Status::Ok();
}

Status MessageChecker::OnGroup(const Event& event) {
  Group& group = groups_[event.group];
  group.topics.push_back(event.key);
  group.orderly = event.value == "orderly";
  group.last_time = event.attempts - 1;
  retries_.OnGroup(event);
  return Status::Ok();
}

Status MessageChecker::OnDeliver(const Event& event, std::uint64_t line) {
  const std::int32_t queue = QueueOf(event.key);
  // A copy that came back through the retry topic stands nowhere else.
  const bool retried = RetryChecker::IsCopies(event.key);
  retries_.OnDeliver(event, line);
  if (!retried) TRIAD_RETURN_IF_ERROR(Observe(event, queue, line));
  Group& group = groups_[event.group];
  // The listener refused: not had yet, but the last time.
  const bool dies = group.last_time > 0 && event.times == group.last_time;
  if (event.outcome == Outcome::kFail && !dies) return Status::Ok();
  ++verdict_.delivered;
  const Result<std::uint64_t> reference = Reference(event.value);
  if (reference.ok()) {
    const std::size_t sender = *reference >> 40;
    const std::size_t number = (*reference & 0xffffffffffu) - 1;
    if (group.deliveries.size() <= sender) group.deliveries.resize(sender + 1);
    std::vector<std::uint8_t>& counts = group.deliveries[sender];
    if (counts.size() <= number) counts.resize(std::max(number + 1, counts.size() * 2));
    if (counts[number] > 0) ++verdict_.redelivered;
    if (counts[number] < 255) ++counts[number];
  }
  if (group.orderly) CheckOrderly(event, queue, &group, line);
  return Status::Ok();
}

void MessageChecker::CheckOrderly(const Event& event, std::int32_t queue, Group* group,
                                  std::uint64_t line) {
  Progress& progress = group->progress[queue];
  const std::string what = event.group + " got " + Place(event.key, event.offset);
  if (event.token < progress.token) {
    Complain(&verdict_.lock_overlaps, line,
             what + " under token " + std::to_string(event.token) + " after " +
                 std::to_string(progress.token) + " was in use");
    return;
  }
  const bool same = event.token == progress.token && event.client == progress.client;
  if (event.token == progress.token && event.token != 0 && event.client != progress.client) {
    Complain(&verdict_.lock_overlaps, line,
             what + ": " + event.client + " and " + progress.client + " both hold token " +
                 std::to_string(event.token));
  }
  if (progress.high != kNowhere && event.offset > progress.high + 1) {
    Complain(&verdict_.order_violations, line,
             what + ", skipping from " + std::to_string(progress.high + 1));
  }
  // Without a token (a client that does not know any) nobody can tell one lock from the next.
  if (same && event.token != 0 && event.offset < progress.last) {
    Complain(&verdict_.order_violations, line,
             what + " after " + std::to_string(progress.last) + " under the same lock");
  }
  progress.token = event.token;
  progress.client = event.client;
  progress.last = event.offset;
  progress.high = std::max(progress.high, event.offset);
}

void MessageChecker::Finish() {
  verdict_.unknown = verdict_.attempts - verdict_.acked - verdict_.failed;
  verdict_.checked_queues = queues_.size();
  CheckAcknowledged();
  CheckReplicas();
  CheckGroups();
  retries_.Finish();
}

void MessageChecker::CheckAcknowledged() {
  for (std::size_t s = 0; s < senders_.size(); ++s) {
    for (std::size_t n = 0; n < senders_[s].attempts.size(); ++n) {
      const Attempt& attempt = senders_[s].attempts[n];
      if (attempt.outcome == Outcome::kInfo && attempt.stored > 0) ++verdict_.recovered;
      if (attempt.outcome != Outcome::kOk) continue;
      const std::uint64_t mine = Pack(static_cast<std::uint32_t>(s), n + 1);
      if (attempt.delayed) {
        if (attempt.stored == 0) {
          Complain(&verdict_.lost, 0, ValueOf(mine) + ", acknowledged with a delay, never came");
        }
        continue;
      }
      if (*Slot(attempt.queue, attempt.offset) == (mine | kSeen)) continue;
      Complain(&verdict_.lost, 0,
               ValueOf(mine) + ", acknowledged at " +
                   Place(queues_[static_cast<std::size_t>(attempt.queue)].name, attempt.offset) +
                   ", was not read there");
    }
  }
}

void MessageChecker::CheckReplicas() {
  for (const Queue& queue : queues_) {
    std::int64_t max = 0;
    std::int64_t min = 0;
    for (const auto& [node, replica] : queue.replicas) {
      max = std::max(max, replica.max);
      min = std::max(min, replica.min);
    }
    verdict_.checked_messages += static_cast<std::uint64_t>(max);
    if (queue.replicas.empty() && !queue.slots.empty()) {
      Complain(&verdict_.lost, 0, queue.name + " was drained on no peer");
    }
    for (const auto& [node, replica] : queue.replicas) {
      if (replica.max == max && replica.min == min && replica.next == kNowhere) continue;
      Complain(&verdict_.lost, 0,
               node + " holds " + queue.name + " [" + std::to_string(replica.min) + ", " +
                   std::to_string(replica.max) + "), others [" + std::to_string(min) + ", " +
                   std::to_string(max) + ")");
    }
  }
}

void MessageChecker::CheckGroups() {
  for (const auto& [name, group] : groups_) {
    for (const Queue& queue : queues_) {
      const auto& topics = group.topics;
      if (std::find(topics.begin(), topics.end(), TopicOf(queue.name)) == topics.end()) continue;
      for (std::size_t offset = 0; offset < queue.slots.size(); ++offset) {
        const std::uint64_t slot = queue.slots[offset];
        if ((slot & kSeen) == 0) continue;
        const std::size_t sender = Bare(slot) >> 40;
        const std::size_t number = (slot & 0xffffffffffu) - 1;
        if (sender < group.deliveries.size() && number < group.deliveries[sender].size() &&
            group.deliveries[sender][number] > 0) {
          continue;
        }
        Complain(&verdict_.undelivered, 0,
                 name + " never got " + ValueOf(slot) + " at " +
                     Place(queue.name, static_cast<std::int64_t>(offset)));
      }
    }
  }
}

}  // namespace triad::chaos
