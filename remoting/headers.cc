#include "remoting/headers.h"

#include "remoting/header_fields.h"

namespace triad::remoting {
namespace {

// Which members stand under which wire names; a table per header.
template <typename H>
struct FieldsOf;

template <>
struct FieldsOf<SendMessageResponse> {
  static constexpr auto kTable =
      std::tuple(Required("msgId", &SendMessageResponse::msg_id),
                 Required("queueId", &SendMessageResponse::queue_id),
                 Required("queueOffset", &SendMessageResponse::queue_offset),
                 Optional("transactionId", &SendMessageResponse::transaction_id),
                 Optional("MSG_REGION", &SendMessageResponse::msg_region),
                 Optional("TRACE_ON", &SendMessageResponse::trace_on));
};
template <>
struct FieldsOf<SendBackRequest> {
  static constexpr auto kTable = std::tuple(
      Required("offset", &SendBackRequest::offset), Required("group", &SendBackRequest::group),
      Required("delayLevel", &SendBackRequest::delay_level),
      Optional("originMsgId", &SendBackRequest::origin_msg_id),
      Optional("originTopic", &SendBackRequest::origin_topic),
      Optional("unitMode", &SendBackRequest::unit_mode),
      Optional("maxReconsumeTimes", &SendBackRequest::max_reconsume_times));
};
template <>
struct FieldsOf<PullMessageRequest> {
  static constexpr auto kTable =
      std::tuple(Required("consumerGroup", &PullMessageRequest::consumer_group),
                 Required("topic", &PullMessageRequest::topic),
                 Required("queueId", &PullMessageRequest::queue_id),
                 Required("queueOffset", &PullMessageRequest::queue_offset),
                 Required("maxMsgNums", &PullMessageRequest::max_msg_nums),
                 Required("sysFlag", &PullMessageRequest::sys_flag),
                 Required("commitOffset", &PullMessageRequest::commit_offset),
                 Required("suspendTimeoutMillis", &PullMessageRequest::suspend_timeout_ms),
                 Optional("subscription", &PullMessageRequest::subscription),
                 Required("subVersion", &PullMessageRequest::sub_version),
                 Optional("expressionType", &PullMessageRequest::expression_type),
                 Optional("maxMsgBytes", &PullMessageRequest::max_msg_bytes));
};
template <>
struct FieldsOf<PullMessageResponse> {
  static constexpr auto kTable =
      std::tuple(Required("suggestWhichBrokerId", &PullMessageResponse::suggest_which_broker_id),
                 Required("nextBeginOffset", &PullMessageResponse::next_begin_offset),
                 Required("minOffset", &PullMessageResponse::min_offset),
                 Required("maxOffset", &PullMessageResponse::max_offset));
};
template <>
struct FieldsOf<QueryConsumerOffsetRequest> {
  static constexpr auto kTable =
      std::tuple(Required("consumerGroup", &QueryConsumerOffsetRequest::consumer_group),
                 Required("topic", &QueryConsumerOffsetRequest::topic),
                 Required("queueId", &QueryConsumerOffsetRequest::queue_id),
                 Optional("setZeroIfNotFound", &QueryConsumerOffsetRequest::set_zero_if_not_found));
};
template <>
struct FieldsOf<UpdateConsumerOffsetRequest> {
  static constexpr auto kTable =
      std::tuple(Required("consumerGroup", &UpdateConsumerOffsetRequest::consumer_group),
                 Required("topic", &UpdateConsumerOffsetRequest::topic),
                 Required("queueId", &UpdateConsumerOffsetRequest::queue_id),
                 Required("commitOffset", &UpdateConsumerOffsetRequest::commit_offset));
};
template <>
struct FieldsOf<GetMaxOffsetRequest> {
  static constexpr auto kTable = std::tuple(Required("topic", &GetMaxOffsetRequest::topic),
                                            Required("queueId", &GetMaxOffsetRequest::queue_id),
                                            Optional("committed", &GetMaxOffsetRequest::committed));
};
template <>
struct FieldsOf<GetMinOffsetRequest> {
  static constexpr auto kTable = std::tuple(Required("topic", &GetMinOffsetRequest::topic),
                                            Required("queueId", &GetMinOffsetRequest::queue_id));
};
template <>
struct FieldsOf<SearchOffsetRequest> {
  static constexpr auto kTable =
      std::tuple(Required("topic", &SearchOffsetRequest::topic),
                 Required("queueId", &SearchOffsetRequest::queue_id),
                 Required("timestamp", &SearchOffsetRequest::timestamp_ms),
                 Optional("boundaryType", &SearchOffsetRequest::boundary_type));
};
template <>
struct FieldsOf<OffsetResponse> {
  static constexpr auto kTable = std::tuple(Required("offset", &OffsetResponse::offset));
};
template <>
struct FieldsOf<TimestampResponse> {
  static constexpr auto kTable =
      std::tuple(Required("timestamp", &TimestampResponse::timestamp_ms));
};
template <>
struct FieldsOf<HeartbeatResponse> {
  static constexpr auto kTable =
      std::tuple(Optional("IS_SUPPORT_HEART_BEAT_V2", &HeartbeatResponse::supports_v2),
                 Optional("IS_SUB_CHANGE", &HeartbeatResponse::subscription_changed));
};
template <>
struct FieldsOf<UnregisterClientRequest> {
  static constexpr auto kTable =
      std::tuple(Required("clientID", &UnregisterClientRequest::client_id),
                 Optional("producerGroup", &UnregisterClientRequest::producer_group),
                 Optional("consumerGroup", &UnregisterClientRequest::consumer_group));
};
template <>
struct FieldsOf<ConsumerGroupRequest> {
  static constexpr auto kTable =
      std::tuple(Required("consumerGroup", &ConsumerGroupRequest::consumer_group));
};
template <>
struct FieldsOf<ProducerGroupRequest> {
  static constexpr auto kTable =
      std::tuple(Required("producerGroup", &ProducerGroupRequest::producer_group));
};
template <>
struct FieldsOf<ResetConsumerClientOffsetRequest> {
  static constexpr auto kTable =
      std::tuple(Required("topic", &ResetConsumerClientOffsetRequest::topic),
                 Required("group", &ResetConsumerClientOffsetRequest::group),
                 Required("timestamp", &ResetConsumerClientOffsetRequest::timestamp_ms),
                 Required("isForce", &ResetConsumerClientOffsetRequest::is_force),
                 Optional("queueId", &ResetConsumerClientOffsetRequest::queue_id));
};
template <>
struct FieldsOf<QueryMessageRequest> {
  static constexpr auto kTable = std::tuple(
      Required("topic", &QueryMessageRequest::topic), Required("key", &QueryMessageRequest::key),
      Required("maxNum", &QueryMessageRequest::max_num),
      Required("beginTimestamp", &QueryMessageRequest::begin_timestamp_ms),
      Required("endTimestamp", &QueryMessageRequest::end_timestamp_ms),
      Optional("_UNIQUE_KEY_QUERY", &QueryMessageRequest::unique_key_query));
};
template <>
struct FieldsOf<QueryMessageResponse> {
  static constexpr auto kTable = std::tuple(
      Required("indexLastUpdateTimestamp", &QueryMessageResponse::index_last_update_timestamp_ms),
      Required("indexLastUpdatePhyoffset", &QueryMessageResponse::index_last_update_phyoffset));
};
template <>
struct FieldsOf<ViewMessageRequest> {
  static constexpr auto kTable = std::tuple(Required("offset", &ViewMessageRequest::offset),
                                            Optional("topic", &ViewMessageRequest::topic));
};
template <>
struct FieldsOf<PutKvConfigRequest> {
  static constexpr auto kTable = std::tuple(Required("namespace", &PutKvConfigRequest::name_space),
                                            Required("key", &PutKvConfigRequest::key),
                                            Required("value", &PutKvConfigRequest::value));
};
template <>
struct FieldsOf<KvConfigRequest> {
  static constexpr auto kTable = std::tuple(Required("namespace", &KvConfigRequest::name_space),
                                            Required("key", &KvConfigRequest::key));
};
template <>
struct FieldsOf<GetKvConfigResponse> {
  static constexpr auto kTable = std::tuple(Optional("value", &GetKvConfigResponse::value));
};
template <>
struct FieldsOf<GetKvListRequest> {
  static constexpr auto kTable = std::tuple(Required("namespace", &GetKvListRequest::name_space));
};
template <>
struct FieldsOf<RegisterBrokerRequest> {
  static constexpr auto kTable =
      std::tuple(Required("brokerName", &RegisterBrokerRequest::broker_name),
                 Required("brokerAddr", &RegisterBrokerRequest::broker_addr),
                 Required("clusterName", &RegisterBrokerRequest::cluster_name),
                 Optional("haServerAddr", &RegisterBrokerRequest::ha_server_addr),
                 Required("brokerId", &RegisterBrokerRequest::broker_id),
                 Optional("heartbeatTimeoutMillis", &RegisterBrokerRequest::heartbeat_timeout_ms),
                 Optional("enableActingMaster", &RegisterBrokerRequest::enable_acting_master),
                 Optional("compressed", &RegisterBrokerRequest::compressed),
                 Optional("bodyCrc32", &RegisterBrokerRequest::body_crc32));
};
template <>
struct FieldsOf<RegisterBrokerResponse> {
  static constexpr auto kTable =
      std::tuple(Optional("haServerAddr", &RegisterBrokerResponse::ha_server_addr),
                 Optional("masterAddr", &RegisterBrokerResponse::master_addr));
};
template <>
struct FieldsOf<BrokerIdentityRequest> {
  static constexpr auto kTable =
      std::tuple(Required("brokerName", &BrokerIdentityRequest::broker_name),
                 Required("brokerAddr", &BrokerIdentityRequest::broker_addr),
                 Required("clusterName", &BrokerIdentityRequest::cluster_name),
                 Required("brokerId", &BrokerIdentityRequest::broker_id));
};
template <>
struct FieldsOf<QueryDataVersionResponse> {
  static constexpr auto kTable =
      std::tuple(Required("changed", &QueryDataVersionResponse::changed));
};
template <>
struct FieldsOf<GetRouteInfoRequest> {
  static constexpr auto kTable = std::tuple(
      Required("topic", &GetRouteInfoRequest::topic),
      Optional("acceptStandardJsonOnly", &GetRouteInfoRequest::accept_standard_json_only));
};
template <>
struct FieldsOf<BrokerNameRequest> {
  static constexpr auto kTable =
      std::tuple(Required("brokerName", &BrokerNameRequest::broker_name));
};
template <>
struct FieldsOf<WipeWritePermResponse> {
  static constexpr auto kTable =
      std::tuple(Required("wipeTopicCount", &WipeWritePermResponse::wipe_topic_count));
};
template <>
struct FieldsOf<AddWritePermResponse> {
  static constexpr auto kTable =
      std::tuple(Required("addTopicCount", &AddWritePermResponse::add_topic_count));
};
template <>
struct FieldsOf<DeleteTopicInNamesrvRequest> {
  static constexpr auto kTable =
      std::tuple(Required("topic", &DeleteTopicInNamesrvRequest::topic),
                 Optional("clusterName", &DeleteTopicInNamesrvRequest::cluster_name));
};
template <>
struct FieldsOf<GetTopicsByClusterRequest> {
  static constexpr auto kTable =
      std::tuple(Required("cluster", &GetTopicsByClusterRequest::cluster));
};
template <>
struct FieldsOf<GetBrokerMemberGroupRequest> {
  static constexpr auto kTable =
      std::tuple(Required("clusterName", &GetBrokerMemberGroupRequest::cluster_name),
                 Required("brokerName", &GetBrokerMemberGroupRequest::broker_name));
};
template <>
struct FieldsOf<BrokerHeartbeatRequest> {
  static constexpr auto kTable =
      std::tuple(Required("clusterName", &BrokerHeartbeatRequest::cluster_name),
                 Required("brokerAddr", &BrokerHeartbeatRequest::broker_addr),
                 Required("brokerName", &BrokerHeartbeatRequest::broker_name),
                 Optional("brokerId", &BrokerHeartbeatRequest::broker_id),
                 Optional("epoch", &BrokerHeartbeatRequest::epoch),
                 Optional("maxOffset", &BrokerHeartbeatRequest::max_offset),
                 Optional("confirmOffset", &BrokerHeartbeatRequest::confirm_offset),
                 Optional("heartbeatTimeoutMills", &BrokerHeartbeatRequest::heartbeat_timeout_ms),
                 Optional("electionPriority", &BrokerHeartbeatRequest::election_priority));
};
template <>
struct FieldsOf<CreateTopicRequest> {
  static constexpr auto kTable =
      std::tuple(Required("topic", &CreateTopicRequest::topic),
                 Optional("defaultTopic", &CreateTopicRequest::default_topic),
                 Required("readQueueNums", &CreateTopicRequest::read_queue_nums),
                 Required("writeQueueNums", &CreateTopicRequest::write_queue_nums),
                 Required("perm", &CreateTopicRequest::perm),
                 Optional("topicFilterType", &CreateTopicRequest::topic_filter_type),
                 Optional("topicSysFlag", &CreateTopicRequest::topic_sys_flag),
                 Optional("order", &CreateTopicRequest::order),
                 Optional("attributes", &CreateTopicRequest::attributes),
                 Optional("force", &CreateTopicRequest::force));
};
template <>
struct FieldsOf<TopicRequest> {
  static constexpr auto kTable = std::tuple(Required("topic", &TopicRequest::topic));
};
template <>
struct FieldsOf<GroupRequest> {
  static constexpr auto kTable = std::tuple(Required("group", &GroupRequest::group));
};
template <>
struct FieldsOf<DeleteSubscriptionGroupRequest> {
  static constexpr auto kTable =
      std::tuple(Required("groupName", &DeleteSubscriptionGroupRequest::group_name),
                 Optional("cleanOffset", &DeleteSubscriptionGroupRequest::clean_offset));
};
template <>
struct FieldsOf<GetConsumeStatsRequest> {
  static constexpr auto kTable =
      std::tuple(Required("consumerGroup", &GetConsumeStatsRequest::consumer_group),
                 Optional("topic", &GetConsumeStatsRequest::topic),
                 Optional("topicList", &GetConsumeStatsRequest::topic_list));
};
template <>
struct FieldsOf<TopicGroupRequest> {
  static constexpr auto kTable = std::tuple(Required("topic", &TopicGroupRequest::topic),
                                            Required("group", &TopicGroupRequest::group));
};
template <>
struct FieldsOf<ResetOffsetRequest> {
  static constexpr auto kTable = std::tuple(
      Required("topic", &ResetOffsetRequest::topic), Required("group", &ResetOffsetRequest::group),
      Required("timestamp", &ResetOffsetRequest::timestamp_ms),
      Required("isForce", &ResetOffsetRequest::is_force),
      Optional("queueId", &ResetOffsetRequest::queue_id),
      Optional("offset", &ResetOffsetRequest::offset));
};
template <>
struct FieldsOf<GetConsumerStatusRequest> {
  static constexpr auto kTable =
      std::tuple(Required("topic", &GetConsumerStatusRequest::topic),
                 Required("group", &GetConsumerStatusRequest::group),
                 Optional("clientAddr", &GetConsumerStatusRequest::client_addr));
};
template <>
struct FieldsOf<ClientDirectedRequest> {
  static constexpr auto kTable =
      std::tuple(Required("consumerGroup", &ClientDirectedRequest::consumer_group),
                 Required("clientId", &ClientDirectedRequest::client_id),
                 Optional("jstackEnable", &ClientDirectedRequest::jstack_enable),
                 Optional("msgId", &ClientDirectedRequest::msg_id),
                 Optional("brokerName", &ClientDirectedRequest::broker_name),
                 Optional("topic", &ClientDirectedRequest::topic));
};
template <>
struct FieldsOf<ViewBrokerStatsRequest> {
  static constexpr auto kTable =
      std::tuple(Required("statsName", &ViewBrokerStatsRequest::stats_name),
                 Required("statsKey", &ViewBrokerStatsRequest::stats_key));
};
template <>
struct FieldsOf<BrokerConsumeStatsRequest> {
  static constexpr auto kTable =
      std::tuple(Optional("isOrder", &BrokerConsumeStatsRequest::is_order));
};
template <>
struct FieldsOf<QueryConsumeQueueRequest> {
  static constexpr auto kTable =
      std::tuple(Required("topic", &QueryConsumeQueueRequest::topic),
                 Required("queueId", &QueryConsumeQueueRequest::queue_id),
                 Required("index", &QueryConsumeQueueRequest::index),
                 Required("count", &QueryConsumeQueueRequest::count),
                 Optional("consumerGroup", &QueryConsumeQueueRequest::consumer_group));
};
template <>
struct FieldsOf<GetBrokerConfigResponse> {
  static constexpr auto kTable = std::tuple(Optional("version", &GetBrokerConfigResponse::version));
};

}  // namespace

#define TRIAD_DEFINE_HEADER(H)                           \
  Result<H> H::Decode(const ExtFields& fields) {         \
    return DecodeHeader<H>(FieldsOf<H>::kTable, fields); \
  }                                                      \
  void H::Encode(ExtFields* out) const {                 \
    EncodeHeader(*this, FieldsOf<H>::kTable, out);       \
  }

TRIAD_DEFINE_HEADER(SendMessageResponse)
TRIAD_DEFINE_HEADER(SendBackRequest)
TRIAD_DEFINE_HEADER(PullMessageRequest)
TRIAD_DEFINE_HEADER(PullMessageResponse)
TRIAD_DEFINE_HEADER(QueryConsumerOffsetRequest)
TRIAD_DEFINE_HEADER(UpdateConsumerOffsetRequest)
TRIAD_DEFINE_HEADER(GetMaxOffsetRequest)
TRIAD_DEFINE_HEADER(GetMinOffsetRequest)
TRIAD_DEFINE_HEADER(SearchOffsetRequest)
TRIAD_DEFINE_HEADER(OffsetResponse)
TRIAD_DEFINE_HEADER(TimestampResponse)
TRIAD_DEFINE_HEADER(HeartbeatResponse)
TRIAD_DEFINE_HEADER(UnregisterClientRequest)
TRIAD_DEFINE_HEADER(ConsumerGroupRequest)
TRIAD_DEFINE_HEADER(ProducerGroupRequest)
TRIAD_DEFINE_HEADER(ResetConsumerClientOffsetRequest)
TRIAD_DEFINE_HEADER(QueryMessageRequest)
TRIAD_DEFINE_HEADER(QueryMessageResponse)
TRIAD_DEFINE_HEADER(ViewMessageRequest)
TRIAD_DEFINE_HEADER(PutKvConfigRequest)
TRIAD_DEFINE_HEADER(KvConfigRequest)
TRIAD_DEFINE_HEADER(GetKvConfigResponse)
TRIAD_DEFINE_HEADER(GetKvListRequest)
TRIAD_DEFINE_HEADER(RegisterBrokerRequest)
TRIAD_DEFINE_HEADER(RegisterBrokerResponse)
TRIAD_DEFINE_HEADER(BrokerIdentityRequest)
TRIAD_DEFINE_HEADER(QueryDataVersionResponse)
TRIAD_DEFINE_HEADER(GetRouteInfoRequest)
TRIAD_DEFINE_HEADER(BrokerNameRequest)
TRIAD_DEFINE_HEADER(WipeWritePermResponse)
TRIAD_DEFINE_HEADER(AddWritePermResponse)
TRIAD_DEFINE_HEADER(DeleteTopicInNamesrvRequest)
TRIAD_DEFINE_HEADER(GetTopicsByClusterRequest)
TRIAD_DEFINE_HEADER(GetBrokerMemberGroupRequest)
TRIAD_DEFINE_HEADER(BrokerHeartbeatRequest)
TRIAD_DEFINE_HEADER(CreateTopicRequest)
TRIAD_DEFINE_HEADER(TopicRequest)
TRIAD_DEFINE_HEADER(GroupRequest)
TRIAD_DEFINE_HEADER(DeleteSubscriptionGroupRequest)
TRIAD_DEFINE_HEADER(GetConsumeStatsRequest)
TRIAD_DEFINE_HEADER(TopicGroupRequest)
TRIAD_DEFINE_HEADER(ResetOffsetRequest)
TRIAD_DEFINE_HEADER(GetConsumerStatusRequest)
TRIAD_DEFINE_HEADER(ClientDirectedRequest)
TRIAD_DEFINE_HEADER(ViewBrokerStatsRequest)
TRIAD_DEFINE_HEADER(BrokerConsumeStatsRequest)
TRIAD_DEFINE_HEADER(QueryConsumeQueueRequest)
TRIAD_DEFINE_HEADER(GetBrokerConfigResponse)

#undef TRIAD_DEFINE_HEADER

}  // namespace triad::remoting
