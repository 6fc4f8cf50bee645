// For tests: a LevelDB state store on a disk that is called full below a number of free bytes that
// they choose. Everybody else: OpenLevelDbStateStore (state_store.h).

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "broker/state/state_store.h"

namespace triad::broker {

Result<std::unique_ptr<StateStore>> OpenLevelDbWithRoom(const std::string& dir,
                                                        std::uint64_t room_bytes);

}  // namespace triad::broker
