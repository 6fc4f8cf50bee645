// ReaderPool: two threads for file reads that nobody else may wait for.
//
// Bounds: kReaderTasksMax waiting tasks; beyond them Post answers false. Tasks must not block on
// other tasks.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace triad::dledger {

inline constexpr std::size_t kReaderThreads = 2;
inline constexpr std::size_t kReaderTasksMax = 16384;

class ReaderPool {
 public:
  ReaderPool() = default;
  ~ReaderPool() { Stop(); }

  void Start();
  // Any thread. False when full or stopped.
  bool Post(std::function<void()> task);
  // Runs what waits, joins. Idempotent.
  void Stop();

 private:
  void Run();

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
};

}  // namespace triad::dledger
