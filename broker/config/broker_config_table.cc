// The table of every key that a broker file may hold. docs/configuration.md is made from it.

#include <arpa/inet.h>

#include "broker/config/broker_config.h"
#include "broker/config/no_effect_keys.h"

namespace triad::broker {
namespace {

using Table = ConfigTable<BrokerConfig>;

bool IsIpAddress(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

void AddIdentity(Table* t) {
  t->Section("Identity and addresses");
  t->Text("brokerClusterName", &BrokerConfig::cluster_name,
          {.help = "cluster that this broker is listed under", .important = true});
  t->Text("brokerName", &BrokerConfig::broker_name,
          {.help = "name of the group; all its peers share it",
           .important = true,
           .default_text = "local host name"});
  t->Int("brokerId", &BrokerConfig::broker_id,
         {.help = "ignored in a group (the leader is 0, a follower its peer number + 1); "
                  "alone only 0 or -1",
          .min = -1});
  t->Text("brokerIP1", &BrokerConfig::broker_ip1,
          {.help = "address told to clients and written into message ids",
           .important = true,
           .default_text = "first address that is neither loopback nor a bridge"});
  t->Text("brokerIP2", &BrokerConfig::broker_ip2,
          {.help = "address reported with the HA port", .default_text = "brokerIP1"});
  t->Int("listenPort", &BrokerConfig::listen_port,
         {.help = "port for clients; listenPort - 2 serves the same (VIP channel). Default in a "
                  "group whose members share this host: 10911 + 10 x peer number",
          .min = 3,
          .max = 65535,
          .important = true});
  t->Text("bindAddress", &BrokerConfig::bind_address, {.help = "address to listen on"});
  t->Text("leaderIP", &BrokerConfig::leader_ip,
          {.help = "IPv4 address that belongs to whichever peer leads, the same on all peers and "
                   "in their network; clients are told it instead of the leader's brokerIP1. Needs "
                   "CAP_NET_ADMIN and CAP_NET_RAW. docs/operations.md",
           .default_text = "none: no address moves"});
  t->Text("leaderIPInterface", &BrokerConfig::leader_ip_interface,
          {.help = "network interface that gets leaderIP",
           .default_text = "the one that has brokerIP1"});
  t->Int("haListenPort", &BrokerConfig::ha_listen_port,
         {.help = "only reported to name servers; nothing listens on it",
          .min = 0,
          .max = 65535,
          .default_text = "listenPort + 1"});
  t->Text("namesrvAddr", &BrokerConfig::namesrv_addr,
          {.help = "name servers: host:port;host:port", .important = true, .dynamic = true});
  t->Duration(
      "registerNameServerPeriod", &BrokerConfig::register_period,
      {.help = "how often the registration is repeated (kept within 10000 to 60000)", .min = 1});
  t->Duration("registerBrokerTimeoutMills", &BrokerConfig::register_timeout,
              {.help = "how long one registration may take", .min = 100, .max = 600000});
  t->Text("regionId", &BrokerConfig::region_id, {.help = "MSG_REGION of every message"});
  t->Choice("brokerRole", &BrokerConfig::broker_role,
            {{"ASYNC_MASTER", BrokerRole::kAsyncMaster},
             {"SYNC_MASTER", BrokerRole::kSyncMaster},
             {"SLAVE", BrokerRole::kSlave}},
            {.help = "ignored in a group: the group elects its leader. SLAVE alone is refused"});
}

void AddGroup(Table* t) {
  t->Section("Replication group (DLedger)");
  t->Bool("enableDLegerCommitLog", &BrokerConfig::enable_dledger,
          {.help = "replicate the log among dLegerPeers; false: a group of this one peer",
           .important = true});
  t->Text(
      "dLegerGroup", &BrokerConfig::dledger_group,
      {.help = "name of the replication group", .important = true, .default_text = "brokerName"});
  t->Text("dLegerPeers", &BrokerConfig::dledger_peers,
          {.help = "members, the same on all of them: id-host:port;id-host:port;...",
           .important = true});
  t->Text("dLegerSelfId", &BrokerConfig::dledger_self_id,
          {.help = "which of dLegerPeers this process is", .important = true});
  t->Duration("dLegerHeartbeatIntervalMs", &BrokerConfig::raft_heartbeat,
              {.help = "the leader's heartbeat", .min = 5, .max = 60000});
  t->Duration("dLegerElectionTimeoutMs", &BrokerConfig::raft_election_timeout,
              {.help = "silence of the leader before an election; drawn anew from 1x to 2x",
               .min = 20,
               .max = 600000});
  t->Text("preferredLeaderId", &BrokerConfig::preferred_leader_id,
          {.help = "which of dLegerPeers is offered leadership when it has caught up and been well "
                   "for 10 s; empty: nobody"});
  constexpr const char* kSeed = "seed spelling of the original's key";
  t->Alias("dLedgerPeers", "dLegerPeers", kSeed);
  t->Alias("dLedgerSelfId", "dLegerSelfId", kSeed);
  t->Alias("dLedgerGroupName", "dLegerGroup", kSeed);
}

void AddStore(Table* t) {
  t->Section("Store");
  t->Path("storePathRootDir", &BrokerConfig::store_root,
          {.help = "everything this peer keeps; the log stands in dledger-<id> below it",
           .important = true,
           .default_text = "$HOME/store; in a group $HOME/store/store-<id>"});
  t->Int("mappedFileSizeCommitLog", &BrokerConfig::segment_bytes,
         {.help = "size of a log segment", .min = 1 << 20, .max = 1 << 30, .unit = "bytes"});
  t->Int(
      "maxMessageSize", &BrokerConfig::max_message_bytes,
      {.help = "largest message body", .min = 1, .max = 8 << 20, .unit = "bytes", .group = true});
  t->Choice(
      "flushDiskType", &BrokerConfig::flush,
      {{"SYNC_FLUSH", FlushDiskType::kSyncFlush}, {"ASYNC_FLUSH", FlushDiskType::kAsyncFlush}},
      {.help = "SYNC_FLUSH: a send is acknowledged when a majority has synced it to disk. "
               "ASYNC_FLUSH: when a majority has written it (the original's default)",
       .important = true});
  t->Int("fileReservedTime", &BrokerConfig::file_reserved_hours,
         {.help = "messages older than this are deleted, by whole segments of the log",
          .min = 1,
          .max = 1000000,
          .unit = "hours",
          .group = true});
  t->Text("deleteWhen", &BrokerConfig::delete_when,
          {.help = "hours of the day in which old messages are deleted, like 04 or 04;16",
           .dynamic = true,
           .group = true,
           .check = [](const std::string& text) -> std::string {
             return ParseHours(text).ok() ? "" : "hours of the day like 04 or 04;16";
           }});
  t->Int("diskMaxUsedSpaceRatio", &BrokerConfig::disk_max_used_percent,
         {.help = "use of the disk from which on old messages are deleted at any hour",
          .min = 10,
          .max = 95,
          .unit = "percent"});
  t->Bool("cleanFileForciblyEnable", &BrokerConfig::clean_forcibly,
          {.help = "delete the oldest messages, whatever their age, when the disk is nearly full"});
  t->Int("diskSpaceCleanForciblyRatio", &BrokerConfig::disk_forced_percent,
         {.help = "use of the disk that counts as nearly full, unless 1.5 times "
                  "diskSpaceFreeFloorBytes are free",
          .min = 1,
          .max = 99,
          .unit = "percent"});
  t->Duration(
      "cleanResourceInterval", &BrokerConfig::clean_interval,
      {.help = "how often the broker looks for messages to delete", .min = 10, .max = 3600000});
  t->Int("snapshotBytesPerSecond", &BrokerConfig::snapshot_bytes_per_second,
         {.help = "the leader sends its state no faster to peers that need it",
          .min = 1 << 16,
          .unit = "bytes"});
  t->Int("diskSpaceWarningLevelRatio", &BrokerConfig::disk_warning_percent,
         {.help = "use of the disk above which messages are refused, unless "
                  "diskSpaceFreeFloorBytes are free",
          .min = 20,
          .max = 99,
          .unit = "percent"});
  t->Int(
      "diskSpaceFreeFloorBytes", &BrokerConfig::disk_free_floor_bytes,
      {.help = "with so many bytes free a disk never counts as full", .min = 0, .unit = "bytes"});
  t->Int("entryCacheBytes", &BrokerConfig::cache_bytes,
         {.help = "memory for log entries that pulls and followers read",
          .min = 1 << 20,
          .unit = "bytes"});
  t->Int("logVerifyBytesPerSecond", &BrokerConfig::log_verify_bytes_per_second,
         {.help = "how fast this peer's log is compared with the leader's in the background; 0: "
                  "not at all (mqadmin verifyLog compares on demand)",
          .min = 0,
          .max = 4 << 20,
          .unit = "bytes"});
}

void AddTopics(Table* t) {
  t->Section("Topics, groups, permissions");
  t->Bool("autoCreateTopicEnable", &BrokerConfig::auto_create_topic,
          {.help = "create unknown topics on the first send", .important = true, .group = true});
  t->Bool("autoCreateSubscriptionGroup", &BrokerConfig::auto_create_group,
          {.help = "create unknown consumer groups on their first heartbeat",
           .important = true,
           .group = true});
  t->Int("defaultTopicQueueNums", &BrokerConfig::default_topic_queues,
         {.help = "queues of TBW102, the template of created topics",
          .min = 1,
          .max = 1024,
          .group = true});
  t->Bool("clusterTopicEnable", &BrokerConfig::cluster_topic,
          {.help = "a topic named like the cluster exists", .group = true});
  t->Bool("brokerTopicEnable", &BrokerConfig::broker_topic,
          {.help = "a topic named like the broker exists", .group = true});
  t->Int("brokerPermission", &BrokerConfig::broker_permission,
         {.help = "4 = read, 2 = write, 6 = both", .min = 0, .max = 15, .group = true});
  t->Bool("traceTopicEnable", &BrokerConfig::trace_topic,
          {.help = "the trace topic exists", .group = true});
  t->Text("configBlackList", &BrokerConfig::config_black_list,
          {.help = "keys (separated by ;) that updateBrokerConfig refuses to change, besides those "
                   "that it always refuses"});
  t->Text("msgTraceTopicName", &BrokerConfig::trace_topic_name,
          {.help = "name of the trace topic"});
  t->Bool("traceOn", &BrokerConfig::trace_on,
          {.help = "TRACE_ON as told to clients", .group = true});
  t->Bool("notifyConsumerIdsChangedEnable", &BrokerConfig::notify_consumer_ids_changed,
          {.help = "tell consumers at once when their group changes", .group = true});
  t->Bool("longPollingEnable", &BrokerConfig::long_polling,
          {.help = "hold a pull at the end of a queue until a message comes", .group = true});
  t->Bool("slaveReadEnable", &BrokerConfig::slave_read,
          {.help = "the leader sends consumers of old messages to a follower; ordered consumers "
                   "read from the leader in any case",
           .group = true});
  t->Duration("shortPollingTimeMills", &BrokerConfig::short_polling,
              {.help = "how long such a pull is held without long polling",
               .min = 1,
               .max = 60000,
               .group = true});
  t->Int("accessMessageInMemoryMaxRatio", &BrokerConfig::in_memory_percent,
         {.help = "distance from the log's end, in percent of the machine's memory, within which a "
                  "message counts as in memory (a new group then starts at 0: wire rule 6.1; what "
                  "lies further back is old for slaveReadEnable)",
          .min = 0,
          .max = 100,
          .unit = "percent",
          .group = true});
  t->Int("maxTransferBytesOnMessageInMemory", &BrokerConfig::max_transfer_bytes_in_memory,
         {.help = "bytes in one pull answer",
          .min = 1,
          .max = 8 << 20,
          .unit = "bytes",
          .group = true});
  t->Int("maxTransferCountOnMessageInMemory", &BrokerConfig::max_transfer_count_in_memory,
         {.help = "messages in one pull answer", .min = 1, .max = 100000, .group = true});
  t->Int("maxTransferBytesOnMessageInDisk", &BrokerConfig::max_transfer_bytes_on_disk,
         {.help = "the same for messages that lie further back than accessMessageInMemoryMaxRatio",
          .min = 1,
          .max = 8 << 20,
          .unit = "bytes",
          .group = true});
  t->Int("maxTransferCountOnMessageInDisk", &BrokerConfig::max_transfer_count_on_disk,
         {.help = "the same for messages that lie further back than accessMessageInMemoryMaxRatio",
          .min = 1,
          .max = 100000,
          .group = true});
  t->Int("maxTopicLength", &BrokerConfig::max_topic_bytes,
         {.help = "longest topic name", .min = 1, .max = 127, .unit = "bytes"});
  t->Text("messageDelayLevel", &BrokerConfig::delay_levels,
          {.help = "delay levels, level 1 first. The first leader's table is the group's",
           .check = [](const std::string& text) -> std::string {
             return ParseDelayLevels(text).ok() ? "" : "delays like 1s 5m 2h 1d, at most 64";
           }});
}

void AddThreads(Table* t) {
  t->Section("Threads, queues, connections");
  t->Int("sendThreadPoolQueueCapacity", &BrokerConfig::send_queue_capacity,
         {.help = "flow control: sends that may wait for the log; beyond it: SYSTEM_BUSY. Of this "
                  "peer alone, and may be changed while it runs",
          .min = 1,
          .max = 10000000});
  t->Int("sendMessageThreadPoolNums", &BrokerConfig::send_threads,
         {.help = "checked, without effect: sends need no threads here",
          .min = 1,
          .max = 10000,
          .default_text = "-"});
  t->Int("connectionThreads", &BrokerConfig::connection_threads,
         {.help = "threads that own client connections; 0: one per processor, at most 4",
          .min = 0,
          .max = 4});
  t->Int("maxConnections", &BrokerConfig::max_connections,
         {.help = "client connections; beyond it new ones are closed", .min = 10, .max = 1000000});
  t->Int("serverChannelMaxIdleTimeSeconds", &BrokerConfig::idle_seconds,
         {.help = "a connection without traffic that waits for no answer is closed 5 s after it",
          .min = 5,
          .max = 86400,
          .unit = "s"});
  t->Duration("offsetCommitIntervalMs", &BrokerConfig::offset_commit_interval,
              {.help = "consumer offsets are gathered so long before they go into the log",
               .min = 1,
               .max = 5000});
  t->Duration("shutdownWaitTimeSeconds", &BrokerConfig::shutdown_wait,
              {.help = "how long a leaving peer goes on forwarding for clients that do not know "
                       "of its leaving yet",
               .min = 0,
               .max = 3600});
}

void AddMetrics(Table* t) {
  t->Section("Metrics");
  t->Choice(
      "metricsExporterType", &BrokerConfig::metrics_exporter,
      {{"DISABLE", MetricsExporter::kDisable}, {"PROM", MetricsExporter::kProm}},
      {.help = "PROM: http://HOST:PORT/metrics answers with everything that Prometheus collects"});
  t->Int("metricsPromExporterPort", &BrokerConfig::metrics_port,
         {.help = "its port; peers that share a host need different ones", .min = 1, .max = 65535});
  t->Text("metricsPromExporterHost", &BrokerConfig::metrics_host,
          {.help = "IP address that it listens on",
           .default_text = "bindAddress",
           .check = [](const std::string& text) -> std::string {
             return text.empty() || IsIpAddress(text) ? "" : "an IP address of this machine";
           }});
}

}  // namespace

const ConfigTable<BrokerConfig>& BrokerConfigTable() {
  static const Table* const table = [] {
    auto* t = new Table;
    AddIdentity(t);
    AddGroup(t);
    AddStore(t);
    AddTopics(t);
    AddThreads(t);
    AddMetrics(t);
    for (const std::string_view key : kNoEffectKeys) t->NoEffect({key});
    return t;
  }();
  return *table;
}

}  // namespace triad::broker
