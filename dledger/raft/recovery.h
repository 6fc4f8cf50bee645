// Recovery: a peer that may have forgotten votes and entries (wiped or damaged disk) earns its vote
// back.
//
// While it lasts the peer neither votes nor campaigns, and its answers count for nothing. It
// reports a random nonce; the leader answers with a target once every other peer has confirmed that
// leadership AFTER the report. Holding everything up to the target, durably, ends it: whatever this
// peer acknowledged before it forgot is in that log, and no vote it may have given can still win.
// Pure. Owner: the core. Source: rule H of docs/dledger.md.

#pragma once

#include <cstdint>
#include <optional>

#include "dledger/raft/types.h"

namespace triad::dledger {

class Recovery {
 public:
  Recovery(bool active, std::uint64_t nonce) : active_(active), nonce_(active ? nonce : 0) {}

  bool active() const { return active_; }
  std::uint64_t nonce() const { return nonce_; }

  // A leader's words, with its append of `term`.
  void OfferTarget(Term term, std::uint64_t nonce, LogIndex target) {
    if (!active_ || nonce == 0 || nonce != nonce_) return;
    term_ = term;
    target_ = target;
  }
  // `held` of the log of `term`'s leader is durable here.
  bool MayEnd(Term term, LogIndex held) const {
    return active_ && !ending_.has_value() && target_.has_value() && term_ == term &&
           held >= *target_;
  }
  void End(Token token) { ending_ = token; }
  // The end is on disk: this peer counts again.
  void Done(Token token) {
    if (!ending_.has_value() || token < *ending_) return;
    active_ = false;
    nonce_ = 0;
    ending_.reset();
  }

 private:
  bool active_;
  std::uint64_t nonce_;
  Term term_;
  std::optional<LogIndex> target_;
  std::optional<Token> ending_;
};

}  // namespace triad::dledger
