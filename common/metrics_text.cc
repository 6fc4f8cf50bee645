#include "common/metrics_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

namespace triad {
namespace {

// Bytes of the UTF-8 sequence that `text` begins with; 0: it begins with none.
std::size_t SequenceBytes(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  std::size_t bytes = 0;
  if (first >= 0xC2 && first <= 0xDF) bytes = 2;
  if (first >= 0xE0 && first <= 0xEF) bytes = 3;
  if (first >= 0xF0 && first <= 0xF4) bytes = 4;
  if (bytes == 0 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool is_overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool is_beyond = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return is_overlong || is_beyond ? 0 : bytes;
}

void AppendLabelValue(std::string_view value, std::string* out) {
  while (!value.empty()) {
    const std::size_t bytes = SequenceBytes(value);
    const std::string_view sequence = value.substr(0, std::max<std::size_t>(bytes, 1));
    value.remove_prefix(sequence.size());
    if (bytes == 0) {
      out->push_back('?');
    } else if (sequence == "\n") {
      out->append("\\n");
    } else {
      if (sequence == "\\" || sequence == "\"") out->push_back('\\');
      out->append(sequence);
    }
  }
}

void AppendLabel(std::string_view name, std::string_view value, std::string* out) {
  if (!out->empty() && out->back() != '{') out->push_back(',');
  out->append(name).append("=\"");
  AppendLabelValue(value, out);
  out->push_back('"');
}

void AppendHelp(std::string_view help, std::string* out) {
  for (const char c : help) {
    if (c == '\\') out->push_back('\\');
    out->append(c == '\n' ? std::string_view("\\n") : std::string_view(&c, 1));
  }
}

std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[64];
  // Bounds of ranges are compared as text: 0.0005, not 5e-04.
  const double size = std::abs(value);
  const bool is_short = size == 0 || (size >= 1e-6 && size < 1e15);
  const auto format = is_short ? std::chars_format::fixed : std::chars_format::scientific;
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, format);
  return error == std::errc() ? std::string(text, end) : std::string("NaN");
}

std::string_view TypeText(MetricsText::Type type) {
  switch (type) {
    case MetricsText::Type::kCounter: return "counter";
    case MetricsText::Type::kGauge: return "gauge";
    case MetricsText::Type::kHistogram: break;
  }
  return "histogram";
}

}  // namespace

MetricsText::MetricsText(std::vector<std::pair<std::string, std::string>> common,
                         std::size_t lines_max)
    : lines_max_(lines_max) {
  for (const auto& [name, value] : common) AppendLabel(name, value, &common_);
}

void MetricsText::Family(std::string_view name, Type type, std::string_view help) {
  name_ = name;
  head_ = "# HELP " + name_ + " ";
  AppendHelp(help, &head_);
  head_ += "\n# TYPE " + name_ + " " + std::string(TypeText(type)) + "\n";
}

bool MetricsText::Begin(std::size_t lines) {
  if (lines_max_ - lines_ < lines) {
    left_out_ += lines;
    return false;
  }
  lines_ += lines;
  text_ += std::exchange(head_, std::string());
  return true;
}

void MetricsText::Line(std::string_view suffix, Labels labels, std::string_view bound,
                       std::string_view value) {
  text_.append(name_).append(suffix);
  std::string all = "{" + common_;
  for (const auto& [name, text] : labels) AppendLabel(name, text, &all);
  if (!bound.empty()) AppendLabel("le", bound, &all);
  if (all.size() > 1) text_.append(all).push_back('}');
  text_.append(" ").append(value).push_back('\n');
}

void MetricsText::AddText(Labels labels, std::string_view value) {
  if (Begin(1)) Line("", labels, "", value);
}

void MetricsText::Add(Labels labels, double value) {
  AddText(labels, NumberText(value));
}

void MetricsText::AddHistogram(Labels labels, const FixedHistogram::Reading& reading,
                               double per_unit) {
  if (!Begin(reading.counts.size() + 2)) return;
  std::uint64_t upto = 0;
  for (std::size_t i = 0; i < reading.counts.size(); ++i) {
    upto += reading.counts[i];
    const bool is_last = i == reading.bounds.size();
    const std::string bound =
        is_last ? "+Inf" : NumberText(static_cast<double>(reading.bounds[i]) / per_unit);
    Line("_bucket", labels, bound, std::to_string(upto));
  }
  Line("_sum", labels, "", NumberText(static_cast<double>(reading.sum) / per_unit));
  Line("_count", labels, "", std::to_string(upto));
}

std::string MetricsText::Take() {
  Family("triad_metrics_lines_left_out", Type::kGauge,
         "Lines that this page has no room for: the last families are not whole");
  text_ += head_;
  Line("", {}, "", std::to_string(left_out_));
  return std::move(text_);
}

}  // namespace triad
