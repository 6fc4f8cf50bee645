// Admin: the calls behind mqadmin. Blocking.
//
// Thread: every method is safe on every thread.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "triad/client_options.h"
#include "triad/message.h"

namespace triad::client {

struct BrokerGroup {
  std::string cluster;
  std::string broker_name;
  std::map<std::int64_t, std::string> addresses;  // brokerId -> "ip:port"; 0 = leader
};
struct QueueCounts {
  std::string broker_name;
  int read_queues = 0;
  int write_queues = 0;
  int perm = 0;
  int sys_flag = 0;
};
struct TopicRoute {
  std::vector<BrokerGroup> brokers;
  std::vector<QueueCounts> queues;
  std::string order_conf;
};
struct TopicSettings {
  std::string name;
  int read_queues = 8;
  int write_queues = 8;
  int perm = 6;
  int sys_flag = 0;
  bool order = false;
  std::map<std::string, std::string> attributes;
};
struct GroupSettings {
  std::string name;
  bool consume_enable = true;
  bool consume_from_min_enable = true;
  bool consume_broadcast_enable = true;
  bool consume_message_orderly = false;
  int retry_queue_nums = 1;
  int retry_max_times = 16;
  std::int64_t broker_id = 0;
  std::int64_t which_broker_when_consume_slowly = 1;
  bool notify_consumer_ids_changed_enable = true;
};
struct QueueStats {
  std::int64_t min_offset = 0;
  std::int64_t max_offset = 0;
  std::int64_t last_update_ms = 0;  // 0 = empty
};
struct ConsumeProgress {
  std::int64_t broker_offset = 0;
  std::int64_t consumer_offset = 0;
  std::int64_t last_time_ms = 0;
};
struct ClientConnection {
  std::string client_id;
  std::string address;
  std::string language;
  int version = 0;
};

class Admin {
 public:
  explicit Admin(ClientOptions options,
                 std::chrono::milliseconds timeout = std::chrono::milliseconds(5000));
  ~Admin();
  Admin(const Admin&) = delete;
  Admin& operator=(const Admin&) = delete;

  Status Start();
  void Shutdown();

  Result<std::vector<BrokerGroup>> ClusterList();
  Result<std::vector<std::string>> TopicList();
  // kNotFound: no route.
  Result<TopicRoute> Route(const std::string& topic);
  // brokerStatus of one address: runtime info as the broker says it.
  Result<std::map<std::string, std::string>> RuntimeInfo(const std::string& address);

  // Any request at one address, for tools that know the wire: fields and body go as they are. The
  // answer may carry any code. Errors: kUnavailable, kTimedOut.
  struct Answer {
    int code = 0;
    std::string remark;
    std::map<std::string, std::string> fields;
    std::string body;
  };
  Result<Answer> Ask(const std::string& address, int code,
                     const std::map<std::string, std::string>& fields = {},
                     const std::string& body = {});

  // `cluster` or `broker_address` (one of them; empty both: every group). Durable and routed when
  // it returns.
  Status UpdateTopic(const TopicSettings& topic, const std::string& cluster = {},
                     const std::string& broker_address = {});
  Status DeleteTopic(const std::string& topic, const std::string& cluster = {});
  Status UpdateGroup(const GroupSettings& group, const std::string& cluster = {},
                     const std::string& broker_address = {});

  Result<std::map<MessageQueue, QueueStats>> TopicStatus(const std::string& topic);
  // `topic` empty: all topics the group consumed.
  Result<std::map<MessageQueue, ConsumeProgress>> ConsumerProgress(const std::string& group,
                                                                   const std::string& topic = {});
  // kNotFound: nobody online.
  Result<std::vector<ClientConnection>> ConsumerConnections(const std::string& group);

  // By offset message id. kNotFound.
  Result<ReceivedMessage> ViewMessage(const std::string& offset_message_id);
  // timestamp -1 = the end of each queue. `force`: also forwards. Returns the new offsets.
  Result<std::map<MessageQueue, std::int64_t>> ResetOffsetByTime(const std::string& topic,
                                                                 const std::string& group,
                                                                 std::int64_t timestamp_ms,
                                                                 bool force);

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace triad::client
