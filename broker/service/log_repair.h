// LogRepair: replaces one damaged record of this peer's log by what the other peers have.
//
// All given peers are asked; whoever answers must have the same whole and checked bytes, and they
// must fit between the record's neighbours here. An intact record is never touched. Thread: Repair
// on a reader thread; `done` on any.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/service/log_alarm.h"
#include "broker/store/message_store.h"
#include "remoting/client.h"

namespace triad::broker {

class LogRepair {
 public:
  // All references outlive the object and its repairs.
  LogRepair(MessageStore& store, LogAlarm& alarm, remoting::Client& client)
      : store_(store), alarm_(alarm), client_(client) {}

  struct Wish {
    std::int64_t position = 0;
    std::int64_t bytes = 0;
    std::vector<std::string> sources;  // client addresses of other peers
  };
  // Errors: kInvalidArgument (the record is intact; bytes that do not belong there), kUnavailable
  // (nobody gave it), kCorruption (the others disagree).
  void Repair(Wish wish, std::function<void(Status)> done);

 private:
  struct Job;
  Status CheckDamaged(const Wish& wish) const;
  void AskNext(const std::shared_ptr<Job>& job);
  void OnAnswer(const std::shared_ptr<Job>& job, const std::string& source,
                Result<remoting::Command> answer);
  void Replace(const std::shared_ptr<Job>& job);

  MessageStore& store_;
  LogAlarm& alarm_;
  remoting::Client& client_;
};

}  // namespace triad::broker
