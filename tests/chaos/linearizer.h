// Linearizer: can the answers of one small object be explained by some order of its operations?
//
// Wing and Gong's search with Lowe's list and memory of (what is done, state), as Porcupine does
// it. An operation takes effect once between its begin and its end; one of unknown outcome at any
// time after its begin, or never. Pure but for the time limit, which the caller gives as a
// function. Bounds: kMaxStates remembered states; a search that runs out of them or of time is
// kUnknown.

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/chaos/event.h"

namespace triad::chaos {

// One finished (or given up) operation on an object.
struct ObjectOp {
  Op op = Op::kMax;
  int client = 0;
  bool known = true;             // false: outcome unknown
  std::int64_t invoked_ns = 0;   // begin
  std::int64_t returned_ns = 0;  // end; unknown: when the client gave up
  std::int64_t argument = 0;     // commit: the offset; puttopic: the configuration
  // fetch, max, append: the offset; gettopic: the configuration; lock: the token, 0 = refused
  std::int64_t answer = 0;
};

struct ObjectState {
  std::int64_t a = 0, b = 0, c = 0, d = 0;
  auto operator<=>(const ObjectState&) const = default;
};

// False: `op` cannot have had this answer in `before`. An unknown `op` says what it would do.
using StepFunction = bool (*)(const ObjectState& before, const ObjectOp& op, ObjectState* after);
struct ObjectModel {
  ObjectState initial;
  StepFunction step = nullptr;
};

// commit sets, fetch answers the last commit; -1 = none yet.
ObjectModel OffsetRegister();
// puttopic sets, droptopic removes, gettopic answers what was set last; -1 = there is none.
ObjectModel TopicConfig();
// append answers the count and adds one; max answers the count.
ObjectModel MaxOffset();
// lock answers a token or 0; one holder, tokens grow with every new holding; a lease that was not
// renewed for kLockLeaseNs may (not must) be over. A refusal (0) promises nothing: a grant may be
// on its way to another client, and come to nothing.
ObjectModel QueueLock();
inline constexpr std::int64_t kLockLeaseNs = 60'000'000'000;
// A lock request that its client gave up may still be granted so long afterwards.
inline constexpr std::int64_t kLockGraceNs = 30'000'000'000;

inline constexpr std::size_t kMaxStates = 4'000'000;
enum class Linearizable { kYes, kNo, kUnknown };

// `ops` in any order. `out_of_time` is asked now and then; true ends the search with kUnknown.
Linearizable Check(const ObjectModel& model, std::vector<ObjectOp> ops,
                   const std::function<bool()>& out_of_time);

}  // namespace triad::chaos
