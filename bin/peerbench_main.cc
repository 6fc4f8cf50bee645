// peerbench: loads what mqbench is compared with, by the same loop and with the same report.
//
//   triad-peerbench floor --dir DIR --inflight 64 --size 1024 --seconds 5 [--nosync] [--rate R]
//   triad-peerbench nats-publish --address 127.0.0.1:4222 --name SUBJECT ...
//   triad-peerbench nats-consume --address 127.0.0.1:4222 --name STREAM --messages N
//   triad-peerbench amqp-queue|amqp-publish|amqp-consume --address 127.0.0.1:5672 --name QUEUE ...
//
// For bin/compare; prints one line of JSON. --pids: the servers, for CPU and memory.

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "bin/bench/amqp_protocol.h"
#include "bin/bench/floor.h"
#include "bin/bench/nats_protocol.h"
#include "bin/bench/report.h"

DEFINE_string(address, "", "ip:port of the server");
DEFINE_string(name, "bench", "subject, stream or queue");
DEFINE_string(dir, "", "floor: where its files are");
DEFINE_string(pids, "", "the servers' process ids, joined by commas");
DEFINE_bool(sync, true, "floor: fdatasync before an acknowledgement");
DEFINE_uint64(inflight, 64, "publishes waiting for their answer");
DEFINE_uint64(size, 1024, "bytes of a body");
DEFINE_uint64(messages, 100000, "consume: how many");
DEFINE_double(rate, 0, "open loop: messages per second (0 = closed loop)");
DEFINE_double(seconds, 5, "length of the measurement");
DEFINE_double(warmup, 1, "seconds before it");

namespace triad::bench {
namespace {

int Refuse(const Status& why) {
  std::fprintf(stderr, "peerbench: %s\n", why.ToString().c_str());
  return 2;
}

std::vector<pid_t> Pids() {
  std::vector<pid_t> pids;
  std::istringstream words(FLAGS_pids);
  for (std::string word; std::getline(words, word, ',');) pids.push_back(std::atoi(word.c_str()));
  return pids;
}

int Publish(PublishProtocol* protocol, const std::vector<pid_t>& servers) {
  UsageSample before, after;
  PublishOptions options;
  options.window = FLAGS_inflight;
  options.rate = FLAGS_rate;
  options.warmup_s = FLAGS_warmup;
  options.seconds = FLAGS_seconds;
  options.on_begin = [&] { before = SampleUsage(servers); };
  options.on_end = [&] { after = SampleUsage(servers); };
  const Result<PublishOutcome> outcome = RunPublishLoop(protocol, options);
  if (!outcome.ok()) return Refuse(outcome.status());
  LoadReport report;
  report.what = "publish";
  report.size = FLAGS_size;
  report.inflight = FLAGS_inflight;
  report.rate = FLAGS_rate;
  report.latency = outcome->latency;
  report.timed = FLAGS_rate > 0 ? "from the moment a publish was due to its answer"
                                : "from a publish to its answer";
  report.messages = outcome->requests;
  report.bytes = outcome->requests * FLAGS_size;
  report.errors = outcome->errors;
  report.unanswered = outcome->unanswered;
  report.first_error = outcome->first_error;
  report.seconds = outcome->seconds;
  report.usage = Difference(before, after);
  PrintJson(report);
  return report.errors == 0 && report.messages > 0 ? 0 : 1;
}

int Consume(DrainProtocol* protocol) {
  const std::vector<pid_t> servers = Pids();
  const UsageSample before = SampleUsage(servers);
  const Result<DrainOutcome> outcome = RunDrainLoop(protocol, {FLAGS_messages, FLAGS_seconds});
  if (!outcome.ok()) return Refuse(outcome.status());
  LoadReport report;
  report.what = "consume";
  report.size = FLAGS_size;
  report.timed = "nothing";
  report.messages = outcome->messages;
  report.bytes = outcome->messages * FLAGS_size;
  report.seconds = outcome->seconds;
  report.usage = Difference(before, SampleUsage(servers));
  PrintJson(report);
  return report.messages > 0 ? 0 : 1;
}

int RunFloor() {
  if (FLAGS_dir.empty()) return Refuse(Status::InvalidArgument("floor needs --dir"));
  Floor floor;
  const Status started = floor.Start({FLAGS_dir, FLAGS_sync});
  if (!started.ok()) return Refuse(started);
  FloorProtocol protocol(floor.address(), FLAGS_size);
  return Publish(&protocol, floor.pids());
}

int Main(const std::string& verb) {
  if (verb == "floor") return RunFloor();
  if (FLAGS_address.empty()) return Refuse(Status::InvalidArgument(verb + " needs --address"));
  if (verb == "nats-publish") {
    NatsPublish protocol(FLAGS_address, FLAGS_name, FLAGS_size);
    return Publish(&protocol, Pids());
  }
  if (verb == "nats-consume") {
    NatsDrain protocol(FLAGS_address, FLAGS_name);
    return Consume(&protocol);
  }
  if (verb == "amqp-queue") {
    const Status made = MakeQuorumQueue(FLAGS_address, FLAGS_name);
    return made.ok() ? 0 : Refuse(made);
  }
  if (verb == "amqp-publish") {
    AmqpPublish protocol(FLAGS_address, FLAGS_name, FLAGS_size);
    return Publish(&protocol, Pids());
  }
  if (verb == "amqp-consume") {
    AmqpDrain protocol(FLAGS_address, FLAGS_name);
    return Consume(&protocol);
  }
  return Refuse(Status::InvalidArgument(
      "\"" + verb +
      "\" is none of floor, nats-publish, nats-consume, amqp-queue, amqp-publish, "
      "amqp-consume"));
}

}  // namespace
}  // namespace triad::bench

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_ERROR;
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  google::InitGoogleLogging(argv[0]);
  return triad::bench::Main(argc > 1 ? argv[1] : "");
}
