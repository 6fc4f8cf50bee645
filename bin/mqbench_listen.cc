#include "bin/mqbench_listen.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "bin/bench/report.h"
#include "bin/bench/server_usage.h"
#include "bin/bench/stream.h"
#include "triad/push_consumer.h"

namespace triad {
namespace {

// What the listener counted.
class Tally {
 public:
  void Add(std::size_t messages) {
    const std::lock_guard hold(mutex_);
    if (count_ == 0) first_ = bench::Now();
    count_ += static_cast<std::int64_t>(messages);
    last_ = bench::Now();
    if (count_ >= wanted_) changed_.notify_all();
  }
  void WaitFor(std::int64_t wanted, double seconds) {
    std::unique_lock lock(mutex_);
    wanted_ = wanted;
    changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                      [this] { return count_ >= wanted_; });
  }
  void Fill(bench::LoadReport* report) {
    const std::lock_guard hold(mutex_);
    report->messages = static_cast<std::uint64_t>(count_);
    report->seconds = static_cast<double>(std::max<bench::Nanos>(1, last_ - first_)) / 1e9;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t count_ = 0;
  std::int64_t wanted_ = 0;
  bench::Nanos first_ = 0;
  bench::Nanos last_ = 0;
};

int Refuse(const Status& why) {
  std::fprintf(stderr, "mqbench: %s\n", why.ToString().c_str());
  return 2;
}

void SetListener(bool is_orderly, Tally* tally, client::PushConsumer* consumer) {
  if (is_orderly) {
    consumer->SetListener(client::MessageListenerOrderly(
        [tally](const std::vector<client::ReceivedMessage>& messages, client::OrderlyContext*) {
          tally->Add(messages.size());
          return client::OrderlyResult::kSuccess;
        }));
    return;
  }
  consumer->SetListener(client::MessageListenerConcurrently(
      [tally](const std::vector<client::ReceivedMessage>& messages, client::ConcurrentContext*) {
        tally->Add(messages.size());
        return client::ConcurrentResult::kSuccess;
      }));
}

}  // namespace

int BenchListener(const bench::MqbenchOptions& options, bool is_orderly) {
  bench::LaneOptions where = options.lanes;
  where.may_create = false;
  Result<std::unique_ptr<bench::Lanes>> lanes = bench::Lanes::Find(where);
  if (!lanes.ok()) return Refuse(lanes.status());
  const Result<std::vector<std::int64_t>> ends = (*lanes)->Ends();
  if (!ends.ok()) return Refuse(ends.status());
  std::int64_t wanted = 0;
  for (const std::int64_t end : *ends) wanted += end;

  client::PushConsumerOptions consumer_options;
  consumer_options.client.namesrv_address = options.lanes.namesrv;
  consumer_options.group = "mqbench_listener_" + std::to_string(::getpid());
  consumer_options.consume_from = client::ConsumeFrom::kFirstOffset;
  consumer_options.pull_batch = options.pull_batch;
  client::PushConsumer consumer(consumer_options);
  Tally tally;
  const Status subscribed = consumer.Subscribe(options.lanes.topic);
  if (!subscribed.ok()) return Refuse(subscribed);
  SetListener(is_orderly, &tally, &consumer);
  const std::vector<pid_t> servers = bench::ListenersOn((*lanes)->AllAddresses());
  const bench::UsageSample before = bench::SampleUsage(servers);
  const Status started = consumer.Start();
  if (!started.ok()) return Refuse(started);
  tally.WaitFor(wanted, options.seconds);
  bench::LoadReport report;
  report.what = is_orderly ? "orderly" : "concurrent";
  report.batch = static_cast<std::uint64_t>(options.pull_batch);
  report.timed = "nothing";
  report.usage = bench::Difference(before, bench::SampleUsage(servers));
  tally.Fill(&report);
  consumer.Shutdown();
  options.output == "json" ? bench::PrintJson(report) : bench::PrintTable(report);
  if (report.messages >= static_cast<std::uint64_t>(wanted)) return 0;
  std::fprintf(stderr, "mqbench: %llu of %lld messages came within %.0f s\n",
               static_cast<unsigned long long>(report.messages), static_cast<long long>(wanted),
               options.seconds);
  return 1;
}

}  // namespace triad
