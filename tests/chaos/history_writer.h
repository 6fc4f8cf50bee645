// HistoryWriter: the history of a run, written while it happens.
//
// Begins are written before the request leaves, ends after the answer came; times are taken under
// one mutex, so that the lines are in the order of time. What another process saw comes in late,
// with its own times: SortHistory puts such a history in order. Thread: safe on every thread.

#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "tests/chaos/event.h"

namespace triad::chaos {

class HistoryWriter {
 public:
  static Result<std::unique_ptr<HistoryWriter>> Create(const std::string& path);
  ~HistoryWriter();  // closes the file
  HistoryWriter(const HistoryWriter&) = delete;
  HistoryWriter& operator=(const HistoryWriter&) = delete;

  // Fills id and time. Returns the id.
  std::int64_t Begin(Event event);
  // `end` has the outcome and what was answered.
  void End(std::int64_t id, Event end);
  // Something that is over when it is seen; ok unless it says otherwise.
  void Note(Event event);
  // An event of another process that has its own times; its ids are kept apart from ours.
  void Import(Event event);
  Status Flush();

  std::uint64_t acked();  // sends
  // When a send last ended well for the client for which that is longest ago, of those that ever
  // had one; 0 = nobody had.
  std::int64_t oldest_ack_ns();
  // Messages of `topic` that its group (kGroup) took at least once.
  std::uint64_t DeliveredOf(const std::string& topic);
  // Messages that `group` refused for the last time.
  std::uint64_t DeadOf(const std::string& group);

 private:
  explicit HistoryWriter(std::FILE* file) : file_(file) {}
  // With the mutex held.
  void Write(const Event& event);
  void Count(const Event& event);

  std::mutex mutex_;
  std::FILE* const file_;
  bool failed_ = false;
  std::int64_t next_id_ = 1;
  std::unordered_map<std::int64_t, std::string> sends_;  // running: whose
  std::map<std::string, std::int64_t> last_acks_ns_;     // of each client
  std::uint64_t acked_ = 0;
  struct Group {
    std::string topic;
    bool orderly = false;
    std::int64_t last_time = 0;  // of a message that is refused; 0 = not said
    std::unordered_set<std::string> taken, dead;
  };
  std::map<std::string, Group> groups_;
};

// Puts the lines of a history file into the order of time; lines of one moment stay as they are.
// Reads the whole file into memory.
Status SortHistory(const std::string& path);

// CLOCK_MONOTONIC.
std::int64_t NowNs();

}  // namespace triad::chaos
