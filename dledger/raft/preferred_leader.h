// PreferredLeader: when to hand leadership to the preferred peer (`preferredLeaderId`): only when
// it has been fit to lead for a while, and more and more rarely when that does not last.
//
// Pure. Owner: the core, while it leads (time counts in ticks of leadership). Bounds: none needed.

#pragma once

#include <cstdint>
#include <utility>

#include "common/ids.h"

namespace triad::dledger {

class PreferredLeader {
 public:
  static constexpr std::int64_t kWaitsMax = 64;  // the longest pause between two tries, in waits

  // `wait_ticks` > 0. An empty `peer`: nobody is preferred.
  PreferredLeader(PeerId peer, int wait_ticks) : peer_(std::move(peer)), wait_(wait_ticks) {}

  const PeerId& peer() const { return peer_; }
  // A new leadership: the peer must show anew that it is fit.
  void Restart() { fit_ticks_ = 0; }
  // One tick of leadership. True: hand over now.
  bool Tick(bool is_fit);

 private:
  const PeerId peer_;
  const std::int64_t wait_;
  std::int64_t fit_ticks_ = 0;
  std::int64_t since_try_ = 0;
  std::int64_t pause_ = 0;  // between tries
};

}  // namespace triad::dledger
