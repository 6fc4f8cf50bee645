#include "remoting/io_thread.h"

#include <glog/logging.h>
#include <pthread.h>

#include <asio/post.hpp>
#include <utility>

namespace triad::remoting {

IoThread::IoThread() : io_(1), work_(asio::make_work_guard(io_)) {}

IoThread::~IoThread() {
  CHECK(!thread_.joinable()) << "Stop first";
}

void IoThread::Start(std::string name) {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this, thread_name = std::move(name)] {
    pthread_setname_np(pthread_self(), thread_name.substr(0, 15).c_str());
    thread_id_.store(std::this_thread::get_id(), std::memory_order_release);
    io_.run();
  });
}

void IoThread::Stop() {
  if (!thread_.joinable()) return;
  CHECK(!IsCurrent()) << "a thread cannot wait for itself";
  work_.reset();
  thread_.join();
  thread_id_.store(std::thread::id(), std::memory_order_release);
  {
    std::lock_guard hold(mutex_);
    stopped_ = true;
  }
  // What others posted while the thread ended would keep connections alive in a circle.
  io_.restart();
  io_.poll();
}

bool IoThread::Post(std::function<void()> task) {
  std::lock_guard hold(mutex_);
  if (stopped_) return false;
  asio::post(io_, std::move(task));
  return true;
}

bool IoThread::IsCurrent() const {
  return thread_id_.load(std::memory_order_acquire) == std::this_thread::get_id();
}

void CrashOnException::operator()(std::exception_ptr exception) const {
  if (exception == nullptr) return;
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    LOG(FATAL) << what << " threw: " << error.what();
  } catch (...) {
    LOG(FATAL) << what << " threw something that is no std::exception";
  }
}

}  // namespace triad::remoting
