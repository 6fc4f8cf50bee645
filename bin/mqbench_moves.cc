#include "bin/mqbench_moves.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "common/histogram.h"
#include "remoting/codes.h"
#include "triad/admin.h"
#include "triad/producer.h"

namespace triad {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kSenders = 8;
constexpr milliseconds kBetweenMoves{500};

// What the senders saw since the last Take.
class Stillness {
 public:
  void Acknowledged(SteadyClock::time_point sent_at) {
    const auto now = SteadyClock::now();
    const std::lock_guard hold(mutex_);
    gap_ = std::max(gap_, now - last_);
    slowest_ = std::max(slowest_, now - sent_at);
    last_ = now;
  }
  struct Seen {
    SteadyClock::duration gap{0};
    SteadyClock::duration slowest{0};
  };
  Seen Take() {
    const std::lock_guard hold(mutex_);
    const Seen seen{gap_, slowest_};
    gap_ = slowest_ = SteadyClock::duration(0);
    return seen;
  }

 private:
  std::mutex mutex_;
  SteadyClock::time_point last_ = SteadyClock::now();
  SteadyClock::duration gap_{0};
  SteadyClock::duration slowest_{0};
};

// The address of whoever leads the only group there is.
std::string LeaderAddress(client::Admin* admin) {
  const Result<std::vector<client::BrokerGroup>> groups = admin->ClusterList();
  if (!groups.ok() || groups->empty()) return "";
  const auto leader = groups->front().addresses.find(0);
  return leader == groups->front().addresses.end() ? "" : leader->second;
}

void Record(const SteadyClock::duration& took, Histogram* histogram) {
  histogram->Record(
      static_cast<std::uint64_t>(std::chrono::duration_cast<microseconds>(took).count()));
}

void PrintLine(const char* what, const Histogram& histogram) {
  const auto ms = [&](double fraction) {
    return static_cast<double>(histogram.Percentile(fraction)) / 1000;
  };
  std::printf("%-28s p50 %7.1f ms   p99 %7.1f ms   max %7.1f ms\n", what, ms(0.5), ms(0.99),
              ms(1.0));
}

}  // namespace

int BenchMoves(const std::string& namesrv, const std::string& topic, int moves) {
  client::ProducerOptions options;
  options.client.namesrv_address = namesrv;
  client::Producer producer(options);
  client::Admin admin(options.client);
  for (const Status& started : {producer.Start(), admin.Start()}) {
    if (started.ok()) continue;
    std::fprintf(stderr, "mqbench: %s\n", started.ToString().c_str());
    return 2;
  }
  Stillness stillness;
  std::atomic<bool> is_over{false};
  std::atomic<int> sent{0};
  std::atomic<int> failed{0};
  std::vector<std::thread> senders;
  for (int i = 0; i < kSenders; ++i) {
    senders.emplace_back([&] {
      while (!is_over) {
        client::Message message;
        message.topic = topic;
        message.body = std::string(1024, 'm');
        const auto sent_at = SteadyClock::now();
        const bool is_good = producer.Send(std::move(message)).ok();
        ++sent;
        is_good ? stillness.Acknowledged(sent_at) : void(++failed);
      }
    });
  }
  std::this_thread::sleep_for(2 * kBetweenMoves);
  Histogram usual, gaps, slowest;
  int refused = 0;
  for (int move = 0; move < moves; ++move) {
    stillness.Take();
    std::this_thread::sleep_for(kBetweenMoves);
    Record(stillness.Take().slowest, &usual);
    const Result<client::Admin::Answer> answer =
        admin.Ask(LeaderAddress(&admin), remoting::kTriadTransferLeader);
    if (!answer.ok() || answer->code != remoting::kSuccess) ++refused;
    std::this_thread::sleep_for(kBetweenMoves);
    const Stillness::Seen seen = stillness.Take();
    Record(seen.gap, &gaps);
    Record(seen.slowest, &slowest);
  }
  is_over = true;
  for (std::thread& sender : senders) sender.join();
  std::printf("moves %d (refused %d), sends %d (failed %d)\n", moves, refused, sent.load(),
              failed.load());
  PrintLine("no acknowledgement for", gaps);
  PrintLine("slowest send at a move", slowest);
  PrintLine("slowest send between moves", usual);
  return failed > 0 || refused > 0 ? 1 : 0;
}

}  // namespace triad
