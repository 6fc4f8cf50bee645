// A LevelDB state store on a disk and with sizes that a test chooses. Everybody else:
// OpenLevelDbStateStore (state_store.h).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "broker/state/state_store.h"
#include "common/file_system.h"

namespace leveldb {
class Env;
}

namespace triad::broker {

struct LevelDbGround {
  FileSystem* fs = &PosixFileSystem();  // the one that `env` writes to; both outlive the store
  leveldb::Env* env = nullptr;          // null: LevelDB's own
  std::uint64_t room_bytes = 8u << 20;  // for a batch and the compaction it may start
  // Small: at most kFlushRecordsKept batches then stand in LevelDB's own log, so every one it could
  // skip at recovery is missed (replicated_state.cc).
  std::size_t write_buffer_bytes = 1u << 20;
};

Result<std::unique_ptr<StateStore>> OpenLevelDb(const LevelDbGround& ground,
                                                const std::string& dir);

}  // namespace triad::broker
