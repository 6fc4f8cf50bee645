#include "dledger/background_thread.h"

#include <glog/logging.h>

#include <chrono>

#include "dledger/thread_name.h"

namespace triad::dledger {
namespace {

constexpr std::chrono::seconds kCheckpointInterval{3};
constexpr std::chrono::milliseconds kFullRetryInterval{500};

}  // namespace

BackgroundThread::BackgroundThread(LogStore& log, std::uint64_t prepare_bytes)
    : log_(log), prepare_bytes_(prepare_bytes), checkpoint_at_(log.end_position()) {}

BackgroundThread::~BackgroundThread() {
  Stop();
}

void BackgroundThread::Start() {
  thread_ = std::thread([this] {
    SetThreadName("dledger-back");
    Run();
  });
}

void BackgroundThread::OnWritten() {
  if (log_.prepared_bytes() > prepare_bytes_ / 2) return;
  {
    std::lock_guard hold(mutex_);
    if (is_due_) return;
    is_due_ = true;
  }
  wake_.notify_one();
}

void BackgroundThread::Stop() {
  {
    std::lock_guard hold(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void BackgroundThread::Run() {
  auto checkpoint_due = std::chrono::steady_clock::now() + kCheckpointInterval;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      const auto until =
          is_full() ? std::chrono::steady_clock::now() + kFullRetryInterval : checkpoint_due;
      wake_.wait_until(lock, until, [this] { return stopping_ || (is_due_ && !is_full()); });
      if (stopping_) return;
      is_due_ = false;
    }
    PrepareIfNeeded();
    if (std::chrono::steady_clock::now() < checkpoint_due) continue;
    CheckpointIfMoved();
    checkpoint_due = std::chrono::steady_clock::now() + kCheckpointInterval;
  }
}

void BackgroundThread::PrepareIfNeeded() {
  if (log_.prepared_bytes() > prepare_bytes_ / 2 && !is_full()) return;
  const Status status = log_.Prepare();
  if (status.ok()) {
    if (is_full_.exchange(false)) LOG(INFO) << "there is disk space for the log again";
    return;
  }
  if (status.code() != StatusCode::kNoSpace) {
    LOG(FATAL) << "the log cannot be prepared: " << status.ToString()
               << ". Check the disk (space, dmesg, smartctl), then start this peer again.";
  }
  if (!is_full_.exchange(true)) {
    LOG(ERROR) << "no disk space for the log: " << status.ToString()
               << ". This peer takes no new messages until there is space.";
  }
}

void BackgroundThread::CheckpointIfMoved() {
  const PhysicalOffset end = log_.end_position();
  if (end == checkpoint_at_) return;
  const Status status = log_.WriteCheckpoint();
  if (!status.ok()) {
    // Only the next recovery takes longer.
    LOG_EVERY_N(WARNING, 100) << "log checkpoint: " << status.ToString();
    return;
  }
  checkpoint_at_ = end;
}

}  // namespace triad::dledger
