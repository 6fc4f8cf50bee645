// Outbox: answers that speak of a term or vote which is not yet durable. They leave when it is.
//
// Pure. Owner: the core. Bounds: one answer of each kind per peer; a newer one takes the place of
// an older. What was meant for an earlier term is dropped: nobody needs it.

#pragma once

#include <vector>

#include "dledger/raft/types.h"

namespace triad::dledger {

class Outbox {
 public:
  void Hold(Token until, Term term, PeerId to, Message message);
  void Release(Token done, Term current_term, Output* output);
  bool empty() const { return held_.empty(); }

 private:
  struct Held {
    Token until;
    Term term;
    Envelope envelope;
  };
  std::vector<Held> held_;
};

}  // namespace triad::dledger
