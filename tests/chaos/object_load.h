// ObjectLoad: clients of the small objects: offsets, queue locks, maximum offsets, topic
// configurations.
//
// Every operation is one attempt to one peer (whichever answered last; peers forward), so that what
// is in the history is what the broker group was asked. Two or three clients share an object for a
// hundred operations or until some outcomes are unknown, then go on with a fresh one: the checker
// stays quick. Owns its threads. Thread: one at a time.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "remoting/client.h"
#include "tests/chaos/load.h"

namespace triad::chaos {

inline constexpr char kObjectTopic[] = "ChaosObjects";
inline constexpr int kObjectQueues = 256;

class ObjectLoad {
 public:
  // `addresses`: of the peers.
  ObjectLoad(std::string namesrv_address, std::string broker_name,
             std::vector<std::string> addresses, HistoryWriter* history, std::uint64_t seed);
  ~ObjectLoad();
  ObjectLoad(const ObjectLoad&) = delete;
  ObjectLoad& operator=(const ObjectLoad&) = delete;

  void Start();
  void Stop();
  // Other peers from now on.
  void UseAddresses(std::vector<std::string> addresses);

 private:
  // Which object a family of clients works on.
  struct Turn {
    std::atomic<int> number{0}, operations{0}, unknown{0};
    // The number of the object for the next operation.
    int Take();
  };
  class Caller;

  void Registers(int number);
  void Locks(int number);
  void Maximum(int number);
  void Topics(int number);
  std::string Address(std::size_t at);
  // Group and queue of an object's number.
  static std::string GroupOf(const char* prefix, int object);
  static int QueueOf(int object) { return object % kObjectQueues; }

  const std::string namesrv_address_, broker_name_;
  std::mutex mutex_;  // of `addresses_`
  std::vector<std::string> addresses_;
  HistoryWriter* const history_;
  const std::uint64_t seed_;
  Stopper stopper_;
  Turn registers_, locks_, maxima_, topics_;
  std::vector<std::thread> threads_;
};

}  // namespace triad::chaos
