// Route bodies: what NameServer, brokers and clients tell each other about brokers and topics.
//
// Pure values. Encode writes compact JSON, members in alphabetical order; Decode is lenient
// (numbers as strings, bare integer keys, missing members keep their defaults) and fails only on
// text that is no JSON object: kInvalidArgument. A topic is only a string here. Source: wire.md
// §3.1-§3.3, admin.md §1.5.

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

struct DataVersion {  // equal iff all three are equal
  std::int64_t counter = 0;
  std::int64_t state_version = 0;
  std::int64_t timestamp_ms = 0;
  bool operator==(const DataVersion&) const = default;

  std::string Encode() const;
  static Result<DataVersion> Decode(std::string_view body);
  void WriteTo(JsonWriter* writer) const;
  static DataVersion From(const Json& json);
};

struct QueueData {
  std::string broker_name;
  std::int32_t read_queue_nums = 0;
  std::int32_t write_queue_nums = 0;
  std::int32_t perm = 0;
  std::int32_t topic_sys_flag = 0;  // written as topicSysFlag and, for old readers, topicSynFlag
  bool operator==(const QueueData&) const = default;

  void WriteTo(JsonWriter* writer) const;
  static QueueData From(const Json& json);
};

struct BrokerData {
  std::map<std::int64_t, std::string> broker_addrs;  // 0 = leader; always written, even if empty
  std::string broker_name;
  std::string cluster;
  bool enable_acting_master = false;
  bool operator==(const BrokerData&) const = default;

  void WriteTo(JsonWriter* writer) const;
  static BrokerData From(const Json& json);
};

struct TopicRouteData {
  std::vector<BrokerData> broker_datas;
  std::string order_topic_conf;  // empty = absent
  std::vector<QueueData> queue_datas;
  bool operator==(const TopicRouteData&) const = default;

  std::string Encode() const;
  static Result<TopicRouteData> Decode(std::string_view body);
};

struct ClusterInfo {
  std::map<std::string, BrokerData> broker_addr_table;                 // by broker name
  std::map<std::string, std::vector<std::string>> cluster_addr_table;  // broker names by cluster
  bool operator==(const ClusterInfo&) const = default;

  std::string Encode() const;
  static Result<ClusterInfo> Decode(std::string_view body);
};

struct TopicList {
  std::vector<std::string> topic_list;
  std::string broker_addr;  // empty = absent
  bool operator==(const TopicList&) const = default;

  std::string Encode() const;
  static Result<TopicList> Decode(std::string_view body);
};

struct KVTable {
  std::map<std::string, std::string> table;
  bool operator==(const KVTable&) const = default;

  std::string Encode() const;
  static Result<KVTable> Decode(std::string_view body);
};

struct BrokerMemberGroup {
  std::map<std::int64_t, std::string> broker_addrs;
  std::string broker_name;
  std::string cluster;
  bool operator==(const BrokerMemberGroup&) const = default;

  std::string Encode() const;
  static Result<BrokerMemberGroup> Decode(std::string_view body);
};

struct TopicConfigBody {  // the original's TopicConfig
  std::map<std::string, std::string> attributes;
  bool order = false;
  std::int32_t perm = 6;
  std::int32_t read_queue_nums = 16;
  bool multi_tag = false;  // topicFilterType SINGLE_TAG or MULTI_TAG
  std::string topic_name;
  std::int32_t topic_sys_flag = 0;
  std::int32_t write_queue_nums = 16;
  bool operator==(const TopicConfigBody&) const = default;

  std::string Encode() const;
  static Result<TopicConfigBody> Decode(std::string_view body);
  void WriteTo(JsonWriter* writer) const;
  static TopicConfigBody From(const Json& json);
};

// The whole topic table of a broker: answer of GET_ALL_TOPIC_CONFIG, part of a registration. The
// static-topic members of 5.x are neither written nor read.
struct TopicConfigSerializeWrapper {
  DataVersion data_version;
  std::map<std::string, TopicConfigBody> topic_config_table;
  bool operator==(const TopicConfigSerializeWrapper&) const = default;

  std::string Encode() const;
  static Result<TopicConfigSerializeWrapper> Decode(std::string_view body);
  void WriteTo(JsonWriter* writer) const;
  static TopicConfigSerializeWrapper From(const Json& json);
};

// REGISTER_BROKER (wire.md §3.2).
struct RegisterBrokerBody {
  std::vector<std::string> filter_server_list;
  TopicConfigSerializeWrapper topics;
  bool operator==(const RegisterBrokerBody&) const = default;

  std::string Encode() const;  // the plain form
  static Result<RegisterBrokerBody> Decode(std::string_view body);
  // The zlib form. Bound: kMaxInflatedBytes.
  static Result<RegisterBrokerBody> DecodeCompressed(std::string_view body);
  static constexpr std::size_t kMaxInflatedBytes = 64u << 20;
};

}  // namespace triad::remoting
