#include "dledger/disk_thread.h"

#include <glog/logging.h>

#include <iterator>
#include <utility>

#include "dledger/thread_name.h"

namespace triad::dledger {
namespace {

constexpr std::chrono::milliseconds kAsyncSyncInterval{10};

void DieUnless(const Status& status, const char* what) {
  if (status.ok()) return;
  LOG(FATAL)
      << "the replicated log cannot be written (" << what << "): " << status.ToString()
      << ". Nothing more is acknowledged. Check the disk (space, dmesg, smartctl), then start "
         "this peer again: it verifies its log and fetches from its peers what is damaged.";
}

}  // namespace

DiskThread::DiskThread(LogStore& log, bool sync_flush, Events events)
    : log_(log), sync_flush_(sync_flush), events_(std::move(events)) {}

DiskThread::~DiskThread() {
  Stop();
}

void DiskThread::Start() {
  thread_ = std::thread([this] {
    SetThreadName("dledger-disk");
    Run();
  });
}

void DiskThread::Push(std::vector<StorageOp>* ops) {
  if (ops->empty()) return;
  {
    std::lock_guard hold(mutex_);
    if (queue_.empty()) {
      queue_.swap(*ops);
    } else {
      std::move(ops->begin(), ops->end(), std::back_inserter(queue_));
    }
  }
  ops->clear();
  wake_.notify_one();
}

bool DiskThread::PushReplacement(Replacement replacement) {
  {
    std::lock_guard hold(mutex_);
    if (stopping_ || replacements_.size() >= kReplacementsMax) return false;
    replacements_.push_back(std::move(replacement));
  }
  wake_.notify_one();
  return true;
}

void DiskThread::Stop() {
  {
    std::lock_guard hold(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void DiskThread::Run() {
  std::vector<StorageOp> batch;
  std::vector<Replacement> replacements;
  while (Take(&batch, &replacements)) {
    Execute(batch);
    batch.clear();
    for (const Replacement& each : replacements) {
      Status replaced = log_.raw().Replace(each.entry);
      if (replaced.code() == StatusCode::kIoError) DieUnless(replaced, "replacing an entry");
      each.done(std::move(replaced));
    }
    replacements.clear();
  }
  SyncNow();
}

bool DiskThread::Take(std::vector<StorageOp>* batch, std::vector<Replacement>* replacements) {
  std::unique_lock lock(mutex_);
  const auto has_news = [this] { return stopping_ || !queue_.empty() || !replacements_.empty(); };
  if (is_dirty_) {
    wake_.wait_until(lock, synced_at_ + kAsyncSyncInterval, has_news);
  } else {
    wake_.wait(lock, has_news);
  }
  batch->swap(queue_);
  replacements->swap(replacements_);
  return !batch->empty() || !replacements->empty() || !stopping_;
}

void DiskThread::Execute(const std::vector<StorageOp>& batch) {
  for (const StorageOp& op : batch) ExecuteOne(op);
  WriteCollected();
  const auto now = std::chrono::steady_clock::now();
  if (sync_flush_ || now - synced_at_ >= kAsyncSyncInterval) SyncNow();
  if (batch.empty()) return;
  events_.on_done(batch.back().token);
  events_.on_written();
}

void DiskThread::ExecuteOne(const StorageOp& op) {
  if (op.hard_state) {
    WriteCollected();
    DieUnless(log_.SaveHardState(*op.hard_state), "vote slots");
  }
  if (op.recovering && *op.recovering) DieUnless(log_.SaveRecovering(true), "recovering mark");
  if (op.truncate_from) {
    WriteCollected();
    DieUnless(log_.Cut(*op.truncate_from), "cut");
    is_dirty_ = false;
  }
  if (op.reset) {
    WriteCollected();
    DieUnless(events_.on_reset(), "snapshot");
    is_dirty_ = false;
  }
  collected_.insert(collected_.end(), op.append.begin(), op.append.end());
  if (op.recovering && !*op.recovering) {
    // The mark may go only when what it speaks of is on the disk.
    WriteCollected();
    SyncNow();
    DieUnless(log_.SaveRecovering(false), "recovering mark");
  }
}

void DiskThread::WriteCollected() {
  if (collected_.empty()) return;
  DieUnless(log_.Append(collected_), "append");
  collected_.clear();
  is_dirty_ = true;
}

void DiskThread::SyncNow() {
  if (!is_dirty_) return;
  const auto begun_at = std::chrono::steady_clock::now();
  DieUnless(log_.Sync(), "fdatasync");
  is_dirty_ = false;
  synced_at_ = std::chrono::steady_clock::now();
  sync_latency_.Record(synced_at_, synced_at_ - begun_at);
}

}  // namespace triad::dledger
