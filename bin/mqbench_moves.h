// mqbench moves: how long sends stand still while the leadership is handed over.
//
// Eight senders in a closed loop; every half a second the leadership moves. Reported per move: the
// longest time without an acknowledgement, and the slowest single send. Blocking; main thread.

#pragma once

#include <string>

namespace triad {

// The exit code: 1 when a send failed or a move was refused.
int BenchMoves(const std::string& namesrv, const std::string& topic, int moves);

}  // namespace triad
