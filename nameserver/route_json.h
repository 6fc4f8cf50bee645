// The two renderings of a route answer: integer keys quoted (standard JSON) or bare (fastjson's
// own).
//
// Pure. Source: wire.md §3.3 (standard from version 401 on, or when asked for), §14.4.

#pragma once

#include <cstdint>
#include <string>

#include "remoting/route_bodies.h"

namespace triad::nameserver {

inline constexpr std::int32_t kStandardJsonVersion = 401;  // V4_9_4

enum class KeyStyle { kQuoted, kBare };

std::string EncodeRoute(const remoting::TopicRouteData& route, KeyStyle style);

}  // namespace triad::nameserver
