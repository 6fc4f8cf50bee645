// mqbench: loads a RocketMQ-compatible broker group and says what it did.
//
//   mqbench producer -n 127.0.0.1:9876 -t Bench --inflight 64 --size 1024 --seconds 10
//   mqbench producer -n 127.0.0.1:9876 -t Bench --rate 5000 --verify
//   mqbench consumer -n 127.0.0.1:9876 -t Bench
//   mqbench mixed -n 127.0.0.1:9876 -t Bench --rate 5000
//   mqbench listener -n 127.0.0.1:9876 -t Bench --orderly
//   mqbench moves -n 127.0.0.1:9876 -t Bench --count 50
//
// Speaks the remoting protocol only, so it drives the original brokers alike. What each figure
// means: docs/mqbench.md.

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <string>

#include "bin/bench/mqbench_runs.h"
#include "bin/mqbench_listen.h"
#include "bin/mqbench_moves.h"

namespace triad {
namespace {

using bench::MqbenchOptions;

void AddCommon(CLI::App* verb, MqbenchOptions* options) {
  verb->add_option("-n,--namesrvAddr", options->lanes.namesrv, "name server")
      ->capture_default_str();
  verb->add_option("-t,--topic", options->lanes.topic, "topic; created when absent")
      ->capture_default_str();
  verb->add_option("--topics", options->lanes.topics, "so many topics: TOPIC-0, TOPIC-1, ...")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  verb->add_option("--queues", options->lanes.queues, "queues of a topic that is created")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  verb->add_option("--seconds", options->seconds, "length of the measurement")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  verb->add_option("--connections", options->connections, "connections to each leader")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  verb->add_option("--header", options->header, "encoding of the request headers")
      ->capture_default_str()
      ->check(CLI::IsMember({"json", "binary"}));
  verb->add_option("-o,--output", options->output, "table or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"table", "json"}));
}

void AddSending(CLI::App* verb, MqbenchOptions* options) {
  verb->add_option("--warmup", options->warmup, "seconds before the measurement")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--size", options->size, "bytes of a body")
      ->capture_default_str()
      ->check(CLI::Range(0, 8388608));
  verb->add_option("--inflight", options->inflight,
                   "closed loop: sends waiting for their answer (default 64); open loop: at most "
                   "so many (default 60000)")
      ->check(CLI::Range(1, 60000));
  verb->add_option("--rate", options->rate, "open loop: messages per second (0 = closed loop)")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--keys", options->keys,
                   "so many different keys, each in a queue of its own turn")
      ->capture_default_str()
      ->check(CLI::Range(0, 99999999));
  verb->add_option("--batch", options->batch, "messages per request")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  verb->add_flag("--verify", options->verify,
                 "afterwards read everything back from every peer and compare");
}

void AddReading(CLI::App* verb, MqbenchOptions* options) {
  verb->add_option("--groups", options->groups, "so many consumer groups, each reads everything")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  verb->add_option("--pull-batch", options->pull_batch, "messages per pull, at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
}

int Main(int argc, char** argv) {
  MqbenchOptions options;
  CLI::App app("Loads a broker group and reports throughput, latency and what the servers used.",
               "mqbench");
  app.require_subcommand(1);
  CLI::App* producer = app.add_subcommand("producer", "send messages");
  AddCommon(producer, &options);
  AddSending(producer, &options);
  CLI::App* consumer = app.add_subcommand("consumer", "read what is there, from the beginning");
  AddCommon(consumer, &options);
  AddReading(consumer, &options);
  consumer->add_flag("--follow", options.follows,
                     "read on from the end for --seconds, instead of what is there");
  CLI::App* mixed = app.add_subcommand("mixed", "send, and read it at the same time");
  AddCommon(mixed, &options);
  AddSending(mixed, &options);
  AddReading(mixed, &options);
  CLI::App* listener = app.add_subcommand(
      "listener", "work off what is there with the C++ client and a listener that does nothing");
  AddCommon(listener, &options);
  bool is_orderly = false;
  listener->add_flag("--orderly", is_orderly, "in order, with queue locks");
  listener->add_option("--pull-batch", options.pull_batch, "messages per pull, at most")
      ->check(CLI::Range(1, 1024));
  CLI::App* moves =
      app.add_subcommand("moves", "hand the leadership over again and again under load");
  AddCommon(moves, &options);
  int move_count = 50;
  moves->add_option("--count", move_count, "how often")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (moves->parsed()) return BenchMoves(options.lanes.namesrv, options.lanes.topic, move_count);
  if (listener->parsed()) return BenchListener(options, is_orderly);
  if (producer->parsed()) return bench::RunProducer(options);
  return consumer->parsed() ? bench::RunConsumer(options) : bench::RunMixed(options);
}

}  // namespace
}  // namespace triad

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;  // no log files beside the story
  FLAGS_minloglevel = google::GLOG_ERROR;
  google::InitGoogleLogging(argv[0]);
  return triad::Main(argc, argv);
}
