// A real cluster per test, an ordered load on it, and the reading back.

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "bin/local_cluster.h"
#include "triad/admin.h"
#include "triad/producer.h"
#include "triad/pull_consumer.h"
#include "triad/push_consumer.h"

namespace triad {

// True as soon as `condition` holds; false after `limit`.
bool Eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit);

// Messages "key:step", in order per key, many in flight. Remembers what was acknowledged and where.
class OrderedLoad {
 public:
  OrderedLoad(client::ClientOptions options, std::string topic, int keys);
  ~OrderedLoad();
  Status Start();
  // Sends `count` more messages; returns when all but `behind` of them are answered.
  void Send(int count, int behind = 32);
  // Waits until everything is answered.
  void Drain();

  struct Acked {
    int step = 0;
    client::SendResult place;
  };
  // Per key, in send order.
  std::map<std::string, std::vector<Acked>> acked();
  std::size_t acked_count();
  std::vector<std::string> errors();
  int sent() const { return sent_; }

 private:
  const std::string topic_;
  const int keys_;
  client::Producer producer_;
  int sent_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  int answered_ = 0;
  std::map<std::string, std::vector<Acked>> acked_;
  std::vector<std::string> errors_;
};

class ClusterTest : public ::testing::Test {
 protected:
  void TearDown() override;

  // Starts a cluster with these broker.conf overrides. Segments are 4 MiB unless overridden.
  void StartCluster(std::map<std::string, std::string> overrides = {});
  client::ClientOptions ClientOf(const std::string& instance) const;
  void CreateTopic(const std::string& topic, int queues);
  std::size_t Leader();

  // All messages of a queue from min to max, read from `address` (empty: the leader). Fails the
  // test on a gap.
  std::vector<client::ReceivedMessage> ReadQueue(const client::MessageQueue& queue,
                                                 const std::string& address = {});
  std::map<client::MessageQueue, std::vector<client::ReceivedMessage>> ReadTopic(
      const std::string& topic, const std::string& address = {});
  // Every acknowledged send stands at its offset, every key is in order, on the peer at `address`.
  void CheckStored(OrderedLoad* load, const std::string& topic, const std::string& address);
  // Stops all peers in order and compares their logs byte by byte.
  void CheckLogsIdentical();

  int peers_ = 3;                 // of the next cluster
  std::vector<LocalHost> hosts_;  // its peers'; empty: the loopback
  LocalHost namesrv_host_;
  std::string dir_;
  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<client::Admin> admin_;
  std::unique_ptr<client::PullConsumer> reader_;
};

}  // namespace triad
