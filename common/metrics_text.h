// MetricsText: a page of metrics in Prometheus' text format 0.0.4.
//
// Pure. Owner: one thread. Family by family, each with all its samples; a family without samples
// leaves nothing. Bounds: lines_max lines of samples; what comes behind them is counted, not
// written, and the page says how many. Label values may be any bytes: the format wants UTF-8, what
// is none becomes '?'.

#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fixed_histogram.h"

namespace triad {

class MetricsText {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  enum class Type { kCounter, kGauge, kHistogram };

  // `common`: labels of every sample, in front of its own.
  MetricsText(std::vector<std::pair<std::string, std::string>> common, std::size_t lines_max);

  // The samples that follow belong to `name`. Once per name.
  void Family(std::string_view name, Type type, std::string_view help);
  template <std::integral Number>
  void Add(Labels labels, Number value) {
    AddText(labels, std::to_string(value));
  }
  void Add(Labels labels, double value);
  // All lines of a histogram, or none. What was recorded, divided by `per_unit`, is exported.
  void AddHistogram(Labels labels, const FixedHistogram::Reading& reading, double per_unit);

  std::size_t left_out() const { return left_out_; }
  // The page. With it ends the object's use.
  std::string Take();

 private:
  void AddText(Labels labels, std::string_view value);
  // Room for so many lines? If not they are counted as left out.
  bool Begin(std::size_t lines);
  void Line(std::string_view suffix, Labels labels, std::string_view bound, std::string_view value);

  std::string common_;  // `name="value"` joined with commas
  const std::size_t lines_max_;
  std::size_t lines_ = 0;
  std::size_t left_out_ = 0;
  std::string name_;
  std::string head_;  // of the family; empty: written
  std::string text_;
};

}  // namespace triad
