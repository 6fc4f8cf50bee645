// Tracks: which groups have consumed a message, asked of the brokers and printed as the original
// does.
//
// Blocking. Thread: main. Source: behaviour of the original's admin library (5.3.3). The original
// knows a message's queue only while the leader that stored it leads; here any peer of its group
// will do.

#pragma once

#include <string>
#include <vector>

#include "bin/admin/verbs.h"
#include "triad/message.h"

namespace triad::admin {

struct MessageTrack {
  std::string group;
  std::string type;
  std::string reason;  // why it is not known; may be empty
};

// Of every group that consumes the message's topic, by name; none when the topic is gone.
Result<std::vector<MessageTrack>> TracksOf(const client::ReceivedMessage& message,
                                           Session* session);

// Each message as Describe does, and its tracks. The exit code.
int PrintWithTracks(const std::vector<client::ReceivedMessage>& messages, const Given& given,
                    Session* session);

}  // namespace triad::admin
