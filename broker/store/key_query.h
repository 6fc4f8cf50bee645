// A query by key: what the key index points to, compared with the messages themselves.
//
// Semantics: admin.md §8.2, made exact: the message must carry the key, and its store time must lie
// in the range. The newest messages are taken, and given oldest first. Thread: reader threads.
// Bounds: kQueryMessagesMax messages, kQueryBytesMax bytes (a client takes frames of 16 MiB),
// kQueryCandidatesMax messages looked at.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "broker/store/key_index.h"
#include "broker/store/message.h"
#include "common/ids.h"
#include "common/status.h"
#include "dledger/raft/entry.h"

namespace triad::broker {

inline constexpr std::size_t kQueryMessagesMax = 64;  // maxMsgsNumBatch
inline constexpr std::size_t kQueryBytesMax = 12u << 20;
inline constexpr std::size_t kQueryCandidatesMax = 4096;

// The entry that holds a message, and the message in it. Keeps the bytes alive.
struct LoadedMessage {
  dledger::EntryRef entry;
  std::string_view record;
};

struct KeyQuery {
  Topic topic;
  std::string key;
  bool unique_only = false;  // else also a part of KEYS
  std::size_t messages_max = kQueryMessagesMax;
  KeyIndex::TimeRange times;
  PhysicalOffset topic_begin;  // messages in front of it belong to an older topic of that name
  PhysicalOffset applied_end{INT64_MAX};  // messages behind it are not yet to be seen
};

// `read` loads a message by its position; kNotFound: retention dropped it. Errors: those of `read`
// and of the index.
Result<std::vector<LoadedMessage>> FindByKey(
    const KeyIndex& index, const KeyQuery& query,
    const std::function<Result<LoadedMessage>(PhysicalOffset)>& read);

}  // namespace triad::broker
