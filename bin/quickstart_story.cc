#include "bin/quickstart_story.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace triad {

using SteadyClock = std::chrono::steady_clock;

std::string KeyOf(int n) {
  return "order-" + std::to_string(n % kKeys);
}
std::string BodyOf(int n) {
  return KeyOf(n) + ":" + std::to_string(n / kKeys);
}
bool IsPoison(int n) {
  return n % (kMessages / kPoison) == 7;
}
int NumberOf(const std::string& body) {
  int key = 0;
  int step = 0;
  if (std::sscanf(body.c_str(), "order-%d:%d", &key, &step) != 2) return -1;
  return step * kKeys + key;
}

Story::Story()
    : begin_(SteadyClock::now()),
      terminal_(::isatty(STDOUT_FILENO) != 0),
      clear_(terminal_ ? "\r\033[K" : "") {}

void Story::Step(const std::string& text) {
  std::printf("%s[%5.1f s] %s\n", clear_, Elapsed(), text.c_str());
  std::fflush(stdout);
}

void Story::Progress(const std::string& text) {
  if (!terminal_) return;
  std::printf("\r\033[K[%5.1f s] %s", Elapsed(), text.c_str());
  std::fflush(stdout);
}

double Story::Elapsed() const {
  return std::chrono::duration<double>(SteadyClock::now() - begin_).count();
}

client::OrderlyResult OnOrderly(Ledger* ledger,
                                const std::vector<client::ReceivedMessage>& messages) {
  std::lock_guard hold(ledger->mutex);
  for (const client::ReceivedMessage& message : messages) {
    const int n = NumberOf(message.body);
    if (n < 0) continue;
    int& next = ledger->orderly_next[KeyOf(n)];
    const int step = n / kKeys;
    if (step < next) ++ledger->orderly_redelivered;
    if (step > next) ++ledger->out_of_order;
    next = std::max(next, step + 1);
    ledger->orderly.insert(n);
  }
  ledger->changed.notify_all();
  return client::OrderlyResult::kSuccess;
}

client::ConcurrentResult OnConcurrent(Ledger* ledger,
                                      const std::vector<client::ReceivedMessage>& messages) {
  bool failed = false;
  std::lock_guard hold(ledger->mutex);
  for (const client::ReceivedMessage& message : messages) {
    const int n = NumberOf(message.body);
    if (n < 0) continue;
    ++ledger->concurrent[n];
    failed = failed || IsPoison(n);
  }
  ledger->changed.notify_all();
  return failed ? client::ConcurrentResult::kReconsumeLater : client::ConcurrentResult::kSuccess;
}

}  // namespace triad
