// Route: the queues of a topic, as a producer and as a consumer see them.
//
// Pure. Source: wire.md §3.3, §9.2. Unlike the Java client a producer keeps the queues of a group
// whose leader is unknown for the moment: its peers forward, and messages of one key stay in their
// queue.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "remoting/route_bodies.h"
#include "triad/message.h"

namespace triad::client {

inline constexpr std::string_view kTemplateTopic = "TBW102";
inline constexpr std::int32_t kTemplateQueues = 4;

struct Route {
  remoting::TopicRouteData data;
  std::vector<MessageQueue> publish;    // sorted
  std::vector<MessageQueue> subscribe;  // sorted
  bool from_template = false;           // the topic does not exist yet; the first send creates it
};
using RoutePtr = std::shared_ptr<const Route>;

RoutePtr MakeRoute(const std::string& topic, remoting::TopicRouteData data);
// What a topic that is to be created on its first send will look like.
RoutePtr MakeTemplateRoute(const std::string& topic, remoting::TopicRouteData template_data);

}  // namespace triad::client
