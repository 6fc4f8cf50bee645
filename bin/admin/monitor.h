// Monitor: one look at every consumer group: what it has not consumed, what was deleted in front of
// it, and members that do something wrong.
//
// Blocking. Thread: main. Bounds: kEventsMax events of a queue and round; the rest comes in the
// next. Source: behaviour of the original's startMonitoring (5.3.3).

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bin/admin/session.h"
#include "remoting/json.h"
#include "triad/pull_consumer.h"

namespace triad::admin {

struct UndoneMessages {  // of a group in a topic
  std::string group;
  std::string topic;
  std::int64_t total = 0;
  std::int64_t single_queue = 0;  // of the queue that has most
  std::int64_t delay_ms = 0;  // from the last consumed to the newest message, of the worst queue
};

// A group asked for messages that were deleted before it had consumed them.
struct DeletedMessages {
  std::string group;
  client::MessageQueue queue;
  std::int64_t asked_offset = 0;
  std::int64_t new_offset = 0;
  std::int64_t time_ms = 0;
};

struct Notice {  // about a group, or one member of it
  std::string group;
  std::string client_id;
  std::string text;
};

struct MonitorRound {
  std::vector<UndoneMessages> undone;
  std::vector<DeletedMessages> deleted;
  std::vector<Notice> notices;
  std::vector<Status> errors;  // what could not be looked at
};

class Monitor {
 public:
  static constexpr int kEventsMax = 1024;

  explicit Monitor(Session* session);
  Status Start();

  // `stopped` is asked before each group; once it says so, the round is incomplete.
  MonitorRound Look(const std::function<bool()>& stopped);

 private:
  void LookForDeleted(MonitorRound* round);
  void LookForUndone(const std::string& group, MonitorRound* round);
  void LookAtMembers(const std::string& group, MonitorRound* round);
  std::int64_t DelayOf(const client::MessageQueue& queue, std::int64_t consumed_ms);

  Session* const session_;
  client::PullConsumer consumer_;
  std::map<client::MessageQueue, std::int64_t> next_event_;  // queues of the events: where to go on
};

}  // namespace triad::admin
