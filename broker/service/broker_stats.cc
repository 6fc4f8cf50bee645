#include "broker/service/broker_stats.h"

#include <algorithm>
#include <chrono>

namespace triad::broker {
namespace {

constexpr std::string_view kSendBackNums = "SNDBCK_PUT_NUMS";
constexpr std::string_view kBrokerPutNums = "BROKER_PUT_NUMS";
constexpr std::string_view kBrokerGetNums = "BROKER_GET_NUMS";

constexpr std::array<std::chrono::seconds, 3> kPeriods = {
    std::chrono::seconds(10), std::chrono::minutes(10), std::chrono::hours(1)};
constexpr std::array<std::size_t, 3> kPointsMax = {7, 7, 25};

}  // namespace

bool BrokerStats::IsName(std::string_view name) {
  const std::string_view names[] = {kTopicPutNums, kTopicPutSize,  kGroupGetNums, kGroupGetSize,
                                    kSendBackNums, kBrokerPutNums, kBrokerGetNums};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

void BrokerStats::NotePut(const Topic& topic, std::int64_t messages, std::int64_t bytes,
                          bool leads) {
  const std::lock_guard hold(mutex_);
  Count(kTopicPutNums, topic.value(), messages, leads);
  Count(kTopicPutSize, topic.value(), bytes, leads);
  Count(kBrokerPutNums, cluster_, messages);
}

void BrokerStats::NoteGet(const Topic& topic, const std::string& group, std::int64_t messages,
                          std::int64_t bytes) {
  const std::string key = topic.value() + "@" + group;
  const std::lock_guard hold(mutex_);
  Count(kGroupGetNums, key, messages);
  Count(kGroupGetSize, key, bytes);
  Count(kBrokerGetNums, cluster_, messages);
}

void BrokerStats::NoteSendBack(const Topic& topic, const std::string& group) {
  const std::string key = topic.value() + "@" + group;
  const std::lock_guard hold(mutex_);
  Count(kSendBackNums, key, 1);
}

void BrokerStats::Count(std::string_view name, const std::string& key, std::int64_t value,
                        bool leads) {
  auto found = items_.find(Key(name, key));
  if (found == items_.end()) {
    if (items_.size() >= kItemsMax) return;
    found = items_.emplace(Key(name, key), Item{}).first;
    for (auto& window : found->second.windows) window.push_back({now_, 0, 0});
  }
  found->second.sum += value;
  if (leads) found->second.led += value;
  ++found->second.times;
}

std::vector<BrokerStats::Total> BrokerStats::Totals(std::string_view name) const {
  std::vector<Total> totals;
  const std::lock_guard hold(mutex_);
  auto found = items_.lower_bound(Key(name, ""));
  for (; found != items_.end() && found->first.first == name; ++found) {
    totals.push_back({found->first.second, found->second.sum, found->second.led});
  }
  return totals;
}

void BrokerStats::Sample(TimePoint now) {
  const std::lock_guard hold(mutex_);
  now_ = now;
  for (std::size_t window = 0; window < kPeriods.size(); ++window) {
    if (now - sampled_[window] < kPeriods[window]) continue;
    sampled_[window] = now;
    for (auto& [key, item] : items_) {
      auto& points = item.windows[window];
      points.push_back({now, item.sum, item.times});
      if (points.size() > kPointsMax[window]) points.pop_front();
    }
    if (window + 1 < kPeriods.size()) continue;
    std::erase_if(items_, [](const auto& item) {
      const auto& day = item.second.windows.back();
      return day.size() == kPointsMax.back() && day.front().times == item.second.times;
    });
  }
}

remoting::BrokerStatsItem BrokerStats::Rate(const Item& item, std::size_t window, TimePoint now) {
  remoting::BrokerStatsItem rate;
  const Point& first = item.windows[window].front();
  const double seconds =
      std::chrono::duration<double>(std::max<TimePoint::duration>(now - first.at, kPeriods[window]))
          .count();
  rate.sum = item.sum - first.sum;
  const std::int64_t times = item.times - first.times;
  if (seconds > 0) rate.tps = static_cast<double>(rate.sum) / seconds;
  if (times > 0) rate.average_time = static_cast<double>(rate.sum) / static_cast<double>(times);
  return rate;
}

std::optional<remoting::BrokerStatsData> BrokerStats::Find(const std::string& name,
                                                           const std::string& key,
                                                           TimePoint now) const {
  const std::lock_guard hold(mutex_);
  const auto found = items_.find(Key(name, key));
  if (found == items_.end()) return std::nullopt;
  remoting::BrokerStatsData data;
  data.minute = Rate(found->second, 0, now);
  data.hour = Rate(found->second, 1, now);
  data.day = Rate(found->second, 2, now);
  return data;
}

double BrokerStats::MinuteRate(std::string_view name, const std::string& key, TimePoint now) const {
  const std::lock_guard hold(mutex_);
  const auto found = items_.find(Key(name, key));
  return found == items_.end() ? 0 : Rate(found->second, 0, now).tps;
}

}  // namespace triad::broker
