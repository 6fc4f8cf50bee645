#include "broker/store/delay_levels.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

namespace triad::broker {
namespace {

constexpr std::int64_t kAmountMax = 10000000;  // of any unit; keeps due times far from overflow

std::optional<std::chrono::milliseconds> UnitOf(char unit) {
  switch (unit) {
    case 's': return std::chrono::seconds(1);
    case 'm': return std::chrono::minutes(1);
    case 'h': return std::chrono::hours(1);
    case 'd': return std::chrono::days(1);
    default: return std::nullopt;
  }
}

std::optional<std::chrono::milliseconds> ParseDelay(std::string_view word) {
  const std::optional<std::chrono::milliseconds> unit = UnitOf(word.back());
  std::int64_t amount = 0;
  const char* const end = word.data() + word.size() - 1;
  const auto [parsed_to, error] = std::from_chars(word.data(), end, amount);
  if (!unit.has_value() || error != std::errc() || parsed_to != end || amount < 0 ||
      amount > kAmountMax) {
    return std::nullopt;
  }
  return amount * *unit;
}

}  // namespace

DelayLevels::DelayLevels() : DelayLevels(Parse(kDefaultDelayLevels).value()) {}

DelayLevels::DelayLevels(std::vector<std::chrono::milliseconds> delays)
    : delays_(std::move(delays)) {}

Result<DelayLevels> DelayLevels::Parse(std::string_view text) {
  std::vector<std::chrono::milliseconds> delays;
  while (true) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(" \t"));
    text.remove_prefix(word.size());
    const std::optional<std::chrono::milliseconds> delay = ParseDelay(word);
    if (!delay.has_value()) {
      return Status::InvalidArgument("delay level " + std::to_string(delays.size() + 1) + ": '" +
                                     std::string(word) + "' is not a number with s, m, h or d");
    }
    delays.push_back(*delay);
  }
  if (delays.empty() || delays.size() > kDelayLevelsMax) {
    return Status::InvalidArgument("1 to " + std::to_string(kDelayLevelsMax) +
                                   " delay levels are needed");
  }
  return DelayLevels(std::move(delays));
}

std::chrono::milliseconds DelayLevels::DelayOf(std::int32_t level) const {
  if (level < 1) return std::chrono::milliseconds(0);
  return delays_[static_cast<std::size_t>(std::min(level, max_level())) - 1];
}

}  // namespace triad::broker
