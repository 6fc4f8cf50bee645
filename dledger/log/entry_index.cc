#include "dledger/log/entry_index.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>

#include "dledger/membership_codec.h"

namespace triad::dledger {

void LogOutline::Add(const EntryHeader& header) {
  const bool first_of_segment = points.empty() || points.back().segment_base != header.segment_base;
  if (first_of_segment || header.position - points.back().position >= kBlockBytes) {
    points.push_back({header.index, header.position, header.segment_base});
  }
  if (term_runs.empty() || term_runs.back().term != header.term) {
    term_runs.push_back({header.index, header.term});
  }
  last_position = header.position;
  tail = TailAfter(header);
  SegmentSpan& span = spans[header.segment_base];
  if (header.position == header.segment_base) span.first_crc = header.header_crc;
  span.end = tail.position;
}

void LogOutline::CutTo(const LogTail& new_tail, PhysicalOffset new_last_position) {
  while (!points.empty() && points.back().index >= new_tail.next_index) points.pop_back();
  while (!term_runs.empty() && term_runs.back().first >= new_tail.next_index) term_runs.pop_back();
  while (!memberships.empty() && memberships.back().first >= new_tail.next_index) {
    memberships.pop_back();
  }
  spans.erase(spans.upper_bound(new_tail.segment_base), spans.end());
  if (new_tail.next_index == base.tail.next_index) {
    spans.clear();
  } else {
    spans[new_tail.segment_base].end = new_tail.position;
  }
  tail = new_tail;
  last_position = new_last_position;
}

void LogOutline::DropBefore(const StoreBase& new_base) {
  base = new_base;
  const LogIndex first = base.tail.next_index;
  std::erase_if(points, [first](const IndexPoint& point) { return point.index < first; });
  while (term_runs.size() > 1 && term_runs[1].first <= first) term_runs.erase(term_runs.begin());
  if (!term_runs.empty()) term_runs.front().first = std::max(term_runs.front().first, first);
  std::erase_if(memberships, [first](const auto& change) { return change.first < first; });
  spans.erase(spans.begin(), spans.lower_bound(base.tail.position));
}

Membership LogOutline::MembershipBefore(LogIndex index) const {
  Membership membership = base.membership;
  for (const auto& [at, change] : memberships) {
    if (at < index) membership = change;
  }
  return membership;
}

void EntryIndex::Reset(LogOutline outline, const SegmentMap& segments) {
  const std::lock_guard hold(mutex_);
  outline_ = std::move(outline);
  files_.clear();
  for (const auto& [base, span] : outline_.spans) files_[base] = segments.at(base);
  synced_tail_ = outline_.tail;
  synced_last_position_ = outline_.last_position;
  ++era_;
}

void EntryIndex::Append(std::span<const EntryRef> entries,
                        const std::shared_ptr<SegmentFile>& segment) {
  const std::lock_guard hold(mutex_);
  for (const EntryRef& entry : entries) {
    outline_.Add(EntryHeader{.type = entry->type,
                             .total_bytes = static_cast<std::uint32_t>(entry->size()),
                             .term = entry->term,
                             .index = entry->index,
                             .position = entry->position,
                             .segment_base = entry->segment_base,
                             .store_time_ms = entry->store_time_ms,
                             .header_crc = entry->header_crc});
    Membership membership;
    if (entry->type == EntryType::kMembership && DecodeMembershipEntry(*entry, &membership)) {
      outline_.memberships.emplace_back(entry->index, std::move(membership));
    }
  }
  files_[segment->base()] = segment;
}

void EntryIndex::CutTo(const LogTail& tail, PhysicalOffset last_position) {
  const std::lock_guard hold(mutex_);
  outline_.CutTo(tail, last_position);
  files_.erase(files_.upper_bound(tail.segment_base), files_.end());
  ++era_;
  if (synced_tail_.next_index > tail.next_index) {
    synced_tail_ = tail;
    synced_last_position_ = last_position;
  }
}

void EntryIndex::DropBefore(const StoreBase& base) {
  const std::lock_guard hold(mutex_);
  CHECK_LE(base.tail.next_index, synced_tail_.next_index);
  outline_.DropBefore(base);
  files_.erase(files_.begin(), files_.lower_bound(base.tail.position));
  ++era_;
}

void EntryIndex::MarkSynced() {
  const std::lock_guard hold(mutex_);
  synced_tail_ = outline_.tail;
  synced_last_position_ = outline_.last_position;
}

EntryIndex::Block EntryIndex::BlockLocked(std::size_t point) const {
  const std::vector<IndexPoint>& points = outline_.points;
  const IndexPoint& at = points[point];
  const bool has_next =
      point + 1 < points.size() && points[point + 1].segment_base == at.segment_base;
  return Block{
      .file = files_.at(at.segment_base),
      .begin = at.position,
      .end = has_next ? points[point + 1].position : outline_.spans.at(at.segment_base).end,
      .first = at.index};
}

std::optional<EntryIndex::Block> EntryIndex::BlockAt(PhysicalOffset inside) const {
  const std::lock_guard hold(mutex_);
  const std::vector<IndexPoint>& points = outline_.points;
  const auto behind =
      std::upper_bound(points.begin(), points.end(), inside,
                       [](PhysicalOffset at, const IndexPoint& p) { return at < p.position; });
  if (behind == points.begin()) return std::nullopt;
  Block block = BlockLocked(static_cast<std::size_t>(behind - points.begin()) - 1);
  if (inside >= block.end) return std::nullopt;  // the zeros behind a segment's last entry
  return block;
}

std::optional<EntryIndex::Block> EntryIndex::BlockOf(LogIndex index) const {
  const std::lock_guard hold(mutex_);
  if (index >= outline_.tail.next_index) return std::nullopt;
  const std::vector<IndexPoint>& points = outline_.points;
  const auto behind =
      std::upper_bound(points.begin(), points.end(), index,
                       [](LogIndex at, const IndexPoint& p) { return at < p.index; });
  if (behind == points.begin()) return std::nullopt;
  return BlockLocked(static_cast<std::size_t>(behind - points.begin()) - 1);
}

std::optional<EntryIndex::Block> EntryIndex::StretchFrom(PhysicalOffset from) const {
  const std::lock_guard hold(mutex_);
  const auto& spans = outline_.spans;
  auto segment = spans.upper_bound(from);
  if (segment != spans.begin()) --segment;
  while (segment != spans.end() && segment->second.end <= from) ++segment;
  if (segment == spans.end()) return std::nullopt;
  return Block{.file = files_.at(segment->first),
               .begin = std::max(from, segment->first),
               .end = segment->second.end,
               .first = LogIndex(0)};
}

LogTail EntryIndex::tail() const {
  const std::lock_guard hold(mutex_);
  return outline_.tail;
}

PhysicalOffset EntryIndex::last_position() const {
  const std::lock_guard hold(mutex_);
  return outline_.last_position;
}

StoreBase EntryIndex::base() const {
  const std::lock_guard hold(mutex_);
  return outline_.base;
}

Membership EntryIndex::MembershipBefore(LogIndex index) const {
  const std::lock_guard hold(mutex_);
  return outline_.MembershipBefore(index);
}

std::optional<Term> EntryIndex::TermAt(LogIndex index) const {
  const std::lock_guard hold(mutex_);
  const std::vector<TermRun>& runs = outline_.term_runs;
  if (index < outline_.base.tail.next_index || index >= outline_.tail.next_index) return {};
  const auto behind = std::partition_point(
      runs.begin(), runs.end(), [index](const TermRun& run) { return run.first <= index; });
  if (behind == runs.begin()) return {};
  return std::prev(behind)->term;
}

std::vector<SegmentFacts> EntryIndex::Segments() const {
  const std::lock_guard hold(mutex_);
  std::vector<SegmentFacts> segments;
  for (const auto& [base, span] : outline_.spans) {
    const auto point =
        std::partition_point(outline_.points.begin(), outline_.points.end(),
                             [at = base](const IndexPoint& p) { return p.position < at; });
    CHECK(point != outline_.points.end());
    segments.push_back({.base = base, .end = span.end, .first = point->index});
  }
  return segments;
}

std::optional<EntryIndex::Synced> EntryIndex::SyncedSince(CheckpointMark* mark, bool whole) const {
  const std::lock_guard hold(mutex_);
  Synced synced{.whole = whole || mark->era != era_, .outline = {}};
  const LogTail from = synced.whole ? outline_.base.tail : mark->tail;
  if (synced_tail_.next_index <= from.next_index) return std::nullopt;
  LogOutline& out = synced.outline;
  const auto is_new = [&from](LogIndex index) { return index >= from.next_index; };
  const auto point = std::partition_point(outline_.points.begin(), outline_.points.end(),
                                          [&](const IndexPoint& at) { return !is_new(at.index); });
  out.points.assign(point, outline_.points.end());
  std::copy_if(outline_.term_runs.begin(), outline_.term_runs.end(),
               std::back_inserter(out.term_runs),
               [&](const TermRun& run) { return is_new(run.first); });
  std::copy_if(outline_.memberships.begin(), outline_.memberships.end(),
               std::back_inserter(out.memberships),
               [&](const auto& change) { return is_new(change.first); });
  out.spans.insert(outline_.spans.lower_bound(from.segment_base), outline_.spans.end());
  out.base = outline_.base;
  out.tail = outline_.tail;
  out.last_position = outline_.last_position;
  if (out.tail.next_index != synced_tail_.next_index) {
    out.CutTo(synced_tail_, synced_last_position_);
  }
  *mark = {.era = era_, .tail = out.tail};
  return synced;
}

}  // namespace triad::dledger
