#include "nameserver/name_server_config.h"

#include "common/properties.h"

namespace triad::nameserver {
namespace {

using C = NameServerConfig;

void AddAddresses(ConfigTable<C>* t) {
  t->Section("Addresses and files");
  t->Int("listenPort", &C::listen_port,
         {.help = "port for brokers, clients and tools; 0 = any free one",
          .min = 0,
          .max = 65535,
          .important = true});
  t->Text("bindAddress", &C::bind_address,
          {.help = "local address to listen on", .important = true});
  t->Path("rocketmqHome", &C::rocketmq_home,
          {.help = "installation directory", .default_text = "$ROCKETMQ_HOME"});
  t->Path("kvConfigPath", &C::kv_config_path,
          {.help = "file of the KV settings (ordered topics)",
           .important = true,
           .default_text = "$HOME/namesrv/kvConfig.json"});
  t->Path("configStorePath", &C::config_store_path,
          {.help = "file that changes at run time are written to",
           .default_text = "the -c file, else $HOME/namesrv/namesrv.properties"});
}

void AddBehaviour(ConfigTable<C>* t) {
  t->Section("Routes");
  t->Bool("orderMessageEnable", &C::order_message_enable,
          {.help = "add the order setting of a topic to its route", .dynamic = true});
  t->Bool("returnOrderTopicConfigToBroker", &C::return_order_topic_config,
          {.help = "tell brokers which topics are ordered when they register", .dynamic = true});
  t->Bool("enableAllTopicList", &C::enable_all_topic_list,
          {.help = "answer the list of all topics", .dynamic = true});
  t->Bool("enableTopicList", &C::enable_topic_list,
          {.help = "answer lists of topics by cluster or kind", .dynamic = true});
  t->Bool(
      "deleteTopicWithBrokerRegistration", &C::delete_missing_topics,
      {.help = "a topic that is missing in its leader's registration is dropped", .dynamic = true});
  t->Bool("needWaitForService", &C::need_wait_for_service,
          {.help = "refuse route queries during the first waitSecondsForService", .dynamic = true});
  t->Duration("waitSecondsForService", &C::wait_for_service,
              {.help = "how long", .min = 0, .max = 3600, .dynamic = true});
  t->Duration("scanNotActiveBrokerInterval", &C::scan_interval,
              {.help = "how often silent brokers are looked for",
               .min = 10,
               .max = 600000,
               .dynamic = true});
  t->Section("Limits");
  t->Int("serverChannelMaxIdleTimeSeconds", &C::idle_seconds,
         {.help = "a connection without any traffic is closed after this",
          .min = 1,
          .max = 86400,
          .unit = "s"});
  t->Text("configBlackList", &C::config_black_list,
          {.help = "keys (separated by ;) that cannot be changed at run time"});
}

ConfigTable<C> MakeTable() {
  ConfigTable<C> t;
  AddAddresses(&t);
  AddBehaviour(&t);
  t.NoEffect({"productEnvName", "clusterTest", "clientRequestThreadPoolNums",
              "clientRequestThreadPoolQueueCapacity", "defaultThreadPoolNums",
              "defaultThreadPoolQueueCapacity", "unRegisterBrokerQueueCapacity",
              "supportActingMaster", "notifyMinBrokerIdChanged", "enableControllerInNamesrv"});
  t.NoEffect({"serverWorkerThreads", "serverCallbackExecutorThreads", "serverSelectorThreads",
              "serverOnewaySemaphoreValue", "serverAsyncSemaphoreValue", "serverSocketSndBufSize",
              "serverSocketRcvBufSize", "serverSocketBacklog", "writeBufferHighWaterMark",
              "writeBufferLowWaterMark", "serverPooledByteBufAllocatorEnable",
              "useEpollNativeSelector", "enableShutdownGracefully", "shutdownWaitTimeSeconds",
              "enableTransientPool"});
  t.NoEffect({"controllerType", "controllerDLegerGroup", "controllerDLegerPeers",
              "controllerDLegerSelfId", "controllerStorePath", "mappedFileSize",
              "enableElectUncleanMaster", "notifyBrokerRoleChanged", "electMasterMaxRetryCount",
              "scanInactiveMasterInterval", "isProcessReadEvent", "controllerThreadPoolNums",
              "controllerRequestThreadPoolQueueCapacity"});
  return t;
}

}  // namespace

const ConfigTable<NameServerConfig>& NameServerConfigTable() {
  static const ConfigTable<NameServerConfig> table = MakeTable();
  return table;
}

LoadedNameServerConfig LoadNameServerConfig(const NameServerConfigSource& source) {
  LoadedNameServerConfig loaded;
  C& config = loaded.config;
  const Result<Properties> properties = Properties::Parse(source.text);
  if (!properties.ok()) {
    loaded.faults.push_back(source.file + ": " + std::string(properties.status().message()));
    return loaded;
  }
  const ConfigReport report = NameServerConfigTable().Apply(*properties, source.file, &config);
  for (const ConfigFault& fault : report.faults) loaded.faults.push_back(fault.ToString());
  loaded.warnings = report.warnings;
  for (const std::string& key : report.no_effect) {
    loaded.notes.push_back(source.file + ": " + key + " has no effect here");
  }
  if (config.rocketmq_home.empty()) config.rocketmq_home = source.rocketmq_home;
  if (config.kv_config_path.empty()) {
    config.kv_config_path = source.home + "/namesrv/kvConfig.json";
  }
  if (!source.file.empty()) {
    config.config_store_path = source.file;
  } else if (config.config_store_path.empty()) {
    config.config_store_path = source.home + "/namesrv/namesrv.properties";
  }
  return loaded;
}

}  // namespace triad::nameserver
