// Peers: the replication groups of a cluster as their peers describe them.
//
// Every peer is asked about itself; whom nobody could reach stands there all the same, as the
// others know it. Blocking. Thread: main.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bin/admin/session.h"
#include "remoting/bodies.h"

namespace triad::admin {

struct PeerView {
  using Member = remoting::GroupStatusBody::Member;

  std::string id;       // empty when it is only known by address
  std::string address;  // of its client port; empty = nobody knows
  std::optional<remoting::GroupStatusBody> status;
  std::string why;                  // it gave none
  std::optional<Member> as_member;  // as the leader (or else anybody) sees it
};

struct GroupView {
  std::string broker_name;
  std::vector<PeerView> peers;  // by id

  // The peer that says it leads, in the highest term; null when none does.
  const PeerView* leader() const;
  const PeerView* Find(const std::string& id) const;
};

// Which groups: of a cluster, by name (brokerName or dLegerGroup), or the one that a peer at an
// address belongs to. All empty: every group.
struct GroupChoice {
  std::string cluster;
  std::string group;
  std::string broker_address;
};

// Errors: kNotFound (no such group), kUnavailable (nobody answers).
Result<std::vector<GroupView>> ViewGroups(const GroupChoice& choice, Session* session);
// The one group of `choice`. Errors: as above; kInvalidArgument when there are several.
Result<GroupView> ViewGroup(const GroupChoice& choice, Session* session);

}  // namespace triad::admin
