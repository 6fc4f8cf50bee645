#include "broker/processor/dispatcher.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "broker/processor/response.h"
#include "remoting/frame.h"

namespace triad::broker {
namespace {

constexpr std::string_view kClientField = "client";
constexpr std::string_view kElapsedField = "elapsedMs";

// Of a request that belongs to something the original has and this broker has not; else empty.
std::string WhatComesLater(std::int32_t code) {
  switch (code) {
    case remoting::kEndTransaction:
    case remoting::kResumeCheckHalfMessage: return "there are no transactions yet";
    case remoting::kRecallMessage: return "there are no timer messages yet";
    case remoting::kQueryAssignment:
    case remoting::kGetAllMessageRequestMode:
    case remoting::kPopMessage:
    case remoting::kAckMessage:
    case remoting::kBatchAckMessage:
    case remoting::kPeekMessage:
    case remoting::kChangeMessageInvisibleTime:
    case remoting::kNotification:
    case remoting::kPollingInfo: return "POP is not there yet, groups pull";
    default: break;
  }
  // AUTH_CREATE_USER to AUTH_LIST_ACL; UPDATE_AND_CREATE_ACL_CONFIG to
  // GET_BROKER_CLUSTER_ACL_CONFIG.
  if ((code >= 3001 && code <= 3010) || (code >= 50 && code <= 54))
    return "there are no users and access rules yet";
  return "";
}

// Sends the answer of `command` on its connection; the answer of a oneway request is dropped.
Reply ReplyOn(const remoting::ConnectionPtr& connection, bool oneway) {
  if (oneway) return [](remoting::Command) {};
  return [connection](remoting::Command response) { connection->Send(std::move(response)); };
}

}  // namespace

Result<remoting::Command> WrapForwarded(const Request& request, std::chrono::milliseconds elapsed) {
  auto frame = remoting::EncodeFrame(request.command);
  if (!frame.ok()) return frame.status();
  remoting::Command outer = remoting::Command::Request(kForwardRequest);
  outer.ext.Add(kClientField, request.client_address);
  outer.ext.AddInt(kElapsedField, elapsed.count());
  outer.body = std::move(frame.value());
  return outer;
}

Result<Forwarded> UnwrapForwarded(const remoting::Command& outer) {
  auto client = outer.ext.GetString(kClientField);
  if (!client.ok()) return client.status();
  auto elapsed = outer.ext.GetInt64(kElapsedField);
  if (!elapsed.ok()) return elapsed.status();
  if (elapsed.value() < 0 || elapsed.value() > 600000) {
    return Status::InvalidArgument("elapsedMs out of range");
  }
  auto command = remoting::DecodeFrame(outer.body);
  if (!command.ok()) return command.status();
  return Forwarded{std::move(command.value()), std::move(client.value()),
                   std::chrono::milliseconds(elapsed.value())};
}

void Dispatcher::Register(std::int32_t code, Handler handler) {
  const bool is_new = handlers_.emplace(code, std::move(handler)).second;
  CHECK(is_new) << "two handlers for request code " << code;
}

void Dispatcher::RegisterForLeader(std::int32_t code, LeaderGate::Policy policy, Handler handler) {
  Register(code, [this, policy = std::move(policy), handler = std::move(handler)](
                     RequestPtr request, Reply reply) {
    gate_.Route(std::move(request), std::move(reply), policy, handler);
  });
}

void Dispatcher::OnRequest(const remoting::ConnectionPtr& connection,
                           remoting::Command command) const {
  if (command.code == kForwardRequest) {
    OnForwarded(connection, std::move(command));
    return;
  }
  OnRequestFrom(connection, std::move(command), clock_.MonoNow());
}

void Dispatcher::OnRequestFrom(const remoting::ConnectionPtr& connection, remoting::Command command,
                               TimePoint arrived) const {
  Reply reply = ReplyOn(connection, command.is_oneway());
  auto request = std::make_shared<Request>();
  request->command = std::move(command);
  request->connection = connection;
  request->client_address = connection->remote_address();
  request->arrived = arrived;
  Dispatch(std::move(request), std::move(reply));
}

void Dispatcher::OnForwarded(const remoting::ConnectionPtr& connection,
                             remoting::Command outer) const {
  auto inner = UnwrapForwarded(outer);
  if (!inner.ok()) {
    connection->Send(ResponseOf(outer, inner.status()));
    return;
  }
  auto request = std::make_shared<Request>();
  request->command = std::move(inner->command);
  request->connection = connection;
  request->client_address = std::move(inner->client_address);
  request->arrived = clock_.MonoNow() - inner->elapsed;
  request->forwarded = true;
  // The first peer waits for the answer also of a oneway request: it may have to go on holding.
  const std::int32_t opaque = outer.opaque;
  const remoting::SerializeType encoding = outer.serialize_type;
  Dispatch(std::move(request), [connection, opaque, encoding](remoting::Command response) {
    response.opaque = opaque;
    response.serialize_type = encoding;
    connection->Send(std::move(response));
  });
}

std::vector<std::int32_t> Dispatcher::codes() const {
  std::vector<std::int32_t> codes;
  for (const auto& [code, handler] : handlers_) codes.push_back(code);
  std::sort(codes.begin(), codes.end());
  return codes;
}

void Dispatcher::Dispatch(RequestPtr request, Reply reply) const {
  const auto found = handlers_.find(request->command.code);
  if (found == handlers_.end()) {
    reply(NotSupported(request->command, WhatComesLater(request->command.code)));
    return;
  }
  found->second(std::move(request), std::move(reply));
}

}  // namespace triad::broker
