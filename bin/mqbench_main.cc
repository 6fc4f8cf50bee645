// mqbench: loads a RocketMQ-compatible broker group and says what it did.
//
//   mqbench producer -n 127.0.0.1:9876 -t Bench --inflight 64 --size 1024 --seconds 10
//   mqbench consumer -n 127.0.0.1:9876 -t Bench --seconds 10
//   mqbench moves -n 127.0.0.1:9876 -t Bench --count 50
//
// Producer: closed loop (a fixed number in flight) or, with --rate, open loop: latency counts from
// the moment a message was due, so a stall is not hidden. Consumer: pulls every queue from its
// minimum offset, one request per queue in flight. Speaks the remoting protocol only, so it drives
// the original brokers alike.

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bin/mqbench_moves.h"
#include "bin/server_cpu.h"
#include "common/histogram.h"
#include "remoting/client.h"
#include "remoting/codes.h"
#include "remoting/headers.h"
#include "remoting/json.h"

namespace triad {
namespace {

using remoting::Command;
using SteadyClock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Options {
  std::string namesrv = "127.0.0.1:9876";
  std::string topic = "TriadBench";
  int size = 1024;
  int inflight = 64;
  int queues = 8;
  double rate = 0;
  double seconds = 10;
  double warmup = 1;
  std::string output = "table";
  std::string server_process = "triad-broker";
};

struct Target {
  std::string broker_name;
  std::string address;
  int queues = 0;
};

// ---- finding and making the topic

Result<Target> FindTarget(remoting::Client& client, const std::string& namesrv,
                          const std::string& topic) {
  Command request = Command::Request(remoting::kGetRouteInfoByTopic);
  request.ext.Set("topic", topic);
  Result<Command> answer = client.CallSync(namesrv, std::move(request), milliseconds(3000));
  if (!answer.ok()) return answer.status();
  if (answer->code != 0)
    return Status::NotFound("no route for topic " + topic + ": " + answer->remark);
  Result<remoting::Json> route = remoting::Json::Parse(answer->body);
  if (!route.ok()) return route.status();
  for (const remoting::Json& broker : (*route)["brokerDatas"].items()) {
    const std::string address = broker["brokerAddrs"]["0"].AsString();
    if (address.empty()) continue;
    for (const remoting::Json& queue : (*route)["queueDatas"].items()) {
      if (queue["brokerName"].AsString() != broker["brokerName"].AsString()) continue;
      return Target{broker["brokerName"].AsString(), address,
                    static_cast<int>(queue["writeQueueNums"].AsInt64())};
    }
  }
  return Status::NotFound("topic " + topic + " has no leader in its route");
}

Status CreateTopic(remoting::Client& client, const Options& options) {
  Result<Command> cluster = client.CallSync(
      options.namesrv, Command::Request(remoting::kGetBrokerClusterInfo), milliseconds(3000));
  if (!cluster.ok()) return cluster.status();
  Result<remoting::Json> info = remoting::Json::Parse(cluster->body);
  if (!info.ok()) return info.status();
  for (const remoting::Json::Member& member : (*info)["brokerAddrTable"].members()) {
    const std::string address = member.value["brokerAddrs"]["0"].AsString();
    if (address.empty()) continue;
    Command request = Command::Request(remoting::kUpdateAndCreateTopic);
    request.ext.Set("topic", options.topic);
    request.ext.Set("defaultTopic", "TBW102");
    request.ext.Set("readQueueNums", options.queues);
    request.ext.Set("writeQueueNums", options.queues);
    request.ext.Set("perm", 6);
    request.ext.Set("topicFilterType", "SINGLE_TAG");
    request.ext.Set("topicSysFlag", 0);
    request.ext.SetBool("order", false);
    Result<Command> made = client.CallSync(address, std::move(request), milliseconds(5000));
    if (!made.ok()) return made.status();
    if (made->code != 0)
      return Status::Unavailable("cannot create " + options.topic + ": " + made->remark);
    return Status::Ok();
  }
  return Status::NotFound("no broker with a leader is registered at " + options.namesrv);
}

Result<Target> PrepareTarget(remoting::Client& client, const Options& options) {
  Result<Target> target = FindTarget(client, options.namesrv, options.topic);
  if (target.ok()) return target;
  TRIAD_RETURN_IF_ERROR(CreateTopic(client, options));
  for (int i = 0; i < 100; ++i) {
    target = FindTarget(client, options.namesrv, options.topic);
    if (target.ok()) return target;
    std::this_thread::sleep_for(milliseconds(50));
  }
  return target;
}

// ---- counting

struct Counts {
  std::mutex mutex;
  std::condition_variable changed;
  Histogram latency;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;
  std::string last_error;
  std::vector<std::function<void()>> parked;  // what failed; tried again at the next tick
  int inflight = 0;
  bool measuring = false;
  bool stopping = false;
};

void Report(const Options& options, const char* what, const Counts& counts, double seconds,
            double cpu_seconds) {
  const double rate = static_cast<double>(counts.messages) / seconds;
  const double mb = static_cast<double>(counts.bytes) / seconds / 1e6;
  const double cpu_per_million =
      counts.messages == 0 ? 0 : cpu_seconds / (static_cast<double>(counts.messages) / 1e6);
  const auto ms = [&](double p) {
    return static_cast<double>(counts.latency.Percentile(p)) / 1000.0;
  };
  const double max_ms = static_cast<double>(counts.latency.max()) / 1000.0;
  if (options.output == "json") {
    std::printf(
        "{\"errors\":%llu,\"inflight\":%d,\"max_ms\":%.3f,\"mb_per_s\":%.2f,\"messages\":%llu,"
        "\"msg_per_s\":%.0f,"
        "\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"p999_ms\":%.3f,\"rate\":%.0f,\"seconds\":%.2f,\"server_"
        "cpu_s_per_million\":%.2f,"
        "\"size\":%d,\"what\":\"%s\"}\n",
        static_cast<unsigned long long>(counts.errors), options.inflight, max_ms, mb,
        static_cast<unsigned long long>(counts.messages), rate, ms(0.5), ms(0.99), ms(0.999),
        options.rate, seconds, cpu_per_million, options.size, what);
    return;
  }
  std::printf("%-9s %9s %9s %9s %9s %9s %9s %9s %8s %12s\n", what, "msg/s", "MB/s", "p50 ms",
              "p99 ms", "p99.9 ms", "max ms", "messages", "errors", "cpu s/1M");
  std::printf("%-9s %9.0f %9.1f %9.3f %9.3f %9.3f %9.3f %9llu %8llu %12.2f\n", "", rate, mb,
              ms(0.5), ms(0.99), ms(0.999), max_ms,
              static_cast<unsigned long long>(counts.messages),
              static_cast<unsigned long long>(counts.errors), cpu_per_million);
  if (counts.errors > 0) std::printf("last error: %s\n", counts.last_error.c_str());
}

// Waits until `end`. After a failure the leader may be another one: looks the route up again and
// tries what failed once more, every 100 ms.
void WaitUntil(SteadyClock::time_point end, const Options& options, remoting::Client& client,
               Counts* counts, Target* target) {
  for (auto now = SteadyClock::now(); now < end; now = SteadyClock::now()) {
    std::this_thread::sleep_until(std::min(end, now + milliseconds(100)));
    {
      std::lock_guard hold(counts->mutex);
      if (counts->parked.empty()) continue;
    }
    const Result<Target> found = FindTarget(client, options.namesrv, options.topic);
    std::vector<std::function<void()>> again;
    {
      std::lock_guard hold(counts->mutex);
      if (found.ok()) target->address = found->address;
      again.swap(counts->parked);
    }
    for (const auto& request : again) request();
  }
}

// Warm-up and measurement, with a line of progress per second on a terminal. The address of
// `target` is guarded by the mutex of `counts`. Returns {seconds measured, server CPU seconds}.
std::pair<double, double> Measure(const Options& options, remoting::Client& client, Counts* counts,
                                  Target* target) {
  const auto warm = std::chrono::duration_cast<SteadyClock::duration>(
      std::chrono::duration<double>(options.warmup));
  WaitUntil(SteadyClock::now() + warm, options, client, counts, target);
  const double cpu_before = ServerCpuSeconds(options.server_process);
  const auto begin = SteadyClock::now();
  {
    std::lock_guard hold(counts->mutex);
    counts->measuring = true;
  }
  const auto end = begin + std::chrono::duration_cast<SteadyClock::duration>(
                               std::chrono::duration<double>(options.seconds));
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  std::uint64_t before = 0;
  for (auto next = begin + std::chrono::seconds(1); SteadyClock::now() < end;
       next += std::chrono::seconds(1)) {
    WaitUntil(std::min(next, end), options, client, counts, target);
    std::lock_guard hold(counts->mutex);
    if (terminal)
      std::fprintf(stderr, "\r%llu msg/s   ",
                   static_cast<unsigned long long>(counts->messages - before));
    before = counts->messages;
  }
  std::lock_guard hold(counts->mutex);
  counts->measuring = false;
  counts->stopping = true;
  if (terminal) std::fprintf(stderr, "\r                \r");
  return {std::chrono::duration<double>(SteadyClock::now() - begin).count(),
          ServerCpuSeconds(options.server_process) - cpu_before};
}

bool WaitForIdle(Counts* counts) {
  std::unique_lock lock(counts->mutex);
  return counts->changed.wait_for(lock, std::chrono::seconds(10),
                                  [&] { return counts->inflight == 0; });
}

// ---- producer

class ProducerLoad {
 public:
  ProducerLoad(const Options& options, remoting::Client& client, Target target)
      : options_(options),
        client_(client),
        target_(std::move(target)),
        body_(static_cast<std::size_t>(options.size), 'x') {}

  int Run() {
    std::thread pacer;
    if (options_.rate > 0) {
      pacer = std::thread([this] { Pace(); });
    } else {
      for (int i = 0; i < options_.inflight; ++i) Send(SteadyClock::now());
    }
    const auto [seconds, cpu] = Measure(options_, client_, &counts_, &target_);
    if (pacer.joinable()) pacer.join();
    if (!WaitForIdle(&counts_)) std::fprintf(stderr, "some requests were never answered\n");
    std::lock_guard hold(counts_.mutex);
    Report(options_, "producer", counts_, seconds, cpu);
    return counts_.messages > 0 && counts_.errors == 0 ? 0 : 1;
  }

 private:
  Command MakeRequest() {
    const std::uint64_t n = sequence_.fetch_add(1);
    remoting::SendMessageRequest header;
    header.producer_group = "mqbench";
    header.topic = options_.topic;
    header.default_topic = "TBW102";
    header.default_topic_queue_nums = 4;
    header.queue_id = static_cast<std::int32_t>(n % static_cast<std::uint64_t>(target_.queues));
    header.born_timestamp_ms = std::chrono::duration_cast<milliseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count();
    char key[40];
    std::snprintf(key, sizeof key, "%032llX", static_cast<unsigned long long>(n));
    header.properties = std::string("UNIQ_KEY\x01") + key + "\x02WAIT\x01true\x02";
    header.broker_name = target_.broker_name;
    Command request = Command::Request(remoting::kSendMessageV2);
    header.EncodeV2(&request.ext);
    request.body = body_;
    return request;
  }

  void Send(SteadyClock::time_point due) {
    std::string address;
    {
      std::lock_guard hold(counts_.mutex);
      if (counts_.stopping) return;
      ++counts_.inflight;
      address = target_.address;
    }
    client_.Call(address, MakeRequest(), milliseconds(10000),
                 [this, due](Result<Command> answer) { OnAnswer(due, answer); });
  }

  void OnAnswer(SteadyClock::time_point due, const Result<Command>& answer) {
    const auto micros = std::chrono::duration_cast<microseconds>(SteadyClock::now() - due).count();
    const bool ok = answer.ok() && answer->code == 0;
    {
      std::lock_guard hold(counts_.mutex);
      --counts_.inflight;
      if (!ok) {
        ++counts_.errors;
        counts_.last_error = answer.ok() ? std::to_string(answer->code) + " " + answer->remark
                                         : answer.status().ToString();
        const bool again = options_.rate <= 0;  // an open loop goes on by itself
        counts_.parked.emplace_back([this, again] {
          if (again) Send(SteadyClock::now());
        });
      } else if (counts_.measuring) {
        counts_.latency.Record(static_cast<std::uint64_t>(micros));
        ++counts_.messages;
        counts_.bytes += body_.size();
      }
    }
    counts_.changed.notify_all();
    if (ok && options_.rate <= 0) Send(SteadyClock::now());
  }

  // Open loop: message n is due at start + n / rate, whatever the answers do (at most 100,000
  // unanswered).
  void Pace() {
    const auto start = SteadyClock::now();
    for (std::uint64_t n = 0;; ++n) {
      const auto due =
          start + std::chrono::duration_cast<SteadyClock::duration>(
                      std::chrono::duration<double>(static_cast<double>(n) / options_.rate));
      if (due > SteadyClock::now() + microseconds(200)) std::this_thread::sleep_until(due);
      {
        std::unique_lock lock(counts_.mutex);
        counts_.changed.wait_for(lock, std::chrono::seconds(10),
                                 [&] { return counts_.inflight < 100000; });
        if (counts_.stopping) return;
      }
      Send(due);
    }
  }

  const Options& options_;
  remoting::Client& client_;
  Target target_;  // its address: guarded by counts_.mutex
  const std::string body_;
  std::atomic<std::uint64_t> sequence_{0};
  Counts counts_;
};

// ---- consumer

class ConsumerLoad {
 public:
  ConsumerLoad(const Options& options, remoting::Client& client, Target target)
      : options_(options), client_(client), target_(std::move(target)) {}

  int Run() {
    for (int queue = 0; queue < target_.queues; ++queue) Pull(queue, 0);
    const auto [seconds, cpu] = Measure(options_, client_, &counts_, &target_);
    if (!WaitForIdle(&counts_)) std::fprintf(stderr, "some requests were never answered\n");
    std::lock_guard hold(counts_.mutex);
    Report(options_, "consumer", counts_, seconds, cpu);
    return counts_.errors == 0 ? 0 : 1;
  }

 private:
  void Pull(int queue, std::int64_t offset) {
    std::string address;
    {
      std::lock_guard hold(counts_.mutex);
      if (counts_.stopping) return;
      ++counts_.inflight;
      address = target_.address;
    }
    remoting::PullMessageRequest header;
    header.consumer_group = "mqbench_consumer";
    header.topic = options_.topic;
    header.queue_id = queue;
    header.queue_offset = offset;
    header.max_msg_nums = 1024;
    header.sys_flag = 0x2 | 0x4;
    header.suspend_timeout_ms = 1000;
    header.subscription = "*";
    header.expression_type = "TAG";
    Command request = Command::Request(remoting::kPullMessage);
    header.Encode(&request.ext);
    const auto sent = SteadyClock::now();
    client_.Call(address, std::move(request), milliseconds(10000),
                 [this, queue, offset, sent](Result<Command> answer) {
                   OnAnswer(queue, offset, sent, answer);
                 });
  }

  void OnAnswer(int queue, std::int64_t offset, SteadyClock::time_point sent,
                const Result<Command>& answer) {
    std::int64_t next = offset;
    bool known = false;
    {
      std::lock_guard hold(counts_.mutex);
      --counts_.inflight;
      known = answer.ok() &&
              (answer->code == remoting::kSuccess || answer->code == remoting::kPullNotFound ||
               answer->code == remoting::kPullRetryImmediately ||
               answer->code == remoting::kPullOffsetMoved);
      if (!known) {
        ++counts_.errors;
        counts_.last_error = answer.ok() ? std::to_string(answer->code) + " " + answer->remark
                                         : answer.status().ToString();
        counts_.parked.emplace_back([this, queue, offset] { Pull(queue, offset); });
      } else {
        Result<remoting::PullMessageResponse> header =
            remoting::PullMessageResponse::Decode(answer->ext);
        if (header.ok()) next = header->next_begin_offset;
        if (answer->code == remoting::kSuccess && counts_.measuring) {
          counts_.messages += static_cast<std::uint64_t>(next - offset);
          counts_.bytes += answer->body.size();
          counts_.latency.Record(static_cast<std::uint64_t>(
              std::chrono::duration_cast<microseconds>(SteadyClock::now() - sent).count()));
        }
      }
    }
    counts_.changed.notify_all();
    if (known) Pull(queue, next);
  }

  const Options& options_;
  remoting::Client& client_;
  Target target_;  // its address: guarded by counts_.mutex
  Counts counts_;
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Loads a broker group and reports throughput, latency and the servers' CPU time.",
               "mqbench");
  app.require_subcommand(1);
  const auto common = [&options](CLI::App* verb) {
    verb->add_option("-n,--namesrvAddr", options.namesrv, "name server")->capture_default_str();
    verb->add_option("-t,--topic", options.topic, "topic; created when absent")
        ->capture_default_str();
    verb->add_option("--queues", options.queues, "queues of a topic that is created")
        ->capture_default_str()
        ->check(CLI::Range(1, 4096));
    verb->add_option("--seconds", options.seconds, "length of the measurement")
        ->capture_default_str();
    verb->add_option("--warmup", options.warmup, "seconds before it")->capture_default_str();
    verb->add_option("-o,--output", options.output, "table or json")
        ->capture_default_str()
        ->check(CLI::IsMember({"table", "json"}));
    verb->add_option("--server-process", options.server_process,
                     "program name (or Java main class) of the servers whose CPU time is reported")
        ->capture_default_str();
  };
  CLI::App* producer = app.add_subcommand("producer", "send messages");
  common(producer);
  producer->add_option("--size", options.size, "body bytes")
      ->capture_default_str()
      ->check(CLI::Range(1, 4194304));
  producer
      ->add_option("--inflight", options.inflight, "closed loop: sends waiting for their answer")
      ->capture_default_str()
      ->check(CLI::Range(1, 60000));
  producer->add_option("--rate", options.rate, "open loop: messages per second (0 = closed loop)")
      ->capture_default_str();
  CLI::App* consumer = app.add_subcommand("consumer", "pull messages from the beginning");
  common(consumer);
  CLI::App* moves =
      app.add_subcommand("moves", "hand the leadership over again and again under load");
  common(moves);
  int move_count = 50;
  moves->add_option("--count", move_count, "how often")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  std::unique_ptr<remoting::Client> client = remoting::CreateClient({}, {});
  Result<Target> target = PrepareTarget(*client, options);
  if (!target.ok()) {
    std::fprintf(stderr, "mqbench: %s\n", target.status().ToString().c_str());
    client->Stop();
    return 2;
  }
  if (moves->parsed()) {
    client->Stop();
    return BenchMoves(options.namesrv, options.topic, move_count);
  }
  const int result = producer->parsed() ? ProducerLoad(options, *client, *target).Run()
                                        : ConsumerLoad(options, *client, *target).Run();
  client->Stop();
  return result;
}

}  // namespace
}  // namespace triad

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;  // no log files beside the story
  FLAGS_minloglevel = google::GLOG_ERROR;
  google::InitGoogleLogging(argv[0]);
  return triad::Main(argc, argv);
}
