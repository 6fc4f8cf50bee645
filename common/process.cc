#include "common/process.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>

namespace triad {
namespace {

struct LongOption {
  std::string_view name;
  char letter;
};
constexpr LongOption kLongOptions[] = {
    {"configFile", 'c'},           {"namesrvAddr", 'n'}, {"printConfigItem", 'p'},
    {"printImportantConfig", 'm'}, {"help", 'h'},
};

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

void TranslateLongOptions(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string_view text = argv[i];
    if (text == "--") return;
    if (text.substr(0, 2) != "--") continue;
    text.remove_prefix(2);
    const std::string_view name = text.substr(0, text.find('='));
    for (const LongOption& option : kLongOptions) {
      if (name != option.name) continue;
      const std::string translated =
          std::string{'-', option.letter} + std::string(text.substr(name.size()));
      std::memcpy(argv[i], translated.c_str(), translated.size() + 1);  // always shorter
      break;
    }
  }
}

std::uint64_t RaiseOpenFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < limit.rlim_max) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return limit.rlim_cur;
}

void HoldStopSignals() {
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int WaitForStopSignal() {
  const sigset_t signals = StopSignals();
  int number = 0;
  while (sigwait(&signals, &number) != 0) {
  }
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  return number;
}

int WaitForStopSignal(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  const sigset_t signals = StopSignals();
  while (true) {  // another signal may end the wait early
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const std::int64_t ms = std::max<std::int64_t>(left.count(), 0);
    const timespec time{static_cast<std::time_t>(ms / 1000),
                        static_cast<long>(ms % 1000) * 1000000L};
    const int number = sigtimedwait(&signals, nullptr, &time);
    if (number > 0) {
      pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
      return number;
    }
    if (ms == 0) return 0;
  }
}

}  // namespace triad
