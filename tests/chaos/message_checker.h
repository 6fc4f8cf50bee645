// MessageChecker: were messages lost, invented, changed, moved, doubled or put out of order?
//
// Takes events in the order of time. What was acknowledged or read at (queue, offset) once must
// stand there on every peer and for ever; every peer must hold every offset from min to max; what
// one client sent to a queue (or for one key) after an acknowledgement stands behind it; a group
// gets everything, and an orderly one never skips; a delayed message comes to its queue once;
// retries and dead letters: RetryChecker. Pure. Size: about 40 bytes per send and 8 per stored
// message; values are "name-number" with numbers from 1 without large holes.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/chaos/event.h"
#include "tests/chaos/retry_checker.h"
#include "tests/chaos/verdict.h"

namespace triad::chaos {

class MessageChecker {
 public:
  explicit MessageChecker(Verdict* verdict) : verdict_(*verdict), retries_(verdict) {}

  // kSend and kAppend; `begun` is the begin that belongs to an end. `line` is for messages. Errors:
  // kInvalidArgument, the history itself is not as it must be.
  Status OnSendBegins(const Event& event);
  Status OnSendEnds(const Event& begun, const Event& end, std::uint64_t line);
  Status OnRead(const Event& event, std::uint64_t line);
  Status OnDrained(const Event& event, std::uint64_t line);
  Status OnGroup(const Event& event);
  Status OnDeliver(const Event& event, std::uint64_t line);
  // What needs the whole history.
  void Finish();

 private:
  static constexpr std::int64_t kNowhere = -1;
  struct Attempt {
    // kOk: acknowledged there; else it must stand behind this offset of its queue.
    std::int64_t offset = kNowhere;
    std::int32_t queue = -1;  // -1: not known
    std::uint32_t hash = 0;
    std::uint16_t stored = 0;  // offsets it was read at
    std::uint8_t allowed = 1;  // how often it may be; 0 = any number
    Outcome outcome = Outcome::kInfo;
    bool begun = false;
    bool delayed = false;  // stands anywhere in its queue, once
  };
  struct Sender {
    std::string name;
    std::vector<Attempt> attempts;  // by number - 1
  };
  struct Replica {                                // one peer's copy of a queue
    std::int64_t next = kNowhere;                 // offset expected next in this round
    std::int64_t first = kNowhere;                // of this round
    std::int64_t min = kNowhere, max = kNowhere;  // of the last finished round
  };
  struct Queue {
    std::string name;                  // "topic/id"
    std::vector<std::uint64_t> slots;  // offset -> what stands there
    std::int64_t acked_max = kNowhere;
    std::map<std::string, Replica> replicas;
  };
  struct OrderKey {
    std::int32_t queue = -1;
    std::int64_t acked_max = kNowhere;
  };
  struct Progress {  // of an orderly group in a queue
    std::int64_t high = kNowhere;
    std::int64_t last = kNowhere;
    std::int64_t token = 0;
    std::string client;
  };
  struct Group {
    bool orderly = false;
    std::int64_t last_time = 0;  // what is refused then is a dead letter; 0 = not said
    std::map<std::int32_t, Progress> progress;
    std::vector<std::vector<std::uint8_t>> deliveries;  // [sender][number - 1]
    std::vector<std::string> topics;
  };

  // Slot = seen bit | sender << 40 | number. 0 = unknown.
  static constexpr std::uint64_t kSeen = std::uint64_t{1} << 63;
  static std::uint64_t Pack(std::uint32_t sender, std::uint64_t number) {
    return (std::uint64_t{sender} << 40) | number;
  }
  static std::uint64_t Bare(std::uint64_t slot) { return slot & ~kSeen; }

  // The packed reference of "name-number"; kInvalidArgument when it is not of that form.
  Result<std::uint64_t> Reference(const std::string& value);
  std::string ValueOf(std::uint64_t slot) const;
  Attempt& At(std::uint64_t slot) {
    return senders_[(Bare(slot) >> 40)].attempts[(slot & 0xffffffffffu) - 1];
  }
  std::int32_t QueueOf(const std::string& name);
  std::uint64_t* Slot(std::int32_t queue, std::int64_t offset);
  // `value` was seen at (queue, offset).
  Status Observe(const Event& event, std::int32_t queue, std::uint64_t line);
  Status ObserveCopy(const Event& event, std::int32_t queue, std::uint64_t line);
  void CheckOrderly(const Event& event, std::int32_t queue, Group* group, std::uint64_t line);
  void CheckAcknowledged();
  void CheckReplicas();
  void CheckGroups();
  void Complain(std::uint64_t* count, std::uint64_t line, const std::string& text);

  Verdict& verdict_;
  RetryChecker retries_;
  std::vector<Sender> senders_;
  std::unordered_map<std::string, std::uint32_t> sender_ids_;
  std::vector<Queue> queues_;
  std::unordered_map<std::string, std::int32_t> queue_ids_;
  std::unordered_map<std::string, OrderKey> orders_;
  std::map<std::string, Group> groups_;
};

}  // namespace triad::chaos
