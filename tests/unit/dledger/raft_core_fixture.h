// CoreUnderTest: one Core, n0 of n0, n1, n2 unless told otherwise, driven by hand-made messages.
//
// The disk is explicit: nothing is durable until Sync(). Thread: the test's.

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "dledger/raft/core.h"

namespace triad::dledger {

inline const PeerId kN0{"n0"};
inline const PeerId kN1{"n1"};
inline const PeerId kN2{"n2"};

inline CoreConfig ConfigOf(std::vector<PeerId> voters) {
  CoreConfig config;
  config.self = kN0;
  config.initial_membership.voters = std::move(voters);
  return config;
}
inline CoreConfig ThreeVoters() {
  return ConfigOf({kN0, kN1, kN2});
}

inline EntryRef MakeEntry(std::uint64_t term, std::uint64_t index, std::size_t bytes = 10,
                          EntryType type = EntryType::kBatch) {
  auto entry = std::make_shared<Entry>();
  entry->term = Term{term};
  entry->index = LogIndex{index};
  entry->type = type;
  entry->bytes.assign(bytes, 'x');
  return entry;
}

// A membership entry in plain text: "n0 n1 | n2 ".
inline EntryRef MembershipEntry(std::uint64_t term, std::uint64_t index,
                                const Membership& membership) {
  auto entry = std::make_shared<Entry>();
  entry->term = Term{term};
  entry->index = LogIndex{index};
  entry->type = EntryType::kMembership;
  for (const PeerId& voter : membership.voters) entry->bytes += voter.value() + " ";
  entry->bytes += "| ";
  for (const PeerId& learner : membership.learners) entry->bytes += learner.value() + " ";
  return entry;
}
inline bool DecodeText(const Entry& entry, Membership* membership) {
  std::istringstream words(entry.bytes);
  std::vector<PeerId>* into = &membership->voters;
  for (std::string word; words >> word;) {
    if (word == "|") {
      into = &membership->learners;
    } else {
      into->push_back(PeerId(word));
    }
  }
  return true;
}

// A log on disk whose entry i + 1 has the i-th of `terms`.
inline Recovered RecoveredWith(std::uint64_t term, const std::vector<std::uint64_t>& terms) {
  Recovered recovered;
  recovered.hard_state.term = Term{term};
  recovered.last_index = LogIndex{terms.size()};
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (i > 0 && terms[i] == terms[i - 1]) continue;
    recovered.term_runs.push_back({.first = LogIndex{i + 1}, .term = Term{terms[i]}});
  }
  return recovered;
}

inline constexpr std::uint64_t kLife = 7;  // of the core under test

class CoreUnderTest {
 public:
  explicit CoreUnderTest(CoreConfig config = ThreeVoters(), Recovered recovered = {})
      : core(std::move(config), std::move(recovered), /*seed=*/kLife) {
    core.set_membership_decoder(&DecodeText);
  }

  void Step(const Input& input) { core.Step(input, &out); }
  template <typename Body>
  void Receive(const PeerId& from, Body body) {
    Step(MessageIn{.from = from, .message = Message{std::move(body)}});
  }
  void Tick(int count) {
    for (; count > 0; --count) Step(dledger::Tick{});
  }
  // Everything asked for so far is durable.
  void Sync() {
    for (const StorageOp& op : out.storage) last_token = op.token;
    out.storage.clear();
    Step(StorageDone{.token = last_token});
  }
  // The messages of one kind since the last Clear, with their receivers.
  template <typename Body>
  std::vector<std::pair<PeerId, Body>> Sent() const {
    std::vector<std::pair<PeerId, Body>> sent;
    for (const Envelope& envelope : out.messages) {
      if (const Body* body = std::get_if<Body>(&envelope.message.body)) {
        sent.emplace_back(envelope.to, *body);
      }
    }
    return sent;
  }
  template <typename Body>
  std::vector<Body> SentTo(const PeerId& to) const {
    std::vector<Body> bodies;
    for (auto& [receiver, body] : Sent<Body>()) {
      if (receiver == to) bodies.push_back(body);
    }
    return bodies;
  }
  void Clear() {
    for (const StorageOp& op : out.storage) last_token = op.token;
    out.Clear();
  }

  void TickUntil(Role role) {
    for (int i = 0; i < 1000 && core.role() != role; ++i) Tick(1);
    ASSERT_EQ(core.role(), role);
  }
  // Through pre-vote and vote, with n1's help; its heartbeats are cleared away.
  void BecomeLeader() {
    TickUntil(Role::kPreCandidate);
    Receive(kN1, VoteResponse{
                     .term = core.term() + 1, .pre_vote = true, .granted = true, .life = kLife});
    ASSERT_EQ(core.role(), Role::kCandidate);
    Sync();
    Receive(kN1,
            VoteResponse{.term = core.term(), .pre_vote = false, .granted = true, .life = kLife});
    ASSERT_EQ(core.role(), Role::kLeader);
    Clear();
  }
  void Propose(std::size_t bytes = 10) {
    Step(dledger::Propose{
        .entry = MakeEntry(core.term().value(), core.last_index().value() + 1, bytes)});
  }
  // Asks for a change; the entry is proposed when the core wants it.
  void Change(MembershipOp op, const PeerId& peer, std::uint64_t context = 1) {
    Step(ChangeMembership{.context = context, .op = op, .peer = peer});
    if (!out.propose_membership.has_value()) return;
    const Membership membership = *std::exchange(out.propose_membership, std::nullopt);
    Step(dledger::Propose{
        .entry = MembershipEntry(core.term().value(), core.last_index().value() + 1, membership)});
  }
  void Acknowledge(const PeerId& from, std::uint64_t match, std::uint64_t round = 0) {
    AppendResponse response;
    response.term = core.term();
    response.ok = true;
    response.match_index = LogIndex{match};
    response.read_round = round;
    Receive(from, response);
  }
  // An append from `leader` of entries prev + 1 on, one for each of `terms`.
  AppendRequest Append(std::uint64_t term, std::uint64_t prev, std::uint64_t prev_term,
                       const std::vector<std::uint64_t>& terms, std::uint64_t commit = 0) {
    AppendRequest request;
    request.term = Term{term};
    request.prev_index = LogIndex{prev};
    request.prev_term = Term{prev_term};
    request.commit_index = LogIndex{commit};
    for (std::size_t i = 0; i < terms.size(); ++i) {
      request.entries.push_back(MakeEntry(terms[i], prev + 1 + i));
    }
    return request;
  }

  Core core;
  Output out;
  Token last_token = 0;
};

}  // namespace triad::dledger
