#include "common/clock.h"

namespace triad {
namespace {

class MachineClock final : public Clock {
 public:
  TimePoint MonoNow() const override {
    return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now());
  }
  std::int64_t WallNowMs() const override {
    const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
  }
};

}  // namespace

const Clock& SystemClock() {
  static const MachineClock clock;
  return clock;
}

}  // namespace triad
