// fuzz_raft_msg: what peers say, through the peer codec, to a core in some state.
//
// Input: the state the core starts in, then steps: ticks, disk answers, proposals, messages made of
// small numbers (so that some fit), now and then with a byte changed, and raw frames. Must hold: no
// CHECK fails, whoever lies; what was encoded decodes to the same bytes; term, vote and commit
// never go back; nothing committed is cut; a leader cuts nothing; votes and acknowledgements leave
// only when they are durable (R2, R5..R8).

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "dledger/membership_codec.h"
#include "dledger/peer/peer_codec.h"
#include "dledger/raft/core.h"
#include "tests/fuzz/input.h"

namespace triad::fuzz {
namespace {

using namespace dledger;

const PeerId kSelf("n0");
constexpr int kStepsMax = 400;

std::string Encode(const PeerFrame& frame) {
  std::string bytes = EncodeFrameHead(frame);
  for (const EntryRef& entry : FrameEntries(frame)) bytes += entry->bytes;
  return bytes;
}

// The core with a disk that is as slow as the input says.
class Subject {
 public:
  explicit Subject(Input& input) {
    Recovered recovered;
    const std::uint64_t count = input.Below(6);
    Term term{1};
    for (std::uint64_t i = 1; i <= count; ++i) {
      const bool later = input.Flag();
      if (later) ++term;
      if (later || i == 1) {
        recovered.term_runs.push_back({.first = LogIndex(i), .term = term});
      }
      log_.push_back(term);
    }
    recovered.last_index = LogIndex(count);
    recovered.applied = LogIndex(count == 0 ? 0 : input.Below(count + 1));
    recovered.hard_state.term = count == 0 ? Term(input.Below(3)) : term + input.Below(3);
    if (recovered.hard_state.term > Term(0) && input.Flag()) {
      recovered.hard_state.voted_for = PeerId(input.Flag() ? "n0" : "n1");
    }
    recovered.recovering = input.Below(8) == 0;
    recovered.recovery_nonce = recovered.recovering ? 2 : 0;
    saved_ = recovered.hard_state;
    durable_ = count;
    CoreConfig config;
    config.self = kSelf;
    config.initial_membership.voters = {kSelf, PeerId("n1"), PeerId("n2")};
    config.max_inflight_bytes = 2000;
    config.max_append_bytes = 500;
    config.max_window_bytes = 1000;
    core_.emplace(std::move(config), std::move(recovered), /*seed=*/input.Byte());
    core_->set_membership_decoder(&DecodeMembershipEntry);
    commit_ = core_->commit_index();
    hard_ = core_->hard_state();
  }

  const Core& core() const { return *core_; }

  void Step(const dledger::Input& what) {
    const Role role = core_->role();
    const Term term = core_->term();
    Output output;
    core_->Step(what, &output);
    const bool led_on = role == Role::kLeader && core_->role() == Role::kLeader;
    for (StorageOp& op : output.storage) Take(std::move(op), led_on && core_->term() == term);
    CheckView(output);
    for (const Envelope& envelope : output.messages) CheckMaySend(envelope);
    for (LoadRequest& load : output.loads) loads_.push_back(std::move(load));
  }

  // Up to `count` operations become durable.
  void Sync(std::size_t count) {
    for (; count > 0 && !pending_.empty(); --count) {
      const StorageOp op = std::move(pending_.front());
      pending_.erase(pending_.begin());
      if (op.hard_state) saved_ = *op.hard_state;
      if (op.truncate_from) {
        durable_ = std::min<std::size_t>(durable_, op.truncate_from->value() - 1);
      }
      if (!op.append.empty()) durable_ = op.append.back()->index.value();
      Step(StorageDone{op.token});
    }
  }

  void AnswerLoad(bool with_entries) {
    if (loads_.empty()) return;
    const LoadRequest request = loads_.front();
    loads_.erase(loads_.begin());
    Loaded loaded{.peer = request.peer, .term = request.term, .from = request.from, .entries = {}};
    if (with_entries && request.from.value() >= 1 && request.from.value() <= log_.size()) {
      loaded.entries.push_back(EntryAt(request.from, log_[request.from.value() - 1]));
    }
    Step(std::move(loaded));
  }

  static EntryRef EntryAt(LogIndex index, Term term) {
    LogTail tail;
    tail.next_index = index;
    return MakeEntry(term, EntryType::kBatch, 1, "payload", &tail);
  }

 private:
  void Take(StorageOp op, bool led_on) {
    CHECK_EQ(op.token, last_token_ + 1);
    last_token_ = op.token;
    if (op.truncate_from) {
      CHECK(!led_on) << "R2: a leader cuts its log";
      CHECK_GT(*op.truncate_from, commit_) << "R5: a committed entry is cut";
      CHECK_LE(op.truncate_from->value(), log_.size());
      log_.resize(op.truncate_from->value() - 1);
    }
    for (const EntryRef& entry : op.append) {
      CHECK_EQ(entry->index.value(), log_.size() + 1);
      log_.push_back(entry->term);
    }
    pending_.push_back(std::move(op));
  }

  void CheckView(const Output& output) {
    const HardState hard = core_->hard_state();
    CHECK_GE(hard.term, hard_.term) << "R7: the term goes back";
    if (hard.term == hard_.term && !hard_.voted_for.empty()) {
      CHECK(hard.voted_for == hard_.voted_for) << "R7: a second vote in one term";
    }
    hard_ = hard;
    CHECK_GE(core_->commit_index(), commit_) << "R6: the commit index goes back";
    commit_ = core_->commit_index();
    CHECK_LE(commit_, core_->last_index());
    CHECK_EQ(core_->last_index().value(), log_.size());
    for (std::size_t i = 0; i < log_.size(); ++i) {
      const Term known = core_->TermAt(LogIndex(i + 1));
      CHECK(known == log_[i]) << "R3: the view of entry " << i + 1 << " is not what was written";
    }
    if (output.committed) CHECK_LE(output.committed->value(), durable_);
    if (core_->role() == Role::kLeader) CHECK(hard.voted_for == kSelf);
    if (core_->recovering()) CHECK(core_->role() != Role::kLeader) << "R12";
  }

  void CheckMaySend(const Envelope& envelope) const {
    CHECK(envelope.to != kSelf);
    if (const auto* vote = std::get_if<VoteResponse>(&envelope.message.body)) {
      if (vote->pre_vote || !vote->granted) return;
      CHECK(!core_->recovering()) << "R12: a recovering peer votes";
      CHECK(saved_.term == vote->term && saved_.voted_for == envelope.to)
          << "R8: a vote leaves before it is durable";
    }
    if (const auto* answer = std::get_if<AppendResponse>(&envelope.message.body)) {
      if (answer->ok) CHECK_LE(answer->match_index.value(), durable_) << "R8";
    }
  }

  std::optional<Core> core_;
  std::vector<Term> log_;  // [0] is index 1; as the core believes it
  std::vector<StorageOp> pending_;
  std::vector<LoadRequest> loads_;
  HardState saved_;
  std::size_t durable_ = 0;
  HardState hard_;
  LogIndex commit_;
  Token last_token_ = 0;
};

Term NearTerm(Input& input, const Core& core) {
  const std::uint64_t at = core.term().value() + input.Below(5);
  return Term(at < 2 ? 0 : at - 2);
}
LogIndex NearIndex(Input& input, const Core& core) {
  const std::uint64_t at = core.last_index().value() + input.Below(8);
  return LogIndex(at < 4 ? 0 : at - 4);
}

AppendRequest MakeAppend(Input& input, const Core& core) {
  AppendRequest request;
  request.term = NearTerm(input, core);
  request.prev_index = NearIndex(input, core);
  request.prev_term = input.Flag() ? core.TermAt(request.prev_index) : NearTerm(input, core);
  request.commit_index = NearIndex(input, core);
  request.read_round = input.Below(4);
  request.recovery_nonce = input.Below(4);
  request.recovery_target = NearIndex(input, core);
  LogTail tail;
  tail.next_index = request.prev_index + 1;
  Term term = std::max(request.prev_term, Term(1));
  for (std::uint64_t n = input.Below(4); n > 0; --n) {
    if (input.Flag()) term = std::max(term, NearTerm(input, core));
    const EntryType type = input.Below(6) == 0 ? EntryType::kMembership : EntryType::kBatch;
    request.entries.push_back(MakeEntry(term, type, 1, std::string(input.Take(9)), &tail));
  }
  return request;
}

Message MakeMessage(Input& input, const Core& core) {
  switch (input.Below(5)) {
    case 0: return {MakeAppend(input, core)};
    case 1: {
      AppendResponse answer;
      answer.term = NearTerm(input, core);
      answer.ok = input.Flag();
      answer.match_index = NearIndex(input, core);
      answer.conflict_index = NearIndex(input, core);
      answer.conflict_term = NearTerm(input, core);
      answer.rejected_prev = NearIndex(input, core);
      answer.read_round = input.Below(6);
      answer.recovering = input.Below(4) == 0;
      answer.recovery_nonce = input.Below(3);
      return {answer};
    }
    case 2: {
      VoteRequest request;
      request.term = NearTerm(input, core);
      request.pre_vote = input.Flag();
      request.transfer = input.Flag();
      request.last_index = NearIndex(input, core);
      request.last_term = NearTerm(input, core);
      return {request};
    }
    case 3: {
      VoteResponse vote;
      vote.term = NearTerm(input, core);
      vote.pre_vote = input.Flag();
      vote.granted = input.Below(4) != 0;
      return {vote};
    }
    default: return {TimeoutNow{.term = NearTerm(input, core)}};
  }
}

PeerId AnyPeer(Input& input) {
  static const PeerId peers[] = {PeerId("n1"), PeerId("n2"), PeerId("n1"),
                                 PeerId("n2"), PeerId("n9"), PeerId("n0")};
  return peers[input.Below(6)];
}

void Receive(Input& input, Subject* subject, std::string bytes, bool damaged) {
  const auto frame = DecodeFrame(bytes);
  CHECK(frame.ok() || damaged) << frame.status();
  if (!frame.ok()) return;
  if (!damaged) CHECK(Encode(*frame) == bytes) << "the codec changed a message";
  const Message* message = std::get_if<Message>(&frame->body);
  if (message != nullptr) subject->Step(MessageIn{.from = AnyPeer(input), .message = *message});
}

void OneStep(Input& input, Subject* subject) {
  switch (input.Below(10)) {
    case 0:
      for (std::uint64_t n = input.Below(70); n > 0; --n) subject->Step(Tick{});
      return;
    case 1: return subject->Sync(1 + input.Below(4));
    case 2: {
      const Core& core = subject->core();
      if (core.role() != Role::kLeader || core.transferring()) return;
      return subject->Step(Propose{Subject::EntryAt(core.last_index() + 1, core.term())});
    }
    case 3: return subject->Step(Disconnected{.peer = AnyPeer(input)});
    case 4: {
      static std::uint64_t context = 0;
      return subject->Step(ReadIndexRequest{.context = ++context});
    }
    case 5:
      if (subject->core().role() != Role::kLeader) return subject->AnswerLoad(input.Flag());
      return subject->Step(TransferLeadership{input.Flag() ? AnyPeer(input) : PeerId()});
    case 6: return Receive(input, subject, std::string(input.Take(input.Below(300))), true);
    default: {
      PeerFrame frame;
      frame.body = MakeMessage(input, subject->core());
      std::string bytes = Encode(frame);
      const bool damaged = input.Below(16) == 0;
      if (damaged) bytes[input.Below(65536) % bytes.size()] ^= static_cast<char>(1 + input.Byte());
      Receive(input, subject, std::move(bytes), damaged);
    }
  }
}

}  // namespace
}  // namespace triad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  triad::fuzz::Input input(data, size);
  triad::fuzz::Subject subject(input);
  for (int i = 0; i < triad::fuzz::kStepsMax && !input.empty(); ++i) {
    triad::fuzz::OneStep(input, &subject);
  }
  return 0;
}
