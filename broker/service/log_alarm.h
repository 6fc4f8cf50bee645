// LogAlarm: what the comparison of the peers' logs found wrong here, until it is mended.
//
// By place: one that is mended does not hide another. Shown by raftStatus and runtime information.
// Thread: any; one leaf mutex. Size: kPlacesMax texts; further
// places are found again by the next pass.

#pragma once

#include <glog/logging.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace triad::broker {

class LogAlarm {
 public:
  static constexpr std::size_t kPlacesMax = 1000;

  // Something is wrong at `position`. One ERROR line per different text of a place.
  void Raise(std::int64_t position, std::string text) {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(position);
    if (found == places_.end() && places_.size() >= kPlacesMax) return;
    std::string& known = places_[position];
    if (text == known) return;
    LOG(ERROR) << "log alarm: " << text << "; run mqadmin verifyLog";
    known = std::move(text);
  }
  // Nothing is wrong (any more) at the positions [from, to).
  void EndIn(std::int64_t from, std::int64_t to) {
    const std::lock_guard lock(mutex_);
    const auto end = places_.lower_bound(to);
    for (auto it = places_.lower_bound(from); it != end && it->first < to; it = places_.erase(it)) {
      LOG(INFO) << "log alarm is over: " << it->second;
    }
  }
  // The first place, and how many more there are. Empty: nothing is known to be wrong.
  std::string text() const {
    const std::lock_guard lock(mutex_);
    if (places_.empty()) return "";
    const std::string& first = places_.begin()->second;
    if (places_.size() == 1) return first;
    return first + " (and " + std::to_string(places_.size() - 1) + " more places)";
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::string> places_;  // what, by position
};

}  // namespace triad::broker
