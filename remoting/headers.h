// Headers: the typed header fields of every request and response we speak.
//
// Pure. A struct per header; its fields are bound to wire names by one table in headers.cc. Decode
// checks that required fields are there and that numbers are numbers: kInvalidArgument naming the
// field. Of an optional field an empty text counts as absent (wire.md §1.2). Encode writes required
// fields and plain members always, empty optional texts and empty std::optional never. Source:
// named per family.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"
#include "remoting/command.h"
#include "remoting/send_header.h"  // SendMessageRequest

namespace triad::remoting {

// ---- Send and send back (wire.md §4.4, §8.2)

struct SendMessageResponse {
  std::string msg_id;  // offset message id; a batch: one per message, joined by commas
  std::int32_t queue_id = 0;
  std::int64_t queue_offset = 0;
  std::string transaction_id;  // the message's UNIQ_KEY
  std::string msg_region;
  std::optional<bool> trace_on;

  static Result<SendMessageResponse> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct SendBackRequest {
  std::int64_t offset = 0;  // physical
  std::string group;
  std::int32_t delay_level = 0;  // 0: the server decides, < 0: dead letter
  std::string origin_msg_id;
  std::string origin_topic;
  bool unit_mode = false;
  std::optional<std::int32_t> max_reconsume_times;

  static Result<SendBackRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// ---- Pull (wire.md §5.1, §5.4)

struct PullMessageRequest {
  std::string consumer_group;
  std::string topic;
  std::int32_t queue_id = 0;
  std::int64_t queue_offset = 0;
  std::int32_t max_msg_nums = 0;
  std::int32_t sys_flag = 0;
  std::int64_t commit_offset = 0;
  std::int64_t suspend_timeout_ms = 0;
  std::string subscription;
  std::int64_t sub_version = 0;
  std::string expression_type;  // empty = TAG
  std::optional<std::int32_t> max_msg_bytes;

  static Result<PullMessageRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct PullMessageResponse {
  std::int64_t suggest_which_broker_id = 0;
  std::int64_t next_begin_offset = 0;
  std::int64_t min_offset = 0;
  std::int64_t max_offset = 0;

  static Result<PullMessageResponse> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// ---- Offsets (wire.md §6)

struct QueryConsumerOffsetRequest {
  std::string consumer_group;
  std::string topic;
  std::int32_t queue_id = 0;
  bool set_zero_if_not_found = false;

  static Result<QueryConsumerOffsetRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct UpdateConsumerOffsetRequest {
  std::string consumer_group;
  std::string topic;
  std::int32_t queue_id = 0;
  std::int64_t commit_offset = 0;

  static Result<UpdateConsumerOffsetRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct GetMaxOffsetRequest {
  std::string topic;
  std::int32_t queue_id = 0;
  bool committed = true;

  static Result<GetMaxOffsetRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// Also GET_EARLIEST_MSG_STORETIME.
struct GetMinOffsetRequest {
  std::string topic;
  std::int32_t queue_id = 0;

  static Result<GetMinOffsetRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct SearchOffsetRequest {
  std::string topic;
  std::int32_t queue_id = 0;
  std::int64_t timestamp_ms = 0;
  std::string boundary_type;  // UPPER in any case is upper, all else lower

  static Result<SearchOffsetRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// Answers the consumer's, maximum, minimum and searched offset.
struct OffsetResponse {
  std::int64_t offset = 0;

  static Result<OffsetResponse> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct TimestampResponse {
  std::int64_t timestamp_ms = 0;

  static Result<TimestampResponse> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// ---- Clients and groups (wire.md §4.1, §4.2, §7)

struct HeartbeatResponse {
  bool supports_v2 = false;
  bool subscription_changed = true;

  static Result<HeartbeatResponse> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct UnregisterClientRequest {
  std::string client_id;
  std::string producer_group;
  std::string consumer_group;

  static Result<UnregisterClientRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// GET_CONSUMER_LIST_BY_GROUP, NOTIFY_CONSUMER_IDS_CHANGED, GET_CONSUMER_CONNECTION_LIST.
struct ConsumerGroupRequest {
  std::string consumer_group;

  static Result<ConsumerGroupRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// GET_PRODUCER_CONNECTION_LIST.
struct ProducerGroupRequest {
  std::string producer_group;

  static Result<ProducerGroupRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// Broker to client; admin.md §6.3.
struct ResetConsumerClientOffsetRequest {
  std::string topic;
  std::string group;
  std::int64_t timestamp_ms = 0;
  bool is_force = false;
  std::int32_t queue_id = -1;

  static Result<ResetConsumerClientOffsetRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// ---- Messages by key and id (admin.md §8)

struct QueryMessageRequest {
  std::string topic;
  std::string key;
  std::int32_t max_num = 0;
  std::int64_t begin_timestamp_ms = 0;
  std::int64_t end_timestamp_ms = 0;
  bool unique_key_query = false;

  static Result<QueryMessageRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct QueryMessageResponse {
  std::int64_t index_last_update_timestamp_ms = 0;
  std::int64_t index_last_update_phyoffset = 0;

  static Result<QueryMessageResponse> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct ViewMessageRequest {
  std::int64_t offset = 0;  // physical
  std::string topic;

  static Result<ViewMessageRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// ---- NameServer (wire.md §3)

struct PutKvConfigRequest {
  std::string name_space;
  std::string key;
  std::string value;

  static Result<PutKvConfigRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// GET_KV_CONFIG, DELETE_KV_CONFIG.
struct KvConfigRequest {
  std::string name_space;
  std::string key;

  static Result<KvConfigRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct GetKvConfigResponse {
  std::string value;

  static Result<GetKvConfigResponse> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct GetKvListRequest {
  std::string name_space;

  static Result<GetKvListRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct RegisterBrokerRequest {
  std::string broker_name;
  std::string broker_addr;
  std::string cluster_name;
  std::string ha_server_addr;
  std::int64_t broker_id = 0;
  std::optional<std::int64_t> heartbeat_timeout_ms;
  std::optional<bool> enable_acting_master;  // absent: a broker older than 5.0
  bool compressed = false;
  std::int32_t body_crc32 = 0;  // 0 = not checked

  static Result<RegisterBrokerRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct RegisterBrokerResponse {
  std::string ha_server_addr;
  std::string master_addr;

  static Result<RegisterBrokerResponse> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// UNREGISTER_BROKER, QUERY_DATA_VERSION.
struct BrokerIdentityRequest {
  std::string broker_name;
  std::string broker_addr;
  std::string cluster_name;
  std::int64_t broker_id = 0;

  static Result<BrokerIdentityRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct QueryDataVersionResponse {
  bool changed = false;

  static Result<QueryDataVersionResponse> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct GetRouteInfoRequest {
  std::string topic;
  bool accept_standard_json_only = false;

  static Result<GetRouteInfoRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// WIPE_WRITE_PERM_OF_BROKER, ADD_WRITE_PERM_OF_BROKER.
struct BrokerNameRequest {
  std::string broker_name;

  static Result<BrokerNameRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct WipeWritePermResponse {
  std::int32_t wipe_topic_count = 0;

  static Result<WipeWritePermResponse> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct AddWritePermResponse {
  std::int32_t add_topic_count = 0;

  static Result<AddWritePermResponse> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct DeleteTopicInNamesrvRequest {
  std::string topic;
  std::string cluster_name;

  static Result<DeleteTopicInNamesrvRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct GetTopicsByClusterRequest {
  std::string cluster;

  static Result<GetTopicsByClusterRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct GetBrokerMemberGroupRequest {
  std::string cluster_name;
  std::string broker_name;

  static Result<GetBrokerMemberGroupRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct BrokerHeartbeatRequest {
  std::string cluster_name;
  std::string broker_addr;
  std::string broker_name;
  std::optional<std::int64_t> broker_id;
  std::optional<std::int32_t> epoch;
  std::optional<std::int64_t> max_offset;
  std::optional<std::int64_t> confirm_offset;
  std::optional<std::int64_t> heartbeat_timeout_ms;
  std::optional<std::int32_t> election_priority;

  static Result<BrokerHeartbeatRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// ---- Administration (wire.md §12, admin.md §2)

struct CreateTopicRequest {
  std::string topic;
  std::string default_topic;
  std::int32_t read_queue_nums = 0;
  std::int32_t write_queue_nums = 0;
  std::int32_t perm = 0;
  std::string topic_filter_type;
  std::int32_t topic_sys_flag = 0;
  bool order = false;
  std::string attributes;  // "+k=v,-k2"
  bool force = false;

  static Result<CreateTopicRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// Every code whose only field of use is the topic.
struct TopicRequest {
  std::string topic;

  static Result<TopicRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// GET_SUBSCRIPTIONGROUP_CONFIG, QUERY_TOPICS_BY_CONSUMER.
struct GroupRequest {
  std::string group;

  static Result<GroupRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct DeleteSubscriptionGroupRequest {
  std::string group_name;
  bool clean_offset = false;

  static Result<DeleteSubscriptionGroupRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct GetConsumeStatsRequest {
  std::string consumer_group;
  std::string topic;
  std::string topic_list;  // joined by ;

  static Result<GetConsumeStatsRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// QUERY_SUBSCRIPTION_BY_CONSUMER, QUERY_CONSUME_TIME_SPAN.
struct TopicGroupRequest {
  std::string topic;
  std::string group;

  static Result<TopicGroupRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// INVOKE_BROKER_TO_RESET_OFFSET; admin.md §6.2.
struct ResetOffsetRequest {
  std::string topic;
  std::string group;
  std::int64_t timestamp_ms = 0;
  bool is_force = false;
  std::int32_t queue_id = -1;  // -1 = every queue
  std::optional<std::int64_t> offset;

  static Result<ResetOffsetRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct GetConsumerStatusRequest {
  std::string topic;
  std::string group;
  std::string client_addr;

  static Result<GetConsumerStatusRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

// GET_CONSUMER_RUNNING_INFO, CONSUME_MESSAGE_DIRECTLY.
struct ClientDirectedRequest {
  std::string consumer_group;
  std::string client_id;
  bool jstack_enable = false;
  std::string msg_id;
  std::string broker_name;
  std::string topic;

  static Result<ClientDirectedRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct ViewBrokerStatsRequest {
  std::string stats_name;
  std::string stats_key;

  static Result<ViewBrokerStatsRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct BrokerConsumeStatsRequest {
  bool is_order = false;

  static Result<BrokerConsumeStatsRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct QueryConsumeQueueRequest {
  std::string topic;
  std::int32_t queue_id = 0;
  std::int64_t index = 0;
  std::int32_t count = 0;
  std::string consumer_group;

  static Result<QueryConsumeQueueRequest> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

struct GetBrokerConfigResponse {
  std::string version;  // DataVersion JSON

  static Result<GetBrokerConfigResponse> Decode(const ExtFields& fields);
  void Encode(ExtFields* out) const;
};

}  // namespace triad::remoting
