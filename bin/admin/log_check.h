// LogCheck: compares the committed logs of a group's peers, and has damaged records replaced.
//
// Asks every peer for hashes of the same stretches, goes down to the records where they differ, and
// lets the CRCs (then the majority) say who is right. Blocking. Thread: main.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bin/admin/peers.h"
#include "remoting/bodies.h"

namespace triad::admin {

// One record that is not the same everywhere.
struct LogDifference {
  using Record = remoting::LogRecordsBody::Record;

  std::int64_t position = 0;
  std::int64_t bytes = 0;              // as the right ones have it
  std::int64_t index = 0;              // likewise
  std::map<std::string, Record> here;  // peer id -> what stands there (bytes 0: nothing)
  std::vector<std::string> right;      // peers that agree and whose CRCs are right; empty: unclear
  bool IsRight(const std::string& peer) const;
};

class LogCheck {
 public:
  // `group` outlives it.
  LogCheck(const GroupView& group, Session* session) : group_(group), session_(session) {}

  // What can be compared: kept and committed at every peer that answers. Errors: kUnavailable
  // (fewer than two answer).
  struct Bounds {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::vector<std::string> peers;     // that are compared
    std::vector<std::string> left_out;  // with the reason
  };
  Result<Bounds> FindBounds();

  // Calls `progress` with the position reached. Errors: kUnavailable, kTimedOut (a peer went away).
  Result<std::vector<LogDifference>> Compare(std::int64_t from, std::int64_t to,
                                             std::int64_t bytes_per_second,
                                             const std::function<void(std::int64_t)>& progress);
  // Replaces every damaged copy of this record. Errors: kInvalidArgument (nobody is right, or a
  // wrong copy's CRCs are right too), and what the peer says.
  Status Repair(const LogDifference& difference);

 private:
  Result<std::string> Ask(const std::string& peer, int code,
                          const std::map<std::string, std::string>& fields);
  Result<bool> IsSame(std::int64_t from, std::int64_t to,
                      std::vector<remoting::LogDigestBody::Piece>* differing, int pieces);
  Status Records(std::int64_t from, std::int64_t to, std::vector<LogDifference>* found);

  const GroupView& group_;
  Session* const session_;
  std::vector<std::string> peers_;
};

}  // namespace triad::admin
