// NameServerConfig: everything a NameServer is told by its file and command line. Built once; a
// change at run time makes a new one.
//
// Keys, ranges and help: the one table in name_server_config.cc. Source: dledger.md §6.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/config_table.h"

namespace triad::nameserver {

struct NameServerConfig {
  std::int32_t listen_port = 9876;
  std::string bind_address = "0.0.0.0";
  std::string rocketmq_home;      // empty: ROCKETMQ_HOME
  std::string kv_config_path;     // empty: $HOME/namesrv/kvConfig.json
  std::string config_store_path;  // empty: the -c file, else $HOME/namesrv/namesrv.properties
  bool order_message_enable = false;
  bool return_order_topic_config = true;
  std::chrono::milliseconds scan_interval{5000};
  bool enable_all_topic_list = true;
  bool enable_topic_list = true;
  bool need_wait_for_service = false;
  std::chrono::seconds wait_for_service{45};
  bool delete_missing_topics = false;
  std::string config_black_list = "configBlackList;configStorePath;kvConfigPath";
  std::int32_t idle_seconds = 120;
};

const ConfigTable<NameServerConfig>& NameServerConfigTable();

struct NameServerConfigSource {
  std::string file;  // its name; empty: defaults only
  std::string text;  // its content
  std::string home;  // $HOME
  std::string rocketmq_home;
};

struct LoadedNameServerConfig {
  NameServerConfig config;
  std::vector<std::string> faults;    // ready to print; not empty: refuse to start
  std::vector<std::string> warnings;  // ready to print
  std::vector<std::string> notes;     // ready to print, quiet
};

// Parses, checks and completes. Never fails: what is wrong stands in `faults`.
LoadedNameServerConfig LoadNameServerConfig(const NameServerConfigSource& source);

}  // namespace triad::nameserver
