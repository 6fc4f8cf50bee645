// ProcessQueue: the messages of one queue that were pulled and are not finished yet.
//
// Pure: the caller passes `now`. Thread: safe on every thread (leaf mutex). Bounds: Full tells the
// puller to stop; what one pull brought may go over the limit. The offset to commit is always the
// smallest one that is not finished. Source: wire.md §5.6, §7.7, §7.8.

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "triad/message.h"

namespace triad::client {

using Messages = std::vector<ReceivedMessage>;

class ProcessQueue {
 public:
  struct Limits {
    std::size_t max_messages = 1000;
    std::size_t max_bytes = 100u << 20;
    std::int64_t max_span = 2000;  // between the smallest and largest offset; 0 = any (orderly)
  };
  static constexpr std::chrono::milliseconds kLockValid{30000};  // wire.md §7.6

  ProcessQueue(MessageQueue queue, Limits limits) : queue_(std::move(queue)), limits_(limits) {}

  const MessageQueue& queue() const { return queue_; }

  // ---- both kinds
  bool Full() const;
  std::size_t cached_messages() const;
  // The queue left this consumer: nothing of it is consumed, committed or pulled any more.
  void Drop();
  bool dropped() const;
  void NotePull(TimePoint now);
  TimePoint last_pull() const;

  // ---- concurrently: the messages themselves are with the listeners' tasks
  void Track(const Messages& messages);
  // Takes finished messages out. The offset to commit; nullopt when nothing was left to take.
  std::optional<std::int64_t> Finish(const std::vector<std::int64_t>& offsets);

  // ---- orderly: one batch at a time
  void Add(Messages messages);
  // Up to `count` messages from the front, which stay counted until Commit or PutBack. Empty when
  // there is none; the caller then is no longer the consuming one (see Claim).
  Messages Take(std::size_t count);
  // The taken batch is done: the offset to commit.
  std::optional<std::int64_t> Commit();
  // The taken batch comes again, with the reconsume times that `batch` holds.
  void PutBack(Messages batch);
  // True for one caller at a time: it consumes until Take finds nothing, or Release.
  bool Claim(TimePoint now);
  void Release();
  // Release, and nobody claims it before `until`.
  void Pause(TimePoint until);
  // Waits until nobody consumes; false when somebody still does after `limit`.
  bool WaitIdle(std::chrono::milliseconds limit);

  // ---- queue lock
  void SetLocked(std::uint64_t fence_token, TimePoint now);
  void SetAlwaysLocked();  // broadcasting: nobody else consumes it
  void SetUnlocked();
  // Held, and the last confirmation is younger than kLockValid.
  bool HasLock(TimePoint now) const;
  std::uint64_t fence_token() const;

 private:
  const MessageQueue queue_;
  const Limits limits_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::map<std::int64_t, ReceivedMessage> waiting_;  // orderly: not taken yet
  std::map<std::int64_t, std::size_t> taken_;        // with a listener: offset -> bytes
  std::size_t bytes_ = 0;
  std::int64_t largest_ = -1;  // offset that was ever added
  bool dropped_ = false;
  bool claimed_ = false;
  TimePoint not_before_{};
  bool locked_ = false;
  bool always_locked_ = false;
  std::uint64_t fence_token_ = 0;
  TimePoint locked_at_{};
  TimePoint last_pull_{};
};
using ProcessQueuePtr = std::shared_ptr<ProcessQueue>;

}  // namespace triad::client
