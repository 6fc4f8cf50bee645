#include "tests/e2e/cluster_fixture.h"

#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "dledger/log/segment_file.h"

namespace triad {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool Eventually(const std::function<bool()>& condition, milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::mutex mutex;
  std::condition_variable never;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::unique_lock lock(mutex);
    never.wait_for(lock, milliseconds(20), [] { return false; });
  }
  return true;
}

OrderedLoad::OrderedLoad(client::ClientOptions options, std::string topic, int keys)
    : topic_(std::move(topic)), keys_(keys), producer_([&] {
        client::ProducerOptions producer;
        producer.client = std::move(options);
        producer.group = "e2e_producer";
        producer.send_timeout = seconds(20);
        return producer;
      }()) {}

OrderedLoad::~OrderedLoad() {
  Drain();
  producer_.Shutdown();
}

Status OrderedLoad::Start() {
  return producer_.Start();
}

void OrderedLoad::Send(int count, int behind) {
  for (int i = 0; i < count; ++i) {
    const std::string key = "k" + std::to_string(sent_ % keys_);
    const int step = sent_ / keys_;
    ++sent_;
    client::Message message;
    message.topic = topic_;
    message.body = key + ":" + std::to_string(step);
    message.keys = {key};
    producer_.SendOrderedAsync(
        std::move(message), key, [this, key, step](Result<client::SendResult> result) {
          std::lock_guard hold(mutex_);
          ++answered_;
          if (result.ok()) {
            acked_[key].push_back({step, *result});
          } else {
            errors_.push_back(key + ":" + std::to_string(step) + " " + result.status().ToString());
          }
          changed_.notify_all();
        });
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, seconds(60), [&] { return sent_ - answered_ <= behind; }));
  }
}

void OrderedLoad::Drain() {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_for(lock, seconds(60), [&] { return answered_ == sent_; }));
}

std::map<std::string, std::vector<OrderedLoad::Acked>> OrderedLoad::acked() {
  std::lock_guard hold(mutex_);
  return acked_;
}

std::size_t OrderedLoad::acked_count() {
  std::lock_guard hold(mutex_);
  std::size_t count = 0;
  for (const auto& [key, list] : acked_) count += list.size();
  return count;
}

std::vector<std::string> OrderedLoad::errors() {
  std::lock_guard hold(mutex_);
  return errors_;
}

void ClusterTest::TearDown() {
  if (reader_) reader_->Shutdown();
  if (admin_) admin_->Shutdown();
  if (cluster_) {
    if (HasFailure()) {
      for (const LocalBroker& broker : cluster_->brokers()) {
        std::printf("---- %s\n%s", broker.peer_id.c_str(),
                    LocalCluster::Tail(broker.log_file, 25).c_str());
      }
    }
    cluster_->StopAll();
  }
  if (!HasFailure() && !dir_.empty()) std::filesystem::remove_all(dir_);
}

void ClusterTest::StartCluster(std::map<std::string, std::string> overrides) {
  char name[] = "/tmp/triad-e2e-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  dir_ = name;
  LocalClusterOptions options;
  options.program_dir = TRIAD_PROGRAMS;
  options.conf_dir = std::string(TRIAD_ROOT) + "/conf";
  options.work_dir = dir_;
  options.peers = peers_;
  options.hosts = hosts_;
  options.namesrv_host = namesrv_host_;
  options.overrides = std::move(overrides);
  options.overrides.try_emplace("mappedFileSizeCommitLog", "4194304");
  Result<std::unique_ptr<LocalCluster>> cluster = LocalCluster::Start(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  cluster_ = std::move(*cluster);
  admin_ = std::make_unique<client::Admin>(ClientOf("admin"));
  ASSERT_TRUE(admin_->Start().ok());
  client::PullConsumerOptions reader;
  reader.client = ClientOf("reader");
  reader_ = std::make_unique<client::PullConsumer>(reader);
  ASSERT_TRUE(reader_->Start().ok());
}

client::ClientOptions ClusterTest::ClientOf(const std::string& instance) const {
  client::ClientOptions options;
  options.namesrv_address = cluster_->namesrv_address();
  options.instance_name = instance;
  return options;
}

void ClusterTest::CreateTopic(const std::string& topic, int queues) {
  client::TopicSettings settings;
  settings.name = topic;
  settings.read_queues = settings.write_queues = queues;
  const Status created = admin_->UpdateTopic(settings);
  ASSERT_TRUE(created.ok()) << created;
}

std::size_t ClusterTest::Leader() {
  Result<std::size_t> leader = cluster_->WaitForLeader(seconds(30));
  EXPECT_TRUE(leader.ok()) << leader.status();
  return leader.ok() ? *leader : 0;
}

std::vector<client::ReceivedMessage> ClusterTest::ReadQueue(const client::MessageQueue& queue,
                                                            const std::string& address) {
  std::vector<client::ReceivedMessage> messages;
  Result<std::int64_t> offset = reader_->MinOffset(queue);
  Result<std::int64_t> max = reader_->MaxOffset(queue);
  EXPECT_TRUE(offset.ok()) << offset.status();
  EXPECT_TRUE(max.ok()) << max.status();
  if (!offset.ok() || !max.ok()) return messages;
  const bool all = Eventually(
      [&] {
        if (*offset >= *max) return true;
        Result<client::PullResult> pulled =
            address.empty() ? reader_->Pull(queue, "*", *offset, 256)
                            : reader_->PullFrom(address, queue, "*", *offset, 256);
        if (pulled.ok() && pulled->status == client::PullStatus::kOffsetIllegal &&
            pulled->next_begin_offset > *offset) {
          // Retention overtook this reader: what is left is all there is.
          messages.clear();
          *offset = pulled->next_begin_offset;
        }
        if (!pulled.ok() || pulled->status != client::PullStatus::kFound) return *offset >= *max;
        for (client::ReceivedMessage& message : pulled->messages) {
          EXPECT_EQ(message.queue_offset, *offset) << "gap in queue " << queue.queue_id;
          *offset = message.queue_offset + 1;
          messages.push_back(std::move(message));
        }
        return *offset >= *max;
      },
      seconds(30));
  EXPECT_TRUE(all) << "queue " << queue.queue_id << " stays at " << *offset << " of " << *max
                   << " at " << address;
  return messages;
}

std::map<client::MessageQueue, std::vector<client::ReceivedMessage>> ClusterTest::ReadTopic(
    const std::string& topic, const std::string& address) {
  std::map<client::MessageQueue, std::vector<client::ReceivedMessage>> messages;
  Result<std::vector<client::MessageQueue>> queues = reader_->Queues(topic);
  EXPECT_TRUE(queues.ok()) << queues.status();
  if (!queues.ok()) return messages;
  for (const client::MessageQueue& queue : *queues) messages[queue] = ReadQueue(queue, address);
  return messages;
}

void ClusterTest::CheckStored(OrderedLoad* load, const std::string& topic,
                              const std::string& address) {
  const auto stored = ReadTopic(topic, address);
  for (const auto& [key, list] : load->acked()) {
    std::int64_t last = -1;
    for (const OrderedLoad::Acked& acked : list) {
      const std::string body = key + ":" + std::to_string(acked.step);
      const auto queue = stored.find(acked.place.queue);
      ASSERT_NE(queue, stored.end());
      const auto at = static_cast<std::size_t>(acked.place.queue_offset);
      ASSERT_LT(at, queue->second.size()) << body << " was acknowledged and is not there";
      EXPECT_EQ(queue->second[at].body, body) << "at its acknowledged offset";
      EXPECT_GT(acked.place.queue_offset, last) << body << " stands before its predecessor";
      last = acked.place.queue_offset;
    }
  }
}

namespace {

// name -> entries, without the head (a peer's own sync marks) and without trailing zeros (how much
// is prepared ahead may differ).
std::map<std::string, std::string> SegmentsOf(const std::string& store_dir) {
  std::map<std::string, std::string> segments;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(store_dir)) {
    const std::string name = entry.path().filename();
    if (entry.path().string().find("/dledger-") == std::string::npos) continue;  // derived stores
    if (name.size() != 20 || name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    in.seekg(static_cast<std::streamoff>(dledger::kSegmentHeadBytes));
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    while (!bytes.empty() && bytes.back() == '\0') bytes.pop_back();
    if (!bytes.empty()) segments[name] = std::move(bytes);
  }
  return segments;
}

}  // namespace

void ClusterTest::CheckLogsIdentical() {
  cluster_->StopAll();
  const auto reference = SegmentsOf(cluster_->brokers()[0].store_dir);
  ASSERT_FALSE(reference.empty());
  for (std::size_t i = 1; i < cluster_->brokers().size(); ++i) {
    const auto other = SegmentsOf(cluster_->brokers()[i].store_dir);
    for (const auto& [name, bytes] : reference) {
      const auto found = other.find(name);
      if (found == other.end())
        continue;  // the tail of one peer may be longer by uncommitted entries
      const std::size_t common = std::min(bytes.size(), found->second.size());
      EXPECT_EQ(bytes.compare(0, common, found->second, 0, common), 0)
          << "segment " << name << " of n0 and n" << i;
    }
    if (other.empty() || other.begin()->first != reference.begin()->first) continue;  // retention
    EXPECT_LE(std::max(reference.size(), other.size()) - std::min(reference.size(), other.size()),
              1u);
  }
}

}  // namespace triad
