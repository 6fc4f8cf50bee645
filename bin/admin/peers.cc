#include "bin/admin/peers.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "remoting/codes.h"

namespace triad::admin {
namespace {

using remoting::GroupStatusBody;

PeerView AskPeer(const std::string& address, Session* session) {
  PeerView view;
  view.address = address;
  const Result<client::Admin::Answer> answer =
      session->admin().Ask(address, remoting::kTriadGroupStatus);
  if (!answer.ok()) {
    view.why = answer.status().message();
    return view;
  }
  if (answer->code != remoting::kSuccess) {
    view.why = "it answers " + std::to_string(answer->code) + " " + answer->remark;
    return view;
  }
  Result<GroupStatusBody> body = GroupStatusBody::Decode(answer->body);
  if (!body.ok()) {
    view.why = body.status().message();
    return view;
  }
  view.id = body->peer;
  view.status = std::move(body).value();
  return view;
}

// Asks `addresses` and everybody whom those name.
GroupView AskAll(std::string broker_name, const std::vector<std::string>& addresses,
                 Session* session) {
  GroupView group;
  group.broker_name = std::move(broker_name);
  std::vector<std::string> to_ask = addresses;
  std::set<std::string> asked;
  for (std::size_t i = 0; i < to_ask.size(); ++i) {
    if (!asked.insert(to_ask[i]).second) continue;
    PeerView view = AskPeer(to_ask[i], session);
    if (view.status) {
      if (group.broker_name.empty()) group.broker_name = view.status->broker_name;
      for (const GroupStatusBody::Member& member : view.status->members) {
        if (!member.client_address.empty()) to_ask.push_back(member.client_address);
      }
    }
    // The leader's address (leaderIP) is one more of a peer, which shows under its own.
    const auto twice = std::find_if(group.peers.begin(), group.peers.end(),
                                    [&](const PeerView& p) { return p.status && p.id == view.id; });
    if (!view.id.empty() && twice != group.peers.end()) group.peers.erase(twice);
    group.peers.push_back(std::move(view));
  }
  return group;
}

// Fills in what the leader (else anybody) knows of each member, and adds those who gave no answer.
void AddMembers(GroupView* group) {
  const PeerView* teller = group->leader();
  for (const PeerView& peer : group->peers) {
    if (teller == nullptr && peer.status) teller = &peer;
  }
  if (teller == nullptr) return;
  const std::vector<GroupStatusBody::Member> members = teller->status->members;
  for (const GroupStatusBody::Member& member : members) {
    const auto found =
        std::find_if(group->peers.begin(), group->peers.end(), [&](const PeerView& peer) {
          return peer.id.empty() ? peer.address == member.client_address : peer.id == member.id;
        });
    if (found != group->peers.end()) {
      found->id = member.id;
      found->as_member = member;
      continue;
    }
    PeerView missing;
    missing.id = member.id;
    missing.address = member.client_address;
    missing.why = "it has not been heard of since the others started";
    missing.as_member = member;
    group->peers.push_back(std::move(missing));
  }
}

bool IsChosen(const GroupView& group, const std::string& name) {
  if (name.empty() || group.broker_name == name) return true;
  return std::any_of(group.peers.begin(), group.peers.end(), [&name](const PeerView& peer) {
    return peer.status && peer.status->group == name;
  });
}

}  // namespace

const PeerView* GroupView::leader() const {
  const PeerView* best = nullptr;
  for (const PeerView& peer : peers) {
    if (!peer.status || peer.status->role != "leader") continue;
    if (best == nullptr || peer.status->term > best->status->term) best = &peer;
  }
  return best;
}

const PeerView* GroupView::Find(const std::string& id) const {
  const auto found =
      std::find_if(peers.begin(), peers.end(), [&id](const PeerView& p) { return p.id == id; });
  return found == peers.end() ? nullptr : &*found;
}

Result<std::vector<GroupView>> ViewGroups(const GroupChoice& choice, Session* session) {
  std::map<std::string, std::vector<std::string>> addresses;  // by broker name
  if (!choice.broker_address.empty()) {
    addresses[""] = {choice.broker_address};
  } else {
    Result<std::vector<client::BrokerGroup>> groups = session->admin().ClusterList();
    if (!groups.ok()) return groups.status();
    for (const client::BrokerGroup& group : *groups) {
      if (!choice.cluster.empty() && group.cluster != choice.cluster) continue;
      for (const auto& [id, address] : group.addresses)
        addresses[group.broker_name].push_back(address);
    }
  }
  std::vector<GroupView> views;
  bool is_anybody_there = false;
  for (const auto& [name, list] : addresses) {
    GroupView view = AskAll(name, list, session);
    if (!IsChosen(view, choice.group)) continue;
    AddMembers(&view);
    std::sort(view.peers.begin(), view.peers.end(),
              [](const PeerView& a, const PeerView& b) { return a.id < b.id; });
    for (const PeerView& peer : view.peers) is_anybody_there = is_anybody_there || peer.status;
    views.push_back(std::move(view));
  }
  if (views.empty()) {
    return Status::NotFound("no such group is registered at the name server" +
                            (choice.group.empty() ? std::string() : ": " + choice.group));
  }
  if (!is_anybody_there) return Status::Unavailable(views[0].peers[0].why);
  return views;
}

Result<GroupView> ViewGroup(const GroupChoice& choice, Session* session) {
  Result<std::vector<GroupView>> views = ViewGroups(choice, session);
  if (!views.ok()) return views.status();
  if (views->size() == 1) return std::move(views->front());
  std::string names;
  for (const GroupView& view : *views) names += (names.empty() ? "" : ", ") + view.broker_name;
  return Status::InvalidArgument("several groups fit, say which with -g: " + names);
}

}  // namespace triad::admin
