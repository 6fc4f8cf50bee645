// Traffic: producers and consumers whose every operation is in the history. Load: those of our
// client.
//
// Single attempts to chosen queues (nothing may be stored twice), some of them delayed, ordered
// sends that repeat by themselves, an orderly and a concurrent group that must get everything; the
// concurrent one refuses some once, and some until they are dead letters. Owns
// its threads and clients. Thread: one at a time. Bodies are "value|filler"; their hash is CRC-32C.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/chaos/history_writer.h"
#include "tests/sim/random.h"
#include "triad/producer.h"
#include "triad/push_consumer.h"

namespace triad::chaos {

inline constexpr char kFreeTopic[] = "ChaosFree";        // single attempts, concurrent group
inline constexpr char kOrderedTopic[] = "ChaosOrdered";  // ordered sends, orderly group
inline constexpr int kTopicQueues = 8;
inline constexpr char kFreeGroup[] = "G-free";
inline constexpr int kFreeAttempts = 3;  // of a message that the concurrent group refuses
inline constexpr int kDelayLevels = 2;   // of the delayed sends
inline constexpr std::chrono::seconds kLongestDelay{5};  // by the default messageDelayLevel

// Threads that run until they are told to stop.
class Stopper {
 public:
  void Stop();
  bool stopped();
  // Waits; true when stopped.
  bool Wait(std::chrono::milliseconds time);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
};

// "topic/3"
std::string QueueName(const client::MessageQueue& queue);
// A body for `value`, and the value of a body.
std::string BodyOf(const std::string& value, std::size_t filler_bytes);
std::string ValueOf(const std::string& body);
std::int64_t HashOf(const std::string& body);
Outcome OutcomeOf(const Status& status);

// The groups that must get everything, and how often they get what they refuse.
void NoteGroups(HistoryWriter* history);

class Traffic {
 public:
  virtual ~Traffic() = default;
  virtual Status Start() = 0;
  virtual Status StopSending() = 0;
  virtual Status StopConsuming() = 0;
};

class Load : public Traffic {
 public:
  Load(std::string namesrv_address, std::string broker_name, HistoryWriter* history,
       std::uint64_t seed, std::chrono::milliseconds between_sends);
  ~Load() override;
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  Status Start() override;
  Status StopSending() override;
  Status StopConsuming() override;

 private:
  Status StartConsumer(const std::string& client, bool orderly);
  // Single attempts; `delayed`: each waits in a delay level first.
  void SendFree(const std::string& client, std::uint64_t seed, bool delayed);
  void SendOrdered(int number);
  // `taken`: the listener will say that it succeeded.
  void OnDelivered(const std::string& group, const std::string& client, std::uint64_t token,
                   const client::ReceivedMessage& message, bool taken);

  const std::string namesrv_address_, broker_name_;
  HistoryWriter* const history_;
  const std::uint64_t seed_;
  const std::chrono::milliseconds between_sends_;  // of one producer
  Stopper stopper_;
  std::vector<std::thread> threads_;
  std::vector<std::unique_ptr<client::PushConsumer>> consumers_;
};

}  // namespace triad::chaos
