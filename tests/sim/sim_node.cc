#include "tests/sim/sim_node.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace triad::sim {

std::uint64_t HashOn(std::uint64_t state, const Entry& entry) {
  std::uint64_t seed = state ^ (entry.term.value() << 32) ^ entry.index.value() ^
                       static_cast<std::uint64_t>(entry.store_time_ms) * 0x9e3779b97f4a7c15u;
  return SplitMix(&seed);
}

SimNode::SimNode(int node, CoreConfig config) : node_(node), config_(std::move(config)) {
  disk_.durable().log = SimLog(config_.initial_membership);
}

void SimNode::Start(std::uint64_t seed) {
  CHECK(!up());
  const DiskImage& image = disk_.durable();
  log_ = image.log;
  staged_.reset();
  dledger::Recovered recovered;
  recovered.hard_state = image.hard_state;
  recovered.first_index = log_.first();
  recovered.base_term = log_.base().term;
  recovered.base_membership = log_.base().membership;
  recovered.last_index = log_.last();
  for (const EntryRef& entry : log_.entries()) {
    if (recovered.term_runs.empty() || recovered.term_runs.back().term != entry->term) {
      recovered.term_runs.push_back({.first = entry->index, .term = entry->term});
    }
  }
  recovered.memberships = log_.memberships();
  recovered.applied = image.applied;
  recovered.recovering = image.recovering;
  recovered.recovery_nonce = image.recovering ? (seed | 1) : 0;
  applied_ = image.applied;
  state_hash_ = image.state_hash;
  core_ = std::make_unique<Core>(config_, std::move(recovered), seed);
  core_->set_membership_decoder(&DecodeMembers);
  ++incarnation_;
}

void SimNode::Step(const Input& input, Output* output) {
  const std::size_t before = output->storage.size();
  core_->Step(input, output);
  for (std::size_t i = before; i < output->storage.size(); ++i) {
    const StorageOp& op = output->storage[i];
    if (op.truncate_from.has_value()) log_.TruncateFrom(*op.truncate_from);
    if (op.reset.has_value()) {
      CHECK(staged_.has_value());
      log_.Reset(*op.reset, staged_->base_number);
      applied_ = staged_->applied;
      state_hash_ = staged_->state_hash;
      disk_.Stage(op.token, *std::exchange(staged_, std::nullopt));
    }
    for (const EntryRef& entry : op.append) log_.Append(entry);
  }
  staged_.reset();
}

EntryRef SimNode::NextEntry(dledger::EntryType type, std::int64_t number, std::string bytes) const {
  return MakeEntry(core_->term(), log_.last() + 1, type, number, log_.NumberAt(log_.last()),
                   std::move(bytes));
}

dledger::Loaded SimNode::Load(const dledger::LoadRequest& request) const {
  dledger::Loaded loaded{
      .peer = request.peer, .term = request.term, .from = request.from, .entries = {}};
  std::size_t bytes = 0;
  for (LogIndex index = request.from; index < request.to; ++index) {
    const EntryRef* entry = log_.Find(index);
    if (entry == nullptr) break;
    if (!loaded.entries.empty() && bytes + (*entry)->size() > request.max_bytes) break;
    bytes += (*entry)->size();
    loaded.entries.push_back(*entry);
  }
  return loaded;
}

void SimNode::ApplyNext() {
  const EntryRef* entry = log_.Find(applied_ + 1);
  CHECK(entry != nullptr);
  state_hash_ = HashOn(state_hash_, **entry);
  ++applied_;
}

void SimNode::SyncState() {
  if (disk_.reset_pending()) return;  // the state on the disk is still the one that goes
  disk_.durable().applied = applied_;
  disk_.durable().state_hash = state_hash_;
}

Snapshot SimNode::TakeSnapshot() const {
  return Snapshot{.base = log_.base(),
                  .base_number = log_.base_number(),
                  .applied = applied_,
                  .state_hash = state_hash_};
}

LogIndex SimNode::MayPurgeBefore() const {
  if (disk_.reset_pending()) return log_.first();
  const LogIndex safe =
      std::min({disk_.durable().applied, core_->commit_index(), core_->durable_index()});
  return std::max(log_.first(), safe + 1);
}

void SimNode::Purge(LogIndex first, Output* output) {
  CHECK(first <= MayPurgeBefore());
  const LogBase base = core_->BaseAt(first);
  disk_.durable().log.PurgeBefore(first);
  log_.PurgeBefore(first);
  CHECK(base == log_.base()) << "the core knows another base";
  Step(dledger::Purged{.first_index = first}, output);
}

}  // namespace triad::sim
