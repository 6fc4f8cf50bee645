// Responses from a Status: the one table from our codes to RocketMQ's.
//
// Pure. Source: wire.md §2; decisions D1, D3, D4 of §15. kNotLeader becomes the private code 60002:
// behind the LeaderGate it means "nothing was done, route it again" and never reaches a client.

#pragma once

#include <chrono>
#include <string>

#include "broker/processor/codes.h"
#include "broker/processor/request.h"
#include "common/status.h"
#include "remoting/command.h"

namespace triad::broker {

// How long a request may wait until its state command is applied (architecture: the budgets).
inline constexpr std::chrono::milliseconds kBudget{2500};

// The wire code of a failed (or OK) status.
std::int32_t ResponseCodeOf(const Status& status);

// The answer that says `status`; its message becomes the remark.
remoting::Command ResponseOf(const remoting::Command& request, const Status& status);
// A header or body that cannot be read: 1 with what is wrong, where the original has its
// exception's text.
remoting::Command BadRequest(const remoting::Command& request, const Status& status);
// 3 in the original's words and, unless it is empty, what is not there.
remoting::Command NotSupported(const remoting::Command& request, const std::string& why);
// 1, in these words.
remoting::Command SystemError(const remoting::Command& request, std::string remark);
// Success, without body or header.
remoting::Command Success(const remoting::Command& request);
// Success with a body.
remoting::Command SuccessWith(const remoting::Command& request, std::string body);
// No answer at all: any error would be read as "nothing stored" (wire.md D1). Towards the
// forwarding peer, which keeps the silence, "not done".
void KeepSilent(const Request& request, const Reply& reply);
// Nothing was done: the gate routes the request again within its budget.
remoting::Command NotLeaderResponse(const remoting::Command& request);

}  // namespace triad::broker
