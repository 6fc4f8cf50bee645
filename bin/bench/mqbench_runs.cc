#include "bin/bench/mqbench_runs.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "bin/bench/publish_loop.h"
#include "bin/bench/pull_loop.h"
#include "bin/bench/report.h"
#include "bin/bench/send_protocol.h"
#include "bin/bench/server_usage.h"
#include "bin/bench/verify.h"

namespace triad::bench {
namespace {

constexpr std::uint64_t kClosedWindow = 64;
constexpr std::uint64_t kOpenWindow = 60000;
constexpr std::chrono::milliseconds kQuietPause{500};

int Refuse(const Status& why) {
  std::fprintf(stderr, "mqbench: %s\n", why.ToString().c_str());
  return 2;
}

std::uint64_t NewRun() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return static_cast<std::uint64_t>(now) * 1000003 + static_cast<std::uint64_t>(::getpid());
}

remoting::SerializeType Serialize(const MqbenchOptions& options) {
  return options.header == "binary" ? remoting::SerializeType::kRocketmq
                                    : remoting::SerializeType::kJson;
}

void Print(const MqbenchOptions& options, const LoadReport& report) {
  options.output == "json" ? PrintJson(report) : PrintTable(report);
}

// The usage of servers and disk around one measurement.
class Meter {
 public:
  explicit Meter(const Lanes& lanes) : servers_(ListenersOn(lanes.AllAddresses())) {
    const UsageSample before = SampleUsage({});
    std::this_thread::sleep_for(kQuietPause);
    flushes_before_per_s_ = Difference(before, SampleUsage({})).flushes_per_s;
  }
  void Begin() { begin_ = SampleUsage(servers_); }
  void End() { end_ = SampleUsage(servers_); }
  void Fill(LoadReport* report) const {
    report->usage = Difference(begin_, end_);
    report->flushes_before_per_s = flushes_before_per_s_;
  }

 private:
  const std::vector<pid_t> servers_;
  double flushes_before_per_s_ = 0;
  UsageSample begin_;
  UsageSample end_;
};

Status CheckSending(const MqbenchOptions& options) {
  if (options.verify && options.size < kStampBytes) {
    return Status::InvalidArgument("--verify needs bodies of at least " +
                                   std::to_string(kStampBytes) + " bytes (--size)");
  }
  if (options.batch > 1 && options.keys > 0) {
    return Status::InvalidArgument("--keys does not go with --batch: a batch goes to one queue");
  }
  return Status::Ok();
}

// One run of a sender: from the topic to the report.
class SenderRun {
 public:
  explicit SenderRun(const MqbenchOptions& options) : options_(options), run_(NewRun()) {}

  Status Prepare() {
    TRIAD_RETURN_IF_ERROR(CheckSending(options_));
    Result<std::unique_ptr<Lanes>> lanes = Lanes::Find(options_.lanes);
    if (!lanes.ok()) return lanes.status();
    lanes_ = std::move(*lanes);
    if (options_.verify) {
      Result<std::vector<std::int64_t>> begins = lanes_->Ends();
      if (!begins.ok()) return begins.status();
      begins_ = std::move(*begins);
    }
    SendOptions send;
    send.size = options_.size;
    send.batch = options_.batch;
    send.keys = options_.keys;
    send.connections = options_.connections;
    send.run = run_;
    send.serialize = Serialize(options_);
    Result<std::unique_ptr<SendProtocol>> protocol = SendProtocol::Make(lanes_.get(), send);
    if (!protocol.ok()) return protocol.status();
    protocol_ = std::move(*protocol);
    meter_ = std::make_unique<Meter>(*lanes_);
    return Status::Ok();
  }

  Result<LoadReport> Run() {
    PublishOptions publish;
    const bool is_open_loop = options_.rate > 0;
    publish.window = options_.inflight > 0 ? options_.inflight
                     : is_open_loop        ? kOpenWindow
                                           : kClosedWindow;
    publish.rate = options_.rate / static_cast<double>(options_.batch);
    publish.warmup_s = options_.warmup;
    publish.seconds = options_.seconds;
    publish.keeps_acknowledged = options_.verify;
    publish.on_begin = [this] { meter_->Begin(); };
    publish.on_end = [this] { meter_->End(); };
    Result<PublishOutcome> outcome = RunPublishLoop(protocol_.get(), publish);
    if (!outcome.ok()) return outcome.status();
    LoadReport report;
    report.what = "producer";
    report.size = options_.size;
    report.inflight = publish.window;
    report.batch = options_.batch;
    report.rate = options_.rate;
    report.latency = outcome->latency;
    report.timed =
        is_open_loop ? "from the moment a send was due to its answer" : "from a send to its answer";
    report.messages = outcome->requests * options_.batch;
    report.bytes = report.messages * options_.size;
    report.errors = outcome->errors;
    report.unanswered = outcome->unanswered;
    report.first_error = outcome->first_error;
    report.seconds = outcome->seconds;
    meter_->Fill(&report);
    if (options_.verify) TRIAD_RETURN_IF_ERROR(Verify(*outcome, &report));
    return report;
  }

  Lanes* lanes() { return lanes_.get(); }
  std::uint64_t run() const { return run_; }

 private:
  Status Verify(const PublishOutcome& outcome, LoadReport* report) {
    VerifyOptions verify;
    verify.run = run_;
    verify.batch = options_.batch;
    verify.size = options_.size;
    verify.begins = begins_;
    verify.acknowledged = &outcome.acknowledged;
    lanes_->Refresh();
    Result<std::vector<PeerCheck>> checks = VerifyPeers(lanes_.get(), verify);
    if (!checks.ok()) return checks.status();
    report->has_checks = true;
    report->checks = std::move(*checks);
    return Status::Ok();
  }

  const MqbenchOptions& options_;
  const std::uint64_t run_;
  std::unique_ptr<Lanes> lanes_;
  std::vector<std::int64_t> begins_;
  std::unique_ptr<SendProtocol> protocol_;
  std::unique_ptr<Meter> meter_;
};

bool IsWell(const LoadReport& report) {
  bool is_well = report.errors == 0 && report.unanswered == 0 && report.messages > 0;
  for (const PeerCheck& check : report.checks) is_well = is_well && check.is_right();
  return is_well;
}

LoadReport ReadingReport(const MqbenchOptions& options, const PullOutcome& outcome) {
  LoadReport report;
  report.what = "consumer";
  report.inflight = static_cast<std::uint64_t>(options.groups);
  report.batch = static_cast<std::uint64_t>(options.pull_batch);
  report.latency = outcome.latency;
  report.timed = "from a pull to its answer with messages";
  report.messages = outcome.messages;
  report.bytes = outcome.bytes;
  report.size = outcome.messages > 0 ? outcome.bytes / outcome.messages : 0;
  report.errors = outcome.errors;
  report.first_error = outcome.first_error;
  report.seconds = outcome.seconds;
  return report;
}

PullOptions Pulling(const MqbenchOptions& options) {
  PullOptions pull;
  pull.groups = options.groups;
  pull.connections = options.connections;
  pull.max_messages = options.pull_batch;
  pull.serialize = Serialize(options);
  pull.follows = options.follows;
  pull.seconds = options.seconds;
  return pull;
}

}  // namespace

int RunProducer(const MqbenchOptions& options) {
  SenderRun sender(options);
  const Status prepared = sender.Prepare();
  if (!prepared.ok()) return Refuse(prepared);
  const Result<LoadReport> report = sender.Run();
  if (!report.ok()) return Refuse(report.status());
  Print(options, *report);
  return IsWell(*report) ? 0 : 1;
}

int RunConsumer(const MqbenchOptions& options) {
  LaneOptions where = options.lanes;
  where.may_create = options.follows;
  Result<std::unique_ptr<Lanes>> lanes = Lanes::Find(where);
  if (!lanes.ok()) return Refuse(lanes.status());
  PullOptions pull = Pulling(options);
  if (options.follows) {
    Result<std::vector<std::int64_t>> ends = (*lanes)->Ends();
    if (!ends.ok()) return Refuse(ends.status());
    pull.begins = std::move(*ends);
  }
  Meter meter(**lanes);
  pull.shows_progress = true;
  pull.on_begin = [&meter] { meter.Begin(); };
  pull.on_end = [&meter] { meter.End(); };
  const Result<PullOutcome> outcome = RunPullLoop(lanes->get(), pull);
  if (!outcome.ok()) return Refuse(outcome.status());
  if (!options.follows && outcome->messages == 0 && outcome->errors == 0) {
    return Refuse(Status::NotFound("topic " + options.lanes.topic +
                                   " holds no message; send some first (mqbench producer), or wait "
                                   "for new ones with --follow"));
  }
  LoadReport report = ReadingReport(options, *outcome);
  meter.Fill(&report);
  Print(options, report);
  return report.errors == 0 ? 0 : 1;
}

int RunMixed(const MqbenchOptions& options) {
  SenderRun sender(options);
  const Status prepared = sender.Prepare();
  if (!prepared.ok()) return Refuse(prepared);
  // The reader has routes of its own: both look them up anew after a failure.
  Result<std::unique_ptr<Lanes>> lanes = Lanes::Find(options.lanes);
  if (!lanes.ok()) return Refuse(lanes.status());
  Result<std::vector<std::int64_t>> ends = (*lanes)->Ends();
  if (!ends.ok()) return Refuse(ends.status());
  PullOptions pull = Pulling(options);
  pull.follows = true;
  pull.warmup_s = options.warmup;
  pull.seconds = options.seconds;
  pull.begins = std::move(*ends);
  Histogram delivery;
  pull.on_message = [&](std::size_t, const StoredMessage& message) {
    if (message.body.size() < kStampBytes) return;
    const Stamp stamp = ReadStamp(message.body.data());
    if (stamp.run == sender.run())
      delivery.Record(static_cast<std::uint64_t>(Now() - stamp.sent_at) / 1000);
  };
  Result<PullOutcome> read = Status::Unavailable("the reader did not run");
  std::thread reader([&] { read = RunPullLoop(lanes->get(), pull); });
  const Result<LoadReport> sent = sender.Run();
  reader.join();
  if (!sent.ok()) return Refuse(sent.status());
  if (!read.ok()) return Refuse(read.status());
  LoadReport received = ReadingReport(options, *read);
  received.latency = delivery;
  received.timed = "from a send to its arrival at the reader";
  received.usage = sent->usage;
  received.flushes_before_per_s = sent->flushes_before_per_s;
  Print(options, *sent);
  Print(options, received);
  return IsWell(*sent) && received.errors == 0 && received.messages > 0 ? 0 : 1;
}

}  // namespace triad::bench
