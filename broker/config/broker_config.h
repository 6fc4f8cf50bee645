// BrokerConfig: everything a broker process is told by its file and command line. Built once,
// passed by const reference; Live members may change while the broker runs (UPDATE_BROKER_CONFIG).
//
// Keys, ranges and help: the one table in broker_config.cc (docs/configuration.md is made from it).
// Defaults are RocketMQ's, except flushDiskType = SYNC_FLUSH. Source: dledger.md §3.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/config_table.h"
#include "common/ids.h"
#include "common/live.h"
#include "common/status.h"

namespace triad::broker {

enum class FlushDiskType { kSyncFlush, kAsyncFlush };
enum class MetricsExporter { kDisable, kProm };
enum class BrokerRole { kAsyncMaster, kSyncMaster, kSlave };

struct GroupMember {
  PeerId id;
  std::string host;  // without brackets
  std::uint16_t port = 0;
  std::int32_t number = 0;  // the trailing integer of the id
  bool operator==(const GroupMember&) const = default;
};

struct BrokerConfig {
  // Identity and addresses
  std::string cluster_name = "DefaultCluster";
  std::string broker_name;  // empty: the local host name
  std::int64_t broker_id = 0;
  std::string broker_ip1;  // empty: chosen at start
  std::string broker_ip2;
  std::int32_t listen_port = 10911;
  std::string bind_address = "0.0.0.0";
  std::string leader_ip;            // follows the leadership; empty: off
  std::string leader_ip_interface;  // empty: the one with broker_ip1
  std::int32_t ha_listen_port = 0;  // 0: listenPort + 1
  std::string namesrv_addr;
  std::chrono::milliseconds register_period{30000};
  std::chrono::milliseconds register_timeout{24000};
  std::string region_id = "DefaultRegion";
  BrokerRole broker_role = BrokerRole::kAsyncMaster;

  // Group
  bool enable_dledger = false;
  std::string dledger_group;  // empty: brokerName
  std::string dledger_peers;
  std::string dledger_self_id;
  std::string preferred_leader_id;
  std::chrono::milliseconds raft_heartbeat{50};
  std::chrono::milliseconds raft_election_timeout{300};  // drawn from 1x..2x of it

  // Store
  std::string store_root;  // empty: $HOME/store
  std::int32_t segment_bytes = 1 << 30;
  Live<std::int32_t> max_message_bytes = 4194304;
  FlushDiskType flush = FlushDiskType::kSyncFlush;
  Live<std::int32_t> file_reserved_hours = 72;
  std::string delete_when = "04";  // changes under DynamicConfig's lock: read it there
  std::int32_t disk_max_used_percent = 75;
  bool clean_forcibly = true;
  std::int32_t disk_forced_percent = 85;
  std::chrono::milliseconds clean_interval{10000};
  std::int64_t snapshot_bytes_per_second = 32LL << 20;
  std::int32_t disk_warning_percent = 90;
  std::int64_t disk_free_floor_bytes = 8LL << 30;
  std::int64_t cache_bytes = 64LL << 20;
  std::int64_t log_verify_bytes_per_second = 1 << 20;  // 0: off

  // Topics, groups, permissions
  Live<bool> auto_create_topic = true;
  Live<bool> auto_create_group = true;
  Live<std::int32_t> default_topic_queues = 8;
  Live<bool> cluster_topic = true;
  Live<bool> broker_topic = true;
  Live<std::int32_t> broker_permission = 6;
  std::string config_black_list = "configBlackList;brokerConfigPath";
  Live<bool> trace_topic = false;
  std::string trace_topic_name = "RMQ_SYS_TRACE_TOPIC";
  Live<bool> trace_on = true;
  Live<bool> notify_consumer_ids_changed = true;
  Live<bool> long_polling = true;
  Live<bool> slave_read = false;
  Live<std::chrono::milliseconds> short_polling = std::chrono::milliseconds(1000);
  Live<std::int32_t> in_memory_percent = 40;
  Live<std::int32_t> max_transfer_bytes_in_memory = 262144;
  Live<std::int32_t> max_transfer_count_in_memory = 32;
  Live<std::int32_t> max_transfer_bytes_on_disk = 65536;
  Live<std::int32_t> max_transfer_count_on_disk = 8;
  std::int32_t max_topic_bytes = 127;

  // Delay
  std::string delay_levels = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h";

  // Threads, queues, connections
  Live<std::int32_t> send_queue_capacity = 10000;
  std::int32_t send_threads = 4;        // checked only
  std::int32_t connection_threads = 0;  // 0: as many as processors, at most 4
  std::int32_t max_connections = 20000;
  std::int32_t idle_seconds = 120;
  std::chrono::milliseconds offset_commit_interval{100};
  std::chrono::seconds shutdown_wait{35};

  // Metrics
  MetricsExporter metrics_exporter = MetricsExporter::kDisable;
  std::int32_t metrics_port = 5557;
  std::string metrics_host;  // empty: bindAddress

  // ---- Filled in by FinishBrokerConfig, not by keys ----
  std::vector<GroupMember> members;  // one without enableDLegerCommitLog
  PeerId self;
  std::int64_t follower_id = 1;  // brokerId while following: number + 1
  std::string config_file;       // empty without -c
  bool listen_port_given = false;

  // Derived.
  std::string FullClientAddress() const;  // brokerIP1:listenPort
  std::string LeaderAddress() const;      // what clients dial while this peer leads
  bool is_group() const { return members.size() > 1; }
};

const ConfigTable<BrokerConfig>& BrokerConfigTable();

// A file or command line turned into a configuration.
struct LoadedBrokerConfig {
  BrokerConfig config;
  std::vector<std::string> faults;    // ready to print; not empty: refuse to start
  std::vector<std::string> warnings;  // ready to print
  std::size_t unknown_keys = 0;       // each is one of the warnings
  std::vector<std::string> notes;     // ready to print, quiet: accepted without effect, aliases
};
struct BrokerConfigSource {
  std::string file;                      // its name, for messages; empty: defaults only
  std::string text;                      // its content
  std::string namesrv_addr;              // -n, wins over the file
  std::string environment_namesrv_addr;  // NAMESRV_ADDR, loses against the file
  std::string host_name;
  std::string home;
};
// Parses, checks and completes. Never fails: what is wrong stands in `faults`.
LoadedBrokerConfig LoadBrokerConfig(const BrokerConfigSource& source);

// "n0-host:port;..." Errors: kInvalidArgument showing the offending item and the form.
Result<std::vector<GroupMember>> ParseGroupMembers(const std::string& text);

// "04" or "04;16": hours of the day. Errors: kInvalidArgument.
Result<std::vector<int>> ParseHours(const std::string& text);

// "1s 5s 10s ..." to milliseconds, level 1 first. Errors: kInvalidArgument.
Result<std::vector<std::int64_t>> ParseDelayLevels(const std::string& text);

}  // namespace triad::broker
