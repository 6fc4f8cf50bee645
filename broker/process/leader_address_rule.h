// LeaderAddressRule: when a peer has the group's floating address (leaderIP) and when it says so.
//
// Pure; times are given. A leader has it as long as it renews its claim. Who does not lead any
// more, has ended or stands still keeps it until another machine claims it (and kLingers), so that
// clients are forwarded or refused at once instead of hearing nothing; but never longer than
// kKeeps. No safety depends on the address: whoever has it without leading forwards or answers that
// it does not lead. Source: wire.md §10.3, "address takeover".

#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "common/clock.h"

namespace triad::broker {

class LeaderAddressRule {
 public:
  // After the last sign that this peer leads. Longer than an election and than the second between
  // two renewals.
  static constexpr std::chrono::milliseconds kKeeps{3000};

  // After another's claim, once it does not lead: what was received before is answered still.
  static constexpr std::chrono::milliseconds kLingers{200};
  // Another's claim while this peer leads is answered by an announcement. Repeated after kEchoes
  // and within kDisputed, it is obeyed until the next renewal (RFC 5227, 2.4b). Who took it less
  // than kKeeps ago waits for so long instead: a former leader may speak still.
  static constexpr std::chrono::milliseconds kEchoes{500};
  static constexpr std::chrono::milliseconds kDisputed{10'000};
  // So many claims by others, within kRivalry, while this peer leads by a majority's word: it is
  // somebody else's address. Then it is left alone for kYields.
  static constexpr int kClaimsMax = 5;
  static constexpr std::chrono::milliseconds kRivalry{600'000};
  static constexpr std::chrono::milliseconds kYields{60'000};

  // The broker says so at every change and every second.
  void OnLeading(bool leads, TimePoint now);
  // Another machine says that it has the address. True: this peer gives way for kYields.
  bool OnClaim(TimePoint now);

  struct Step {
    bool has = false;
    bool announce = false;          // tell everybody, now
    std::optional<TimePoint> next;  // ask again then, when nothing happens before
  };
  Step At(TimePoint now);

 private:
  bool leads_ = false;
  std::optional<TimePoint> until_;  // it has the address
  TimePoint announce_at_;
  TimePoint taken_at_;
  std::size_t announced_ = 0;
  int claims_ = 0;  // by others while it led
  TimePoint first_claim_;
  std::optional<TimePoint> disputed_at_;  // the last of them that counted
  TimePoint yields_until_;
};

}  // namespace triad::broker
