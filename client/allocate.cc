#include "client/allocate.h"

#include <algorithm>

namespace triad::client {

std::vector<MessageQueue> AllocateAveragely(const std::vector<MessageQueue>& queues,
                                            const std::vector<std::string>& members,
                                            const std::string& self) {
  const auto place = std::find(members.begin(), members.end(), self);
  if (place == members.end() || queues.empty()) return {};
  const std::size_t index = static_cast<std::size_t>(place - members.begin());
  const std::size_t n = queues.size();
  const std::size_t k = members.size();
  const std::size_t mod = n % k;
  const bool one_more = mod > 0 && index < mod;
  const std::size_t size = n <= k ? 1 : (one_more ? n / k + 1 : n / k);
  const std::size_t start = one_more ? index * size : index * size + mod;
  if (start >= n) return {};
  const std::size_t end = std::min(start + size, n);
  return {queues.begin() + static_cast<std::ptrdiff_t>(start),
          queues.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace triad::client
