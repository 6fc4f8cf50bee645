#include "broker/service/tag_filter.h"

#include <algorithm>
#include <string>

#include "broker/store/message.h"

namespace triad::broker {
namespace {

constexpr std::string_view kOr = "||";

std::string_view Trim(std::string_view text) {
  static constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t from = text.find_first_not_of(kBlanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kBlanks) - from + 1);
}

}  // namespace

Result<TagFilter> TagFilter::Parse(std::string_view expression) {
  TagFilter filter;
  if (expression.empty() || expression == "*") return filter;
  std::string_view rest = expression;
  while (!rest.empty()) {
    const std::size_t end = rest.find(kOr);
    const std::string_view tag = Trim(rest.substr(0, end));
    if (!tag.empty()) filter.codes_.push_back(TagCode(tag));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + kOr.size());
  }
  if (filter.codes_.empty()) {
    return Status::InvalidArgument("the expression '" + std::string(expression.substr(0, 100)) +
                                   "' names no tag");
  }
  return filter;
}

bool TagFilter::Matches(std::int64_t tag_code) const {
  return codes_.empty() || std::ranges::find(codes_, tag_code) != codes_.end();
}

}  // namespace triad::broker
