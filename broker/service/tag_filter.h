// TagFilter: which messages a subscription by tags lets through, judged by the index alone.
//
// Two tags may share a hash code; the client's own comparison removes the stranger. Pure. Source:
// wire.md §5.10.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace triad::broker {

class TagFilter {
 public:
  TagFilter() = default;  // lets everything through

  // "*" or "": everything; "A || B": these tags. Errors: kInvalidArgument when no tag is left.
  static Result<TagFilter> Parse(std::string_view expression);

  bool Matches(std::int64_t tag_code) const;
  bool matches_all() const { return codes_.empty(); }

 private:
  std::vector<std::int64_t> codes_;  // few; empty: everything
};

}  // namespace triad::broker
