#include "tests/chaos/retry_checker.h"

#include <algorithm>
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
  std::map<std::string, Message>& messages = group->second.messages;
  const bool refused = event.outcome == Outcome::kFail;
  // What is taken the first time leaves nothing behind, and there is much of it.
  if (!refused && event.times == 0 && !messages.contains(event.value)) return;
  const auto [found, is_new] = messages[event.value].try_emplace({event.key, event.offset});
  Place& place = found->second;
  if (is_new) {
    place.time = event.times;
    place.born = event.born;
  }
  place.time = std::min(place.time, event.times);
  (refused ? place.refused : place.taken).insert(event.times);
  if (place.time < group->second.attempts) return;
  ++verdict_.unexpected;
  AddExample(&verdict_, "line " + std::to_string(line) + ": " + event.group + " got " +
                            event.value + " after " + std::to_string(event.times) + " refusals, " +
                            std::to_string(group->second.attempts) + " times are all");
}

void RetryChecker::OnRead(const Event& event) {
  const bool dead = event.key.starts_with(kDead);
  const auto group = groups_.find(GroupOf(event.key, dead ? kDead : kRetry));
  if (group == groups_.end()) return;
  Place& place = group->second.messages[event.value][{event.key, event.offset}];
  place.time = event.times;
  place.born = event.born;
  place.is_read = true;
  place.is_dead = dead;
}

bool RetryChecker::IsOfBroker(const Place& copy, const Message& message) {
  return std::ranges::any_of(message, [&](const auto& entry) {
    const Place& place = entry.second;
    return place.born == copy.born && place.time == copy.time - 1 && !place.is_dead;
  });
}

// Did the refusals of this place come to something without the broker's copy?
bool RetryChecker::IsHelped(const Place& refused, const Message& message) {
  if (!refused.taken.empty() && *refused.taken.rbegin() > *refused.refused.begin()) return true;
  return std::ranges::any_of(message, [&](const auto& entry) {
    const Place& copy = entry.second;
    return copy.is_read && refused.refused.contains(copy.time - 1) && !IsOfBroker(copy, message);
  });
}

void RetryChecker::JudgeCopy(const std::string& what, const Place& copy, const Message& message,
                             std::int64_t attempts) {
  if (!copy.is_dead && !copy.given()) {
    Complain(&verdict_.undelivered, what + " was never delivered");
  }
  const bool of_broker = IsOfBroker(copy, message);
  const bool is_due = std::ranges::any_of(message, [&](const auto& entry) {
    const Place& place = entry.second;
    return of_broker
               ? place.born == copy.born && place.time == copy.time - 1 && !place.refused.empty()
               : place.refused.contains(copy.time - 1);
  });
  if (!is_due) Complain(&verdict_.unexpected, what + " is there, and nobody had refused it");
  if (!of_broker) {
    ++verdict_.own_copies;
    return;
  }
  ++(copy.is_dead ? verdict_.dead_letters : verdict_.retries);
  if (copy.is_dead != (copy.time >= attempts)) {
    Complain(&verdict_.unexpected, what + " of " + std::to_string(attempts - 1));
  }
}

void RetryChecker::Judge(const std::string& group, std::int64_t attempts, const std::string& value,
                         const Message& message) {
  // A client that repeats its own copy may store it twice: then two places are of one birth.
  struct Refused {
    std::uint64_t places = 0, unhelped = 0, copies = 0;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Refused> all;  // birth, time
  for (const auto& [where, place] : message) {
    if (place.is_read) {
      JudgeCopy(group + ": the " + (place.is_dead ? "dead letter" : "copy") + " of " + value +
                    " (" + where.first + " offset " + std::to_string(where.second) +
                    ") for its retry " + std::to_string(place.time),
                place, message, attempts);
      if (IsOfBroker(place, message)) ++all[{place.born, place.time - 1}].copies;
    }
    if (place.refused.empty()) continue;
    Refused& refused = all[{place.born, place.time}];
    ++refused.places;
    if (!IsHelped(place, message)) ++refused.unhelped;
  }
  for (const auto& [when, refused] : all) {
    const std::string what = group + ": " + value + " was refused at " +
                             std::to_string(refused.places) + " places at its time " +
                             std::to_string(when.second) + ", and has " +
                             std::to_string(refused.copies) + " copies of that";
    for (std::uint64_t n = refused.copies; n < refused.unhelped; ++n) {
      Complain(&verdict_.lost, what);
    }
    for (std::uint64_t n = refused.places; refused.places > 0 && n < refused.copies; ++n) {
      Complain(&verdict_.duplicated, what);
    }
  }
}

void RetryChecker::Finish() {
  for (const auto& [name, group] : groups_) {
    for (const auto& [value, message] : group.messages) {
      Judge(name, group.attempts, value, message);
    }
  }
}

}  // namespace triad::chaos
