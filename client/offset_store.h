// OffsetStore: how far a consumer is in each of its queues, and what of that is known elsewhere.
//
// Pure: whoever commits takes Uncommitted() and reports Committed(). Thread: safe on every thread
// (leaf mutex). Bounds: the queues assigned. Source: wire.md §6.

#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"
#include "triad/message.h"

namespace triad::client {

class OffsetStore {
 public:
  // The start of a queue: what is stored on the broker already.
  void Begin(const MessageQueue& queue, std::int64_t offset, bool stored);
  // The next offset to consume. `only_forward`: a smaller one is ignored. Unknown queues are
  // ignored: their consumer has lost them.
  void Update(const MessageQueue& queue, std::int64_t offset, bool only_forward);
  std::optional<std::int64_t> Find(const MessageQueue& queue) const;

  // What differs from what was committed.
  std::map<MessageQueue, std::int64_t> Uncommitted() const;
  std::optional<std::int64_t> Uncommitted(const MessageQueue& queue) const;
  void Committed(const MessageQueue& queue, std::int64_t offset);
  void Remove(const MessageQueue& queue);

  // As a file, for broadcasting. Load errors: kCorruption.
  std::string Encode() const;
  static Result<std::map<MessageQueue, std::int64_t>> Decode(std::string_view text);

 private:
  struct Entry {
    std::int64_t offset = 0;
    std::int64_t committed = -1;
  };
  mutable std::mutex mutex_;
  std::map<MessageQueue, Entry> entries_;
};

}  // namespace triad::client
