// DelayTopic: how a message is parked in SCHEDULE_TOPIC_XXXX until its time has come, and how it
// comes out again.
//
// Pure. Level n (1-based) is queue n-1. Source: wire.md §8.4.

#pragma once

#include <cstdint>
#include <optional>

#include "broker/store/message.h"
#include "common/status.h"

namespace triad::broker {

// The DELAY property as a level, cut to [0, level_count]; 0 when there is none.
std::int32_t DelayLevelOf(std::string_view properties, std::int32_t level_count);

// Moves the draft to its level's queue when it has a level: REAL_TOPIC and REAL_QID remember its
// target. True when it was moved.
bool ParkIfDelayed(std::int32_t level_count, MessageDraft* draft);

// The message as it is to be delivered: its target, all else unchanged (DELAY stays visible).
// Errors: kCorruption when it does not say where it belongs.
Result<MessageDraft> Unpark(const MessageView& parked);

}  // namespace triad::broker
