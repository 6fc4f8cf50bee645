// DedupTable: the keys of a topic's recent messages, and where the first message of each stands.
//
// Pure. Serves topics with the attribute dedup=uniqKey|keys: a send with a known key is answered
// with the first one's result. Kept in the order of the log. Bounds: keys_max keys (when full the
// oldest go) of at most kDedupKeyBytesMax bytes; about 200 bytes each. Source: issue "idempotent
// sends", docs/operations.md.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/ids.h"
#include "common/status.h"

namespace triad::broker {

inline constexpr std::string_view kDedupAttribute = "dedup";
inline constexpr std::string_view kDedupWindowAttribute = "dedupWindowSec";
inline constexpr std::size_t kDedupKeysMax = 1000000;  // per topic
inline constexpr std::size_t kDedupKeyBytesMax = 128;

// What makes two sends of a topic the same send.
enum class DedupMode { kNone, kUniqKey, kKeys };
struct DedupRule {
  DedupMode mode = DedupMode::kNone;
  std::int64_t window_ms = 600 * 1000;
  bool operator==(const DedupRule&) const = default;
};
// The rule in a topic's attributes; kNone without one, or when it does not parse.
DedupRule DedupRuleOf(const std::map<std::string, std::string>& attributes);
// Errors: kInvalidArgument saying what the attribute's values are. OK for any other attribute.
Status CheckDedupAttribute(const std::string& name, const std::string& value);

// The first message with a key.
struct DedupRecord {
  QueueId queue_id;  // as its sender was told: of a delayed message its target's
  QueueOffset queue_offset;
  PhysicalOffset physical_offset;
  std::int64_t store_time_ms = 0;
  bool operator==(const DedupRecord&) const = default;
};

class DedupTable {
 public:
  explicit DedupTable(std::size_t keys_max) : keys_max_(keys_max) {}
  DedupTable(const DedupTable&) = delete;
  DedupTable& operator=(const DedupTable&) = delete;

  using OnGone = std::function<void(const std::string& key)>;

  const DedupRecord* Find(std::string_view key) const;
  // Records come in log order; one of a known key takes its place. `gone`: what had to go for it.
  void Put(const std::string& key, const DedupRecord& record, const OnGone& gone);
  // At the start: records in any order, then FinishLoad.
  void Load(std::string key, const DedupRecord& record);
  // What was loaded stands in log order; of more than keys_max the oldest go.
  void FinishLoad();
  // Drops what was stored at `until_ms` or earlier.
  void Expire(std::int64_t until_ms, const OnGone& gone);
  void Clear(const OnGone& gone);

  std::size_t size() const { return by_key_.size(); }
  std::uint64_t evicted() const { return evicted_; }  // went before their time, since the start

 private:
  struct Item {
    std::string key;
    DedupRecord record;
  };
  void DropOldest(const OnGone& gone);

  const std::size_t keys_max_;
  std::uint64_t evicted_ = 0;
  std::list<Item> items_;                                                   // oldest first
  std::unordered_map<std::string_view, std::list<Item>::iterator> by_key_;  // views of items' keys
};

}  // namespace triad::broker
