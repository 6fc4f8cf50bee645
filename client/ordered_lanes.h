// OrderedLanes: at most one message per lane is on its way; the others of the lane wait in call
// order.
//
// Pure: says what to start and what to cancel. Owner: whoever guards it. Bounds: the caller's.
// A lane is one key of one topic. After a failure everything that waits in the lane is cancelled:
// sending it would break the order.

#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace triad::client {

template <typename Item>
class OrderedLanes {
 public:
  struct Next {
    std::optional<Item> start;  // the next of the lane
    std::vector<Item> cancel;   // after a failure: all that waited
  };

  // The item back when the lane was free: start it. Else it waits for Leave.
  std::optional<Item> Enter(const std::string& lane, Item item) {
    const auto [place, was_free] = lanes_.try_emplace(lane);
    if (was_free) return item;
    place->second.push_back(std::move(item));
    ++waiting_;
    return std::nullopt;
  }

  // The fate of the lane's message on its way is known.
  Next Leave(const std::string& lane, bool sent) {
    Next next;
    const auto place = lanes_.find(lane);
    if (place == lanes_.end()) return next;
    std::deque<Item>& items = place->second;
    if (sent && !items.empty()) {
      next.start = std::move(items.front());
      items.pop_front();
      --waiting_;
      return next;
    }
    for (Item& item : items) next.cancel.push_back(std::move(item));
    waiting_ -= next.cancel.size();
    lanes_.erase(place);
    return next;
  }

  std::size_t waiting() const { return waiting_; }
  std::size_t busy_lanes() const { return lanes_.size(); }

 private:
  std::unordered_map<std::string, std::deque<Item>> lanes_;  // present = one is on its way
  std::size_t waiting_ = 0;
};

}  // namespace triad::client
