#include "common/nearest.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace triad {
namespace {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
std::size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u);
      cost[i][j] = std::min({change, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string NearestOf(const std::string& word, std::span<const std::string> known) {
  const std::string wanted = Lower(word);
  std::string nearest;
  std::size_t best = std::max<std::size_t>(1, word.size() / 5) + 1;  // farther is no help
  for (const std::string& one : known) {
    // At least as far as the lengths are apart.
    if (std::max(one.size(), wanted.size()) - std::min(one.size(), wanted.size()) >= best) continue;
    const std::size_t distance = EditDistance(wanted, Lower(one));
    if (distance >= best) continue;
    best = distance;
    nearest = one;
  }
  return nearest;
}

}  // namespace triad
