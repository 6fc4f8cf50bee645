#include "tests/sim/group/group_oracle.h"

#include <algorithm>
#include <utility>

#include "broker/processor/codes.h"
#include "broker/processor/failure_properties.h"
#include "dledger/log/segment_file.h"
#include "dledger/log/slot_files.h"
#include "dledger/membership_codec.h"
#include "dledger/raft/membership.h"
#include "remoting/headers.h"
#include "tests/sim/group/sim_peer.h"

namespace triad::sim {
namespace {

constexpr std::int64_t kDedupWindowMs = 600'000;  // as by default
// The second of M10, and what clocks and disks add to it.
constexpr Micros kLateMax = 3 * kSecond;
constexpr std::uint64_t kAckedCheckMax = 64;  // entries looked at behind one acknowledgement
constexpr std::array<std::int64_t, 3> kDelayMs = {1000, 2000, 3000};  // as sim_peer.cc configures

bool IsClientTopic(std::string_view topic) {
  return topic.starts_with("T");
}

}  // namespace

std::string NameOfPeer(int peer) {
  return "n" + std::to_string(peer);
}

std::string ValueOf(std::string_view body) {
  return std::string(body.substr(0, body.find(' ')));
}

std::string SentBackValue(const std::string& group, const std::string& value, PhysicalOffset at) {
  return group + "-back-" + value + "@" + std::to_string(at.value());
}

std::string NameOf(const TopicQueue& queue) {
  return queue.topic.value() + "@" + std::to_string(queue.queue_id.value());
}

void GroupOracle::Fail(const std::string& invariant, const std::string& detail) {
  if (!violation_) violation_ = GroupViolation{.invariant = invariant, .detail = detail};
}

GroupOracle::GroupOracle(const GroupOptions& options, const EventLoop& loop)
    : options_(options), loop_(loop) {
  for (int i = 0; i < options_.peers; ++i) membership_.voters.push_back(FirstIdOf(i));
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
  if (!recovering || was_empty || options_.damages()) return;
  Fail("G", NameOfPeer(peer_index) + " takes the remains of a crash for damage");
}

bool GroupOracle::HoldsDurably(int peer_index, const dledger::Entry& entry) const {
  if (entry.index < begins_[static_cast<std::size_t>(peer_index)]) return true;  // in its state
  const SimPeer& p = peer(peer_index);
  const std::string path = p.log_dir() + "/" + dledger::SegmentName(entry.segment_base);
  const auto at = static_cast<std::uint64_t>(entry.position - entry.segment_base);
  return p.fs().HoldsDurably(path, dledger::kSegmentHeadBytes + at, entry.bytes);
}

bool GroupOracle::IsExcused(int peer_index, const dledger::Entry& entry) const {
  if (entry.index <= lost_through_[static_cast<std::size_t>(peer_index)]) return true;
  const SimPeer& p = peer(peer_index);
  const std::string path = p.log_dir() + "/" + dledger::SegmentName(entry.segment_base);
  const auto at = static_cast<std::uint64_t>(entry.position - entry.segment_base);
  return p.fs().IsSpoiled(path, dledger::kSegmentHeadBytes + at, entry.bytes.size());
}

void GroupOracle::OnLogBegins(int peer_index, LogIndex first) {
  LogIndex& begin = begins_[static_cast<std::size_t>(peer_index)];
  // A log of which the begin itself is damaged is taken for an empty one.
  if (first < begin && !options_.damages()) {
    Fail("M12", NameOfPeer(peer_index) + "'s log begins at entry " + std::to_string(first.value()) +
                    ", after it began at " + std::to_string(begin.value()));
  }
  if (first > begin && first.value() <= entries_.size()) {
    const dledger::EntryRef& entry = entries_[first.value() - 1];
    if (entry->position != entry->segment_base) {
      Fail("M12", NameOfPeer(peer_index) + "'s log begins in the middle of a segment");
    }
  }
  if (first > begin && begin != LogIndex(0)) ++drops_;
  begin = first;
  kept_ = std::max(kept_, first);
}

void GroupOracle::OnDiskLost(int peer_index, LogIndex held) {
  const auto p = static_cast<std::size_t>(peer_index);
  lost_through_[p] = held;
  begins_[p] = acked_through_[p] = applied_by_[p] = LogIndex(0);
}

void GroupOracle::OnNewPeer(int peer_index) {
  const auto p = static_cast<std::size_t>(peer_index);
  lost_through_[p] = begins_[p] = acked_through_[p] = applied_by_[p] = LogIndex(0);
  was_empty_[p] = false;
}

void GroupOracle::OnBeyond(bool is_spared) {
  intact_.assign(entries_.size(), false);
  if (!is_spared) return;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    intact_[i] = DurableCopies(*entries_[i]) > 0;
  }
}

void GroupOracle::OnInstalled(int peer_index, LogIndex applied) {
  ++installs_;
  applied_by_[static_cast<std::size_t>(peer_index)] = applied;
  if (applied.value() > entries_.size()) {
    Fail("R5", NameOfPeer(peer_index) + " got a state of entries that nobody has applied");
  }
}

int GroupOracle::DurableCopies(const dledger::Entry& entry) const {
  int copies = 0;
  for (const SimPeer* p : peers_) copies += HoldsDurably(p->index(), entry) ? 1 : 0;
  return copies;
}

// A change under way may have counted for the commit already: its majorities meet all of these.
bool GroupOracle::IsOnMajority(const dledger::Entry& entry, bool lenient) const {
  std::size_t lacking = 0;
  for (const PeerId& voter : membership_.voters) {
    const int p = MachineOf(voter);
    const bool is_there = peer(p).id() == voter;
    const bool holds = is_there && (HoldsDurably(p, entry) || (lenient && IsExcused(p, entry)));
    lacking += holds ? 0 : 1;
  }
  const std::size_t majority = dledger::MajorityOf(membership_);
  return open_.empty() ? membership_.voters.size() - lacking >= majority : lacking < majority;
}

bool GroupOracle::IsMember(int machine) const {
  return dledger::IsMember(membership_, peer(machine).id());
}

void GroupOracle::OnMembership(const dledger::EntryRef& entry) {
  dledger::Membership next;
  if (!dledger::DecodeMembershipEntry(*entry, &next) || !dledger::IsWellFormed(next)) {
    return Fail("R10", "a committed membership does not parse");
  }
  std::size_t voters_changed = 0;
  for (const PeerId& voter : next.voters) {
    if (dledger::IsVoter(membership_, voter)) continue;
    ++voters_changed;
    if (!dledger::IsLearner(membership_, voter)) {
      Fail("R10", voter.value() + " is a voter, and was no learner before");
    }
    ++changes_.promoted;
  }
  for (const PeerId& learner : next.learners) {
    changes_.added += dledger::IsMember(membership_, learner) ? 0u : 1u;
  }
  for (const auto* members : {&membership_.voters, &membership_.learners}) {
    for (const PeerId& member : *members) {
      if (dledger::IsMember(next, member)) continue;
      voters_changed += dledger::IsVoter(membership_, member) ? 1 : 0;
      ++changes_.removed;
      removed_.insert(member);
    }
  }
  if (voters_changed > 1) Fail("R10", "a change takes or gives more than one vote");
  membership_ = std::move(next);
  SettleChanges();
}

// What came true, or never can.
void GroupOracle::SettleChanges() {
  std::erase_if(open_, [this](const Change& change) {
    const auto& [op, id] = change;
    if (WasRemoved(id)) return true;
    switch (op) {
      case dledger::MembershipOp::kAddLearner: return dledger::IsMember(membership_, id);
      case dledger::MembershipOp::kPromote: return dledger::IsVoter(membership_, id);
      case dledger::MembershipOp::kRemove: return false;
    }
    return false;
  });
}

// Of the last membership, and of any that may come true.
std::vector<PeerId> GroupOracle::VotersInPlay() const {
  std::vector<PeerId> voters = membership_.voters;
  for (const auto& [op, id] : open_) {
    if (op == dledger::MembershipOp::kPromote && !dledger::IsVoter(membership_, id)) {
      voters.push_back(id);
    }
  }
  return voters;
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
    return Fail("R8", NameOfPeer(peer_index) + " votes, and its vote file is damaged");
  }
  const dledger::VoteRecord& record = *(*file)->record();
  if (record.hard_state.term != vote.term || record.hard_state.voted_for != to) {
    Fail("R8", NameOfPeer(peer_index) + " votes before the vote is durable");
  }
  if (record.recovering) Fail("R12", NameOfPeer(peer_index) + " is recovering and votes");
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
    if (IsExcused(peer_index, *entry)) continue;
    Fail("R8", NameOfPeer(peer_index) + " acknowledges entry " + std::to_string(index.value()) +
                   ", which is not on its disk");
  }
}

void GroupOracle::OnApply(int peer_index, const dledger::EntryRef& entry) {
  LogIndex& last = applied_by_[static_cast<std::size_t>(peer_index)];
  if (last != LogIndex(0) && entry->index != last + 1) {
    Fail("R5", NameOfPeer(peer_index) + " applies entry " + std::to_string(entry->index.value()) +
                   " after " + std::to_string(last.value()));
  }
  last = entry->index;
  const std::uint64_t known = entries_.size();
  if (entry->index.value() > known + 1) {
    Fail("R5", NameOfPeer(peer_index) + " applies entry " + std::to_string(entry->index.value()) +
                   ", of those before it nobody has applied more than " + std::to_string(known));
    return;
  }
  if (entry->index.value() <= known) {
    const dledger::EntryRef& before = entries_[entry->index.value() - 1];
    if (before->bytes != entry->bytes) {
      Fail("R5", NameOfPeer(peer_index) + " applies another entry " +
                     std::to_string(entry->index.value()) + " than the others");
    }
    return;
  }
  entries_.push_back(entry);
  if (entry->type == dledger::EntryType::kMembership) OnMembership(entry);
  if (!IsOnMajority(*entry, true)) {
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

// The value, or what it is called on its way back to a group.
std::string GroupOracle::NameOfStored(const broker::MessageView& message) {
  constexpr std::string_view kRetry = "%RETRY%";
  const std::string value = ValueOf(message.body);
  std::string_view topic = message.topic;
  if (topic == broker::kScheduleTopic) {
    topic = broker::FindProperty(message.properties, "REAL_TOPIC");
  }
  if (!topic.starts_with(kRetry)) return value;
  const auto origin = broker::ParseOffsetMessageId(
      broker::FindProperty(message.properties, broker::kOriginIdProperty));
  return SentBackValue(std::string(topic.substr(kRetry.size())), value,
                       origin.ok() ? origin->second : PhysicalOffset(0));
}

void GroupOracle::CountStored(const broker::MessageView& message, const dledger::Entry& entry) {
  const std::string name = NameOfStored(message);
  const auto found = values_.find(name);
  if (found == values_.end()) return Fail("M3", "a message '" + name + "' that nobody sent");
  Value& value = found->second;
  const bool parked = message.topic == broker::kScheduleTopic;
  if (value.kind.delayed && !parked) {
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
    if (value.parked == 1) value.due_at = loop_.now() + kDelayMs.at(level) * kMs;
  }
  if (value.stored == 1) value.first_ms = entry.store_time_ms;
  const bool is_in_window = entry.store_time_ms - value.first_ms < kDedupWindowMs;
  if (value.kind.dedup && value.stored > 1 && is_in_window) {
    Fail("M11", "'" + name + "' is stored twice in a topic that stores nothing twice");
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
    return Fail("R9", NameOfPeer(peer_index) + " answers a send that is not committed");
  }
  if (!IsOnMajority(*entry, true)) {
    Fail("R9", NameOfPeer(peer_index) + " answers a send that a majority of disks does not hold");
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
  return kept_;
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

void GroupOracle::CheckMajorities(bool lenient) {
  for (const dledger::EntryRef& entry : entries_) {
    if (entry->index.value() <= intact_.size()) continue;  // CheckIntact
    if (IsOnMajority(*entry, lenient)) continue;
    return Fail("R9", "entry " + std::to_string(entry->index.value()) +
                          " is missing on a majority of disks");
  }
}

void GroupOracle::FullScan() {
  CheckMajorities(true);
  CheckIntact();
  for (SimPeer* p : peers_) {
    if (!p->up() || p->node() == nullptr) continue;
    const auto index = static_cast<std::size_t>(p->index());
    if (p->node()->log().base().tail.next_index < begins_[index] && !options_.damages()) {
      Fail("M12", NameOfPeer(p->index()) + "'s log begins earlier than it did");
    }
    if (p->node()->applied().value() > entries_.size()) {
      Fail("R5", NameOfPeer(p->index()) + " has applied what nobody committed");
    }
  }
}

void GroupOracle::CheckIntact() {
  for (std::size_t i = 0; i < intact_.size(); ++i) {
    if (!intact_[i] || DurableCopies(*entries_[i]) > 0) continue;
    return Fail("beyond", "entry " + std::to_string(i + 1) +
                              " was whole somewhere after the damage, and is no more");
  }
}

void GroupOracle::CheckLate(Micros served_since) {
  for (const auto& [name, value] : values_) {
    if (value.parked == 0 || IsDelivered(value)) continue;
    const Micros late = loop_.now() - std::max(value.due_at, served_since);
    if (late <= kLateMax) continue;
    return Fail("M10", "'" + name + "' is late by " + std::to_string(late / kMs) + " ms");
  }
}

bool GroupOracle::HoldsDurablyBehind(int peer_index, LogIndex last) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const dledger::EntryRef& entry) {
    return entry->index > last && HoldsDurably(peer_index, *entry);
  });
}

bool GroupOracle::MayDamage(int peer_index) const {
  // Before the first entry a lost vote is not to be told from one never cast.
  if (membership_.voters.size() < 3 || entries_.empty()) return false;
  // What it has acknowledged may make a majority as soon as the answer arrives.
  const LogIndex committed(entries_.size());
  if (peer(peer_index).last_index() > committed) return false;
  for (const PeerId& voter : VotersInPlay()) {
    const int other = MachineOf(voter);
    if (other == peer_index) continue;
    SimPeer& p = peer(other);
    if (p.id() != voter || !p.up() || p.node()->leader_info().recovering || p.fs().IsSick())
      return false;
    const bool whole = std::all_of(entries_.begin(), entries_.end(),
                                   [&](const auto& entry) { return HoldsDurably(other, *entry); });
    if (!whole) return false;
  }
  return true;
}

}  // namespace triad::sim
