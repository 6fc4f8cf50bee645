// Numbers as mqadmin prints them.

#pragma once

#include <cstdio>
#include <string>

namespace triad::admin {

// With two digits behind the point.
inline std::string Decimal(double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

}  // namespace triad::admin
