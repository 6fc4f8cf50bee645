#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/mutant.h"
#include "dledger/raft/parts.h"

namespace triad::dledger {

void Core::Parts::OnSnapshotSent(const SnapshotSent& input) {
  if (role != Role::kLeader || input.term != hard.term) return;
  Progress* peer = replication.Find(input.peer);
  if (peer == nullptr) return;
  replication.SnapshotDone(*peer, input, log);
  replication.SendEntries(*peer, leader_state(), out);
}

// A snapshot helps only a log that lacks the entry before its base and everything from there on.
// Whoever holds that entry may have acknowledged, and made others count on, what comes behind it.
bool Core::Parts::HasUseFor(const InstallSnapshot& snapshot) const {
  const LogIndex before = snapshot.base.first_index - 1;
  if (role == Role::kLeader || snapshot.base.first_index <= LogIndex{1}) return false;
  if (snapshot.base.term == Term{0} || snapshot.applied < before) return false;
  if (!IsWellFormed(snapshot.base.membership)) return false;
  if (TRIAD_MUTANT(19)) return true;
  if (before <= commit) return false;
  return !(log.KnowsTermAt(before) && log.TermAt(before) == snapshot.base.term);
}

void Core::Parts::OnInstallSnapshot(const InstallSnapshot& input) {
  if (!HasUseFor(input)) {
    out->snapshot_refused = true;
    return;
  }
  // A candidate has told others of a log that goes now. And nobody's log is ahead of his term.
  const bool is_behind = input.base.term > hard.term;
  if (is_behind || role != Role::kFollower) {
    BecomeFollower(std::max(hard.term, input.base.term), PeerId());
  }
  follower.Reset();
  log.Reset(input.base.first_index, input.base.term);
  members.Reset(input.base.membership);
  commit = log.last();
  announced = TRIAD_MUTANT(19) ? commit : std::max(announced, commit);
  storage.ResetLog(input.base, out);
}

void Core::Parts::OnPurged(const Purged& input) {
  if (input.first_index <= log.first()) return;  // a snapshot was installed meanwhile
  CHECK(input.first_index <= commit + 1);
  CHECK(input.first_index <= storage.durable_index() + 1);
  log.PurgeBefore(input.first_index);
  members.PurgeBefore(input.first_index);
}

}  // namespace triad::dledger
