// The story of the quickstart: which messages it sends, and what became of each.
//
// Message n has the key order-(n % kKeys) and is the (n / kKeys)-th of that key.

#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "triad/push_consumer.h"

namespace triad {

inline constexpr int kMessages = 3000;
inline constexpr int kKeys = 100;
inline constexpr int kPoison = 5;
inline constexpr int kMaxReconsume =
    2;  // a poison message is delivered three times, then dead-lettered
inline constexpr char kTopic[] = "QuickstartOrders";
inline constexpr char kOrderlyGroup[] = "quickstart_orderly";
inline constexpr char kConcurrentGroup[] = "quickstart_concurrent";

std::string KeyOf(int n);
std::string BodyOf(int n);
bool IsPoison(int n);
// The message number of a body, -1 when it is none of ours.
int NumberOf(const std::string& body);

// Says each step on stdout. Thread: main.
class Story {
 public:
  Story();
  void Step(const std::string& text);
  void Progress(const std::string& text);  // on a terminal only

 private:
  double Elapsed() const;

  const std::chrono::steady_clock::time_point begin_;
  const bool terminal_;
  const char* const clear_;
};

// What the two groups and the producer did. Guarded by its mutex.
struct Ledger {
  std::mutex mutex;
  std::condition_variable changed;
  int sent = 0;
  int answered = 0;
  std::set<int> acked;
  std::vector<std::string> send_errors;
  bool killed = false;
  std::chrono::steady_clock::time_point killed_at;
  int failover_ms = -1;
  std::set<int> orderly;
  std::map<std::string, int> orderly_next;  // key -> next step expected
  int orderly_redelivered = 0;
  int out_of_order = 0;
  std::map<int, int> concurrent;  // message -> deliveries
};

// What the listeners of the two groups do.
client::OrderlyResult OnOrderly(Ledger* ledger,
                                const std::vector<client::ReceivedMessage>& messages);
client::ConcurrentResult OnConcurrent(Ledger* ledger,
                                      const std::vector<client::ReceivedMessage>& messages);

}  // namespace triad
