#include "broker/service/strict_topics.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace triad::broker {
namespace {

std::vector<Topic> NamesOf(const std::vector<TopicConfig>& topics) {
  std::vector<Topic> names;
  for (const TopicConfig& topic : topics) names.push_back(topic.name);
  return names;
}

// Takes at most kTopicsMax from the end of *rest.
template <typename T>
std::vector<T> TakeSome(std::vector<T>* rest) {
  const std::size_t count = std::min(rest->size(), OtherGroups::kTopicsMax);
  const auto begin = rest->end() - static_cast<std::ptrdiff_t>(count);
  std::vector<T> some(begin, rest->end());
  rest->erase(begin, rest->end());
  return some;
}

}  // namespace

bool IsStrict(const std::map<std::string, std::string>& attributes) {
  const auto found = attributes.find(std::string(kOrderAttribute));
  return found != attributes.end() && found->second == kStrict;
}

bool TakesSends(const TopicConfig& topic) {
  return topic.write_queues > 0 && (topic.perm & kPermWrite) != 0;
}

Status CheckOneGroup(const TopicConfig& next, const OtherGroups::Found& others) {
  const std::string name = next.name.value();
  const bool strict = IsStrict(next.attributes);
  if (!others.ok()) {
    if (!strict) return Status::Ok();
    return Status::Unavailable("topic[" + name +
                               "] shall have the attribute order=strict, which needs to know that "
                               "no other broker group takes its messages: " +
                               std::string(others.status().message()) + "; try again");
  }
  for (const OtherGroups::Holder& other : *others) {
    if (!strict && !other.answered) {
      return Status::Unavailable("topic[" + name + "] takes messages in broker group " +
                                 other.broker_name +
                                 ", which does not answer whether the topic has the attribute "
                                 "order=strict there; try again");
    }
    if (!strict && !(other.topic && IsStrict(other.topic->attributes))) continue;
    return Status::InvalidArgument(
        "topic[" + name + "] takes messages in broker group " + other.broker_name +
        (strict ? ", and shall have" : ", and has there") +
        " the attribute order=strict: queues in a second group would send a key to another queue "
        "while its earlier messages still wait. Keep such a topic in one group (-b, not -c). To "
        "move it: stop the producers, take its write permission there (updateTopicPerm -p 4), wait "
        "until consumerProgress shows no difference for any group of the topic, and repeat the "
        "command");
  }
  return Status::Ok();
}

void CheckOneGroupOfEach(OtherGroups& groups, std::vector<TopicConfig> topics,
                         std::function<void(Status)> done) {
  if (topics.empty()) {
    done(Status::Ok());
    return;
  }
  std::vector<TopicConfig> some = TakeSome(&topics);
  const std::vector<Topic> names = NamesOf(some);
  groups.WhoTakes(names, [&groups, some = std::move(some), rest = std::move(topics),
                          done = std::move(done)](const std::vector<OtherGroups::Found>& found) {
    CHECK_EQ(found.size(), some.size());
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (const Status allowed = CheckOneGroup(some[i], found[i]); !allowed.ok()) {
        done(allowed);
        return;
      }
    }
    std::vector<TopicConfig> left = rest;
    // Who did not answer is not asked about the others: only a strict one needs the answer.
    if (std::any_of(found.begin(), found.end(), [](const auto& one) { return !one.ok(); })) {
      std::erase_if(left, [](const TopicConfig& one) { return !IsStrict(one.attributes); });
    }
    CheckOneGroupOfEach(groups, std::move(left), done);
  });
}

void StrictWatch::Look() {
  std::vector<Topic> topics;
  for (const TopicConfig& topic : state_.Topics()) {
    if (IsStrict(topic.attributes) && TakesSends(topic)) topics.push_back(topic.name);
  }
  std::uint64_t forgotten = 0;
  {
    const std::lock_guard lock(mutex_);
    if (looking_) return;
    looking_ = true;
    forgotten = forgotten_;
    std::erase_if(split_, [&topics](const auto& one) {
      return std::find(topics.begin(), topics.end(), one.first) == topics.end();
    });
    counters_.split_topics = static_cast<std::int64_t>(split_.size());
  }
  Ask(std::move(topics), forgotten);
}

void StrictWatch::Ask(std::vector<Topic> topics, std::uint64_t forgotten) {
  if (topics.empty()) {
    const std::lock_guard lock(mutex_);
    if (forgotten == forgotten_) looking_ = false;
    return;
  }
  std::vector<Topic> some = TakeSome(&topics);
  groups_.WhoTakes(some, [this, some, rest = std::move(topics),
                          forgotten](const std::vector<OtherGroups::Found>& found) {
    CHECK_EQ(found.size(), some.size());
    {
      const std::lock_guard lock(mutex_);
      if (forgotten != forgotten_) return;
      for (std::size_t i = 0; i < some.size(); ++i) Note(some[i], found[i]);
      counters_.split_topics = static_cast<std::int64_t>(split_.size());
    }
    Ask(rest, forgotten);
  });
}

// Under the mutex. Who could not be asked changes nothing.
void StrictWatch::Note(const Topic& topic, const OtherGroups::Found& others) {
  if (!others.ok()) return;
  if (others->empty()) {
    if (split_.erase(topic) > 0) {
      LOG(INFO) << "topic " << topic << " takes messages in broker group " << own_
                << " alone again";
    }
    return;
  }
  const std::string& other = others->front().broker_name;
  if (!split_.emplace(topic, other).second) return;
  LOG(ERROR) << "topic " << topic << " has order=strict in broker group " << own_
             << " and takes messages in broker group " << other
             << " as well: keys may be in a queue of each, out of order. Stop the producers, take "
                "its write permission in one of the two (updateTopicPerm -p 4), and wait until "
                "consumerProgress shows no difference before they go on";
}

bool StrictWatch::looking() const {
  const std::lock_guard lock(mutex_);
  return looking_;
}

void StrictWatch::Forget() {
  const std::lock_guard lock(mutex_);
  ++forgotten_;
  looking_ = false;
  split_.clear();
  counters_.split_topics = 0;
}

}  // namespace triad::broker
