#include "dledger/open_log.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "dledger/snapshot/snapshot_file.h"

namespace triad::dledger {
namespace {

constexpr std::uint64_t kSegmentBytesMin = 4096;

Status CheckOptions(const NodeOptions& options) {
  std::vector<PeerId> ids;
  for (const PeerAddress& peer : options.peers) ids.push_back(peer.id);
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end()) {
    return Status::InvalidArgument("dLegerPeers names a peer twice: " + PeersText(options.peers));
  }
  if (!std::binary_search(ids.begin(), ids.end(), options.self)) {
    return Status::InvalidArgument("dLegerSelfId '" + options.self.value() +
                                   "' is not in dLegerPeers: " + PeersText(options.peers));
  }
  if (options.segment_bytes < kSegmentBytesMin || options.segment_bytes % 8 != 0) {
    return Status::InvalidArgument("segment size " + std::to_string(options.segment_bytes) +
                                   ": at least 4096 and a multiple of 8");
  }
  if (options.heartbeat.count() <= 0 || options.heartbeat >= options.election_min ||
      options.election_min >= options.election_max) {
    return Status::InvalidArgument("heartbeat < election_min < election_max is needed");
  }
  return Status::Ok();
}

Membership MembershipOf(const Recovered& found) {
  if (!found.memberships.empty()) return found.memberships.back().second;
  return found.base_membership.value_or(Membership{});
}

// The members that the log names, as dLegerPeers has them, without `self`.
std::string OtherMembers(const Membership& membership, const PeerId& self) {
  std::vector<PeerId> ids = membership.voters;
  ids.insert(ids.end(), membership.learners.begin(), membership.learners.end());
  std::erase(ids, self);
  std::string text;
  for (const PeerId& id : ids) {
    const auto address = membership.addresses.find(id);
    if (!text.empty()) text += ';';
    text += id.value() + '-' + (address == membership.addresses.end() ? "?" : address->second);
  }
  return text;
}

// With an empty disk a peer asks around in dLegerPeers. One that names nobody else would then
// found a second group and acknowledge there.
Status CheckPeersAgainst(const Membership& membership, const NodeOptions& options) {
  const std::string others = OtherMembers(membership, options.self);
  if (options.peers.size() > 1 || others.empty()) return Status::Ok();
  return Status::InvalidArgument(
      "dLegerPeers (with enableDLegerCommitLog=true) names only " + options.self.value() +
      ", but the log in " + options.dir +
      " has other members too. Write dLegerPeers=" + PeersText(options.peers) + ';' + others +
      " into the file, or a peer that loses its disk would not find its group and begin another "
      "one.");
}

// What the log and the application's state together say about this peer.
Result<Recovered> Judge(const NodeOptions& options, const Recovered& found) {
  Recovered recovered = found;
  const bool is_empty =
      found.last_index == LogIndex(0) && found.hard_state == HardState{} && !found.recovering;
  if (options.applied > found.last_index && !found.recovering) {
    const Membership membership = MembershipOf(found);
    const bool is_alone = membership.voters.empty()
                              ? options.peers.size() == 1
                              : OtherMembers(membership, options.self).empty();
    if (is_alone) {
      return Status::Corruption(
          "the state holds entries up to " + std::to_string(options.applied.value()) +
          ", but the log in " + options.dir + " ends at " +
          std::to_string(found.last_index.value()) +
          ": log and state are of different ages. Restore both from one backup, or start with an "
          "empty store directory.");
    }
    LOG(ERROR) << "the state is ahead of the log in " << options.dir << " (" << options.applied
               << " > " << found.last_index
               << "): the log lost its end, or this peer stopped before it "
               << "had the log of a state that it was sent; recovering from the group";
    // An empty store asks around first; what it hears decides.
    recovered.recovering = !is_empty;
  }
  if (options.applied + 1 < found.first_index) {
    return Status::Corruption("the state ends at entry " + std::to_string(options.applied.value()) +
                              ", but the log in " + options.dir + " begins at " +
                              std::to_string(found.first_index.value()));
  }
  recovered.applied = std::min(options.applied, found.last_index);
  return recovered;
}

}  // namespace

Result<OpenedLog> OpenLog(FileSystem& fs, const NodeOptions& options) {
  TRIAD_RETURN_IF_ERROR(CheckOptions(options));
  LogStoreOptions log_options;
  log_options.dir = options.dir;
  log_options.segment_bytes = options.segment_bytes;
  log_options.cache_bytes = options.cache_bytes;
  log_options.prepare_bytes = options.prepare_bytes;
  log_options.first_prepare_bytes =
      std::min(log_options.first_prepare_bytes, options.prepare_bytes);
  log_options.sync = options.sync_flush;
  const Result<std::unique_ptr<SnapshotFile>> ready = OpenReadySnapshot(fs, options.dir);
  if (!ready.ok()) return ready.status();
  if (ready.value() != nullptr) log_options.restart_at = (*ready)->head().base;
  const StoreStamp stamp{.group = options.group, .peer_id = options.self.value()};
  Result<std::unique_ptr<LogStore>> log = LogStore::Open(fs, log_options, stamp);
  if (!log.ok()) return log.status();
  TRIAD_RETURN_IF_ERROR(CheckPeersAgainst(MembershipOf((*log)->recovered()), options));
  TRIAD_RETURN_IF_ERROR(RemoveReadySnapshot(fs, options.dir));
  TRIAD_RETURN_IF_ERROR(CleanSnapshotDir(fs, options.dir));
  Result<Recovered> recovered = Judge(options, (*log)->recovered());
  if (!recovered.ok()) return recovered.status();
  return OpenedLog{.store = std::move(log).value(), .recovered = std::move(recovered).value()};
}

}  // namespace triad::dledger
