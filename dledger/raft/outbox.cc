#include "dledger/raft/outbox.h"

#include <utility>

namespace triad::dledger {

void Outbox::Hold(Token until, Term term, PeerId to, Message message) {
  const std::size_t kind = message.body.index();
  std::erase_if(held_, [&](const Held& held) {
    return held.envelope.to == to && held.envelope.message.body.index() == kind;
  });
  held_.push_back(Held{.until = until,
                       .term = term,
                       .envelope = Envelope{.to = std::move(to), .message = std::move(message)}});
}

void Outbox::Release(Token done, Term current_term, Output* output) {
  if (held_.empty()) return;
  std::vector<Held> keep;
  for (Held& held : held_) {
    if (held.term != current_term) continue;
    if (held.until > done) {
      keep.push_back(std::move(held));
    } else {
      output->messages.push_back(std::move(held.envelope));
    }
  }
  held_ = std::move(keep);
}

}  // namespace triad::dledger
