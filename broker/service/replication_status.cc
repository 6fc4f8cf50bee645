#include "broker/service/replication_status.h"

#include <algorithm>
#include <string>

#include "remoting/command.h"

namespace triad::broker {
namespace {

bool Contains(const std::vector<PeerId>& ids, const PeerId& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

std::string RoleText(const dledger::NodeStatus& status, const PeerId& self) {
  switch (status.leader.role) {
    case dledger::Role::kLeader: return "leader";
    case dledger::Role::kCandidate:
    case dledger::Role::kPreCandidate: return "candidate";
    case dledger::Role::kFollower: break;
  }
  if (Contains(status.learners, self)) return "learner";
  return Contains(status.voters, self) ? "follower" : "no member";
}

std::int64_t Signed(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

}  // namespace

Readiness ReadinessOf(const dledger::NodeStatus& status, const PeerId& self, const Status& disk) {
  if (!disk.ok()) return {false, std::string(disk.message())};
  const dledger::LeaderInfo& info = status.leader;
  if (!Contains(status.voters, self) && !Contains(status.learners, self)) {
    return {false, "not a member of the group: mqadmin addPeer"};
  }
  const bool follows = info.role == dledger::Role::kFollower && !info.leader.empty() &&
                       !info.recovering && !status.log_behind_state;
  if (follows) return {true, ""};
  return {info.ready && status.not_ready_reason.empty(), status.not_ready_reason};
}

remoting::GroupStatusBody ReplicationStatus::Describe() const {
  const dledger::NodeStatus status = store_.node().status();
  remoting::GroupStatusBody body;
  body.broker_name = config_.broker_name;
  body.client_address = config_.FullClientAddress();
  body.cluster = config_.cluster_name;
  body.group = config_.dledger_group;
  body.peer = config_.self.value();
  body.version = std::string(remoting::kServerVersionName);
  body.leader = status.leader.leader.value();
  body.role = RoleText(status, config_.self);
  body.term = Signed(status.leader.term.value());
  const Readiness readiness = ReadinessOf(status, config_.self, disk_.Writable());
  body.ready = readiness.ready;
  body.reason = readiness.reason;
  // The commit index is up to a tick old: nobody shall see more applied than committed.
  body.applied_index = Signed(std::min(status.applied_index, status.commit_index).value());
  body.begin_position = status.begin_position.value();
  body.commit_index = Signed(status.commit_index.value());
  body.end_position = status.end_position.value();
  body.first_index = Signed(status.first_index.value());
  body.last_index = Signed(status.last_index.value());
  body.log_alarm = alarm_.text();
  body.disk_free_bytes = Signed(disk_.space().available_bytes);
  body.disk_used_ratio = disk_.used_ratio();
  body.loop_delay_max_us = status.loop_delay.max.count();
  body.loop_delay_p99_us = status.loop_delay.p99.count();
  body.sync_count = Signed(status.sync.count);
  body.sync_max_us = status.sync.max.count();
  body.sync_p99_us = status.sync.p99.count();
  AddMembers(status, &body);
  return body;
}

void ReplicationStatus::AddMembers(const dledger::NodeStatus& status,
                                   remoting::GroupStatusBody* body) const {
  remoting::GroupStatusBody::Member self;
  self.id = config_.self.value();
  self.client_address = config_.FullClientAddress();
  self.connected = true;
  self.heard_ago_ms = 0;
  self.learner = Contains(status.learners, config_.self);
  self.recovering = status.leader.recovering;
  body->members.push_back(std::move(self));
  const bool leads = status.leader.role == dledger::Role::kLeader;
  for (const dledger::NodeStatus::Peer& peer : status.peers) {
    remoting::GroupStatusBody::Member member;
    member.id = peer.id.value();
    member.peer_address = peer.peer_address;
    member.client_address = peer.client_address;
    member.connected = peer.connected;
    if (peer.heard_ago) member.heard_ago_ms = peer.heard_ago->count();
    member.learner = Contains(status.learners, peer.id);
    member.recovering = peer.recovering;
    if (leads) AddLag(status, peer.match, &member);
    body->members.push_back(std::move(member));
  }
  std::sort(body->members.begin(), body->members.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
}

void ReplicationStatus::AddLag(const dledger::NodeStatus& status, LogIndex match,
                               remoting::GroupStatusBody::Member* member) const {
  member->lag_entries = Signed(status.last_index.value()) - Signed(match.value());
  if (member->lag_entries <= 0) {
    member->lag_entries = member->lag_bytes = member->lag_ms = 0;
    return;
  }
  dledger::Node& node = store_.node();
  const auto lacking = node.ReadRange(match + 1, match + 2, 1);
  if (!lacking.ok() || lacking->empty()) return;
  const dledger::EntryRef& first = lacking->front();
  member->lag_bytes = std::max<std::int64_t>(status.end_position - first->position, 0);
  member->lag_ms = std::max<std::int64_t>(node.LogTimeMs() - first->store_time_ms, 0);
}

}  // namespace triad::broker
