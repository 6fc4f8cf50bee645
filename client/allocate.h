// AllocateAveragely: which queues of a topic a member of a group consumes.
//
// Pure. Every member computes it alone; that nobody's queues overlap rests on equal input.
// Source: wire.md §7.5 (AllocateMessageQueueAveragely).

#pragma once

#include <string>
#include <vector>

#include "triad/message.h"

namespace triad::client {

// `queues` and `members` are sorted. Empty when `self` is not among the members.
std::vector<MessageQueue> AllocateAveragely(const std::vector<MessageQueue>& queues,
                                            const std::vector<std::string>& members,
                                            const std::string& self);

}  // namespace triad::client
