// UnsyncedStart: who goes on with the log it has when reboots under ASYNC_FLUSH hit a majority.
//
// Pure. Owner: the log thread. A peer whose machine was restarted may miss acknowledged entries, so
// it recovers from the others. When those that miss nothing are no majority, waiting is in vain: as
// many rebooted peers as a majority lacks go on, the longest logs first; all others recover from
// them. Terms and votes were synced, so that elections stay sound; acknowledged messages may be
// missing, which ASYNC_FLUSH allows. Everybody who has all answers picks the same peers.
// Source: architecture.md §3, "Durability".

#pragma once

#include <map>
#include <vector>

#include "common/ids.h"

namespace triad::dledger {

class UnsyncedStart {
 public:
  enum class Decision { kWait, kGoOn, kRecover };
  struct Answer {
    bool is_whole = false;       // has a log and misses nothing
    bool lost_unsynced = false;  // as this peer
    Term last_term;
    LogIndex last_index;
  };

  // `voters` with self, which lost its un-synced entries and has the log end of `own`.
  UnsyncedStart(PeerId self, const std::vector<PeerId>& voters, const Answer& own);

  void OnAnswer(const PeerId& peer, const Answer& answer);
  // `was_patient`: peers that have not answered are given up, if a majority has.
  Decision decision(bool was_patient) const;
  std::vector<PeerId> missing() const;

 private:
  std::size_t majority() const { return voters_.size() / 2 + 1; }

  const PeerId self_;
  const std::vector<PeerId> voters_;
  std::map<PeerId, Answer> answers_;  // of voters, with self
};

}  // namespace triad::dledger
