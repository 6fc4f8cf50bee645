#include "dledger/disk_writer.h"

#include "common/mutant.h"

namespace triad::dledger {

Status DiskWriter::Write(std::span<const StorageOp> ops) {
  for (const StorageOp& op : ops) TRIAD_RETURN_IF_ERROR(WriteOne(op));
  return WriteCollected();
}

Status DiskWriter::WriteOne(const StorageOp& op) {
  if (op.hard_state) {
    TRIAD_RETURN_IF_ERROR(WriteCollected());
    TRIAD_RETURN_IF_ERROR(log_.SaveHardState(*op.hard_state));
  }
  if (op.recovering && *op.recovering) TRIAD_RETURN_IF_ERROR(log_.SaveRecovering(true));
  if (op.truncate_from) {
    TRIAD_RETURN_IF_ERROR(WriteCollected());
    TRIAD_RETURN_IF_ERROR(log_.Cut(*op.truncate_from));
    is_dirty_ = false;
  }
  if (op.reset) {
    TRIAD_RETURN_IF_ERROR(WriteCollected());
    TRIAD_RETURN_IF_ERROR(on_reset_());
    is_dirty_ = false;
  }
  collected_.insert(collected_.end(), op.append.begin(), op.append.end());
  if (op.recovering && !*op.recovering) {
    // The mark may go only when what it speaks of is on the disk.
    TRIAD_RETURN_IF_ERROR(WriteCollected());
    TRIAD_RETURN_IF_ERROR(Sync());
    TRIAD_RETURN_IF_ERROR(log_.SaveRecovering(false));
  }
  return {};
}

Status DiskWriter::WriteCollected() {
  if (collected_.empty()) return {};
  TRIAD_RETURN_IF_ERROR(log_.Append(collected_));
  collected_.clear();
  is_dirty_ = true;
  return {};
}

Status DiskWriter::Sync() {
  if (!is_dirty_) return {};
  const Status synced = TRIAD_MUTANT(37) ? Status::Ok() : log_.Sync();
  if (!synced.ok() && !TRIAD_MUTANT(15)) return synced;
  is_dirty_ = false;
  return {};
}

}  // namespace triad::dledger
