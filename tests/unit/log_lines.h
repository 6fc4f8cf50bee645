// What is logged with one severity while it lives, line by line. Thread: any.

#pragma once

#include <glog/logging.h>

#include <mutex>
#include <string>
#include <vector>

namespace triad::test {

class LogLines : public google::LogSink {
 public:
  explicit LogLines(google::LogSeverity severity) : severity_(severity) {
    google::AddLogSink(this);
  }
  ~LogLines() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity severity, const char*, const char*, int,
            const google::LogMessageTime&, const char* message, std::size_t length) override {
    if (severity != severity_) return;
    const std::lock_guard hold(mutex_);
    lines_.emplace_back(message, length);
  }
  std::vector<std::string> lines() const {
    const std::lock_guard hold(mutex_);
    return lines_;
  }

 private:
  const google::LogSeverity severity_;
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace triad::test
