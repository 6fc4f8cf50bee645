// quickstart: the whole product in one run, on this machine: a NameServer and three peers, ordered
// sends by key, an orderly and a concurrent consumer group, poison messages into the dead-letter
// topic, the leader killed half-way, everything read back.
//
// Called by bin/quickstart. Exit 0 only when every count is right.

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "bin/local_cluster.h"
#include "bin/quickstart_read.h"
#include "bin/quickstart_story.h"
#include "triad/admin.h"
#include "triad/producer.h"
#include "triad/pull_consumer.h"
#include "triad/push_consumer.h"

namespace triad {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Quickstart {
 public:
  Quickstart(LocalClusterOptions options, bool keep) : options_(std::move(options)), keep_(keep) {}

  int Run() {
    const Status status = RunSteps();
    if (!status.ok()) {
      std::printf("\nquickstart failed: %s\nlogs and data: %s\n", status.ToString().c_str(),
                  options_.work_dir.c_str());
      Shutdown();
      return 1;
    }
    Shutdown();
    return Verdict();
  }

 private:
  Status RunSteps() {
    story_.Step("starting a NameServer and three peers in " + options_.work_dir);
    Result<std::unique_ptr<LocalCluster>> cluster = LocalCluster::Start(options_);
    if (!cluster.ok()) return cluster.status();
    cluster_ = std::move(*cluster);
    Result<std::size_t> leader = cluster_->WaitForLeader(seconds(10));
    if (!leader.ok()) return leader.status();
    std::string peers;
    for (const LocalBroker& broker : cluster_->brokers())
      peers += " " + broker.peer_id + "=" + broker.client_address;
    story_.Step("NameServer " + cluster_->namesrv_address() + ", peers" + peers + "; leader is " +
                cluster_->brokers()[*leader].peer_id);
    TRIAD_RETURN_IF_ERROR(CreateTopic());
    TRIAD_RETURN_IF_ERROR(StartConsumers());
    TRIAD_RETURN_IF_ERROR(SendAll());
    TRIAD_RETURN_IF_ERROR(WaitForConsumers());
    TRIAD_RETURN_IF_ERROR(RestartKilled());
    TRIAD_RETURN_IF_ERROR(ReadDeadLetters());
    return ReadBack();
  }

  client::ClientOptions ClientOf(const std::string& instance) const {
    client::ClientOptions options;
    options.namesrv_address = cluster_->namesrv_address();
    options.instance_name = instance;
    return options;
  }

  Status CreateTopic() {
    admin_ = std::make_unique<client::Admin>(ClientOf("quickstart-admin"));
    TRIAD_RETURN_IF_ERROR(admin_->Start());
    client::TopicSettings topic;
    topic.name = kTopic;
    topic.read_queues = topic.write_queues = 8;
    TRIAD_RETURN_IF_ERROR(admin_->UpdateTopic(topic));
    story_.Step(std::string("topic ") + kTopic + " has 8 queues");
    return Status::Ok();
  }

  Status StartConsumers() {
    for (int i = 0; i < 4; ++i) {
      const bool orderly = i < 2;
      client::PushConsumerOptions options;
      options.client = ClientOf("quickstart-consumer-" + std::to_string(i));
      options.group = orderly ? kOrderlyGroup : kConcurrentGroup;
      options.consume_from = client::ConsumeFrom::kFirstOffset;
      options.max_reconsume_times = orderly ? -1 : kMaxReconsume;
      options.threads = 4;
      auto consumer = std::make_unique<client::PushConsumer>(options);
      TRIAD_RETURN_IF_ERROR(consumer->Subscribe(kTopic));
      if (orderly) {
        consumer->SetListener(
            client::MessageListenerOrderly([this](const auto& messages, client::OrderlyContext*) {
              return OnOrderly(&ledger_, messages);
            }));
      } else {
        consumer->SetListener(client::MessageListenerConcurrently(
            [this](const auto& messages, client::ConcurrentContext*) {
              return OnConcurrent(&ledger_, messages);
            }));
      }
      TRIAD_RETURN_IF_ERROR(consumer->Start());
      consumers_.push_back(std::move(consumer));
    }
    story_.Step(
        "two orderly consumers (queue locks) and two concurrent ones (no locks) are waiting");
    return Status::Ok();
  }

  Status SendAll() {
    client::ProducerOptions options;
    options.client = ClientOf("quickstart-producer");
    options.group = "quickstart_producer";
    options.send_timeout = seconds(20);
    producer_ = std::make_unique<client::Producer>(options);
    TRIAD_RETURN_IF_ERROR(producer_->Start());
    story_.Step("sending 3,000 messages over 100 keys, in order per key");
    for (int n = 0; n < kMessages; ++n) {
      if (n == kMessages / 2) TRIAD_RETURN_IF_ERROR(KillLeader());
      {
        std::unique_lock lock(ledger_.mutex);
        const bool room =
            ledger_.changed.wait_for(lock, seconds(30), [&] { return n - ledger_.answered < 64; });
        if (!room) return Status::TimedOut("the group stopped answering sends");
        ++ledger_.sent;
      }
      client::Message message;
      message.topic = kTopic;
      message.body = BodyOf(n);
      message.tag = "quickstart";
      message.keys = {KeyOf(n)};
      producer_->SendOrderedAsync(
          std::move(message), KeyOf(n),
          [this, n](Result<client::SendResult> result) { OnSent(n, result); });
      if (n % 100 == 0) story_.Progress("sent " + std::to_string(n));
    }
    std::unique_lock lock(ledger_.mutex);
    if (!ledger_.changed.wait_for(lock, seconds(60),
                                  [&] { return ledger_.answered == kMessages; })) {
      return Status::TimedOut("only " + std::to_string(ledger_.answered) +
                              " of 3000 sends were answered");
    }
    const std::string failed =
        ledger_.send_errors.empty() ? "" : "; first error: " + ledger_.send_errors.front();
    lock.unlock();
    story_.Step("acknowledged " + std::to_string(ledger_.acked.size()) + " of 3000" + failed);
    return Status::Ok();
  }

  void OnSent(int n, const Result<client::SendResult>& result) {
    std::lock_guard hold(ledger_.mutex);
    ++ledger_.answered;
    if (result.ok()) {
      ledger_.acked.insert(n);
      // Only a send that began after the kill tells how long nobody could acknowledge.
      if (ledger_.killed && n >= kMessages / 2 && ledger_.failover_ms < 0) {
        ledger_.failover_ms = static_cast<int>(
            std::chrono::duration_cast<milliseconds>(SteadyClock::now() - ledger_.killed_at)
                .count());
      }
    } else {
      ledger_.send_errors.push_back(result.status().ToString());
    }
    ledger_.changed.notify_all();
  }

  Status KillLeader() {
    Result<std::size_t> leader = cluster_->WaitForLeader(seconds(10));
    if (!leader.ok()) return leader.status();
    killed_ = *leader;
    const std::string id = cluster_->brokers()[killed_].peer_id;
    {
      std::lock_guard hold(ledger_.mutex);
      ledger_.killed = true;
      ledger_.killed_at = SteadyClock::now();
    }
    Result<int> ended = cluster_->Signal(killed_, SIGKILL);
    if (!ended.ok()) return ended.status();
    story_.Step("killed the leader " + id + " with SIGKILL, sends go on");
    return Status::Ok();
  }

  Status WaitForConsumers() {
    const auto end = SteadyClock::now() + seconds(120);
    std::unique_lock lock(ledger_.mutex);
    while (SteadyClock::now() < end) {
      const std::size_t orderly = ledger_.orderly.size();
      const std::size_t concurrent = ledger_.concurrent.size();
      int poisoned = 0;
      for (const auto& [n, times] : ledger_.concurrent)
        poisoned += IsPoison(n) && times > kMaxReconsume ? 1 : 0;
      if (orderly >= kMessages && concurrent >= kMessages && poisoned >= kPoison) break;
      ledger_.changed.wait_for(lock, milliseconds(200));
      story_.Progress("consumed: orderly " + std::to_string(orderly) + ", concurrent " +
                      std::to_string(concurrent) + ", poison messages given up " +
                      std::to_string(poisoned));
    }
    const std::string text = "consumed: orderly " + std::to_string(ledger_.orderly.size()) + " (" +
                             std::to_string(ledger_.orderly_redelivered) +
                             " delivered again), concurrent " +
                             std::to_string(ledger_.concurrent.size());
    const int failover = ledger_.failover_ms;
    lock.unlock();
    story_.Step(text);
    story_.Step("the next acknowledged send came " + std::to_string(failover) +
                " ms after the kill");
    return Status::Ok();
  }

  Status RestartKilled() {
    TRIAD_RETURN_IF_ERROR(cluster_->StartBroker(killed_));
    TRIAD_RETURN_IF_ERROR(cluster_->WaitForMembers(3, seconds(60)));
    story_.Step("restarted " + cluster_->brokers()[killed_].peer_id +
                ": it is a follower now and has caught up");
    return Status::Ok();
  }

  Status ReadDeadLetters() {
    client::PullConsumerOptions options;
    options.client = ClientOf("quickstart-reader");
    reader_ = std::make_unique<client::PullConsumer>(options);
    TRIAD_RETURN_IF_ERROR(reader_->Start());
    const auto end = SteadyClock::now() + seconds(30);
    Result<std::map<int, std::vector<std::string>>> dead = Status::NotFound("not read yet");
    while (SteadyClock::now() < end) {
      dead = ReadTopic(reader_.get(), std::string("%DLQ%") + kConcurrentGroup, "");
      if (!dead.ok()) continue;
      dead_.clear();
      for (const auto& [queue, bodies] : *dead)
        dead_.insert(dead_.end(), bodies.begin(), bodies.end());
      if (dead_.size() >= kPoison) break;
    }
    if (!dead.ok()) return dead.status();
    std::string text = std::to_string(dead_.size()) + " messages in %DLQ%" + kConcurrentGroup + ":";
    for (const std::string& body : dead_) text += " " + body;
    story_.Step(text);
    return Status::Ok();
  }

  // Reads the topic from every peer and checks it against what was acknowledged.
  Status ReadBack() {
    for (const LocalBroker& broker : cluster_->brokers()) {
      Result<std::map<int, std::vector<std::string>>> stored =
          ReadTopic(reader_.get(), kTopic, broker.client_address);
      if (!stored.ok()) return stored.status();
      std::set<int> seen;
      std::size_t records = 0;
      std::map<std::string, int> next;
      for (const auto& [queue, bodies] : *stored) {
        for (const std::string& body : bodies) {
          const int n = NumberOf(body);
          if (n < 0) return Status::Corruption("a message that nobody sent: " + body);
          ++records;
          // A send whose answer was lost is sent again: the copy may stand once more, never out of
          // turn.
          if (n / kKeys > next[KeyOf(n)]) ++ledger_.out_of_order;
          next[KeyOf(n)] = std::max(next[KeyOf(n)], n / kKeys + 1);
          seen.insert(n);
        }
      }
      int missing = 0;
      for (const int n : ledger_.acked) missing += seen.contains(n) ? 0 : 1;
      lost_ = std::max(lost_, missing);
      if (!reference_.empty() && reference_ != *stored) {
        return Status::Corruption("peer " + broker.peer_id +
                                  " holds something else than the others");
      }
      reference_ = *stored;
      const std::size_t again = records - seen.size();
      const std::string twice =
          again == 0 ? "" : " (" + std::to_string(again) + " twice: sent again after the kill)";
      story_.Step("read back from " + broker.peer_id + ": " + std::to_string(records) +
                  " messages" + twice + ", " + std::to_string(missing) + " missing");
    }
    return Status::Ok();
  }

  void Shutdown() {
    for (auto& consumer : consumers_) consumer->Shutdown();
    if (producer_) producer_->Shutdown();
    if (reader_) reader_->Shutdown();
    if (admin_) admin_->Shutdown();
    if (!cluster_) return;
    if (!keep_) {
      cluster_->StopAll();
      return;
    }
    cluster_->Release();
    const std::string ns = cluster_->namesrv_address();
    std::printf("\nThe group is still running. Try:\n");
    std::printf("  bin/mqadmin clusterList -n %s\n", ns.c_str());
    std::printf("  bin/mqadmin topicStatus -n %s -t %s\n", ns.c_str(), kTopic);
    std::printf("  bin/mqadmin consumerProgress -n %s -g %s\n", ns.c_str(), kOrderlyGroup);
    std::printf("  bin/mqadmin consumeMessage -n %s -t %%DLQ%%%s\n", ns.c_str(), kConcurrentGroup);
    std::printf("  kill");
    std::printf(" %d", cluster_->namesrv_pid());
    for (const LocalBroker& broker : cluster_->brokers()) std::printf(" %d", broker.pid);
    std::printf("        # ends it; data and logs: %s\n\n", options_.work_dir.c_str());
  }

  int Verdict() {
    int poison_dead = 0;
    std::set<std::string> distinct(dead_.begin(), dead_.end());
    for (const std::string& body : distinct) poison_dead += IsPoison(NumberOf(body)) ? 1 : 0;
    bool attempts_right = true;
    for (const auto& [n, times] : ledger_.concurrent) {
      attempts_right = attempts_right && (!IsPoison(n) || times == kMaxReconsume + 1);
    }
    if (!attempts_right)
      std::printf("a poison message was not delivered exactly %d times\n", kMaxReconsume + 1);
    std::printf(
        "quickstart: sent=%d acked=%zu orderly=%zu concurrent=%zu dead_lettered=%zu lost=%d "
        "out_of_order=%d failover_ms=%d\n",
        ledger_.sent, ledger_.acked.size(), ledger_.orderly.size(), ledger_.concurrent.size(),
        dead_.size(), lost_, ledger_.out_of_order, ledger_.failover_ms);
    const bool right = ledger_.sent == kMessages && ledger_.acked.size() == kMessages &&
                       ledger_.orderly.size() == kMessages &&
                       ledger_.concurrent.size() == kMessages && dead_.size() == kPoison &&
                       poison_dead == kPoison && lost_ == 0 && ledger_.out_of_order == 0 &&
                       ledger_.failover_ms >= 0 && attempts_right;
    return right ? 0 : 1;
  }

  const LocalClusterOptions options_;
  const bool keep_;
  Story story_;
  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<client::Admin> admin_;
  std::unique_ptr<client::Producer> producer_;
  std::unique_ptr<client::PullConsumer> reader_;
  std::vector<std::unique_ptr<client::PushConsumer>> consumers_;
  Ledger ledger_;
  std::size_t killed_ = 0;
  std::vector<std::string> dead_;
  std::map<int, std::vector<std::string>> reference_;
  int lost_ = 0;
};

int Main(int argc, char** argv) {
  LocalClusterOptions options;
  std::string root;
  bool keep = false;
  CLI::App app("Starts a NameServer and three peers on this machine and runs the main job.",
               "quickstart");
  app.add_option("--root", root, "the project's directory")->required();
  app.add_option("--programs", options.program_dir, "where triad-namesrv and triad-broker are")
      ->required();
  app.add_option("--dir", options.work_dir,
                 "for data and logs (default: a new temporary directory)");
  app.add_flag("--keep", keep, "leave the group running and say what to type next");
  CLI11_PARSE(app, argc, argv);

  options.conf_dir = root + "/conf";
  bool temporary = options.work_dir.empty();
  if (temporary) {
    char name[] = "/tmp/triad-quickstart-XXXXXX";
    CHECK(::mkdtemp(name) != nullptr);
    options.work_dir = name;
  }
  options.overrides = {
      {"mappedFileSizeCommitLog", "67108864"},
      {"messageDelayLevel", "1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s"}};
  const int result = Quickstart(options, keep).Run();
  if (temporary && !keep && result == 0) {
    const std::string command = "rm -rf '" + options.work_dir + "'";
    if (std::system(command.c_str()) != 0)
      std::printf("could not remove %s\n", options.work_dir.c_str());
  }
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
