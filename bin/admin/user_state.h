// UserState: the topics and groups of a broker that its users made, as the broker describes them.
//
// Blocking. Thread: main. Source: behaviour of the original's exports (5.3.3).

#pragma once

#include <map>
#include <string>

#include "bin/admin/session.h"
#include "remoting/json.h"

namespace triad::admin {

using Descriptions = std::map<std::string, remoting::Json>;  // by name

// `special`: also those of retries and dead letters.
Result<Descriptions> UserTopics(const std::string& address, bool special, Session* session);
Result<Descriptions> UserGroups(const std::string& address, Session* session);

}  // namespace triad::admin
