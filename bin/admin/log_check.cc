#include "bin/admin/log_check.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "remoting/codes.h"

namespace triad::admin {
namespace {

constexpr std::int64_t kStretchBytes = 8 << 20;
constexpr int kPieces = 64;  // of a stretch that differs
constexpr std::size_t kDifferencesMax = 1000;

using Record = LogDifference::Record;
using Steady = std::chrono::steady_clock;

std::map<std::string, std::string> Range(std::int64_t from, std::int64_t to) {
  return {{"from", std::to_string(from)}, {"to", std::to_string(to)}};
}

// Those with right CRCs that agree; when there are several such camps, the one with a majority.
std::vector<std::string> RightPeers(const std::map<std::string, Record>& here) {
  std::map<std::string, std::vector<std::string>> camps;  // by hash
  for (const auto& [peer, record] : here) {
    if (record.bytes > 0 && record.damage.empty()) camps[record.hash].push_back(peer);
  }
  if (camps.size() == 1) return camps.begin()->second;
  for (const auto& [hash, peers] : camps) {
    if (peers.size() * 2 > here.size()) return peers;
  }
  return {};
}

// Behind a header that cannot be read nothing more is found there: that one is shown, and what it
// hides when it is mended.
bool IsHidden(const std::map<std::int64_t, Record>& records, std::int64_t position) {
  auto before = records.upper_bound(position);
  if (before == records.begin()) return false;
  --before;
  const Record& record = before->second;
  return record.index == 0 && position < record.position + record.bytes;
}

}  // namespace

bool LogDifference::IsRight(const std::string& peer) const {
  return std::find(right.begin(), right.end(), peer) != right.end();
}

Result<std::string> LogCheck::Ask(const std::string& peer, int code,
                                  const std::map<std::string, std::string>& fields) {
  const PeerView* view = group_.Find(peer);
  Result<client::Admin::Answer> answer = session_->admin().Ask(view->address, code, fields);
  if (!answer.ok())
    return Status::Unavailable(peer + ": " + std::string(answer.status().message()));
  if (answer->code == remoting::kSuccess) return std::move(answer->body);
  return Status::InvalidArgument(peer + " answers: " + answer->remark);
}

Result<LogCheck::Bounds> LogCheck::FindBounds() {
  Bounds bounds;
  bool is_first = true;
  for (const PeerView& peer : group_.peers) {
    const auto leave_out = [&](const std::string& why) {
      bounds.left_out.push_back((peer.id.empty() ? peer.address : peer.id) + " (" + why + ")");
    };
    if (!peer.status) {
      leave_out(peer.why);
      continue;
    }
    const Result<std::string> text = Ask(peer.id, remoting::kTriadLogDigest, Range(0, 0));
    if (!text.ok()) {
      leave_out(std::string(text.status().message()));
      continue;
    }
    const auto digest = remoting::LogDigestBody::Decode(*text);
    if (!digest.ok()) return digest.status();
    if (digest->end <= digest->begin) {
      leave_out("nothing in its log is committed yet");
      continue;
    }
    bounds.begin = is_first ? digest->begin : std::max(bounds.begin, digest->begin);
    bounds.end = is_first ? digest->end : std::min(bounds.end, digest->end);
    is_first = false;
    bounds.peers.push_back(peer.id);
  }
  if (bounds.peers.size() < 2) {
    std::string why = "two peers at least must answer";
    for (const std::string& each : bounds.left_out) why += "; " + each;
    return Status::Unavailable(why);
  }
  peers_ = bounds.peers;
  return bounds;
}

Result<bool> LogCheck::IsSame(std::int64_t from, std::int64_t to,
                              std::vector<remoting::LogDigestBody::Piece>* differing, int pieces) {
  std::map<std::string, std::string> fields = Range(from, to);
  fields["pieces"] = std::to_string(pieces);
  std::vector<remoting::LogDigestBody::Piece> reference;
  std::set<std::int64_t> different;
  for (const std::string& peer : peers_) {
    const Result<std::string> text = Ask(peer, remoting::kTriadLogDigest, fields);
    if (!text.ok()) return text.status();
    const auto digest = remoting::LogDigestBody::Decode(*text);
    if (!digest.ok()) return digest.status();
    if (reference.empty()) reference = digest->pieces;
    if (digest->pieces.size() != reference.size()) {
      return Status::Unavailable(peer + " no longer keeps the same stretch of the log; try again");
    }
    for (std::size_t i = 0; i < reference.size(); ++i) {
      if (!(digest->pieces[i] == reference[i])) different.insert(reference[i].from);
    }
  }
  for (const auto& piece : reference) {
    if (different.contains(piece.from)) differing->push_back(piece);
  }
  return different.empty();
}

Status LogCheck::Records(std::int64_t from, std::int64_t to, std::vector<LogDifference>* found) {
  std::map<std::string, std::map<std::int64_t, Record>> by_peer;
  std::set<std::int64_t> positions;
  for (const std::string& peer : peers_) {
    const Result<std::string> text = Ask(peer, remoting::kTriadLogRecords, Range(from, to));
    if (!text.ok()) return text.status();
    const auto body = remoting::LogRecordsBody::Decode(*text);
    if (!body.ok()) return body.status();
    for (const Record& record : body->records) {
      by_peer[peer][record.position] = record;
      positions.insert(record.position);
    }
  }
  for (const std::int64_t position : positions) {
    LogDifference difference;
    difference.position = position;
    std::set<std::string> hashes;
    for (const std::string& peer : peers_) {
      const auto record = by_peer[peer].find(position);
      const Record* at = record != by_peer[peer].end() ? &record->second : nullptr;
      if (at == nullptr && IsHidden(by_peer[peer], position)) continue;
      difference.here[peer] = at != nullptr ? *at : Record();
      hashes.insert(at != nullptr && at->damage.empty() ? at->hash : "damaged at " + peer);
    }
    if (hashes.size() == 1) continue;
    difference.right = RightPeers(difference.here);
    for (const auto& [peer, record] : difference.here) {
      if (record.bytes == 0 || !record.damage.empty()) continue;
      difference.bytes = record.bytes;
      difference.index = record.index;
    }
    if (!found->empty() && found->back().position >= position) continue;  // spans two pieces
    if (found->size() < kDifferencesMax) found->push_back(std::move(difference));
  }
  return {};
}

Result<std::vector<LogDifference>> LogCheck::Compare(
    std::int64_t from, std::int64_t to, std::int64_t bytes_per_second,
    const std::function<void(std::int64_t)>& progress) {
  std::vector<LogDifference> found;
  const Steady::time_point begun_at = Steady::now();
  for (std::int64_t at = from; at < to && found.size() < kDifferencesMax;) {
    const std::int64_t end = std::min(at + kStretchBytes, to);
    std::vector<remoting::LogDigestBody::Piece> differing;
    const Result<bool> same = IsSame(at, end, &differing, 1);
    if (!same.ok()) return same.status();
    if (!*same) {
      differing.clear();
      const Result<bool> finer = IsSame(at, end, &differing, kPieces);
      if (!finer.ok()) return finer.status();
      for (const auto& piece : differing) {
        TRIAD_RETURN_IF_ERROR(Records(piece.from, piece.to, &found));
      }
    }
    at = end;
    progress(at);
    if (bytes_per_second > 0) {
      std::this_thread::sleep_until(
          begun_at + std::chrono::microseconds((at - from) * 1000000 / bytes_per_second));
    }
  }
  return found;
}

Status LogCheck::Repair(const LogDifference& difference) {
  if (difference.right.empty()) {
    return Status::InvalidArgument("position " + std::to_string(difference.position) +
                                   ": no copy is certainly right; nothing is changed");
  }
  std::string sources;
  for (const std::string& peer : difference.right) {
    sources += (sources.empty() ? "" : ";") + group_.Find(peer)->address;
  }
  for (const auto& [peer, record] : difference.here) {
    if (difference.IsRight(peer)) continue;
    if (record.bytes > 0 && record.damage.empty()) {
      return Status::InvalidArgument(
          "position " + std::to_string(difference.position) + ": " + peer +
          " has another whole record: two histories. Stop that peer, empty its store and start it "
          "again; it copies the log from the others");
    }
    const Result<std::string> done = Ask(peer, remoting::kTriadLogRepair,
                                         {{"position", std::to_string(difference.position)},
                                          {"bytes", std::to_string(difference.bytes)},
                                          {"sources", sources}});
    if (!done.ok()) return done.status();
  }
  return {};
}

}  // namespace triad::admin
