// LogReader: the committed log as it stands on this peer's disk, in the words of the requests that
// compare peers (TRIAD_LOG_*).
//
// Thread: all of it may read files: reader threads only. Owns nothing. What it finds damaged here
// raises this peer's alarm, whoever asked.

#pragma once

#include <cstdint>
#include <string>

#include "broker/service/log_alarm.h"
#include "broker/store/message_store.h"
#include "remoting/bodies.h"

namespace triad::broker {

inline constexpr int kDigestPiecesMax = 1024;
inline constexpr std::int64_t kDigestBytesMax = 64 << 20;  // of one question
inline constexpr std::int64_t kRecordsBytesMax = 4 << 20;  // likewise

class LogReader {
 public:
  LogReader(MessageStore& store, LogAlarm& alarm) : store_(store), alarm_(alarm) {}

  struct Bounds {
    PhysicalOffset begin;
    PhysicalOffset end;  // behind what is known to be committed here
  };
  Bounds CommittedBounds() const;
  // [from, to) cut into `pieces` and to what is committed here; from = to: the bounds alone.
  // Errors: kInvalidArgument (limits above), as RawLog::Digest.
  Result<remoting::LogDigestBody> Digest(std::int64_t from, std::int64_t to, int pieces) const;
  // Errors: likewise, as RawLog::Records.
  Result<remoting::LogRecordsBody> Records(std::int64_t from, std::int64_t to) const;
  // The whole, checked entry that begins at `position`. Errors: kNotFound, kCorruption.
  Result<std::string> Entry(std::int64_t position, std::int64_t bytes) const;

 private:
  MessageStore& store_;
  LogAlarm& alarm_;
};

}  // namespace triad::broker
