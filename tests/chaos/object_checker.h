// ObjectChecker: the small objects of a history: offset registers, queue locks, maximum offsets,
// topic configurations.
//
// Gathers their operations per key and, at the end, asks the Linearizer about each key. Beside it
// the plain promise of a lock: the times in which two clients may believe that they hold it do not
// overlap. Pure but for the clock in Finish. Size: about 60 bytes per operation on an object.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/chaos/event.h"
#include "tests/chaos/linearizer.h"
#include "tests/chaos/verdict.h"

namespace triad::chaos {

class ObjectChecker {
 public:
  ObjectChecker(Verdict* verdict, std::chrono::milliseconds limit_per_key)
      : verdict_(*verdict), limit_(limit_per_key) {}

  // An unlock begins: its client relies on the lock no more.
  void OnUnlockBegins(const Event& begun);
  // A whole operation; `end.outcome` kInfo when it never ended.
  void OnOperation(const Event& begun, const Event& end, std::uint64_t line);
  void Finish();

 private:
  struct Belief {  // who may believe to hold a lock, and until when at most
    std::string client;
    std::int64_t until_ns = 0;
  };
  struct Object {
    Op kind = Op::kMax;  // kFetch: offset register, kGetTopic: configuration, kLock, kMax
    std::vector<ObjectOp> ops;
    Belief belief;
  };

  int ClientOf(const std::string& name);
  void TrackBelief(const Event& begun, const Event& end, Object* object, std::uint64_t line);

  Verdict& verdict_;
  const std::chrono::milliseconds limit_;
  std::map<std::string, int> clients_;
  std::map<std::string, Object> objects_;
};

}  // namespace triad::chaos
