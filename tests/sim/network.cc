#include "tests/sim/network.h"

#include <algorithm>
#include <utility>

namespace triad::sim {

Network::Arrivals Network::Send(int from, int to, Micros now) {
  Arrivals arrivals;
  Link& l = link(from, to);
  if (healed_) {
    l.last_arrival = std::max(l.last_arrival, now + dice_.Between(50, 1000));
    arrivals.at[0] = l.last_arrival;
    arrivals.count = 1;
    return arrivals;
  }
  if (now < l.cut_until || dice_.Chance(options_.drop)) return arrivals;
  arrivals.count = dice_.Chance(options_.duplicate) ? 2 : 1;
  for (int i = 0; i < arrivals.count; ++i) {
    Micros at = now + dice_.Between(50, options_.delay_max);
    if (dice_.Chance(options_.tail_delay)) at += dice_.Between(0, options_.tail_delay_max);
    if (!options_.reorder) {
      at = std::max(at, l.last_arrival);
      l.last_arrival = at;
    }
    arrivals.at[static_cast<std::size_t>(i)] = at;
  }
  return arrivals;
}

void Network::Break(int from, int to, Micros until) {
  Link& l = link(from, to);
  ++l.connection;
  l.last_arrival = 0;
  l.leftovers_until = until;
}

void Network::Heal() {
  healed_ = true;
  for (Link& l : links_) l.last_arrival = 0;
}

const Flight* Network::BoldestAck(int from, int to) const {
  for (const Flight& flight : boldest_) {
    if (flight.from == from && flight.to == to) return &flight;
  }
  return nullptr;
}

void Network::RememberAck(const Flight& flight) {
  const auto* ack = std::get_if<dledger::AppendResponse>(&flight.message.body);
  if (ack == nullptr || !ack->ok) return;
  for (Flight& known : boldest_) {
    if (known.from != flight.from || known.to != flight.to) continue;
    const auto& old = std::get<dledger::AppendResponse>(known.message.body);
    if (ack->match_index >= old.match_index) known = flight;
    return;
  }
  boldest_.push_back(flight);
}

void Network::Remember(const Flight& flight) {
  if (options_.replay == 0) return;
  RememberAck(flight);
  if (remembered_.size() < kRemembered) {
    remembered_.push_back(flight);
    return;
  }
  if (!dice_.OneIn(4)) return;  // so that some stay for long
  remembered_[dice_.Below(kRemembered)] = flight;
}

std::optional<Flight> Network::OldMessage() {
  if (remembered_.empty()) return std::nullopt;
  return remembered_[dice_.Below(remembered_.size())];
}

}  // namespace triad::sim
