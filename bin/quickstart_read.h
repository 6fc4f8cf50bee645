// ReadTopic: everything that one peer holds of a topic.
//
// Blocking. Errors: kTimedOut (cannot be read to the end), kCorruption (a gap in a queue).

#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/status.h"
#include "triad/pull_consumer.h"

namespace triad {

// Bodies per queue, in queue order; from the peer at `address`, or the leader when it is empty.
Result<std::map<int, std::vector<std::string>>> ReadTopic(client::PullConsumer* reader,
                                                          const std::string& topic,
                                                          const std::string& address);

}  // namespace triad
