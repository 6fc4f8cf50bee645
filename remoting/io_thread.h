// IoThread: one io_context and the one thread that runs it.
//
// Shell: Asio; included by remoting's .cc files only. Owner: the server or client that made it;
// connections share it, so that its io_context outlives every socket and timer. A task posted after
// Stop is dropped.

#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace triad::remoting {

class IoThread {
 public:
  IoThread();
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  void Start(std::string name);
  // Waits until nothing is left to run: the caller has closed every socket and timer. Not on the
  // thread itself.
  void Stop();

  // Runs `task` on the thread. False, and the task is dropped, once Stop has returned.
  bool Post(std::function<void()> task);
  bool IsCurrent() const;
  asio::io_context& io() { return io_; }

 private:
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::mutex mutex_;  // leaf: no task slips in behind Stop's last look
  bool stopped_ = false;
  std::atomic<std::thread::id> thread_id_{};
  std::thread thread_;
};

// The completion handler of every co_spawn: a coroutine that throws ends the process.
struct CrashOnException {
  const char* what;
  void operator()(std::exception_ptr exception) const;
};

}  // namespace triad::remoting
