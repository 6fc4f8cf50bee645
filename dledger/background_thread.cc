#include "dledger/background_thread.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/broken_ground.h"
#include "dledger/thread_name.h"

namespace triad::dledger {
namespace {

constexpr std::chrono::seconds kCheckpointInterval{3};
constexpr std::chrono::milliseconds kFullRetryInterval{500};

}  // namespace

BackgroundThread::BackgroundThread(LogStore& log, const Clock& clock, std::uint64_t prepare_bytes,
                                   RetentionOptions retention, std::function<Facts()> facts,
                                   std::function<void(LogIndex first)> on_dropped)
    : log_(log),
      prepare_bytes_(prepare_bytes),
      cleaner_(log, clock, std::move(retention), std::move(on_dropped)),
      facts_(std::move(facts)),
      // The store could not even prepare what it opens with.
      is_full_(log.prepared_bytes() <
               std::min(prepare_bytes / 4, LogStoreOptions().first_prepare_bytes)) {}

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

void BackgroundThread::SetRetention(RetentionOptions retention) {
  std::lock_guard hold(mutex_);
  next_retention_ = std::move(retention);
}

void BackgroundThread::CleanNow() {
  {
    std::lock_guard hold(mutex_);
    is_clean_asked_ = true;
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
  const auto clean_interval = cleaner_.options().interval;
  SteadyPoint checkpoint_due = std::chrono::steady_clock::now() + kCheckpointInterval;
  SteadyPoint clean_due = std::chrono::steady_clock::now() + clean_interval;
  for (;;) {
    bool is_clean_asked = false;
    {
      std::unique_lock lock(mutex_);
      SteadyPoint until = std::min(checkpoint_due, clean_due);
      if (is_full()) {
        until = std::min(until, std::chrono::steady_clock::now() + kFullRetryInterval);
      }
      wake_.wait_until(lock, until,
                       [this] { return stopping_ || is_clean_asked_ || (is_due_ && !is_full()); });
      if (stopping_) return;
      is_due_ = false;
      is_clean_asked = std::exchange(is_clean_asked_, false);
      if (next_retention_) cleaner_.set_options(*std::exchange(next_retention_, std::nullopt));
    }
    PrepareIfNeeded();
    if (is_clean_asked || std::chrono::steady_clock::now() >= clean_due) {
      Clean(is_clean_asked);
      clean_due = std::chrono::steady_clock::now() + clean_interval;
    }
    if (std::chrono::steady_clock::now() < checkpoint_due) continue;
    WriteCheckpoint();
    checkpoint_due = std::chrono::steady_clock::now() + kCheckpointInterval;
  }
}

void BackgroundThread::Clean(bool is_asked) {
  const Status cleaned = cleaner_.Clean(facts_(), is_asked);
  if (cleaned.ok()) return;
  DieOfBrokenGround("an old segment of the log cannot be dropped: " + cleaned.ToString() +
                    ". Check the disk (dmesg, smartctl), then start this peer again.");
}

void BackgroundThread::PrepareIfNeeded() {
  if (log_.prepared_bytes() > prepare_bytes_ / 2 && !is_full()) return;
  const Status status = log_.Prepare();
  if (status.ok()) {
    if (is_full_.exchange(false)) LOG(INFO) << "there is disk space for the log again";
    return;
  }
  if (status.code() != StatusCode::kNoSpace) {
    DieOfBrokenGround("the log cannot be prepared: " + status.ToString() +
                      ". Check the disk (space, dmesg, smartctl), then start this peer again.");
  }
  if (!is_full_.exchange(true)) {
    LOG(ERROR) << "no disk space for the log: " << status.ToString()
               << ". This peer takes no new messages until there is space.";
  }
}

void BackgroundThread::WriteCheckpoint() {
  const Status status = log_.WriteCheckpoint();
  if (status.ok()) return;
  // Only the next recovery takes longer.
  LOG_EVERY_N(WARNING, 100) << "log checkpoint: " << status.ToString();
}

}  // namespace triad::dledger
