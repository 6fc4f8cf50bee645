#include "tests/sim/group/group_oracle.h"

#include <algorithm>
#include <utility>

#include "broker/processor/codes.h"
#include "dledger/log/segment_file.h"
#include "dledger/log/slot_files.h"
#include "remoting/headers.h"
#include "tests/sim/group/sim_peer.h"

namespace triad::sim {
namespace {

constexpr int kMajority = kPeers / 2 + 1;
constexpr std::uint64_t kAckedCheckMax = 64;  // entries looked at behind one acknowledgement
// A commit whose outcome is unknown may still be in flight for so long.
constexpr Micros kCommitLifetime = 8 * kSecond;
constexpr std::array<std::int64_t, 3> kDelayMs = {1000, 2000, 3000};  // as sim_peer.cc configures

std::string Name(int peer) {
  return "n" + std::to_string(peer);
}

std::string ValueOf(std::string_view body) {
  return std::string(body.substr(0, body.find(' ')));
}

std::string NameOf(const TopicQueue& queue) {
  return queue.topic.value() + "@" + std::to_string(queue.queue_id.value());
}

bool IsClientTopic(std::string_view topic) {
  return topic.starts_with("T");
}

}  // namespace

void GroupOracle::Fail(const std::string& invariant, const std::string& detail) {
  if (!violation_) violation_ = GroupViolation{.invariant = invariant, .detail = detail};
}

// ---- peers ----

void GroupOracle::OnPeerStarts(int peer_index) {
  applied_by_[static_cast<std::size_t>(peer_index)] = LogIndex(0);
  acked_through_[static_cast<std::size_t>(peer_index)] = LogIndex(0);
}

// Power losses tear tails; they damage nothing.
void GroupOracle::OnRecovered(int peer_index, bool recovering, bool empty) {
  bool& was_empty = was_empty_[static_cast<std::size_t>(peer_index)];
  if (!recovering || empty) was_empty = empty;
  if (!recovering || was_empty || options_.rot_every > 0 || options_.disk_error_every > 0) return;
  Fail("G", Name(peer_index) + " takes the remains of a crash for damage");
}

bool GroupOracle::HoldsDurably(int peer_index, const dledger::Entry& entry) const {
  if (entry.index < begins_[static_cast<std::size_t>(peer_index)]) return true;  // in its state
  const SimPeer& p = peer(peer_index);
  const std::string path = p.log_dir() + "/" + dledger::SegmentName(entry.segment_base);
  const auto at = static_cast<std::uint64_t>(entry.position - entry.segment_base);
  return p.fs().HoldsDurably(path, dledger::kSegmentHeadBytes + at, entry.bytes);
}

void GroupOracle::OnLogBegins(int peer_index, LogIndex first) {
  LogIndex& begin = begins_[static_cast<std::size_t>(peer_index)];
  if (first > begin && begin != LogIndex(0)) ++drops_;
  begin = std::max(begin, first);
}

void GroupOracle::OnInstalled(int peer_index, LogIndex applied) {
  ++installs_;
  applied_by_[static_cast<std::size_t>(peer_index)] = applied;
  if (applied.value() > entries_.size()) {
    Fail("R5", Name(peer_index) + " got a state of entries that nobody has applied");
  }
}

int GroupOracle::DurableCopies(const dledger::Entry& entry) const {
  int copies = 0;
  for (int p = 0; p < kPeers; ++p) copies += HoldsDurably(p, entry) ? 1 : 0;
  return copies;
}

void GroupOracle::OnRaftSend(int peer_index, const PeerId& to, const dledger::Message& message) {
  if (const auto* vote = std::get_if<dledger::VoteResponse>(&message.body)) {
    if (vote->granted && !vote->pre_vote) CheckVoteDurable(peer_index, to, *vote);
  } else if (const auto* answer = std::get_if<dledger::AppendResponse>(&message.body)) {
    if (answer->ok) CheckAckDurable(peer_index, *answer);
  }
}

void GroupOracle::CheckVoteDurable(int peer_index, const PeerId& to,
                                   const dledger::VoteResponse& vote) {
  const std::string bytes =
      peer(peer_index).fs().DurableBytes(peer(peer_index).log_dir() + "/vote");
  SimFileSystem fs(1);
  CHECK(WriteFileAtomically(fs, "/vote", bytes).ok());
  const auto file = dledger::VoteFile::Open(fs, "/vote");
  if (!file.ok() || !(*file)->record()) {
    return Fail("R8", Name(peer_index) + " votes, and its vote file is damaged");
  }
  const dledger::VoteRecord& record = *(*file)->record();
  if (record.hard_state.term != vote.term || record.hard_state.voted_for != to) {
    Fail("R8", Name(peer_index) + " votes before the vote is durable");
  }
  if (record.recovering) Fail("R12", Name(peer_index) + " is recovering and votes");
}

void GroupOracle::CheckAckDurable(int peer_index, const dledger::AppendResponse& answer) {
  LogIndex& through = acked_through_[static_cast<std::size_t>(peer_index)];
  const LogIndex last = answer.match_index;
  // What was acknowledged may have been cut since: the newest are looked at again.
  LogIndex from = std::min(through, last) + 1;
  if (last.value() > kAckedCheckMax) from = std::max(from, last - kAckedCheckMax);
  through = last;
  LoopNode* const node = peer(peer_index).node();
  for (LogIndex index = from; index <= last; ++index) {
    const dledger::EntryRef entry = node->log().CachedIndex(index);
    if (entry == nullptr || HoldsDurably(peer_index, *entry)) continue;
    Fail("R8", Name(peer_index) + " acknowledges entry " + std::to_string(index.value()) +
                   ", which is not on its disk");
  }
}

void GroupOracle::OnApply(int peer_index, const dledger::EntryRef& entry) {
  LogIndex& last = applied_by_[static_cast<std::size_t>(peer_index)];
  if (last != LogIndex(0) && entry->index != last + 1) {
    Fail("R5", Name(peer_index) + " applies entry " + std::to_string(entry->index.value()) +
                   " after " + std::to_string(last.value()));
  }
  last = entry->index;
  const std::uint64_t known = entries_.size();
  if (entry->index.value() > known + 1) {
    Fail("R5", Name(peer_index) + " applies entry " + std::to_string(entry->index.value()) +
                   ", of those before it nobody has applied more than " + std::to_string(known));
    return;
  }
  if (entry->index.value() <= known) {
    const dledger::EntryRef& before = entries_[entry->index.value() - 1];
    if (before->bytes != entry->bytes) {
      Fail("R5", Name(peer_index) + " applies another entry " +
                     std::to_string(entry->index.value()) + " than the others");
    }
    return;
  }
  entries_.push_back(entry);
  if (DurableCopies(*entry) < kMajority) {
    Fail("R9", "entry " + std::to_string(entry->index.value()) +
                   " is applied, and a majority of disks does not hold it");
  }
  CheckEntry(entry);
}

void GroupOracle::CheckEntry(const dledger::EntryRef& entry) {
  if (entry->type != dledger::EntryType::kBatch) return;
  const auto payload = broker::ParsePayload(entry->payload());
  if (!payload.ok()) return Fail("M3", "a committed payload does not parse");
  const auto command = broker::DecodeStateCommand(payload->command);
  if (!command.ok()) return Fail("M3", "a committed command does not parse");
  std::string_view rest = payload->records;
  while (rest.size() >= 8) {
    const auto message = broker::ParseMessage(rest, true);
    if (!message.ok()) return Fail("M3", "a committed record: " + message.status().ToString());
    CheckRecord(entry, *message);
    rest.remove_prefix(message->record.size());
  }
}

void GroupOracle::CheckRecord(const dledger::EntryRef& entry, const broker::MessageView& message) {
  const TopicQueue queue{Topic(std::string(message.topic)), QueueId(message.queue_id)};
  std::vector<Place>& places = queues_[queue];
  const auto expected = static_cast<std::int64_t>(places.size());
  if (message.queue_offset.value() != expected) {
    Fail("M2", NameOf(queue) + " continues at " + std::to_string(message.queue_offset.value()) +
                   " instead of " + std::to_string(expected));
  }
  places.push_back(Place{.position = message.physical_offset,
                         .record = message.record,
                         .index = entry->index,
                         .value = ValueOf(message.body)});
  CountStored(message, *entry);
}

void GroupOracle::CountStored(const broker::MessageView& message, const dledger::Entry& entry) {
  const std::string name = ValueOf(message.body);
  const auto found = values_.find(name);
  if (found == values_.end()) return Fail("M3", "a message '" + name + "' that nobody sent");
  Value& value = found->second;
  const bool parked = message.topic == broker::kScheduleTopic;
  if (value.delayed && !parked) {
    ++value.delivered;
    if (value.delivered > value.parked) Fail("M10", "'" + name + "' is delivered twice");
    if (entry.store_time_ms < value.due_ms) {
      Fail("M10", "'" + name + "' is delivered " +
                      std::to_string(value.due_ms - entry.store_time_ms) + " ms early");
    }
    return;
  }
  ++value.stored;
  if (parked) {
    ++value.parked;
    value.parked_at.push_back(entry.index);
    const auto level = static_cast<std::size_t>(message.queue_id);
    const std::int64_t due = entry.store_time_ms + kDelayMs.at(level);
    value.due_ms = value.parked == 1 ? due : std::min(value.due_ms, due);
  }
  if (value.stored > value.attempts - value.not_sent) {
    Fail("M3", "'" + name + "' is stored " + std::to_string(value.stored) + " times, of " +
                   std::to_string(value.attempts) + " attempts " + std::to_string(value.not_sent) +
                   " were refused");
  }
}

void GroupOracle::OnAnswerLeaves(int peer_index, std::int32_t code,
                                 const remoting::Command& response) {
  const bool is_send = code == remoting::kSendMessageV2 || code == remoting::kSendBatchMessage;
  if (!is_send || response.code != remoting::kSuccess) return;
  const auto header = remoting::SendMessageResponse::Decode(response.ext);
  if (!header.ok()) return Fail("M1", "a send's answer does not parse");
  const auto id = broker::ParseOffsetMessageId(header->msg_id.substr(0, header->msg_id.find(',')));
  if (!id.ok()) return Fail("M1", "a send's answer has no message id");
  const dledger::EntryRef& entry = EntryAt(id->second);
  if (entry == nullptr) {
    return Fail("R9", Name(peer_index) + " answers a send that is not committed");
  }
  if (DurableCopies(*entry) < kMajority) {
    Fail("R9", Name(peer_index) + " answers a send that a majority of disks does not hold");
  }
}

const dledger::EntryRef& GroupOracle::EntryAt(PhysicalOffset position) const {
  static const dledger::EntryRef none;
  const auto behind = std::upper_bound(
      entries_.begin(), entries_.end(), position,
      [](PhysicalOffset at, const dledger::EntryRef& entry) { return at < entry->position; });
  if (behind == entries_.begin() || position >= (*std::prev(behind))->end()) return none;
  return *std::prev(behind);
}

// ---- clients ----

void GroupOracle::OnAttempt(const std::string& value, bool delayed) {
  Value& v = values_[value];
  ++v.attempts;
  v.delayed = delayed;
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
  if (found->second.delayed) {
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
}

void GroupOracle::OnPulled(int peer_index, const TopicQueue& queue, std::int64_t offset,
                           std::string_view records, std::int64_t next) {
  const auto places = queues_.find(queue);
  while (!records.empty()) {
    const auto message = broker::ParseMessage(records, true);
    if (!message.ok()) {
      return Fail("M1",
                  Name(peer_index) + " serves a damaged record: " + message.status().ToString());
    }
    const std::int64_t at = message->queue_offset.value();
    if (places == queues_.end() || at >= static_cast<std::int64_t>(places->second.size())) {
      return Fail("M5", Name(peer_index) + " serves " + NameOf(queue) + " offset " +
                            std::to_string(at) + ", which is not committed");
    }
    const Place& place = places->second[static_cast<std::size_t>(at)];
    if (at < offset || message->record != place.record) {
      return Fail("M1", Name(peer_index) + " serves another message at " + NameOf(queue) +
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

// ---- at the end ----

std::int64_t GroupOracle::MaxOffset(const TopicQueue& queue) const {
  const auto found = queues_.find(queue);
  return found == queues_.end() ? 0 : static_cast<std::int64_t>(found->second.size());
}

std::vector<TopicQueue> GroupOracle::Queues() const {
  std::vector<TopicQueue> queues;
  for (const auto& [queue, places] : queues_) {
    if (IsClientTopic(queue.topic.value())) queues.push_back(queue);
  }
  return queues;
}

LogIndex GroupOracle::FirstKept() const {
  return *std::max_element(begins_.begin(), begins_.end());
}

bool GroupOracle::IsDelivered(const Value& value) const {
  const LogIndex kept = FirstKept();
  const auto gone = std::count_if(value.parked_at.begin(), value.parked_at.end(),
                                  [kept](LogIndex index) { return index < kept; });
  return value.delivered + gone >= value.parked;
}

bool GroupOracle::AllDelivered() const {
  return std::all_of(values_.begin(), values_.end(),
                     [this](const auto& item) { return IsDelivered(item.second); });
}

void GroupOracle::CheckMajorities() {
  for (const dledger::EntryRef& entry : entries_) {
    if (DurableCopies(*entry) >= kMajority) continue;
    return Fail("R9", "entry " + std::to_string(entry->index.value()) +
                          " is missing on a majority of disks");
  }
}

bool GroupOracle::MayDamage(int peer_index) const {
  // What it has acknowledged may make a majority as soon as the answer arrives.
  const LogIndex committed(entries_.size());
  if (peer(peer_index).node()->status().last_index > committed) return false;
  for (int other = 0; other < kPeers; ++other) {
    if (other == peer_index) continue;
    SimPeer& p = peer(other);
    if (!p.up() || p.node()->leader_info().recovering) return false;
    const bool whole = std::all_of(entries_.begin(), entries_.end(),
                                   [&](const auto& entry) { return HoldsDurably(other, *entry); });
    if (!whole) return false;
  }
  return true;
}

}  // namespace triad::sim
