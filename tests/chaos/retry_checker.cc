#include "tests/chaos/retry_checker.h"

#include <string_view>

namespace triad::chaos {
namespace {

constexpr std::string_view kRetry = "%RETRY%";
constexpr std::string_view kDead = "%DLQ%";

// The group whose topic the queue belongs to.
std::string GroupOf(const std::string& queue, std::string_view prefix) {
  return queue.substr(prefix.size(), queue.rfind('/') - prefix.size());
}

}  // namespace

bool RetryChecker::IsCopies(const std::string& queue) {
  return queue.starts_with(kRetry) || queue.starts_with(kDead);
}

void RetryChecker::Complain(std::uint64_t* count, const std::string& text) {
  ++*count;
  AddExample(&verdict_, "at the end: " + text);
}

void RetryChecker::OnGroup(const Event& event) {
  if (event.attempts > 1) groups_[event.group].attempts = event.attempts;
}

void RetryChecker::OnDeliver(const Event& event, std::uint64_t line) {
  const auto group = groups_.find(event.group);
  if (group == groups_.end()) return;
  const bool refused = event.outcome == Outcome::kFail;
  if (event.times >= group->second.attempts) {
    ++verdict_.unexpected;
    AddExample(&verdict_, "line " + std::to_string(line) + ": " + event.group + " got " +
                              event.value + " after " + std::to_string(event.times) +
                              " refusals, " + std::to_string(group->second.attempts) +
                              " times are all");
  }
  // What is taken the first time leaves nothing behind, and there is much of it.
  if (!refused && event.times == 0 && !group->second.messages.contains(event.value)) return;
  Message& message = group->second.messages[event.value];
  message.given.insert(event.times);
  if (refused) message.refused.insert(event.times);
}

void RetryChecker::OnRead(const Event& event) {
  const bool dead = event.key.starts_with(kDead);
  const auto group = groups_.find(GroupOf(event.key, dead ? kDead : kRetry));
  if (group == groups_.end()) return;
  Message& message = group->second.messages[event.value];
  (dead ? message.dead : message.retries[event.times]).emplace(event.key, event.offset);
}

void RetryChecker::JudgeCopies(const std::string& what, const Places& places, bool refused) {
  if (refused && places.empty()) Complain(&verdict_.lost, what + " is not there");
  if (!refused && !places.empty()) {
    Complain(&verdict_.unexpected, what + " is there, and nobody had refused it");
  }
  for (std::size_t more = 1; refused && more < places.size(); ++more) {
    Complain(&verdict_.duplicated, what + " is there " + std::to_string(places.size()) + " times");
  }
}

void RetryChecker::Judge(const std::string& group, std::int64_t attempts, const std::string& value,
                         const Message& message) {
  for (std::int64_t time = 1; time < attempts; ++time) {
    const auto found = message.retries.find(time);
    const bool refused = message.refused.contains(time - 1);
    const std::string what =
        group + ": the copy of " + value + " for its retry " + std::to_string(time);
    JudgeCopies(what, found == message.retries.end() ? Places() : found->second, refused);
    if (found != message.retries.end()) ++verdict_.retries;
    if (refused && !message.given.contains(time)) {
      Complain(&verdict_.undelivered, what + " was never delivered");
    }
  }
  for (const auto& [time, places] : message.retries) {
    if (time < 1 || time >= attempts) {
      Complain(&verdict_.unexpected, group + ": a copy of " + value + " for its retry " +
                                         std::to_string(time) + " of " +
                                         std::to_string(attempts - 1));
    }
  }
  JudgeCopies(group + ": the dead letter of " + value, message.dead,
              message.refused.contains(attempts - 1));
  if (!message.dead.empty()) ++verdict_.dead_letters;
}

void RetryChecker::Finish() {
  for (const auto& [name, group] : groups_) {
    for (const auto& [value, message] : group.messages) {
      Judge(name, group.attempts, value, message);
    }
  }
}

}  // namespace triad::chaos
