#include "tests/sim/sim_node.h"

#include <glog/logging.h>

#include <array>
#include <utility>

namespace triad::sim {

PeerId IdOf(int node) {
  static const std::array<PeerId, 8> ids = {PeerId("n0"), PeerId("n1"), PeerId("n2"), PeerId("n3"),
                                            PeerId("n4"), PeerId("n5"), PeerId("n6"), PeerId("n7")};
  return ids.at(static_cast<std::size_t>(node));
}

int NodeOf(const PeerId& id) {
  const std::string& name = id.value();
  return name.size() == 2 && name[0] == 'n' ? name[1] - '0' : -1;
}

EntryRef MakeEntry(Term term, LogIndex index, dledger::EntryType type, std::int64_t number,
                   std::int64_t previous_number, std::size_t payload_bytes) {
  auto entry = std::make_shared<Entry>();
  entry->term = term;
  entry->index = index;
  entry->type = type;
  entry->position = PhysicalOffset{previous_number};
  entry->store_time_ms = number;
  entry->bytes.assign(payload_bytes, 'x');
  return entry;
}

std::uint64_t HashOn(std::uint64_t state, const Entry& entry) {
  std::uint64_t seed = state ^ (entry.term.value() << 32) ^ entry.index.value() ^
                       static_cast<std::uint64_t>(entry.store_time_ms) * 0x9e3779b97f4a7c15u;
  return SplitMix(&seed);
}

void SimNode::Start(std::uint64_t seed) {
  CHECK(!up());
  const DiskImage& image = disk_.durable();
  log_ = image.log;
  dledger::Recovered recovered;
  recovered.hard_state = image.hard_state;
  recovered.last_index = LogIndex{log_.size()};
  for (const EntryRef& entry : log_) {
    if (recovered.term_runs.empty() || recovered.term_runs.back().term != entry->term) {
      recovered.term_runs.push_back({.first = entry->index, .term = entry->term});
    }
  }
  recovered.applied = image.applied;
  recovered.recovering = image.recovering;
  recovered.recovery_nonce = image.recovering ? (seed | 1) : 0;
  // The state machine starts from its synced state; a damaged log may be shorter than that.
  applied_ = std::min(image.applied, LogIndex{log_.size()});
  state_hash_ = 0;
  for (LogIndex i{0}; i < applied_; ++i) {
    state_hash_ = HashOn(state_hash_, *log_[static_cast<std::size_t>(i.value())]);
  }
  core_ = std::make_unique<Core>(config_, std::move(recovered), seed);
  ++incarnation_;
}

void SimNode::Step(const Input& input, Output* output) {
  const std::size_t before = output->storage.size();
  core_->Step(input, output);
  for (std::size_t i = before; i < output->storage.size(); ++i) {
    const StorageOp& op = output->storage[i];
    if (op.truncate_from.has_value()) {
      const auto keep = static_cast<std::size_t>(op.truncate_from->value() - 1);
      CHECK_LE(keep, log_.size());
      log_.resize(keep);
    }
    log_.insert(log_.end(), op.append.begin(), op.append.end());
  }
}

EntryRef SimNode::NextEntry(dledger::EntryType type, std::int64_t number, std::size_t bytes) const {
  const std::int64_t previous = log_.empty() ? 0 : NumberOf(log_.back());
  return MakeEntry(core_->term(), LogIndex{log_.size() + 1}, type, number, previous, bytes);
}

dledger::Loaded SimNode::Load(const dledger::LoadRequest& request) const {
  dledger::Loaded loaded{
      .peer = request.peer, .term = request.term, .from = request.from, .entries = {}};
  std::size_t bytes = 0;
  for (LogIndex index = request.from; index < request.to && index.value() <= log_.size(); ++index) {
    const EntryRef& entry = log_[static_cast<std::size_t>(index.value() - 1)];
    if (!loaded.entries.empty() && bytes + entry->size() > request.max_bytes) break;
    bytes += entry->size();
    loaded.entries.push_back(entry);
  }
  return loaded;
}

void SimNode::ApplyNext() {
  CHECK_LT(applied_.value(), log_.size());
  state_hash_ = HashOn(state_hash_, *log_[static_cast<std::size_t>(applied_.value())]);
  ++applied_;
}

}  // namespace triad::sim
