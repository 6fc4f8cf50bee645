#include "tests/chaos/verdict.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace triad::chaos {

void AddExample(Verdict* verdict, std::string text) {
  if (verdict->examples.size() < kMaxExamples) verdict->examples.push_back(std::move(text));
}

std::int64_t PercentileMs(std::vector<std::int64_t> values_ns, double p) {
  if (values_ns.empty()) return -1;
  std::sort(values_ns.begin(), values_ns.end());
  const double rank = std::ceil(p * static_cast<double>(values_ns.size()));
  const std::size_t at = rank < 1 ? 0 : static_cast<std::size_t>(rank) - 1;
  return values_ns[std::min(at, values_ns.size() - 1)] / 1'000'000;
}

std::string SummaryOf(const Verdict& v) {
  const char* linearizable = v.keys_bad > 0 ? "bad" : v.keys_unknown > 0 ? "unknown" : "ok";
  const std::pair<const char*, std::uint64_t> counts[] = {{"lost", v.lost},
                                                          {"duplicated", v.duplicated},
                                                          {"unexpected", v.unexpected},
                                                          {"corrupt", v.corrupt},
                                                          {"order_violations", v.order_violations},
                                                          {"lock_overlaps", v.lock_overlaps}};
  std::string text;
  for (const auto& [name, count] : counts) text += name + ("=" + std::to_string(count)) + " ";
  return text + "linearizable=" + linearizable +
         " failover_p50_ms=" + std::to_string(PercentileMs(v.failover_ns, 0.5)) +
         " failover_p99_ms=" + std::to_string(PercentileMs(v.failover_ns, 0.99));
}

std::string ReportOf(const Verdict& v) {
  const std::pair<const char*, std::uint64_t> counts[] = {
      {"sends attempted", v.attempts},
      {"  acknowledged", v.acked},
      {"  refused", v.failed},
      {"  of unknown outcome", v.unknown},
      {"  unknown and stored (recovered)", v.recovered},
      {"  further copies by repeating clients", v.resent},
      {"messages checked", v.checked_messages},
      {"queues checked", v.checked_queues},
      {"lost", v.lost},
      {"duplicated", v.duplicated},
      {"unexpected", v.unexpected},
      {"corrupt", v.corrupt},
      {"order violations", v.order_violations},
      {"deliveries", v.delivered},
      {"  again (redelivered)", v.redelivered},
      {"  never (undelivered)", v.undelivered},
      {"retries, each one copy", v.retries},
      {"dead letters, each one", v.dead_letters},
      {"  clients' own copies beside them", v.own_copies},
      {"lock overlaps", v.lock_overlaps},
      {"linearizable keys", v.keys_ok},
      {"  not linearizable", v.keys_bad},
      {"  undecided", v.keys_unknown},
      {"faults that took effect", v.faults},
      {"  that did not", v.faults_in_vain},
      {"  without an end", v.faults_open},
      {"  of the leader, followed by an acknowledgement", v.failover_ns.size()},
      {"  of the leader, not followed by one", v.faults_without_ack}};
  std::string text;
  for (const auto& [name, count] : counts) {
    text += std::string(name) + ": " + std::to_string(count) + "\n";
  }
  for (const auto& [who, times] : {std::pair("any client", &v.failover_ns),
                                   std::pair("each client by itself", &v.client_failover_ns)}) {
    text += std::string("failover of ") + who + ": " + std::to_string(times->size()) + " times";
    for (const double p : {0.1, 0.5, 0.9, 0.95, 0.99, 1.0}) {
      text += " p" + std::to_string(static_cast<int>(p * 100)) + "=" +
              std::to_string(PercentileMs(*times, p));
    }
    text += " ms\n";
  }
  for (const auto& [kind, lasted_ns] : v.fault_ns) {
    text += "lasted in all, " + kind + ": " + std::to_string(lasted_ns / 1'000'000) + " ms\n";
  }
  for (const std::string& example : v.examples) text += "VIOLATION " + example + "\n";
  return text;
}

}  // namespace triad::chaos
