// The replicated state's records as C++ values: conversions to and from the bytes of state.proto.
//
// Pure. Their .cc, together with the command's codec, is the only one that sees generated code.
// Errors of every Decode: kCorruption.

#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "broker/state/replicated_state.h"

namespace triad::broker {

struct AppliedRecord {
  LogIndex index;
  Term term;
  PhysicalOffset end_position;
  std::int64_t store_time_ms = 0;
  std::uint64_t flush_number = 0;
  DataVersion data_version;
  std::uint64_t next_fence_token = 1;
};
struct OffsetRecord {
  QueueOffset offset;
  std::uint64_t fence_token = 0;
};
struct LockRecord {
  ClientId client;  // empty = released
  std::uint64_t token = 0;
};

struct DlqRecord {
  QueueOffset floor;            // everything below it is settled
  std::set<QueueOffset> above;  // settled too
};
// The numbers of the batches in which the last image of another peer's state was written.
struct InstalledRecord {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

std::string EncodeTopic(const TopicConfig& topic);
Result<TopicConfig> DecodeTopic(std::string_view bytes);
std::string EncodeGroup(const GroupConfig& group);
Result<GroupConfig> DecodeGroup(std::string_view bytes);
std::string EncodeApplied(const AppliedRecord& record);
Result<AppliedRecord> DecodeApplied(std::string_view bytes);
std::string EncodeOffset(const OffsetRecord& record);
Result<OffsetRecord> DecodeOffset(std::string_view bytes);
std::string EncodeLock(const LockRecord& record);
Result<LockRecord> DecodeLock(std::string_view bytes);
std::string EncodeDlq(const DlqRecord& record);
Result<DlqRecord> DecodeDlq(std::string_view bytes);
std::string EncodeKey(const DedupRecord& record);
Result<DedupRecord> DecodeKey(std::string_view bytes);
std::string EncodeInstalled(const InstalledRecord& record);  // big-endian, as are the next
Result<InstalledRecord> DecodeInstalled(std::string_view bytes);
std::string EncodeInt64(std::int64_t value);  // big-endian
Result<std::int64_t> DecodeInt64(std::string_view bytes);

}  // namespace triad::broker
