#include "broker/processor/response.h"

#include <utility>

namespace triad::broker {

std::int32_t ResponseCodeOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk: return remoting::kSuccess;
    case StatusCode::kInvalidArgument: return remoting::kInvalidParameter;
    case StatusCode::kNotFound: return remoting::kQueryNotFound;
    case StatusCode::kNotLeader: return kNotLeaderResponse;
    case StatusCode::kBusy: return remoting::kSystemBusy;
    case StatusCode::kUnavailable:
    case StatusCode::kCancelled:
    case StatusCode::kNoSpace: return remoting::kServiceNotAvailable;
    case StatusCode::kPermissionDenied: return remoting::kNoPermission;
    case StatusCode::kUnsupported: return remoting::kRequestCodeNotSupported;
    case StatusCode::kTimedOut:  // outcome unknown: clients try again (D4)
    case StatusCode::kAlreadyExists:
    case StatusCode::kCorruption:
    case StatusCode::kIoError:
    case StatusCode::kInternal: return remoting::kSystemError;
  }
  return remoting::kSystemError;
}

remoting::Command ResponseOf(const remoting::Command& request, const Status& status) {
  return remoting::Command::ResponseTo(request, ResponseCodeOf(status),
                                       std::string(status.message()));
}

remoting::Command BadRequest(const remoting::Command& request, const Status& status) {
  return remoting::Command::ResponseTo(request, remoting::kSystemError,
                                       std::string(status.message()));
}

remoting::Command NotSupported(const remoting::Command& request, const std::string& why) {
  std::string remark = " request type " + std::to_string(request.code) + " not supported";
  if (!why.empty()) remark += ": " + why;
  return remoting::Command::ResponseTo(request, remoting::kRequestCodeNotSupported,
                                       std::move(remark));
}

remoting::Command SystemError(const remoting::Command& request, std::string remark) {
  return remoting::Command::ResponseTo(request, remoting::kSystemError, std::move(remark));
}

remoting::Command Success(const remoting::Command& request) {
  return remoting::Command::ResponseTo(request, remoting::kSuccess);
}

remoting::Command SuccessWith(const remoting::Command& request, std::string body) {
  remoting::Command response = Success(request);
  response.body = std::move(body);
  return response;
}

remoting::Command NotLeaderResponse(const remoting::Command& request) {
  return remoting::Command::ResponseTo(request, kNotLeaderResponse);
}

void KeepSilent(const Request& request, const Reply& reply) {
  if (request.forwarded) {
    reply(NotLeaderResponse(request.command));
  } else if (!request.command.is_oneway()) {
    request.connection->ForgetRequest();
  }
}

}  // namespace triad::broker
