// StoreTimeOf: when the message of a queue offset was stored.
//
// Thread: reader threads only (files may be read).

#pragma once

#include <cstdint>

#include "broker/store/message_store.h"
#include "common/ids.h"

namespace triad::broker {

// 0 when the message cannot be had.
std::int64_t StoreTimeOf(MessageStore& store, const TopicQueue& queue, QueueOffset offset);

}  // namespace triad::broker
