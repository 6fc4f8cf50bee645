// RetryChecker: are retries and dead letters exact, across every fault?
//
// For groups that say how often they get what they refuse (kGroup with `attempts` above 1): whoever
// refused a message before its last time has one copy of it in the retry topic and is given it
// again; whoever refused it the last time has one dead letter; nothing else is in either topic.
// Deliveries of one copy may repeat (at least once), copies may not. Pure. Size: about 100 bytes
// per refused message.

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
  using Places = std::set<std::pair<std::string, std::int64_t>>;  // queue, offset
  struct Message {
    std::set<std::int64_t> given, refused;   // which time
    std::map<std::int64_t, Places> retries;  // which time -> its copies
    Places dead;
  };
  struct Group {
    std::int64_t attempts = 1;
    std::map<std::string, Message> messages;  // by value: what was refused or copied
  };

  void Judge(const std::string& group, std::int64_t attempts, const std::string& value,
             const Message& message);
  // Exactly one copy when the message was refused `before`, else none.
  void JudgeCopies(const std::string& what, const Places& places, bool refused);
  void Complain(std::uint64_t* count, const std::string& text);

  Verdict& verdict_;
  std::map<std::string, Group> groups_;
};

}  // namespace triad::chaos
