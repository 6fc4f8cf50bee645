// StateCreator: creates a topic or group through the log, once for all who ask at the same time.
//
// Whoever asks for a key that is being created waits for that creation. Afterwards the caller looks
// at the state again. Bounds: as many waiters as there are requests in flight. Thread: safe on
// every thread; a leaf mutex; `done` runs as Proposal::done does, or where a question is answered.

#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "broker/store/appender.h"

namespace triad::broker {

class StateCreator {
 public:
  // `appender` outlives the creator, and answers everything before the creator ends.
  explicit StateCreator(Appender& appender) : appender_(appender) {}

  // `command` creates what `key` stands for and leaves alone what exists. Errors for `done`: as
  // AppendOutcome. `ask` (may be null) comes first, once for all who wait meanwhile: an error of
  // its answer is that of everybody, and nothing is created. It answers before the creator ends.
  using Question = std::function<void(std::function<void(Status)>)>;
  void Create(const std::string& key, StateCommand command, TimePoint deadline,
              std::function<void(Status)> done, const Question& ask = {});

 private:
  void Propose(const std::string& key, StateCommand command, TimePoint deadline);
  void Finish(const std::string& key, const Status& status);

  Appender& appender_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::function<void(Status)>>> waiting_;  // by key
};

}  // namespace triad::broker
