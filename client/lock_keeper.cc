#include "client/lock_keeper.h"

#include <glog/logging.h>

#include <utility>

namespace triad::client {

namespace {
constexpr std::chrono::milliseconds kRetry{500};  // when a broker group did not answer
}  // namespace

LockKeeper::LockKeeper(ConsumerContextPtr context, QueueTable* table, OnLost on_lost,
                       OnSurplus on_surplus)
    : context_(std::move(context)),
      table_(table),
      on_lost_(std::move(on_lost)),
      on_surplus_(std::move(on_surplus)) {
  thread_ = std::thread([this] { Run(); });
}

LockKeeper::~LockKeeper() {
  Stop();
}

void LockKeeper::Stop() {
  {
    std::lock_guard hold(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void LockKeeper::Run() {
  bool good = true;
  std::unique_lock hold(mutex_);
  while (!stopped_) {
    changed_.wait_for(hold, good ? context_->options.lock_interval : kRetry,
                      [this] { return stopped_; });
    if (stopped_) return;
    hold.unlock();
    good = RenewAll();
    hold.lock();
  }
}

bool LockKeeper::RenewAll() {
  std::map<std::string, std::vector<ProcessQueuePtr>> by_broker;
  for (const ProcessQueuePtr& queue : table_->All()) {
    by_broker[queue->queue().broker_name].push_back(queue);
  }
  bool good = true;
  for (const auto& [broker_name, queues] : by_broker) {
    std::vector<MessageQueue> names;
    for (const ProcessQueuePtr& queue : queues) names.push_back(queue->queue());
    const TimePoint asked_at = SystemClock().MonoNow();
    const auto held = context_->calls->Lock(context_->options.group, broker_name, names);
    if (!held.ok()) {
      LOG(WARNING) << "the queue locks of group " << context_->options.group << " at "
                   << broker_name << " could not be renewed: " << held.status();
      good = false;
      continue;
    }
    std::vector<MessageQueue> surplus;
    for (const ProcessQueuePtr& queue : queues) {
      if (Judge(queue, *held, asked_at)) surplus.push_back(queue->queue());
    }
    if (!surplus.empty()) on_surplus_(std::move(surplus));
  }
  return good;
}

bool LockKeeper::Judge(const ProcessQueuePtr& queue,
                       const std::map<MessageQueue, std::uint64_t>& held, TimePoint asked_at) {
  const auto found = held.find(queue->queue());
  if (table_->Find(queue->queue()) == nullptr) return found != held.end();
  if (found != held.end() && found->second == queue->fence_token()) {
    queue->SetLocked(found->second, asked_at);
    return false;
  }
  queue->SetUnlocked();
  if (!queue->dropped()) on_lost_(queue);
  return false;
}

}  // namespace triad::client
