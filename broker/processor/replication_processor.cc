#include "broker/processor/replication_processor.h"

#include <glog/logging.h>

#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "broker/processor/response.h"

namespace triad::broker {
namespace {

constexpr std::chrono::milliseconds kTransferBudget{10000};
constexpr std::chrono::milliseconds kTransferTimeout{3000};

}  // namespace

void ReplicationProcessor::Register(Dispatcher* dispatcher) {
  dispatcher->RegisterForLeader(
      remoting::kTriadChangeMembership, LeaderGate::For(kTransferBudget, remoting::kSystemError),
      [this](RequestPtr request, Reply reply) { OnChange(request, reply); });
  using Work = std::function<remoting::Command(const remoting::Command&)>;
  const auto reading = [this, dispatcher](std::int32_t code, Work work) {
    dispatcher->Register(
        code, [this, work](RequestPtr request, Reply reply) { Read(request, reply, work); });
  };
  reading(remoting::kTriadGroupStatus, [this](const remoting::Command& request) {
    return SuccessWith(request, status_.Describe().Encode());
  });
  reading(remoting::kTriadLogDigest, [this](const auto& request) { return Digest(request); });
  reading(remoting::kTriadLogRecords, [this](const auto& request) { return Records(request); });
  reading(remoting::kTriadLogBytes, [this](const auto& request) { return Bytes(request); });
  dispatcher->Register(remoting::kTriadLogRepair,
                       [this](RequestPtr request, Reply reply) { OnRepair(request, reply); });
  dispatcher->RegisterForLeader(
      remoting::kTriadTransferLeader, LeaderGate::For(kTransferBudget, remoting::kSystemError),
      [this](RequestPtr request, Reply reply) { OnTransfer(request, reply); });
}

void ReplicationProcessor::OnChange(const RequestPtr& request, const Reply& reply) {
  const remoting::Command& command = request->command;
  const std::string op_text = command.ext.StringOr("op", "");
  const PeerId id(command.ext.StringOr("id", ""));
  const auto refuse = [&](const std::string& why) {
    reply(ResponseOf(command, Status::InvalidArgument(why)));
  };
  if (id.empty()) return refuse("id: which peer?");
  std::optional<dledger::MembershipOp> op;
  if (op_text == "add") op = dledger::MembershipOp::kAddLearner;
  if (op_text == "promote") op = dledger::MembershipOp::kPromote;
  if (op_text == "remove") op = dledger::MembershipOp::kRemove;
  if (!op) return refuse("op: add, promote or remove, not '" + op_text + "'");
  dledger::PeerAddress peer{.id = id, .host = ""};
  if (op == dledger::MembershipOp::kAddLearner) {
    // As in dLegerPeers: the same rules for ids and addresses.
    const auto members = ParseGroupMembers(id.value() + "-" + command.ext.StringOr("address", ""));
    if (!members.ok()) return refuse(std::string(members.status().message()));
    if (members->size() != 1 || members->front().id != id) {
      return refuse("id and address: one peer, like n3 and host:port");
    }
    peer.host = members->front().host;
    peer.port = members->front().port;
  }
  LOG(INFO) << "membership: " << op_text << " " << id << ", says " << request->client_address;
  context_.store.node().ChangeMembership(
      *op, peer, kTransferTimeout,
      [request, reply](const Status& status) { reply(ResponseOf(request->command, status)); });
}

void ReplicationProcessor::Read(const RequestPtr& request, const Reply& reply,
                                std::function<remoting::Command(const remoting::Command&)> work) {
  const bool is_taken =
      context_.store.node().PostReader([request, reply, work] { reply(work(request->command)); });
  if (!is_taken) reply(ResponseOf(request->command, Status::Busy("too many reads wait")));
}

remoting::Command ReplicationProcessor::Digest(const remoting::Command& request) const {
  const Result<std::int64_t> from = request.ext.GetInt64("from");
  const Result<std::int64_t> to = request.ext.GetInt64("to");
  const Result<std::int32_t> pieces = request.ext.Int32Or("pieces", 1);
  if (!from.ok()) return ResponseOf(request, from.status());
  if (!to.ok()) return ResponseOf(request, to.status());
  if (!pieces.ok()) return ResponseOf(request, pieces.status());
  const auto body = log_.Digest(*from, *to, *pieces);
  return body.ok() ? SuccessWith(request, body->Encode()) : ResponseOf(request, body.status());
}

remoting::Command ReplicationProcessor::Records(const remoting::Command& request) const {
  const Result<std::int64_t> from = request.ext.GetInt64("from");
  const Result<std::int64_t> to = request.ext.GetInt64("to");
  if (!from.ok()) return ResponseOf(request, from.status());
  if (!to.ok()) return ResponseOf(request, to.status());
  const auto body = log_.Records(*from, *to);
  return body.ok() ? SuccessWith(request, body->Encode()) : ResponseOf(request, body.status());
}

remoting::Command ReplicationProcessor::Bytes(const remoting::Command& request) const {
  const Result<std::int64_t> position = request.ext.GetInt64("position");
  const Result<std::int64_t> bytes = request.ext.GetInt64("bytes");
  if (!position.ok()) return ResponseOf(request, position.status());
  if (!bytes.ok()) return ResponseOf(request, bytes.status());
  Result<std::string> entry = log_.Entry(*position, *bytes);
  return entry.ok() ? SuccessWith(request, std::move(entry).value())
                    : ResponseOf(request, entry.status());
}

void ReplicationProcessor::OnRepair(const RequestPtr& request, const Reply& reply) {
  const remoting::Command& command = request->command;
  const Result<std::int64_t> position = command.ext.GetInt64("position");
  const Result<std::int64_t> bytes = command.ext.GetInt64("bytes");
  const Result<std::string> sources = command.ext.GetString("sources");
  for (const Status& status : {position.status(), bytes.status(), sources.status()}) {
    if (status.ok()) continue;
    reply(ResponseOf(command, status));
    return;
  }
  LogRepair::Wish wish;
  wish.position = *position;
  wish.bytes = *bytes;
  std::istringstream list(*sources);
  for (std::string source; std::getline(list, source, ';');) wish.sources.push_back(source);
  const bool is_taken = context_.store.node().PostReader([this, request, reply, wish] {
    repair_.Repair(wish, [request, reply](const Status& status) {
      reply(ResponseOf(request->command, status));
    });
  });
  if (!is_taken) reply(ResponseOf(command, Status::Busy("too many reads wait")));
}

void ReplicationProcessor::OnTransfer(const RequestPtr& request, const Reply& reply) {
  // The asker names whom it saw leading: when that one leads no more, its wish is fulfilled.
  const std::string from = request->command.ext.StringOr("from", "");
  const PeerId to(request->command.ext.StringOr("to", ""));
  if (!from.empty() && to.empty() && from != context_.config.self.value()) {
    reply(Success(request->command));
    return;
  }
  LOG(INFO) << "leadership is to go to " << (to.empty() ? "the best follower" : to.value())
            << ", says " << request->client_address;
  context_.store.node().TransferLeadership(
      to, kTransferTimeout,
      [request, reply](const Status& status) { reply(ResponseOf(request->command, status)); });
}

}  // namespace triad::broker
