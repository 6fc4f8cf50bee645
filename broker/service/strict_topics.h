// StrictTopics: a topic with order=strict takes messages in one broker group only (operations.md,
// "Topics ordered by key").
//
// Who would make a second group take them asks first; StrictWatch finds afterwards what that did
// not see. The rule is pure. Thread: the questions on every thread; StrictWatch says its own.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/service/counters.h"
#include "broker/service/other_groups.h"
#include "broker/state/replicated_state.h"
#include "common/status.h"

namespace triad::broker {

// Of a topic whose messages are ordered by key: its number of queues says which queue a key is in.
inline constexpr std::string_view kOrderAttribute = "order";
inline constexpr std::string_view kStrict = "strict";

bool IsStrict(const std::map<std::string, std::string>& attributes);
bool TakesSends(const TopicConfig& topic);

// kInvalidArgument when order=strict, here or there, would have keys in two groups; kUnavailable
// when that cannot be known and must be. `others`: who takes sends to the topic besides this one.
Status CheckOneGroup(const TopicConfig& next, const OtherGroups::Found& others);

// The same for each of these, which would begin to take sends or become strict: asks the others
// about OtherGroups::kTopicsMax of them at a time. `done` gets the first refusal; it runs on the
// remoting client's thread or the caller's. `groups` outlives the answer.
void CheckOneGroupOfEach(OtherGroups& groups, std::vector<TopicConfig> topics,
                         std::function<void(Status)> done);

// Looks whether another group takes messages of a strict topic of this one nevertheless.
class StrictWatch {
 public:
  // All outlive it and every answer. `own` is this group's brokerName.
  StrictWatch(std::string own, const ReplicatedState& state, OtherGroups& groups,
              Counters& counters)
      : own_(std::move(own)), state_(state), groups_(groups), counters_(counters) {}

  // Now and then, on the leader: an ERROR line for every topic that is found to be split, once;
  // Counters::split_topics says how many are. Never blocks; nothing while the last look goes on.
  // Thread: every one.
  void Look();
  // This peer leads no more: what is known is forgotten, also what a look that goes on will find.
  void Forget();
  bool looking() const;

 private:
  void Ask(std::vector<Topic> topics, std::uint64_t forgotten);
  void Note(const Topic& topic, const OtherGroups::Found& others);

  const std::string own_;
  const ReplicatedState& state_;
  OtherGroups& groups_;
  Counters& counters_;
  mutable std::mutex mutex_;     // a leaf
  std::uint64_t forgotten_ = 0;  // how often
  bool looking_ = false;
  std::map<Topic, std::string> split_;  // the other group, by topic; of those that are strict here
};

}  // namespace triad::broker
