// BrokerStats: what is put and fetched per topic and group, for VIEW_BROKER_STATS_DATA (admin.md
// §2.10).
//
// Puts are counted where messages are applied (one call per queue and batch), so every peer has
// them; fetches where they are answered. Windows: a minute, an hour, a day, in samples of 10 s, 10
// min and 1 h. Bounds: kItemsMax keys; an item whose day is over is forgotten, a newcomer beyond
// the bound is not counted. Thread: Sample on one timer; all else anywhere (a leaf mutex, never on
// a message's way but once per batch).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/ids.h"
#include "remoting/admin_bodies.h"

namespace triad::broker {

// Statistics by name; the key is a topic, or topic@group.
inline constexpr std::string_view kTopicPutNums = "TOPIC_PUT_NUMS";
inline constexpr std::string_view kTopicPutSize = "TOPIC_PUT_SIZE";
inline constexpr std::string_view kGroupGetNums = "GROUP_GET_NUMS";
inline constexpr std::string_view kGroupGetSize = "GROUP_GET_SIZE";

class BrokerStats {
 public:
  static constexpr std::size_t kItemsMax = 20000;

  // `cluster`: the key of BROKER_PUT_NUMS and BROKER_GET_NUMS. Counting begins at `now`.
  BrokerStats(std::string cluster, TimePoint now) : cluster_(std::move(cluster)), now_(now) {}

  // `leads`: this peer leads its group; otherwise another peer counts the same messages so.
  void NotePut(const Topic& topic, std::int64_t messages, std::int64_t bytes, bool leads = true);
  void NoteGet(const Topic& topic, const std::string& group, std::int64_t messages,
               std::int64_t bytes);
  void NoteSendBack(const Topic& topic, const std::string& group);

  // To be called about once a second.
  void Sample(TimePoint now);

  // What was counted since this process counts the key, by key.
  struct Total {
    std::string key;
    std::int64_t sum = 0;
    std::int64_t led = 0;  // of it, what came while this peer led
  };
  std::vector<Total> Totals(std::string_view name) const;

  static bool IsName(std::string_view name);  // a statistic that is kept here
  // nullopt: never counted. A rate is told over one sample's time at least, as the original
  // tells it: what came just now is not told as if it came all the time.
  std::optional<remoting::BrokerStatsData> Find(const std::string& name, const std::string& key,
                                                TimePoint now) const;
  // Per second of the last minute; 0: never counted.
  double MinuteRate(std::string_view name, const std::string& key, TimePoint now) const;

 private:
  struct Point {
    TimePoint at;
    std::int64_t sum = 0;
    std::int64_t times = 0;
  };
  struct Item {
    std::int64_t sum = 0;
    std::int64_t times = 0;
    std::int64_t led = 0;
    std::array<std::deque<Point>, 3> windows;  // minute, hour, day; oldest first
  };
  using Key = std::pair<std::string, std::string>;

  void Count(std::string_view name, const std::string& key, std::int64_t value, bool leads = true);
  static remoting::BrokerStatsItem Rate(const Item& item, std::size_t window, TimePoint now);

  const std::string cluster_;
  mutable std::mutex mutex_;
  std::map<Key, Item, std::less<>> items_;
  TimePoint now_;  // of the last Sample, or the beginning
  std::array<TimePoint, 3> sampled_;
};

}  // namespace triad::broker
