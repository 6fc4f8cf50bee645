// BackgroundThread: runs tasks that wait for a disk, in order, and one periodic action between
// them.
//
// Owns its thread. Thread: Post is safe on every thread; Stop on the owner's, once.
// Bounds: `capacity` waiting tasks; Post refuses the next one.

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace triad::nameserver {

class BackgroundThread {
 public:
  // `periodic` runs on the thread, first after `first_pause`; it returns the pause to its next run.
  BackgroundThread(std::size_t capacity, std::chrono::milliseconds first_pause,
                   std::function<std::chrono::milliseconds()> periodic);
  ~BackgroundThread();

  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  // False: full or stopped; the task will not run.
  bool Post(std::function<void()> task);

  // Runs what is waiting, then ends the thread. Nothing happens the second time.
  void Stop();

 private:
  void Run(std::chrono::milliseconds first_pause);

  const std::size_t capacity_;
  const std::function<std::chrono::milliseconds()> periodic_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace triad::nameserver
