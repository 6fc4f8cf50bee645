// RetryChecker: are retries and dead letters exact, across every fault?
//
// For groups that say how often they get what they refuse (kGroup with `attempts` above 1). A
// broker's copy keeps the time at which the message was born, so it belongs to the place where the
// refused one stood: exactly one for each refused place, in the retry topic, or after the last time
// in the dead letters; each is given again. A client whose send-back fails may consume in place
// again, or send a copy of its own, which is born anew: that is counted, and suffices for the
// refusal. Nothing else is in either topic. Deliveries of one place may repeat (at least once).
// Pure. Size: about 200 bytes per refused message and copy.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tests/chaos/event.h"
#include "tests/chaos/verdict.h"

namespace triad::chaos {

class RetryChecker {
 public:
  explicit RetryChecker(Verdict* verdict) : verdict_(*verdict) {}

  void OnGroup(const Event& event);
  // A message was given to a listener of its group.
  void OnDeliver(const Event& event, std::uint64_t line);
  // What one peer holds in a retry or a dead letter topic.
  void OnRead(const Event& event);
  void Finish();

  // Is the queue ("topic/id") one of a group's retry or dead letter topic?
  static bool IsCopies(const std::string& queue);

 private:
  // Where a message, or a copy of it, stands.
  struct Place {
    std::int64_t time = 0;  // how often it had been sent back when it was stored
    std::int64_t born = 0;
    bool is_read = false;  // a copy, found in its topic
    bool is_dead = false;
    std::set<std::int64_t> taken,
        refused;  // at which times; beyond `time`: consumed in place again
    bool given() const { return !taken.empty() || !refused.empty(); }
  };
  using Message = std::map<std::pair<std::string, std::int64_t>, Place>;  // queue, offset -> it
  struct Group {
    std::int64_t attempts = 1;
    std::map<std::string, Message> messages;  // by value: what was refused or copied
  };

  // Is there what the broker made `copy` of? Else a client made it.
  static bool IsOfBroker(const Place& copy, const Message& message);
  static bool IsHelped(const Place& refused, const Message& message);
  void JudgeCopy(const std::string& what, const Place& copy, const Message& message,
                 std::int64_t attempts);
  void Judge(const std::string& group, std::int64_t attempts, const std::string& value,
             const Message& message);
  void Complain(std::uint64_t* count, const std::string& text);

  Verdict& verdict_;
  std::map<std::string, Group> groups_;
};

}  // namespace triad::chaos
