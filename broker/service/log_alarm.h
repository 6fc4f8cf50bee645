// LogAlarm: what the comparison of the peers' logs found wrong here, until it is mended.
//
// Shown by raftStatus and runtime information. Thread: any; one leaf mutex. Size: one text.

#pragma once

#include <glog/logging.h>

#include <mutex>
#include <string>
#include <utility>

namespace triad::broker {

class LogAlarm {
 public:
  // One ERROR line per different text.
  void Raise(std::string text) {
    const std::lock_guard lock(mutex_);
    if (text == text_) return;
    LOG(ERROR) << "log alarm: " << text << "; run mqadmin verifyLog";
    text_ = std::move(text);
  }
  void Clear() {
    const std::lock_guard lock(mutex_);
    if (!text_.empty()) LOG(INFO) << "log alarm is over: " << text_;
    text_.clear();
  }
  // Empty: nothing is known to be wrong.
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace triad::broker
