// PulledOffsets: how far each group was served by this peer's pulls, per queue. With the consumed
// offset it tells what is in flight (GET_CONSUME_STATS, admin.md §2.6).
//
// Kept in memory only, like the original's: a peer that begins to lead knows nothing yet, and what
// was noted in another term does not count. Bounds: kQueuesMax; a newcomer beyond it is not noted
// unless what older terms left makes room. Thread: anywhere (a leaf mutex).

#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "common/ids.h"

namespace triad::broker {

class PulledOffsets {
 public:
  static constexpr std::size_t kQueuesMax = 100000;

  // The next pull of `group` begins at `next`; this peer is in `term`.
  void Note(std::string_view group, const TopicQueue& queue, QueueOffset next, Term term);
  // nullopt: nothing was pulled in `term`.
  std::optional<QueueOffset> Find(std::string_view group, const TopicQueue& queue, Term term) const;
  // Offsets were reset, or are gone.
  void ForgetGroup(std::string_view group);
  void ForgetTopic(const Topic& topic);
  void Forget(std::string_view group, const TopicQueue& queue);

 private:
  struct Pulled {
    QueueOffset next;
    Term term;
  };
  using Queues = std::map<TopicQueue, Pulled>;

  void DropOtherTerms(Term term);

  mutable std::mutex mutex_;
  std::map<std::string, Queues, std::less<>> groups_;
  std::size_t queues_ = 0;  // in all groups
};

}  // namespace triad::broker
