#include "broker/service/log_reader.h"

#include <algorithm>
#include <cstdio>

namespace triad::broker {
namespace {

std::string HashText(std::uint64_t hash) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

Status CheckStretch(std::int64_t from, std::int64_t to, std::int64_t limit) {
  if (from >= 0 && from % 8 == 0 && to % 8 == 0 && from <= to && to - from <= limit) return {};
  return Status::InvalidArgument("from and to must be multiples of 8, in order, and at most " +
                                 std::to_string(limit) + " bytes apart");
}

}  // namespace

LogReader::Bounds LogReader::CommittedBounds() const {
  const dledger::NodeStatus status = store_.node().status();
  Bounds bounds{.begin = status.begin_position, .end = status.begin_position};
  if (status.applied_index == LogIndex(0)) return bounds;
  const auto end = store_.node().raw_log().EndOf(status.applied_index);
  if (end.ok()) bounds.end = std::max(bounds.begin, *end);
  return bounds;
}

Result<remoting::LogDigestBody> LogReader::Digest(std::int64_t from, std::int64_t to,
                                                  int pieces) const {
  TRIAD_RETURN_IF_ERROR(CheckStretch(from, to, kDigestBytesMax));
  if (pieces < 1 || pieces > kDigestPiecesMax) {
    return Status::InvalidArgument("pieces: 1 to " + std::to_string(kDigestPiecesMax));
  }
  const Bounds bounds = CommittedBounds();
  remoting::LogDigestBody body;
  body.begin = bounds.begin.value();
  body.end = bounds.end.value();
  const std::int64_t size = std::max<std::int64_t>(((to - from) / pieces + 7) / 8 * 8, 8);
  for (std::int64_t at = std::max(from, body.begin); at < std::min(to, body.end);) {
    // Pieces begin at the same places, wherever a peer's log begins or ends.
    const std::int64_t end = std::min({from + ((at - from) / size + 1) * size, to, body.end});
    const auto hash = store_.node().raw_log().Digest(PhysicalOffset(at), PhysicalOffset(end));
    // Nothing but the unused rest of a segment.
    const bool is_hole = hash.status().code() == StatusCode::kNotFound;
    if (!hash.ok() && !is_hole) return hash.status();
    body.pieces.push_back({.from = at, .hash = is_hole ? "" : HashText(*hash), .to = end});
    at = end;
  }
  return body;
}

Result<remoting::LogRecordsBody> LogReader::Records(std::int64_t from, std::int64_t to) const {
  TRIAD_RETURN_IF_ERROR(CheckStretch(from, to, kRecordsBytesMax));
  remoting::LogRecordsBody body;
  const Bounds bounds = CommittedBounds();
  to = std::min(to, bounds.end.value());
  if (from >= to) return body;
  const auto records = store_.node().raw_log().Records(PhysicalOffset(from), PhysicalOffset(to));
  if (!records.ok()) return records.status();
  for (const dledger::RawRecord& record : *records) {
    body.records.push_back({.bytes = static_cast<std::int64_t>(record.bytes),
                            .damage = record.damage,
                            .hash = HashText(record.hash),
                            .index = static_cast<std::int64_t>(record.index.value()),
                            .position = record.position.value(),
                            .term = static_cast<std::int64_t>(record.term.value())});
    if (record.damage.empty()) continue;
    alarm_.Raise(record.position.value(), "the log of this peer is damaged at position " +
                                              std::to_string(record.position.value()) + ": " +
                                              record.damage);
  }
  return body;
}

Result<std::string> LogReader::Entry(std::int64_t position, std::int64_t bytes) const {
  if (position < 0 || position >= CommittedBounds().end.value()) {
    return Status::NotFound("position " + std::to_string(position) +
                            " is not in the committed log of this peer");
  }
  const auto records =
      store_.node().raw_log().Records(PhysicalOffset(position), PhysicalOffset(position + 8));
  if (!records.ok()) return records.status();
  const dledger::RawRecord& record = records->front();
  if (record.position.value() != position || static_cast<std::int64_t>(record.bytes) != bytes) {
    return Status::NotFound("no record of " + std::to_string(bytes) + " bytes begins at position " +
                            std::to_string(position));
  }
  if (!record.damage.empty()) return Status::Corruption("it is damaged here too: " + record.damage);
  return store_.node().raw_log().Bytes(PhysicalOffset(position), record.bytes);
}

}  // namespace triad::broker
