// Replication bodies: what a broker peer tells about its replication group. This project's own.
//
// Pure values; Encode writes compact JSON, Decode is lenient and fails only on text that is no JSON
// object: kInvalidArgument. Described in docs/operations.md, "Requests of our own".

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "remoting/json.h"

namespace triad::remoting {

// The answer to TRIAD_GROUP_STATUS: one peer about itself and, when it leads, about the others.
struct GroupStatusBody {
  // A member of the group, as this peer sees it.
  struct Member {
    std::string client_address;  // empty = it never said hello to this peer
    bool connected = false;
    std::int64_t heard_ago_ms = -1;  // -1 = not since this peer's start
    std::string id;
    bool learner = false;
    std::string peer_address;
    bool recovering = false;
    // Known to the leader only, else -1. Bytes and ms are those of the oldest entry it lacks.
    std::int64_t lag_bytes = -1;
    std::int64_t lag_entries = -1;
    std::int64_t lag_ms = -1;
    bool operator==(const Member&) const = default;
    void WriteTo(JsonWriter* writer) const;
    static Member From(const Json& json);
  };

  // What it is
  std::string broker_name;
  std::string client_address;
  std::string cluster;
  std::string group;
  std::string peer;
  std::string version;
  // Its place in the group
  std::string leader;           // empty = unknown
  std::vector<Member> members;  // itself included
  bool ready = false;
  std::string reason;  // why it is not ready
  std::string role;    // leader, follower, candidate, learner, no member
  std::int64_t term = 0;
  // Its log
  std::int64_t applied_index = 0;
  std::int64_t begin_position = 0;
  std::int64_t commit_index = 0;
  std::int64_t end_position = 0;
  std::int64_t first_index = 0;
  std::int64_t last_index = 0;
  std::string log_alarm;  // what the comparison of logs found; empty = nothing
  // Its machine
  std::int64_t disk_free_bytes = 0;
  double disk_used_ratio = 0;
  std::int64_t loop_delay_max_us = 0;
  std::int64_t loop_delay_p99_us = 0;
  std::int64_t sync_count = 0;
  std::int64_t sync_max_us = 0;
  std::int64_t sync_p99_us = 0;
  bool operator==(const GroupStatusBody&) const = default;

  std::string Encode() const;
  static Result<GroupStatusBody> Decode(std::string_view body);
  void WriteTo(JsonWriter* writer) const;
  static GroupStatusBody From(const Json& json);
};

// The answer to TRIAD_LOG_DIGEST: hashes of stretches of the committed log, as they stand on the
// disk of one peer.
struct LogDigestBody {
  struct Piece {
    std::int64_t from = 0;
    std::string hash;
    std::int64_t to = 0;
    bool operator==(const Piece&) const = default;
    void WriteTo(JsonWriter* writer) const;
    static Piece From(const Json& json);
  };
  std::int64_t begin = 0;  // of the log that this peer keeps
  std::int64_t end = 0;    // behind what it knows to be committed
  std::vector<Piece> pieces;
  bool operator==(const LogDigestBody&) const = default;

  std::string Encode() const;
  static Result<LogDigestBody> Decode(std::string_view body);
  void WriteTo(JsonWriter* writer) const;
  static LogDigestBody From(const Json& json);
};

// The answer to TRIAD_LOG_RECORDS: the records of a stretch, as they stand on the disk of one peer.
struct LogRecordsBody {
  struct Record {
    std::int64_t bytes = 0;
    std::string damage;  // empty = its CRCs are right
    std::string hash;
    std::int64_t index = 0;  // 0 = its header cannot be read
    std::int64_t position = 0;
    std::int64_t term = 0;
    bool operator==(const Record&) const = default;
    void WriteTo(JsonWriter* writer) const;
    static Record From(const Json& json);
  };
  std::vector<Record> records;
  bool operator==(const LogRecordsBody&) const = default;

  std::string Encode() const;
  static Result<LogRecordsBody> Decode(std::string_view body);
  void WriteTo(JsonWriter* writer) const;
  static LogRecordsBody From(const Json& json);
};

}  // namespace triad::remoting
