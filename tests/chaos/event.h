// Event: one line of a history.
//
// A history is JSON lines in the order of time. An operation has a line when it begins ("op",
// "t_inv_ns", and what is asked) and one with the same "id" when it ends ("t_ret_ns", "outcome",
// and what was answered); a line with both is an operation seen only when it was over. "outcome" is
// "ok", "fail" (certainly not done) or "info" (nobody knows). An operation without an end is info.
// Operations and their fields: tests/chaos/README.md. Pure.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace triad::chaos {

enum class Op {
  kSend,     // a message to a queue (key "topic/queue") or, with "order", to a topic (key "topic")
  kAppend,   // a send that also counts for the counter of its queue
  kRead,     // what one peer holds at one offset, found while draining
  kDrained,  // the end of draining a queue on a peer: min and max
  kGroup,    // group `group` must get every message of topic `key`
  kDeliver,  // a message given to a listener
  kMax,      // the queue's maximum offset
  kCommit,   // offset register
  kFetch,
  kLock,  // queue lock; token 0 = refused
  kUnlock,
  kPutTopic,  // topic configuration; what it says is one number, in `offset`
  kDropTopic,
  kGetTopic,
  // Key = kind, value = whom; `leader` when it hit the leader. The end comes when the fault is
  // over: ok = it took effect, fail = it did not, value = what was seen of it.
  kFault,
};

enum class Outcome { kNone, kOk, kFail, kInfo };

struct Event {
  std::int64_t id = -1;
  bool invokes = false;    // has "op"
  bool completes = false;  // has "outcome"
  Op op = Op::kSend;
  Outcome outcome = Outcome::kNone;
  std::string client, key, value, node, group, order;
  std::int64_t invoked_ns = 0, returned_ns = 0;
  std::int64_t offset = -1, min = 0, hash = 0, token = 0;
  // A send: how often the value may be stored; 0 = the client repeats by itself. A group: how often
  // it gets a message that it refuses, before that is a dead letter; 1 = not said.
  std::int64_t attempts = 1;
  std::int64_t times = 0;  // how often the message had been sent back when it was given or read
  std::int64_t born = 0;   // when a client made the message that was given or read, in its ms
  bool leader = false;
  bool delayed = false;  // a send that comes to its queue later: its answer tells no offset there

  std::int64_t time_ns() const { return completes && !invokes ? returned_ns : invoked_ns; }
};

// Errors: kInvalidArgument with what was wrong.
Result<Event> ParseEvent(std::string_view line);

// The line, without the line's end. Fields that say nothing are left out.
std::string FormatEvent(const Event& event);

}  // namespace triad::chaos
