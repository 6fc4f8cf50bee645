// NearestOf: what somebody who made a typing mistake may have meant. Pure.

#pragma once

#include <span>
#include <string>

namespace triad {

std::string Lower(std::string text);  // ASCII letters only

// Case does not count. The first of those nearest to `word`; "" when none is near.
std::string NearestOf(const std::string& word, std::span<const std::string> known);

}  // namespace triad
