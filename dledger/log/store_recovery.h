// StoreRecovery: what a start does with the files it finds: makes a new store, or finishes what was
// begun (a drop of old segments, an installed snapshot, a recorded cut), scans, judges the tail,
// cuts it if torn, and makes what is left durable for sure.
//
// Thread: the opening one. A crash at any of its operations leaves a store that it recovers alike.
// Source: testing.md rules F..J.

#pragma once

#include <memory>
#include <optional>

#include "common/file_system.h"
#include "common/status.h"
#include "dledger/log/entry_index.h"
#include "dledger/log/log_scan.h"
#include "dledger/log/log_store.h"
#include "dledger/log/segment_file.h"
#include "dledger/log/slot_files.h"

namespace triad::dledger {

// The files of an open store.
struct StoreFiles {
  SegmentMap segments;
  std::unique_ptr<VoteFile> vote;
  std::unique_ptr<SyncedFile> synced;
};

struct RecoveredStore {
  StoreFiles files;
  LogOutline outline;
  VoteRecord vote;                    // as saved again
  PhysicalOffset synced;              // everything before it is durable
  PhysicalOffset hint;                // was durable once; above `synced` only when damaged
  std::shared_ptr<SegmentFile> next;  // prepared behind the last one, or null
  // There is something behind the log's end that must stay until this peer is no longer
  // recovering: damaged or later entries.
  bool untrusted_remains = false;
};

// Makes the log empty, to begin at `base`; nothing that was there stays. Safe to repeat; a crash
// anywhere inside leaves the old log or the new, which a start finishes.
Status RestartLog(FileSystem& fs, const std::string& dir, const StoreBase& base, StoreFiles* files);

// Segments, vote and synced files of an empty store; the caller writes the stamp then.
Status MakeStoreFiles(FileSystem& fs, const std::string& dir);

class StoreRecovery {
 public:
  StoreRecovery(FileSystem& fs, const LogStoreOptions& options) : fs_(fs), options_(options) {}
  Result<RecoveredStore> Run();

 private:
  Status OpenFiles();
  Status FindBegin();
  Status FinishRecordedCut();
  void LoadCheckpoint();
  Status Judge();
  bool IsForeign() const;
  Status CutTornTail(const Remains& remains);
  Status MakeDurable();
  Status Rewrite(SegmentFile& segment, PhysicalOffset begin, PhysicalOffset end);
  Status DropSparePrepared();
  Status SaveVote();

  FileSystem& fs_;
  const LogStoreOptions& options_;
  RecoveredStore store_;
  PhysicalOffset hint_;
  std::optional<SyncWindow> window_;
  bool recovering_ = false;
  TailState state_ = TailState::kClean;
};

}  // namespace triad::dledger
