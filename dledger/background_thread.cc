#include "dledger/background_thread.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "common/broken_ground.h"
#include "dledger/thread_name.h"

namespace triad::dledger {
namespace {

constexpr std::chrono::seconds kCheckpointInterval{3};
constexpr std::chrono::milliseconds kFullRetryInterval{500};

// Of the day, in the machine's own time zone, as deleteWhen means it.
int HourOf(std::int64_t wall_ms) {
  const auto seconds = static_cast<std::time_t>(wall_ms / 1000);
  std::tm local{};
  return ::localtime_r(&seconds, &local) == nullptr ? 0 : local.tm_hour;
}

}  // namespace

BackgroundThread::BackgroundThread(LogStore& log, const Clock& clock, std::uint64_t prepare_bytes,
                                   RetentionOptions retention, std::function<Facts()> facts,
                                   std::function<void(LogIndex first)> on_dropped)
    : log_(log),
      clock_(clock),
      prepare_bytes_(prepare_bytes),
      retention_(std::move(retention)),
      facts_(std::move(facts)),
      on_dropped_(std::move(on_dropped)),
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

void BackgroundThread::Stop() {
  {
    std::lock_guard hold(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void BackgroundThread::Run() {
  const auto clean_interval = retention_.options().interval;
  SteadyPoint checkpoint_due = std::chrono::steady_clock::now() + kCheckpointInterval;
  SteadyPoint clean_due = std::chrono::steady_clock::now() + clean_interval;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      SteadyPoint until = std::min(checkpoint_due, clean_due);
      if (is_full()) {
        until = std::min(until, std::chrono::steady_clock::now() + kFullRetryInterval);
      }
      wake_.wait_until(lock, until, [this] { return stopping_ || (is_due_ && !is_full()); });
      if (stopping_) return;
      is_due_ = false;
      if (next_retention_) retention_.set_options(*std::exchange(next_retention_, std::nullopt));
    }
    PrepareIfNeeded();
    if (std::chrono::steady_clock::now() >= clean_due) {
      Clean();
      clean_due = std::chrono::steady_clock::now() + clean_interval;
    }
    if (std::chrono::steady_clock::now() < checkpoint_due) continue;
    WriteCheckpoint();
    checkpoint_due = std::chrono::steady_clock::now() + kCheckpointInterval;
  }
}

void BackgroundThread::Clean() {
  const Facts facts = facts_();
  const Result<Space> space = log_.GetSpace();
  if (!space.ok()) {
    LOG_EVERY_N(WARNING, 60) << "no retention: the disk's space is unknown: " << space.status();
    return;
  }
  retention_.Begin({.now = clock_.MonoNow(),
                    .log_time_ms = facts.log_time_ms,
                    .hour = HourOf(clock_.WallNowMs()),
                    .space = *space,
                    .segments = log_.segments().size()});
  while (CleanOne(facts)) {
  }
}

bool BackgroundThread::CleanOne(const Facts& facts) {
  const std::vector<SegmentFacts> segments = log_.segments();
  // The one with the log's end stays, and whatever the state may still need.
  if (segments.size() < 2 || segments[1].first > facts.durable) return false;
  // Its last entry's is its newest time.
  const Result<StoreBase> behind = log_.BaseAt(segments[1]);
  if (!behind.ok()) return Postpone(behind.status());
  const bool is_wanted = facts.wanted && *facts.wanted < segments[1].first;
  const Retention::Verdict verdict = retention_.Judge(behind->tail.last_store_time_ms, is_wanted);
  if (verdict == Retention::Verdict::kKeep) return false;
  const Result<std::size_t> dropped = log_.DropBefore(segments[1].first);
  if (!dropped.ok()) {
    // One sector that cannot be read is no reason to die, nor is a disk that is full.
    if (dropped.status().code() != StatusCode::kIoError) return Postpone(dropped.status());
    DieOfBrokenGround(
        "an old segment of the log cannot be dropped: " + dropped.status().ToString() +
        ". Check the disk (dmesg, smartctl), then start this peer again.");
  }
  on_dropped_(segments[1].first);
  LOG(INFO) << "the log forgets its segment at " << segments[0].base << ", entries up to "
            << segments[1].first - 1
            << (verdict == Retention::Verdict::kForced
                    ? ": the disk is nearly full (diskSpaceCleanForciblyRatio)"
                    : ": older than fileReservedTime");
  return true;
}

bool BackgroundThread::Postpone(const Status& why) {
  LOG_EVERY_N(ERROR, 60) << "the oldest segment of the log stays for now: " << why;
  return false;
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
