#include "broker/service/counters.h"

#include <cstdio>

namespace triad::broker {
namespace {

constexpr std::size_t kWindowPointsMax = 601;

}  // namespace

void RateWindow::Sample(TimePoint now, std::int64_t total) {
  const std::lock_guard lock(mutex_);
  points_.push_back({now, total});
  if (points_.size() > kWindowPointsMax) points_.pop_front();
}

std::string RateWindow::Text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const std::size_t seconds : {10u, 60u, 600u}) {
    double rate = 0;
    if (points_.size() > 1) {
      const std::size_t back = std::min<std::size_t>(seconds, points_.size() - 1);
      const Point& old = points_[points_.size() - 1 - back];
      const Point& last = points_.back();
      const double elapsed = std::chrono::duration<double>(last.at - old.at).count();
      if (elapsed > 0) rate = static_cast<double>(last.total - old.total) / elapsed;
    }
    char number[64];
    std::snprintf(number, sizeof number, "%s%.6g", text.empty() ? "" : " ", rate);
    text += number;
  }
  return text;
}

}  // namespace triad::broker
