// KvConfig: settings by namespace and key that outlive the process (order topics live here).
//
// Kept in memory, written whole to one JSON file after every change. A change counts once the file
// is on the disk; a failed write changes nothing. Threads: Put and Delete on one thread (they wait
// for the disk), reads on any; the lock guards the map only, never the file.
// Bounds: kMaxKvBytes for all keys and values together. Source: wire.md §3.5.

#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "common/file_system.h"
#include "common/status.h"

namespace triad::nameserver {

inline constexpr const char* kOrderTopicNamespace = "ORDER_TOPIC_CONFIG";
inline constexpr std::size_t kMaxKvBytes = 8u << 20;

using KvTable = std::map<std::string, std::string>;

class KvConfig {
 public:
  KvConfig(FileSystem& file_system, std::string path);

  // Reads the file; an absent one is an empty table. Errors: kCorruption naming the file.
  Status Load();

  // Errors: kInvalidArgument (empty namespace or key; an order value that clients cannot read),
  // kBusy (kMaxKvBytes), kIoError / kNoSpace.
  Status Put(const std::string& name_space, const std::string& key, const std::string& value);
  Status Delete(const std::string& name_space, const std::string& key);

  std::optional<std::string> Get(const std::string& name_space, const std::string& key) const;
  std::optional<KvTable> List(const std::string& name_space) const;

 private:
  using Tables = std::map<std::string, KvTable>;

  Status Replace(Tables tables);

  FileSystem& file_system_;
  const std::string path_;
  mutable std::mutex mutex_;
  Tables tables_;
};

// "broker-a:4;broker-b:4": how many queues of an ordered topic each broker has.
bool IsOrderTopicValue(const std::string& value);

}  // namespace triad::nameserver
