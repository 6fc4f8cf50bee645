// Troubles: what the members of a consumer group say of themselves that cannot be right.
//
// Pure: the caller passes the time. Source: behaviour of the original's startMonitoring (5.3.3).

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "remoting/json.h"

namespace triad::admin {

// What is wrong with a member, by what it says of itself (GET_CONSUMER_RUNNING_INFO); empty:
// nothing.
std::vector<std::string> Troubles(const std::string& client_id, const remoting::Json& info,
                                  std::int64_t now_ms);
// Whether the members of a group, by client id, subscribe to the same; true while the first of them
// is young.
bool SameSubscriptions(const std::map<std::string, remoting::Json>& infos, std::int64_t now_ms);

}  // namespace triad::admin
