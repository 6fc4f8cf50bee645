// Admin bodies: group configuration, statistics, offset tables.
//
// Pure values. Encode writes compact JSON, members in alphabetical order, maps keyed by a queue in
// fastjson's form {{"brokerName":..}:..} (wire.md §1.6); Decode reads that form, is lenient
// otherwise, and fails only on text that is no JSON object: kInvalidArgument. Source: wire.md §8.5,
// §12, admin.md §1.5, §2.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "remoting/client_bodies.h"
#include "remoting/json.h"
#include "remoting/route_bodies.h"

namespace triad::remoting {

struct SubscriptionGroupConfigBody {  // the original's SubscriptionGroupConfig
  std::map<std::string, std::string> attributes;
  std::int64_t broker_id = 0;
  bool consume_broadcast_enable = true;
  bool consume_enable = true;
  bool consume_from_min_enable = true;
  bool consume_message_orderly = false;
  std::int32_t consume_timeout_minute = 15;
  std::string group_name;
  std::string group_retry_policy_json;  // empty = the default {"type":"CUSTOMIZED"}
  std::int32_t group_sys_flag = 0;
  bool notify_consumer_ids_changed_enable = true;
  std::int32_t retry_max_times = 16;
  std::int32_t retry_queue_nums = 1;
  std::int64_t which_broker_when_consume_slowly = 1;
  bool operator==(const SubscriptionGroupConfigBody&) const = default;

  std::string Encode() const;
  static Result<SubscriptionGroupConfigBody> Decode(std::string_view body);
  void WriteTo(JsonWriter* writer) const;
  static SubscriptionGroupConfigBody From(const Json& json);
};

// GET_ALL_SUBSCRIPTIONGROUP_CONFIG. `forbiddenTable` is always written empty.
struct SubscriptionGroupWrapper {
  DataVersion data_version;
  std::map<std::string, SubscriptionGroupConfigBody> groups;
  bool operator==(const SubscriptionGroupWrapper&) const = default;

  std::string Encode() const;
  static Result<SubscriptionGroupWrapper> Decode(std::string_view body);
};

// Bodies of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST and UPDATE_AND_CREATE_TOPIC_LIST.
struct SubscriptionGroupList {
  std::vector<SubscriptionGroupConfigBody> groups;
  bool operator==(const SubscriptionGroupList&) const = default;

  std::string Encode() const;
  static Result<SubscriptionGroupList> Decode(std::string_view body);
};
struct TopicConfigList {
  std::vector<TopicConfigBody> topics;
  bool operator==(const TopicConfigList&) const = default;

  std::string Encode() const;
  static Result<TopicConfigList> Decode(std::string_view body);
};

// GET_TOPIC_STATS_INFO.
struct TopicStatsTable {
  struct Item {
    std::int64_t last_update_timestamp_ms = 0;
    std::int64_t max_offset = 0;
    std::int64_t min_offset = 0;
    bool operator==(const Item&) const = default;
  };
  std::map<MessageQueue, Item> offset_table;
  double topic_put_tps = 0;
  bool operator==(const TopicStatsTable&) const = default;

  std::string Encode() const;
  static Result<TopicStatsTable> Decode(std::string_view body);
};

// GET_CONSUME_STATS.
struct ConsumeStats {
  struct Item {
    std::int64_t broker_offset = 0;
    std::int64_t consumer_offset = 0;
    std::int64_t last_timestamp_ms = 0;
    std::int64_t pull_offset = 0;
    bool operator==(const Item&) const = default;
  };
  double consume_tps = 0;
  std::map<MessageQueue, Item> offset_table;
  bool operator==(const ConsumeStats&) const = default;

  std::string Encode() const;
  static Result<ConsumeStats> Decode(std::string_view body);
};

// INVOKE_BROKER_TO_RESET_OFFSET's answer, RESET_CONSUMER_CLIENT_OFFSET's body.
struct ResetOffsetBody {
  std::map<MessageQueue, std::int64_t> offset_table;
  bool operator==(const ResetOffsetBody&) const = default;

  std::string Encode() const;
  std::string EncodeForCpp() const;  // the list form that C++ clients read (admin.md §6.3)
  static Result<ResetOffsetBody> Decode(std::string_view body);  // either form
};

struct BrokerStatsItem {
  double average_time = 0;  // avgpt
  std::int64_t sum = 0;
  double tps = 0;
  bool operator==(const BrokerStatsItem&) const = default;
};
struct BrokerStatsData {
  BrokerStatsItem day;
  BrokerStatsItem hour;
  BrokerStatsItem minute;
  bool operator==(const BrokerStatsData&) const = default;

  std::string Encode() const;
  static Result<BrokerStatsData> Decode(std::string_view body);
};

// GET_ALL_CONSUMER_OFFSET: "topic@group" to queue id to offset.
struct ConsumerOffsetTable {
  std::map<std::string, std::map<std::int32_t, std::int64_t>> offset_table;
  bool operator==(const ConsumerOffsetTable&) const = default;

  std::string Encode() const;
  static Result<ConsumerOffsetTable> Decode(std::string_view body);
};
// GET_ALL_DELAY_OFFSET: delay level to offset.
struct DelayOffsetTable {
  std::map<std::int32_t, std::int64_t> offset_table;
  bool operator==(const DelayOffsetTable&) const = default;

  std::string Encode() const;
  static Result<DelayOffsetTable> Decode(std::string_view body);
};

}  // namespace triad::remoting
