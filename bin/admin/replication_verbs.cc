// raftStatus, transferLeader, addPeer, promotePeer, removePeer.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bin/admin/peers.h"
#include "bin/admin/verbs.h"
#include "bin/table.h"
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

int RaftStatus(const GroupChoice& choice, const std::string& format, Session* session) {
  const Result<std::vector<GroupView>> groups = ViewGroups(choice, session);
  if (!groups.ok()) return Fail(groups.status());
  Table table({"#Group", "#Peer", "#Role", "#Term", "#Last", "#Committed", "#Applied",
               "#Lag Entries", "#Lag Bytes", "#Lag ms", "#Contact ms", "#Sync p99 ms",
               "#Loop p99 ms", "#Loop max ms", "#Disk", "#Ready", "#Address", "#Why"});
  for (const GroupView& group : *groups) {
    for (const PeerView& peer : group.peers) AddRow(group, peer, &table);
  }
  Print(table, format);
  return kDone;
}

struct TransferOptions {
  GroupChoice choice;
  std::string to;
};

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

int TransferLeader(const TransferOptions& o, Session* session) {
  const Result<GroupView> group = ViewGroup(o.choice, session);
  if (!group.ok()) return Fail(group.status());
  const PeerView* leader = group->leader();
  if (leader == nullptr) {
    return Fail(Status::Unavailable("nobody leads group " + group->broker_name + " now"));
  }
  if (leader->id == o.to) {
    std::printf("%s leads group %s already\n", o.to.c_str(), group->broker_name.c_str());
    return kDone;
  }
  const auto begun_at = std::chrono::steady_clock::now();
  const Result<client::Admin::Answer> answer = session->admin().Ask(
      leader->address, remoting::kTriadTransferLeader, {{"from", leader->id}, {"to", o.to}});
  if (!answer.ok()) return Fail(answer.status());
  if (answer->code != remoting::kSuccess) {
    std::fprintf(stderr, "mqadmin: leadership of %s stays with %s: %s\n",
                 group->broker_name.c_str(), leader->id.c_str(), answer->remark.c_str());
    return kRefused;
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begun_at);
  std::printf("leadership of group %s went from %s to %s in %lld ms\n", group->broker_name.c_str(),
              leader->id.c_str(), NewLeader(o.choice, leader->id, session).c_str(),
              static_cast<long long>(took.count()));
  return kDone;
}

struct ChangeOptions {
  GroupChoice choice;
  std::string id;
  std::string address;
};

int ChangeMembership(const std::string& op, const ChangeOptions& o, const std::string& done_text,
                     Session* session) {
  Result<GroupView> group = ViewGroup(o.choice, session);
  if (!group.ok()) return Fail(group.status());
  const PeerView* leader = group->leader();
  if (leader == nullptr) {
    return Fail(Status::Unavailable("nobody leads group " + group->broker_name + " now"));
  }
  // Handed over first, so that clients notice nothing.
  if (op == "remove" && leader->id == o.id && group->peers.size() > 1) {
    TransferOptions away;
    away.choice = o.choice;
    const int moved = TransferLeader(away, session);
    if (moved != kDone) return moved;
    return ChangeMembership(op, o, done_text, session);
  }
  const Result<client::Admin::Answer> answer =
      session->admin().Ask(leader->address, remoting::kTriadChangeMembership,
                           {{"op", op}, {"id", o.id}, {"address", o.address}});
  if (!answer.ok()) return Fail(answer.status());
  if (answer->code != remoting::kSuccess) {
    std::fprintf(stderr, "mqadmin: the members of %s stay as they are: %s\n",
                 group->broker_name.c_str(), answer->remark.c_str());
    return kRefused;
  }
  std::printf("%s %s group %s\n", o.id.c_str(), done_text.c_str(), group->broker_name.c_str());
  return kDone;
}

void AddChangeVerb(Registry* verbs, const char* name, const char* help, const char* op,
                   const char* done_text) {
  const auto o = std::make_shared<ChangeOptions>();
  CLI::App* verb = verbs->Add(name, help, [o, op = std::string(op), done_text](Session* session) {
    return ChangeMembership(op, *o, done_text, session);
  });
  AddGroupChoice(verb, &o->choice);
  verb->add_option("--id", o->id, "peer id, like n3")->required();
  if (std::string(op) == "add") {
    verb->add_option("--address", o->address, "host:port of its peer port, as in dLegerPeers")
        ->required();
  }
}

}  // namespace

void AddReplicationVerbs(Registry* verbs) {
  struct StatusOptions {
    GroupChoice choice;
    std::string format = "table";
  };
  const auto status = std::make_shared<StatusOptions>();
  CLI::App* verb = verbs->Add(
      "raftStatus", "show the peers of replication groups: who leads, who lags and why",
      [status](Session* session) { return RaftStatus(status->choice, status->format, session); });
  AddGroupChoice(verb, &status->choice);
  AddOutput(verb, &status->format);

  const auto transfer = std::make_shared<TransferOptions>();
  verb = verbs->Add("transferLeader", "hand the leadership of a group to another peer",
                    [transfer](Session* session) { return TransferLeader(*transfer, session); });
  AddGroupChoice(verb, &transfer->choice);
  verb->add_option("--to", transfer->to, "peer id; without it: the best follower");

  AddChangeVerb(verbs, "addPeer", "add a new peer as a learner: it gets the log and does not vote",
                "add", "is a learner of");
  AddChangeVerb(verbs, "promotePeer", "make a learner that has caught up a voter", "promote",
                "is a voter of");
  AddChangeVerb(verbs, "removePeer", "remove a peer, also the leader, also one that is gone",
                "remove", "is no longer a member of");
}

}  // namespace triad::admin
