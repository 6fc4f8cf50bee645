// BrokerCalls: the questions that may be asked again: offsets, locks, members, queues.
//
// Each call goes to the leader of the broker group; when that fails, to the other peers, which
// forward, until the time is up. Thread: safe on every thread; calls block, so never on a thread of
// the instance. Source: wire.md §6, §7.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/client_instance.h"

namespace triad::client {

// What a response code means to the caller; OK for success.
Status StatusOfCode(const remoting::Command& answer, const std::string& what);

class BrokerCalls {
 public:
  // `instance` outlives this object.
  explicit BrokerCalls(ClientInstance* instance) : instance_(instance) {}

  // `request` must be harmless when it is done twice. The answer may carry any code, except those
  // that say "not now". Errors: kUnavailable, kTimedOut.
  Result<remoting::Command> Call(const std::string& broker_name, remoting::Command request,
                                 std::chrono::milliseconds timeout);

  // nullopt: nothing is stored, for certain.
  Result<std::optional<std::int64_t>> QueryOffset(const std::string& group,
                                                  const MessageQueue& queue);
  Status CommitOffset(const std::string& group, const MessageQueue& queue, std::int64_t offset,
                      std::uint64_t fence_token);
  Result<std::int64_t> MaxOffset(const MessageQueue& queue);
  Result<std::int64_t> MinOffset(const MessageQueue& queue);
  Result<std::int64_t> OffsetByTime(const MessageQueue& queue, std::int64_t time_ms);

  // The members of a group, sorted. Asks a broker of `topic`'s route.
  Result<std::vector<std::string>> Members(const std::string& group, const RoutePtr& route);

  // Locks the queues of one broker group. The queues that this client holds now, with their
  // fencing tokens (0 = not offered).
  Result<std::map<MessageQueue, std::uint64_t>> Lock(const std::string& group,
                                                     const std::string& broker_name,
                                                     const std::vector<MessageQueue>& queues);
  Status Unlock(const std::string& group, const std::string& broker_name,
                const std::vector<MessageQueue>& queues);

 private:
  Result<std::int64_t> AskOffset(const std::string& broker_name, remoting::Command request);
  remoting::Command LockRequest(std::int32_t code, const std::string& group,
                                const std::vector<MessageQueue>& queues);

  ClientInstance* const instance_;
};

}  // namespace triad::client
