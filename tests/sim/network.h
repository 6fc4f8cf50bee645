// Network: which message arrives when, or not at all. Cuts are silent and one-way; a broken
// connection loses what is in flight on it, but for what stands in the receiver's buffer already.
//
// Thread: the simulator's only one. Bounds: kRemembered old messages for replays.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "dledger/raft/types.h"
#include "tests/sim/options.h"
#include "tests/sim/random.h"

namespace triad::sim {

struct Flight {
  int from = 0;
  int to = 0;
  std::uint64_t connection = 0;  // of the pair when it was sent
  dledger::Message message;
};

class Network {
 public:
  static constexpr int kNodesMax = 10;
  static constexpr std::size_t kRemembered = 64;

  Network(const Options& options, std::uint64_t seed) : options_(options), dice_(seed) {}

  // When each copy arrives; nothing = dropped.
  struct Arrivals {
    std::array<Micros, 2> at{};
    int count = 0;
  };
  Arrivals Send(int from, int to, Micros now);

  void Cut(int from, int to, Micros until) { link(from, to).cut_until = until; }
  // Both directions; what is on its way to `to` and would come by `until` still comes.
  void Break(int from, int to, Micros until);
  // Of the connection that broke last.
  bool IsLeftover(const Flight& flight, Micros now) {
    const Link& l = link(flight.from, flight.to);
    return flight.connection + 1 == l.connection && now < l.leftovers_until;
  }
  std::uint64_t connection(int from, int to) { return link(from, to).connection; }
  void Heal();

  // Old messages, to be delivered once more.
  void Remember(const Flight& flight);
  bool WantsReplay() { return !healed_ && dice_.Chance(options_.replay); }
  std::optional<Flight> OldMessage();
  const std::vector<Flight>& remembered() const { return remembered_; }
  // The acknowledgement of the highest index that `from` ever sent to `to`. Null: none.
  const Flight* BoldestAck(int from, int to) const;
  Random& dice() { return dice_; }

 private:
  void RememberAck(const Flight& flight);
  struct Link {
    Micros cut_until = 0;
    Micros last_arrival = 0;
    std::uint64_t connection = 0;
    Micros leftovers_until = 0;
  };
  Link& link(int from, int to) { return links_[static_cast<std::size_t>(from * kNodesMax + to)]; }

  const Options& options_;
  Random dice_;
  bool healed_ = false;
  std::array<Link, kNodesMax * kNodesMax> links_;
  std::vector<Flight> remembered_;
  std::vector<Flight> boldest_;  // one per pair
};

}  // namespace triad::sim
