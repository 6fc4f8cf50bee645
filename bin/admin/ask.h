// Ask: one request of a verb, to one address, answered 0 or an error; and which addresses.
//
// Blocking. Thread: main.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bin/admin/verbs.h"

namespace triad::admin {

using Fields = std::map<std::string, std::string>;

// Errors: kUnavailable, kTimedOut; kNotFound or kInternal with "CODE: n  DESC: remark".
Result<client::Admin::Answer> AskOk(const std::string& address, int code, const Fields& fields,
                                    const std::string& body, Session* session);

// The one at --brokerAddr, or every peer of --clusterName (empty: of all). Errors: kNotFound.
Result<std::vector<std::string>> AddressesOf(const Given& given, Session* session);
// The same, of each group only the leader. Errors: kNotFound.
Result<std::vector<std::string>> LeadersAt(const Given& given, Session* session);

struct Leader {
  std::string broker_name;
  std::string address;
  std::string cluster;
};
// Of the groups that serve a topic. Errors: kNotFound.
Result<std::vector<Leader>> LeadersOf(const std::string& topic, Session* session);
// The consumer groups that these know of it. Errors: kNotFound.
Result<std::set<std::string>> GroupsOf(const std::string& topic, Session* session);

// A figure of VIEW_BROKER_STATS_DATA over all of them; what was never recorded is zero.
struct Figure {
  double tps = 0;
  std::int64_t day = 0;
};
Figure StatsOf(const std::vector<Leader>& leaders, const std::string& name, const std::string& key,
               Session* session);

std::vector<std::string> NameServersOf(Session* session);

std::string RetryTopic(const std::string& group);

}  // namespace triad::admin
