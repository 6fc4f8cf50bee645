#include "broker/process/banner.h"

namespace triad::broker {
namespace {

std::string Acknowledgement(const BrokerConfig& config) {
  const std::size_t peers = config.members.size();
  const bool sync = config.flush == FlushDiskType::kSyncFlush;
  std::string who = "this peer alone";
  if (peers > 1) {
    who =
        "a majority (" + std::to_string(peers / 2 + 1) + " of " + std::to_string(peers) + " peers)";
  }
  if (sync) {
    return "a send is acknowledged when " + who +
           " has it on disk (synced): nothing acknowledged is lost by a power failure. "
           "flushDiskType=ASYNC_FLUSH acknowledges earlier and gives that up";
  }
  return "a send is acknowledged when " + who +
         " has written it, NOT yet synced: a power failure of a majority may lose acknowledged "
         "messages. flushDiskType=SYNC_FLUSH waits for the disk";
}

}  // namespace

std::vector<std::string> BannerLines(const BrokerConfig& config, const BannerFacts& facts) {
  std::vector<std::string> lines;
  std::string group = "peer " + config.self.value() + " of group " + config.dledger_group + ":";
  for (const GroupMember& member : config.members) {
    if (!config.is_group()) continue;
    group += " " + member.id.value() + "=" + member.host + ":" + std::to_string(member.port);
  }
  if (!config.is_group())
    group += " the only one (enableDLegerCommitLog with dLegerPeers makes a group of three)";
  lines.push_back(group);
  lines.push_back(Acknowledgement(config));
  std::string address =
      "clients are told to connect to " + config.FullClientAddress() + ": " + facts.address_how;
  if (!facts.address_candidates.empty()) address += "; others: " + facts.address_candidates;
  lines.push_back(address + "; brokerIP1 changes it");
  lines.push_back("listening on " + config.bind_address + ":" + std::to_string(config.listen_port) +
                  " and " + std::to_string(config.listen_port - 2) + " (VIP channel); store in " +
                  config.store_root);
  if (config.metrics_exporter == MetricsExporter::kProm) {
    std::string host = config.metrics_host.empty() ? config.bind_address : config.metrics_host;
    if (host.find(':') != std::string::npos) host = "[" + host + "]";
    lines.push_back("metrics at http://" + host + ":" + std::to_string(config.metrics_port) +
                    "/metrics");
  }
  if (config.namesrv_addr.empty()) {
    lines.push_back("no name server is set (namesrvAddr): clients will not find this broker");
  }
  return lines;
}

std::string BootLineOf(const BrokerConfig& config) {
  std::string line = "The broker[" + config.broker_name + ", " + config.FullClientAddress() +
                     "] boot success. serializeType=JSON";
  if (!config.namesrv_addr.empty()) line += " and name server is " + config.namesrv_addr;
  return line;
}

Status ExplainMetricsError(const BrokerConfig& config, const Status& error) {
  return Status(error.code(), "port " + std::to_string(config.metrics_port) +
                                  " (for metrics; the option metricsPromExporterPort sets it): " +
                                  std::string(error.message()));
}

Status ExplainListenError(const BrokerConfig& config, const Status& error) {
  const std::string message(error.message());
  const std::string vip = std::to_string(config.listen_port - 2);
  const bool is_vip = message.find(":" + vip) != std::string::npos;
  const std::string port = is_vip ? vip : std::to_string(config.listen_port);
  const std::string purpose =
      is_vip ? "the VIP channel; it is always listenPort - 2, so change listenPort"
             : "clients; the option listenPort sets it";
  return Status(error.code(), "port " + port + " (for " + purpose + "): " + message);
}

}  // namespace triad::broker
