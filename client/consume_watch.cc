#include "client/consume_watch.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace triad::client {

namespace {
constexpr std::chrono::milliseconds kLookMin{10};
constexpr std::chrono::milliseconds kLookMax{60000};
}  // namespace

ConsumeWatch::ConsumeWatch(std::chrono::milliseconds limit, GiveUp give_up)
    : limit_(limit), give_up_(std::move(give_up)) {
  CHECK_GT(limit_.count(), 0);
  thread_ = std::thread([this] { Run(); });
}

ConsumeWatch::~ConsumeWatch() {
  Stop();
}

void ConsumeWatch::Stop() {
  {
    std::lock_guard hold(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::uint64_t ConsumeWatch::Begin(const ProcessQueuePtr& queue, const Messages& batch) {
  std::lock_guard hold(mutex_);
  const std::uint64_t id = next_id_++;
  running_[id] = Running{queue, &batch, SystemClock().MonoNow(), false, {}};
  return id;
}

std::set<std::int64_t> ConsumeWatch::End(std::uint64_t id) {
  std::unique_lock hold(mutex_);
  changed_.wait(hold, [&] { return !running_.at(id).busy; });
  return std::move(running_.extract(id).mapped().given_up);
}

void ConsumeWatch::Run() {
  std::unique_lock hold(mutex_);
  while (!stopped_) {
    changed_.wait_for(hold, std::clamp(limit_ / 4, kLookMin, kLookMax),
                      [this] { return stopped_; });
    if (stopped_) return;
    hold.unlock();
    Look();
    hold.lock();
  }
}

void ConsumeWatch::Look() {
  struct Late {
    std::uint64_t id;
    ProcessQueuePtr queue;
    Messages messages;
  };
  std::vector<Late> all;
  {
    std::lock_guard hold(mutex_);
    const TimePoint now = SystemClock().MonoNow();
    for (auto& [id, running] : running_) {
      if (now - running.since < limit_ || running.queue->dropped()) continue;
      Late late{id, running.queue, {}};
      for (const ReceivedMessage& message : *running.batch) {
        if (!running.given_up.contains(message.queue_offset)) late.messages.push_back(message);
      }
      if (late.messages.empty()) continue;
      running.busy = true;
      all.push_back(std::move(late));
    }
  }
  for (Late& late : all) {
    std::set<std::int64_t> given_up = give_up_(late.queue, std::move(late.messages));
    std::lock_guard hold(mutex_);
    Running& running = running_.at(late.id);
    running.given_up.merge(given_up);
    running.busy = false;
    changed_.notify_all();
  }
}

}  // namespace triad::client
