// Verdict: what a history says about the promises, in numbers and in words.
//
// Pure value.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace triad::chaos {

struct Verdict {
  // Sends.
  std::uint64_t attempts = 0, acked = 0, failed = 0, unknown = 0;
  std::uint64_t lost = 0;        // acknowledged, but not at its offset on every peer
  std::uint64_t duplicated = 0;  // stored more often than sent
  std::uint64_t unexpected = 0;  // read, but never sent, certainly refused, or sent elsewhere
  std::uint64_t corrupt = 0;     // other bytes, or another message at an offset than before
  std::uint64_t recovered = 0;   // of unknown outcome, and stored
  std::uint64_t resent = 0;      // further copies of what a client repeated by itself
  // Order and consumers.
  std::uint64_t order_violations = 0;
  std::uint64_t delivered = 0, redelivered = 0;
  std::uint64_t undelivered = 0;  // stored, but never given to a group that must get it
  std::uint64_t retries = 0, dead_letters = 0;  // of groups that say how many there are to be
  std::uint64_t own_copies = 0;  // clients' own sends to retry topics: beside the exact ones
  // Small objects.
  std::uint64_t lock_overlaps = 0;
  std::uint64_t keys_ok = 0, keys_bad = 0, keys_unknown = 0;
  std::map<std::string, std::string> objects;  // name -> "ok", "bad" or "unknown"
  // Failover: from a fault of the leader to the end of the first acknowledged send begun after it.
  std::vector<std::int64_t> failover_ns;
  // The same as each client sees it: one value for every client and fault.
  std::vector<std::int64_t> client_failover_ns;
  std::uint64_t faults_without_ack = 0;          // nothing was acknowledged after them
  std::uint64_t faults = 0;                      // that took effect
  std::uint64_t faults_in_vain = 0;              // that did not
  std::uint64_t faults_open = 0;                 // whose end is missing
  std::map<std::string, std::int64_t> fault_ns;  // kind -> how long they lasted in all
  std::uint64_t checked_queues = 0, checked_messages = 0;

  // The first violations, with line numbers.
  std::vector<std::string> examples;

  bool good() const {
    return lost + duplicated + unexpected + corrupt + order_violations + undelivered +
               lock_overlaps + keys_bad + keys_unknown + faults_open ==
           0;
  }
};

inline constexpr std::size_t kMaxExamples = 20;
void AddExample(Verdict* verdict, std::string text);

// p in [0, 1] of `values` (sorted by this function), in milliseconds; -1 when there are none.
std::int64_t PercentileMs(std::vector<std::int64_t> values_ns, double p);

// "lost=0 duplicated=0 unexpected=0 corrupt=0 order_violations=0 lock_overlaps=0 linearizable=ok
// failover_p50_ms=... failover_p99_ms=..."
std::string SummaryOf(const Verdict& verdict);
// Everything, one figure per line, then the examples.
std::string ReportOf(const Verdict& verdict);

}  // namespace triad::chaos
