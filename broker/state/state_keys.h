// Keys of the replicated state's records in the StateStore.
//
// Pure. One letter says the kind; names inside a key carry their length, so no name can imitate
// another key. Values are the messages of state.proto, or plain big-endian integers where said.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "broker/state/replicated_state.h"

namespace triad::broker {

inline constexpr std::string_view kAppliedKey = "applied";  // AppliedRecord
inline constexpr std::string_view kFlushPrefix = "flush/";  // + 20 digits: empty
inline constexpr std::string_view kExtraPrefix = "x/";      // + name: the caller's
// Of the last installed image: each of its batches (+ 20 digits: empty), and which there are.
inline constexpr std::string_view kInstallPrefix = "x/install/";
inline constexpr std::string_view kInstalledKey = "x/installed";  // InstalledRecord
inline constexpr std::string_view kDelayLevelsKey = "levels";     // the table's text
inline constexpr char kTopicKind = 'T';                           // TopicConfig
inline constexpr char kGroupKind = 'G';                           // GroupConfig
inline constexpr char kOffsetKind = 'O';                          // OffsetRecord
inline constexpr char kLockKind = 'L';                            // LockRecord
inline constexpr char kNextOffsetKind = 'N';                      // i64
inline constexpr char kDelayKind = 'D';                           // i64
inline constexpr char kSendBackKind = 'S';                        // i64, log time of the mark
inline constexpr char kDlqKind = 'Q';                             // DlqRecord
inline constexpr char kDedupKind = 'U';                           // DedupRecord
inline constexpr char kSettingKind = 'C';                         // the value's text

std::string FlushKey(std::uint64_t number);
std::string InstallKey(std::uint64_t number);
std::string TopicKey(const Topic& topic);
std::string GroupKey(const GroupName& group);
std::string OffsetKey(const GroupQueue& key);
std::string LockKey(const GroupQueue& key);
std::string NextOffsetKey(const TopicQueue& queue);
std::string DelayKey(std::int32_t level);
std::string SendBackKey(const GroupName& group, PhysicalOffset offset);
std::string DlqKey(const GroupName& group, QueueId queue);
std::string DedupKey(std::string_view topic, std::string_view key);
std::string SettingKey(std::string_view name);

// The other way; each takes a whole key of its kind. Errors: kCorruption.
Result<std::uint64_t> ParseFlushKey(std::string_view key);
Result<std::uint64_t> ParseInstallKey(std::string_view key);
Result<GroupQueue> ParseGroupQueueKey(std::string_view key);
Result<TopicQueue> ParseNextOffsetKey(std::string_view key);
Result<std::int32_t> ParseDelayKey(std::string_view key);
Result<std::pair<GroupName, PhysicalOffset>> ParseSendBackKey(std::string_view key);
Result<std::pair<GroupName, QueueId>> ParseDlqKey(std::string_view key);
Result<std::pair<std::string, std::string>> ParseDedupKey(std::string_view key);  // topic, key

}  // namespace triad::broker
