#include "broker/store/queue_repair.h"

#include <glog/logging.h>

#include <algorithm>
#include <vector>

#include "common/broken_ground.h"

namespace triad::broker {
namespace {

constexpr std::uint64_t kEntriesPerRead = 1024;

}  // namespace

void QueueRepair::Step(LogIndex dispatched, TimePoint deadline) {
  do {
    const Result<std::optional<ConsumeQueueStore::Hole>> hole = queues_->FindHole();
    if (!MayGoOn(hole.status())) return;
    if (!hole->has_value()) {
      LOG_IF(INFO, is_filling_) << "the consume queues are whole again";
      is_filling_ = false;
      return;
    }
    is_filling_ = true;
    if (!Advance(**hole, dispatched)) return;
  } while (clock_.MonoNow() < deadline);
}

bool QueueRepair::Advance(const ConsumeQueueStore::Hole& hole, LogIndex dispatched) {
  const bool goes_on = search_ && search_->queue == hole.queue && search_->at == hole.begin;
  if (!goes_on && !Begin(hole)) return false;
  if (search_->next > dispatched) {
    if (search_->whole) return MayGoOn(queues_->CloseHole(hole.queue));
    BeginWithTheLog(hole);
    return true;
  }
  const LogIndex behind = std::min(dispatched, search_->next + kEntriesPerRead) + 1;
  const auto entries = node_->ReadRange(search_->next, behind, kRepairBytes);
  if (entries.status().code() == StatusCode::kNotFound) {
    // Retention went past it, or this peer's disk does not have it yet.
    if (search_->next >= node_->status().first_index) return false;
    BeginWithTheLog(hole);
    return true;
  }
  if (!entries.ok()) {
    LOG_EVERY_N(ERROR, 100) << "a consume queue cannot be rebuilt: " << entries.status();
    return false;
  }
  std::vector<EntryDispatcher::PlacedUnit> found;
  for (const dledger::EntryRef& entry : *entries) {
    auto units = dispatcher_->UnitsOf(*entry, hole.queue, hole.begin, hole.end);
    LOG_IF(FATAL, !units.ok()) << "a committed entry cannot be read: " << units.status();
    found.insert(found.end(), units->begin(), units->end());
  }
  // Messages of an earlier topic of the same name are not this one's.
  const std::optional<TopicConfig> topic = state_.FindTopic(hole.queue.topic);
  const PhysicalOffset own = topic ? topic->created_position : PhysicalOffset{0};
  std::erase_if(found, [&](const auto& placed) { return placed.unit.position < own; });
  if (!found.empty() && found.front().offset > hole.begin && !search_->whole) {
    BeginWithTheLog(hole);
    return true;
  }
  if (!found.empty() && !MayGoOn(Feed(hole, found))) return false;
  if (!found.empty()) search_->at = found.back().offset + 1;
  search_->next = entries->back()->index + 1;
  if (search_->at == hole.end) search_.reset();  // the next hole is another one
  return true;
}

bool QueueRepair::Begin(const ConsumeQueueStore::Hole& hole) {
  if (!hole.behind) {
    BeginWithTheLog(hole);
    return true;
  }
  const Result<dledger::EntryRef> entry = node_->ReadAt(*hole.behind);
  if (entry.ok()) {
    search_ =
        Search{.queue = hole.queue, .at = hole.begin, .next = (*entry)->index, .whole = false};
    return true;
  }
  if (*hole.behind >= node_->begin_position()) {  // not on this peer's disk yet
    LOG_EVERY_N(ERROR, 100) << "a consume queue cannot be rebuilt now: " << entry.status();
    return false;
  }
  BeginWithTheLog(hole);
  return true;
}

void QueueRepair::BeginWithTheLog(const ConsumeQueueStore::Hole& hole) {
  search_ = Search{
      .queue = hole.queue, .at = hole.begin, .next = node_->status().first_index, .whole = true};
}

// Runs of neighbours: a gap behind the first unit cannot be, offsets in a queue are dense.
Status QueueRepair::Feed(const ConsumeQueueStore::Hole& hole,
                         std::span<const EntryDispatcher::PlacedUnit> found) {
  std::vector<QueueUnit> units;
  units.reserve(found.size());
  for (const EntryDispatcher::PlacedUnit& placed : found) {
    const QueueOffset expected = found.front().offset + static_cast<std::int64_t>(units.size());
    LOG_IF(FATAL, placed.offset != expected)
        << "the log has offset " << placed.offset << " of topic " << hole.queue.topic << " queue "
        << hole.queue.queue_id << " where " << expected << " belongs";
    units.push_back(placed.unit);
  }
  return queues_->Feed(hole.queue, found.front().offset, units);
}

// A full disk is waited for; any other failed write of derived data ends the process.
bool QueueRepair::MayGoOn(const Status& status) {
  if (status.ok()) return true;
  if (status.code() != StatusCode::kNoSpace) {
    DieOfBrokenGround("a consume queue cannot be rebuilt: " + status.ToString() +
                      ". Check the disk, then start again: nothing acknowledged is lost, it is in "
                      "the log.");
  }
  return false;
}

}  // namespace triad::broker
