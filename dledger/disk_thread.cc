#include "dledger/disk_thread.h"

#include <iterator>
#include <utility>

#include "common/broken_ground.h"
#include "dledger/thread_name.h"

namespace triad::dledger {
namespace {

constexpr std::chrono::milliseconds kAsyncSyncInterval{10};

void DieUnless(const Status& status) {
  if (status.ok()) return;
  DieOfBrokenGround("the replicated log cannot be written: " + status.ToString() +
                    ". Nothing more is acknowledged. Check the disk (space, dmesg, smartctl), then "
                    "start this peer again: it verifies its log and fetches from its peers what is "
                    "damaged.");
}

std::uint64_t AppendedBytes(const std::vector<StorageOp>& ops) {
  std::uint64_t bytes = 0;
  for (const StorageOp& op : ops) {
    for (const EntryRef& entry : op.append) bytes += entry->size();
  }
  return bytes;
}

}  // namespace

DiskThread::DiskThread(LogStore& log, bool sync_flush, Events events)
    : log_(log),
      sync_flush_(sync_flush),
      events_(std::move(events)),
      writer_(log, events_.on_reset) {}

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
  unsynced_bytes_ += AppendedBytes(*ops);
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
      if (replaced.code() == StatusCode::kIoError) DieUnless(replaced);
      each.done(std::move(replaced));
    }
    replacements.clear();
  }
  SyncNow();
}

bool DiskThread::Take(std::vector<StorageOp>* batch, std::vector<Replacement>* replacements) {
  std::unique_lock lock(mutex_);
  const auto has_news = [this] { return stopping_ || !queue_.empty() || !replacements_.empty(); };
  if (writer_.is_dirty()) {
    wake_.wait_until(lock, synced_at_ + kAsyncSyncInterval, has_news);
  } else {
    wake_.wait(lock, has_news);
  }
  batch->swap(queue_);
  replacements->swap(replacements_);
  return !batch->empty() || !replacements->empty() || !stopping_;
}

void DiskThread::Execute(const std::vector<StorageOp>& batch) {
  DieUnless(writer_.Write(batch));
  dirty_bytes_ += AppendedBytes(batch);
  const auto now = std::chrono::steady_clock::now();
  if (sync_flush_ || now - synced_at_ >= kAsyncSyncInterval) SyncNow();
  // Also what a cut or a reset took with it.
  if (!writer_.is_dirty()) unsynced_bytes_ -= std::exchange(dirty_bytes_, 0);
  if (batch.empty()) return;
  events_.on_done(batch.back().token);
  events_.on_written();
}

void DiskThread::SyncNow() {
  if (!writer_.is_dirty()) return;
  const auto begun_at = std::chrono::steady_clock::now();
  DieUnless(writer_.Sync());
  synced_at_ = std::chrono::steady_clock::now();
  sync_latency_.Record(synced_at_, synced_at_ - begun_at);
}

}  // namespace triad::dledger
