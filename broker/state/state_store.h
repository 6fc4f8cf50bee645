// StateStore: durable home of the replicated state: ordered keys to bytes, written in whole
// batches.
//
// LevelDbStateStore is production; MemoryStateStore (over a FileSystem) serves the one-thread
// simulator. Both pass the same contract tests. Owner: the apply thread. Errors: kCorruption,
// kIoError (fatal to the caller), kNoSpace.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"

namespace triad::broker {

struct StateBatch {
  std::vector<std::pair<std::string, std::string>> puts;
  std::vector<std::string> deletes;
};

// All records of one moment, in key order. May be used on another thread than the store's owner.
class StateRecords {
 public:
  virtual ~StateRecords() = default;
  // False at the end, and on an error. The views hold until the next call.
  virtual bool Next(std::string_view* key, std::string_view* value) = 0;
  virtual Status status() const = 0;
};

// Records that can be read again: each call begins anew.
using OpenRecords = std::function<std::unique_ptr<StateRecords>()>;

class StateStore {
 public:
  virtual ~StateStore() = default;
  // Calls `visit` for every record in key order.
  virtual Status ForEach(
      const std::function<void(std::string_view key, std::string_view value)>& visit) = 0;
  // As of now, whatever is written later. Gone before the store is.
  virtual Result<std::unique_ptr<StateRecords>> NewImage() = 0;
  // All or nothing, durable on return.
  virtual Status Write(const StateBatch& batch) = 0;
};

// `dir` is created when absent.
Result<std::unique_ptr<StateStore>> OpenLevelDbStateStore(const std::string& dir);

}  // namespace triad::broker
