// raftStatus, transferLeader, addPeer, promotePeer, removePeer.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bin/admin/peers.h"
#include "bin/admin/verbs.h"
#include "remoting/codes.h"

namespace triad::admin {
namespace {

std::string Milliseconds(std::int64_t micros) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", static_cast<double>(micros) / 1000);
  return text;
}

std::string Known(std::int64_t value) {
  return value < 0 ? "" : std::to_string(value);
}

std::string DiskText(const remoting::GroupStatusBody& status) {
  char text[64];
  std::snprintf(text, sizeof text, "%.0f%%", status.disk_used_ratio * 100);
  return text;
}

void AddRow(const GroupView& group, const PeerView& peer, Table* table) {
  std::vector<std::string> row = {group.broker_name, peer.id.empty() ? "?" : peer.id};
  const remoting::GroupStatusBody status = peer.status.value_or(remoting::GroupStatusBody());
  const bool answers = peer.status.has_value();
  const auto own = [answers](const std::string& text) { return answers ? text : ""; };
  row.push_back(answers ? status.role : "down");
  row.push_back(own(std::to_string(status.term)));
  row.push_back(own(std::to_string(status.last_index)));
  row.push_back(own(std::to_string(status.commit_index)));
  row.push_back(own(std::to_string(status.applied_index)));
  const bool leads = status.role == "leader";
  const PeerView::Member member = peer.as_member.value_or(PeerView::Member());
  row.push_back(leads ? "0" : Known(member.lag_entries));
  row.push_back(leads ? "0" : Known(member.lag_bytes));
  row.push_back(leads ? "0" : Known(member.lag_ms));
  row.push_back(leads ? "0" : Known(member.heard_ago_ms));
  row.push_back(own(Milliseconds(status.sync_p99_us)));
  row.push_back(own(Milliseconds(status.loop_delay_p99_us)));
  row.push_back(own(Milliseconds(status.loop_delay_max_us)));
  row.push_back(own(DiskText(status)));
  row.push_back(answers && status.ready ? "yes" : "no");
  std::string why = answers ? status.reason : peer.why;
  if (!status.log_alarm.empty()) why += (why.empty() ? "" : "; ") + status.log_alarm;
  row.push_back(peer.address);
  row.push_back(why);
  table->Add(std::move(row));
}

int RaftStatus(const Given& given, Session* session) {
  const Result<std::vector<GroupView>> groups = ViewGroups(ChoiceOf(given), session);
  if (!groups.ok()) return Fail(groups.status());
  Table table({"#Group", "#Peer", "#Role", "#Term", "#Last", "#Committed", "#Applied",
               "#Lag Entries", "#Lag Bytes", "#Lag ms", "#Contact ms", "#Sync p99 ms",
               "#Loop p99 ms", "#Loop max ms", "#Disk", "#Ready", "#Address", "#Why"});
  for (const GroupView& group : *groups) {
    for (const PeerView& peer : group.peers) AddRow(group, peer, &table);
  }
  Print(table, given);
  return kDone;
}

// Who leads after a transfer from `from`; asked until somebody says so.
std::string NewLeader(const GroupChoice& choice, const std::string& from, Session* session) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    const Result<GroupView> group = ViewGroup(choice, session);
    if (!group.ok()) break;
    const PeerView* leader = group->leader();
    if (leader != nullptr && leader->id != from) {
      return leader->id + " (term " + std::to_string(leader->status->term) + ")";
    }
  }
  return "another peer";
}

// `to` empty: the best follower.
Result<std::string> Transfer(const GroupChoice& choice, const std::string& to, Session* session) {
  const Result<GroupView> group = ViewGroup(choice, session);
  if (!group.ok()) return group.status();
  const PeerView* leader = group->leader();
  if (leader == nullptr) {
    return Status::Unavailable("nobody leads group " + group->broker_name + " now");
  }
  if (leader->id == to) return to + " leads group " + group->broker_name + " already";
  const auto begun_at = std::chrono::steady_clock::now();
  const Result<client::Admin::Answer> answer = session->admin().Ask(
      leader->address, remoting::kTriadTransferLeader, {{"from", leader->id}, {"to", to}});
  if (!answer.ok()) return answer.status();
  if (answer->code != remoting::kSuccess) {
    return Status::Internal("leadership of " + group->broker_name + " stays with " + leader->id +
                            ": " + answer->remark);
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begun_at);
  return "leadership of group " + group->broker_name + " went from " + leader->id + " to " +
         NewLeader(choice, leader->id, session) + " in " + std::to_string(took.count()) + " ms";
}

int TransferLeader(const Given& given, Session* session) {
  const Result<std::string> done = Transfer(ChoiceOf(given), given.Text("to"), session);
  return done.ok() ? Done(*done, given) : Fail(done.status());
}

int ChangeMembership(const std::string& op, const std::string& done_text, const Given& given,
                     Session* session) {
  const std::string& id = given.Text("id");
  Result<GroupView> group = ViewGroup(ChoiceOf(given), session);
  if (!group.ok()) return Fail(group.status());
  const PeerView* leader = group->leader();
  if (leader == nullptr) {
    return Fail(Status::Unavailable("nobody leads group " + group->broker_name + " now"));
  }
  // Handed over first, so that clients notice nothing.
  if (op == "remove" && leader->id == id && group->peers.size() > 1) {
    const Result<std::string> moved = Transfer(ChoiceOf(given), "", session);
    if (!moved.ok()) return Fail(moved.status());
    Note(*moved, given);
    return ChangeMembership(op, done_text, given, session);
  }
  std::map<std::string, std::string> fields = {{"op", op}, {"id", id}, {"address", ""}};
  if (op == "add") fields["address"] = given.Text("address");
  const Result<client::Admin::Answer> answer =
      session->admin().Ask(leader->address, remoting::kTriadChangeMembership, fields);
  if (!answer.ok()) return Fail(answer.status());
  if (answer->code != remoting::kSuccess) {
    return Fail(Status::Internal("the members of " + group->broker_name +
                                 " stay as they are: " + answer->remark));
  }
  return Done(id + " " + done_text + " group " + group->broker_name, given);
}

}  // namespace

std::vector<Verb> ReplicationVerbs() {
  const Option id = {"--id", "peer id, like n3"};
  return {
      {"raftStatus", "show the peers of replication groups: who leads, who lags and why", "",
       WithGroupChoice({}), RaftStatus},
      {"transferLeader", "hand the leadership of a group to another peer", "--to n1",
       WithGroupChoice({{"--to", "peer id; without it: the best follower", ""}}), TransferLeader},
      {"addPeer", "add a new peer as a learner: it gets the log and does not vote",
       "--id n3 --address 127.0.0.1:40914",
       WithGroupChoice({id, {"--address", "host:port of its peer port, as in dLegerPeers"}}),
       [](const Given& given, Session* session) {
         return ChangeMembership("add", "is a learner of", given, session);
       }},
      {"promotePeer", "make a learner that has caught up a voter", "--id n3", WithGroupChoice({id}),
       [](const Given& given, Session* session) {
         return ChangeMembership("promote", "is a voter of", given, session);
       }},
      {"removePeer", "remove a peer, also the leader, also one that is gone", "--id n3",
       WithGroupChoice({id}),
       [](const Given& given, Session* session) {
         return ChangeMembership("remove", "is no longer a member of", given, session);
       }},
  };
}

}  // namespace triad::admin
