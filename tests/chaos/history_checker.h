// HistoryChecker: a whole history in, a Verdict out.
//
// Lines come in the order of time; begins and ends are joined here. Pure but for the time limit per
// object. Size: see MessageChecker and ObjectChecker, and one Event per operation that is running.

#pragma once

#include <chrono>
#include <cstdint>
#include <istream>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/chaos/event.h"
#include "tests/chaos/message_checker.h"
#include "tests/chaos/object_checker.h"
#include "tests/chaos/verdict.h"

namespace triad::chaos {

class HistoryChecker {
 public:
  explicit HistoryChecker(std::chrono::milliseconds limit_per_key = std::chrono::seconds(60));
  HistoryChecker(const HistoryChecker&) = delete;
  HistoryChecker& operator=(const HistoryChecker&) = delete;

  // Errors: kInvalidArgument with the line's number: the history itself is not as it must be.
  Status Add(std::string_view line);
  const Verdict& Finish();

 private:
  struct Running {
    Event begun;
    std::uint64_t line = 0;
  };

  Status Begin(const Event& event);
  Status End(const Event& begun, const Event& end);
  void TrackFailover(const Event& begun, const Event& end);

  Verdict verdict_;
  MessageChecker messages_;
  ObjectChecker objects_;
  std::uint64_t line_ = 0;
  std::int64_t now_ns_ = 0;
  std::unordered_map<std::int64_t, Running> running_;
  std::vector<std::int64_t> open_faults_ns_;  // of the leader, nothing acknowledged since
  std::vector<std::int64_t> faults_ns_;       // of the leader, all
  std::unordered_map<std::string, std::size_t> client_faults_;  // how many each client got over
};

// Errors: kInvalidArgument, kIoError.
Result<Verdict> CheckHistory(std::istream& history,
                             std::chrono::milliseconds limit_per_key = std::chrono::seconds(60));

}  // namespace triad::chaos
