// What the oracle makes of what clients are told.

#include <algorithm>
#include <utility>

#include "tests/sim/group/group_oracle.h"

namespace triad::sim {
namespace {

// A commit whose outcome is unknown may still be in flight for so long.
constexpr Micros kCommitLifetime = 8 * kSecond;

}  // namespace

void GroupOracle::OnAttempt(const std::string& value, Kind kind) {
  Value& v = values_[value];
  ++v.attempts;
  v.kind = kind;
}

void GroupOracle::OnNotSent(const std::string& value) {
  Value& v = values_[value];
  ++v.not_sent;
  if (v.stored > v.attempts - v.not_sent) {
    Fail("M3", "'" + value + "' was refused, and is stored");
  }
}

void GroupOracle::OnAcked(const std::string& value, const TopicQueue& queue, std::int64_t offset) {
  ++acked_;
  const auto found = values_.find(value);
  if (found->second.kind.delayed) {
    if (found->second.parked == 0) Fail("M1", "'" + value + "' is acknowledged and not stored");
    return;
  }
  const auto places = queues_.find(queue);
  const bool known = places != queues_.end() && offset >= 0 &&
                     offset < static_cast<std::int64_t>(places->second.size()) &&
                     places->second[static_cast<std::size_t>(offset)].value == value;
  if (!known) {
    Fail("M1", "'" + value + "' is acknowledged at " + NameOf(queue) + " offset " +
                   std::to_string(offset) + ", where it is not");
  }
  std::int64_t& end = ends_told_[queue];
  end = std::max(end, offset + 1);
  const std::pair place(queue, offset);
  auto& acked_at = found->second.acked_at;
  if (found->second.kind.dedup && found->second.stored <= 1 && acked_at && *acked_at != place) {
    Fail("M11", "'" + value + "' is acknowledged at two places of " + NameOf(queue));
  }
  acked_at = place;
}

void GroupOracle::OnPulled(int peer_index, const TopicQueue& queue, std::int64_t offset,
                           std::string_view records, std::int64_t next) {
  const auto places = queues_.find(queue);
  while (!records.empty()) {
    const auto message = broker::ParseMessage(records, true);
    if (!message.ok()) {
      return Fail("M1", NameOfPeer(peer_index) +
                            " serves a damaged record: " + message.status().ToString());
    }
    const std::int64_t at = message->queue_offset.value();
    if (places == queues_.end() || at >= static_cast<std::int64_t>(places->second.size())) {
      return Fail("M5", NameOfPeer(peer_index) + " serves " + NameOf(queue) + " offset " +
                            std::to_string(at) + ", which is not committed");
    }
    const Place& place = places->second[static_cast<std::size_t>(at)];
    if (at < offset || message->record != place.record) {
      return Fail("M1", NameOfPeer(peer_index) + " serves another message at " + NameOf(queue) +
                            " offset " + std::to_string(offset) + " than was committed");
    }
    OnMoved(queue, offset, at);
    records.remove_prefix(message->record.size());
    offset = at + 1;
  }
  OnMoved(queue, offset, next);
}

// Only retention may take messages away.
void GroupOracle::OnMoved(const TopicQueue& queue, std::int64_t from, std::int64_t to) {
  const LogIndex kept = FirstKept();
  const auto places = queues_.find(queue);
  const std::int64_t end = MaxOffset(queue);
  if (to > end) return Fail("M5", NameOf(queue) + ": a pull is sent beyond what is committed");
  if (to < from && from <= end) {
    return Fail("M5", NameOf(queue) + ": a pull of offset " + std::to_string(from) +
                          ", which is committed, is sent back to " + std::to_string(to));
  }
  for (std::int64_t offset = from; offset < to; ++offset) {
    if (places->second[static_cast<std::size_t>(offset)].index < kept) continue;
    return Fail("M1", NameOf(queue) + ": a pull of offset " + std::to_string(from) +
                          " is sent to " + std::to_string(to) + ", but the log still has offset " +
                          std::to_string(offset));
  }
}

void GroupOracle::OnCommitSent(const broker::GroupQueue& key, std::int64_t offset, Micros now) {
  Register& r = registers_[key];
  if (r.possible.empty()) r.possible.insert(-1);
  r.possible.insert(offset);
  r.open[offset] = now;
}

void GroupOracle::OnCommitAcked(const broker::GroupQueue& key, std::int64_t offset, Micros now) {
  Register& r = registers_[key];
  r.open.erase(offset);
  std::set<std::int64_t> possible = {offset};
  for (const auto& [value, sent_at] : r.open) {
    if (now - sent_at < kCommitLifetime) possible.insert(value);
  }
  r.possible = std::move(possible);
}

void GroupOracle::OnQueried(const broker::GroupQueue& key, std::optional<std::int64_t> offset) {
  const auto found = registers_.find(key);
  if (found == registers_.end()) return;
  const std::int64_t value = offset.value_or(-1);
  if (found->second.possible.contains(value)) return;
  // Nothing stored and an offset of 0 look alike to a client.
  if (value == 0 && found->second.possible.contains(-1)) return;
  std::string possible;
  for (const std::int64_t one : found->second.possible) possible += " " + std::to_string(one);
  Fail("M6", key.group.value() + " " + NameOf(key.queue) + ": a query says " +
                 std::to_string(value) + ", possible were" + possible);
}

std::int64_t GroupOracle::OnMaxAsked(const TopicQueue& queue) const {
  const auto found = ends_told_.find(queue);
  return found == ends_told_.end() ? 0 : found->second;
}

void GroupOracle::OnMaxTold(const TopicQueue& queue, std::int64_t known, std::int64_t told) {
  if (told > MaxOffset(queue)) {
    Fail("M5", NameOf(queue) + ": a maximum offset beyond what is committed");
  }
  if (told < known) {
    Fail("M5", NameOf(queue) + ": the maximum offset is said to be " + std::to_string(told) +
                   ", after it was " + std::to_string(known));
  }
  std::int64_t& end = ends_told_[queue];
  end = std::max(end, told);
}

std::uint64_t GroupOracle::OnLockAsked(const TopicQueue& queue) const {
  const auto found = tokens_.find(queue);
  return found == tokens_.end() ? 0 : found->second.rbegin()->first;
}

void GroupOracle::OnGranted(const TopicQueue& queue, int client, std::uint64_t known,
                            std::uint64_t token) {
  if (token == 0 || token < known) {
    Fail("M7", NameOf(queue) + ": a grant with fencing token " + std::to_string(token) +
                   ", after one with " + std::to_string(known));
  }
  const auto [owner, is_new] = tokens_[queue].emplace(token, client);
  if (!is_new && owner->second != client) {
    Fail("M7", NameOf(queue) + ": two clients got the fencing token " + std::to_string(token));
  }
}

void GroupOracle::OnBelieves(const TopicQueue& queue, int client, Micros now, Micros until) {
  Belief& belief = beliefs_[queue];
  if (belief.client >= 0 && belief.client != client && belief.until > now) {
    Fail("M7", "clients " + std::to_string(belief.client) + " and " + std::to_string(client) +
                   " both hold " + NameOf(queue));
  }
  belief = Belief{.client = client, .until = until};
}

void GroupOracle::OnGivesUp(const TopicQueue& queue, int client) {
  Belief& belief = beliefs_[queue];
  if (belief.client == client) belief = Belief{};
}

}  // namespace triad::sim
