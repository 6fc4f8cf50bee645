// Client bodies: heartbeats, queue locks, group membership.
//
// Pure values. Encode writes compact JSON, members in alphabetical order; Decode is lenient (enums
// as names or ordinals, numbers as strings, missing members keep their defaults) and fails only on
// text that is no JSON object: kInvalidArgument. Source: wire.md §4.1, §7.2, §7.6, admin.md §1.5.

#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "remoting/json.h"

namespace triad::remoting {

// One queue as bodies name it.
struct MessageQueue {
  std::string topic;
  std::string broker_name;
  std::int32_t queue_id = 0;
  auto operator<=>(const MessageQueue&) const = default;

  void WriteTo(JsonWriter* writer) const;
  static MessageQueue From(const Json& json);
};

// Ordinals as the original's; C++ clients send them (wire.md §4.1).
enum class ConsumeType : std::uint8_t { kActively = 0, kPassively = 1, kPop = 2 };
enum class MessageModel : std::uint8_t { kBroadcasting = 0, kClustering = 1 };
enum class ConsumeFromWhere : std::uint8_t {
  kLastOffset = 0,
  kLastOffsetAndFromMinWhenBootFirst = 1,
  kMinOffset = 2,
  kMaxOffset = 3,
  kFirstOffset = 4,
  kTimestamp = 5,
};
std::string_view ConsumeTypeName(ConsumeType type);          // "CONSUME_PASSIVELY"
std::string_view MessageModelName(MessageModel model);       // "CLUSTERING"
std::string_view ConsumeFromWhereName(ConsumeFromWhere at);  // "CONSUME_FROM_LAST_OFFSET"

struct SubscriptionData {
  bool class_filter_mode = false;
  std::vector<std::int32_t> code_set;
  std::string expression_type = "TAG";
  std::string sub_string;
  std::int64_t sub_version = 0;
  std::vector<std::string> tags_set;
  std::string topic;
  bool operator==(const SubscriptionData&) const = default;

  void WriteTo(JsonWriter* writer) const;
  static SubscriptionData From(const Json& json);
};

struct ConsumerData {
  ConsumeFromWhere consume_from_where = ConsumeFromWhere::kLastOffset;
  ConsumeType consume_type = ConsumeType::kPassively;
  std::string group_name;
  MessageModel message_model = MessageModel::kClustering;
  std::vector<SubscriptionData> subscriptions;
  bool unit_mode = false;
  bool operator==(const ConsumerData&) const = default;
};

struct HeartbeatData {
  std::string client_id;
  std::vector<ConsumerData> consumers;
  std::int32_t heartbeat_fingerprint = 0;
  std::vector<std::string> producer_groups;
  bool without_sub = false;
  bool operator==(const HeartbeatData&) const = default;

  std::string Encode() const;
  // Errors: kInvalidArgument also when clientID is missing.
  static Result<HeartbeatData> Decode(std::string_view body);
};

struct CheckClientConfigBody {
  std::string client_id;
  std::string group;
  std::string name_space;
  SubscriptionData subscription;
  bool operator==(const CheckClientConfigBody&) const = default;

  std::string Encode() const;
  static Result<CheckClientConfigBody> Decode(std::string_view body);
};

// LOCK_BATCH_MQ and UNLOCK_BATCH_MQ.
struct LockBatchRequest {
  std::string client_id;
  std::string consumer_group;
  std::vector<MessageQueue> queues;
  bool only_this_broker = false;
  bool operator==(const LockBatchRequest&) const = default;

  std::string Encode() const;
  static Result<LockBatchRequest> Decode(std::string_view body);
};

struct LockBatchResponse {
  std::vector<MessageQueue> locked;
  bool operator==(const LockBatchResponse&) const = default;

  std::string Encode() const;
  static Result<LockBatchResponse> Decode(std::string_view body);
};

struct ConsumerIdList {
  std::vector<std::string> ids;
  bool operator==(const ConsumerIdList&) const = default;

  std::string Encode() const;
  static Result<ConsumerIdList> Decode(std::string_view body);
};

struct GroupList {
  std::vector<std::string> groups;
  bool operator==(const GroupList&) const = default;

  std::string Encode() const;
  static Result<GroupList> Decode(std::string_view body);
};

struct ConnectionInfo {
  std::string client_addr;
  std::string client_id;
  std::string language = "JAVA";
  std::int32_t version = 0;
  bool operator==(const ConnectionInfo&) const = default;

  void WriteTo(JsonWriter* writer) const;
  static ConnectionInfo From(const Json& json);
};

struct ConsumerConnection {
  std::vector<ConnectionInfo> connections;
  ConsumeFromWhere consume_from_where = ConsumeFromWhere::kLastOffset;
  ConsumeType consume_type = ConsumeType::kPassively;
  MessageModel message_model = MessageModel::kClustering;
  std::map<std::string, SubscriptionData> subscription_table;  // by topic
  bool operator==(const ConsumerConnection&) const = default;

  std::string Encode() const;
  static Result<ConsumerConnection> Decode(std::string_view body);
};

struct ProducerConnection {
  std::vector<ConnectionInfo> connections;
  bool operator==(const ProducerConnection&) const = default;

  std::string Encode() const;
  static Result<ProducerConnection> Decode(std::string_view body);
};

// QUERY_SUBSCRIPTION_BY_CONSUMER.
struct QuerySubscriptionBody {
  std::string group;
  std::string topic;
  bool known = false;  // false: subscriptionData is left out
  SubscriptionData subscription;
  bool operator==(const QuerySubscriptionBody&) const = default;

  std::string Encode() const;
  static Result<QuerySubscriptionBody> Decode(std::string_view body);
};

}  // namespace triad::remoting
