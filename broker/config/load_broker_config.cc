// From a file's text to a complete configuration: parse, check each key, check what keys mean
// together.

#include <arpa/inet.h>
#include <strings.h>

#include <charconv>
#include <chrono>

#include "broker/config/broker_config.h"

namespace triad::broker {
namespace {

constexpr std::int32_t kDefaultPort = 10911;
constexpr std::size_t kDelayLevelsMax = 64;
constexpr std::chrono::milliseconds kElectionTimeoutLow{100};
constexpr std::chrono::milliseconds kElectionTimeoutHigh{3000};  // of a send of the Java client

// "host:port;host:port"; blanks and empty items are harmless.
std::string BadAddressIn(const std::string& list) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(';', begin), list.size());
    const std::string_view item = TrimBlanks(std::string_view(list).substr(begin, end - begin));
    begin = end + 1;
    if (item.empty()) continue;
    const auto colon = item.rfind(':');
    int port = 0;
    if (colon != std::string_view::npos && colon > 0) {
      const auto tail = item.substr(colon + 1);
      const auto [stop, error] = std::from_chars(tail.data(), tail.data() + tail.size(), port);
      if (error != std::errc() || stop != tail.data() + tail.size()) port = 0;
    }
    if (port < 1 || port > 65535) return std::string(item);
  }
  return {};
}

bool SaysTrue(const std::string& value) {
  return ::strcasecmp(std::string(TrimBlanks(value)).c_str(), "true") == 0;
}

class Loader {
 public:
  explicit Loader(const BrokerConfigSource& source) : source_(source) {}

  LoadedBrokerConfig Load() {
    ReadFile();
    if (!source_.namesrv_addr.empty()) config().namesrv_addr = source_.namesrv_addr;
    if (config().namesrv_addr.empty()) {
      config().namesrv_addr = source_.environment_namesrv_addr;
    }
    const std::string bad = BadAddressIn(config().namesrv_addr);
    if (!bad.empty()) {
      Fault("namesrvAddr", "\"" + bad + "\" is no host:port; expected host:port;host:port");
    }
    if (config().broker_name.empty()) config().broker_name = source_.host_name;
    if (config().broker_name.empty()) config().broker_name = "DEFAULT_BROKER";
    if (config().enable_dledger) {
      CompleteGroup();
    } else {
      CompleteAlone();
    }
    CompleteDefaults();
    CheckTiming();
    CheckAccessRules();
    CheckLeaderAddress();
    CheckMetricsPort();
    return std::move(loaded_);
  }

 private:
  BrokerConfig& config() { return loaded_.config; }

  // Ports of one process that are the same can never all be listened on.
  void CheckMetricsPort() {
    const BrokerConfig& c = config();
    if (c.metrics_exporter == MetricsExporter::kDisable) return;
    std::string taken_by;
    if (c.metrics_port == c.listen_port) taken_by = "listenPort";
    if (c.metrics_port == c.listen_port - 2) taken_by = "the VIP channel (listenPort - 2)";
    for (const GroupMember& member : c.members) {
      if (member.id == c.self && member.port == c.metrics_port)
        taken_by = "this peer's dLegerPeers";
    }
    if (taken_by.empty()) return;
    Fault("metricsPromExporterPort",
          std::to_string(c.metrics_port) + " is the port of " + taken_by + "; choose another");
  }

  // A fault that no single value's check could see.
  void Fault(const std::string& key, const std::string& what) {
    std::string where = source_.file;
    const std::string spelling = BrokerConfigTable().SpellingIn(properties_, key);
    const auto* entry = properties_.Find(spelling);
    if (entry != nullptr && entry->line > 0) where += ":" + std::to_string(entry->line);
    loaded_.faults.push_back((where.empty() ? "" : where + ": ") + spelling + ": " + what);
  }
  bool Given(const std::string& key) const { return properties_.Find(key) != nullptr; }

  void ReadFile() {
    config().config_file = source_.file;
    auto parsed = Properties::Parse(source_.text);
    if (!parsed.ok()) {
      loaded_.faults.push_back(source_.file + ": " + std::string(parsed.status().message()));
      return;
    }
    properties_ = std::move(parsed.value());
    ConfigReport report = BrokerConfigTable().Apply(properties_, source_.file, &config());
    for (const ConfigFault& fault : report.faults) loaded_.faults.push_back(fault.ToString());
    loaded_.unknown_keys = report.unknown.size();
    std::string aliases;
    for (std::string& warning : report.warnings) {
      const auto at = warning.find(" is read as ");
      if (at == std::string::npos) {
        loaded_.warnings.push_back(std::move(warning));
        continue;
      }
      aliases += (aliases.empty() ? "" : ", ") + warning.substr(0, warning.rfind(": "));
    }
    if (!aliases.empty()) loaded_.notes.push_back(aliases);
    if (!report.no_effect.empty()) {
      std::string keys;
      for (const std::string& key : report.no_effect) keys += " " + key;
      loaded_.notes.push_back(source_.file + ": accepted, without effect here:" + keys);
    }
    config().listen_port_given = Given("listenPort");
  }

  // Whoever relies on them must not find out by being robbed.
  void CheckAccessRules() {
    for (const char* key : {"aclEnable", "authenticationEnabled", "authorizationEnabled"}) {
      const auto* entry = properties_.Find(key);
      if (entry == nullptr || !SaysTrue(entry->value)) continue;
      Fault(key,
            "there are no users and access rules here yet: everybody who reaches the ports may do "
            "everything; expected false, with the ports open to trusted machines alone");
    }
    const auto* tls = properties_.Find("useTLS");
    if (tls != nullptr && SaysTrue(tls->value)) {
      Fault("useTLS",
            "there is no TLS here yet: what is sent can be read on the way; expected false, with a "
            "network of its own or a tunnel");
    }
  }

  void CompleteGroup() {
    if (Given("brokerRole")) {
      loaded_.notes.push_back("brokerRole is ignored in a group: the group elects its leader");
    }
    if (Given("brokerId") && config().broker_id > 0) {
      loaded_.notes.push_back(
          "brokerId is ignored in a group: 0 for the leader, the peer number + 1 for a follower");
    }
    auto members = ParseGroupMembers(config().dledger_peers);
    if (!members.ok()) {
      Fault("dLegerPeers", std::string(members.status().message()));
      return;
    }
    config().members = std::move(members.value());
    if (config().members.size() == 2) {
      loaded_.warnings.push_back(
          "dLegerPeers has two members: losing either of them stops writes; three are usual");
    }
    for (const GroupMember& member : config().members) {
      if (member.id.value() != config().dledger_self_id) continue;
      config().self = member.id;
      config().follower_id = member.number + 1;
      if (!config().listen_port_given && SharesItsHost(member)) ChoosePort(member);
    }
    CheckPreferredLeader();
    if (config().self.empty()) {
      Fault("dLegerSelfId", "\"" + config().dledger_self_id +
                                "\" is not one of dLegerPeers: " + config().dledger_peers);
    }
  }

  // Members may come and go while the group runs, so this is no reason not to start.
  void CheckPreferredLeader() {
    const std::string& preferred = config().preferred_leader_id;
    for (const GroupMember& member : config().members) {
      if (member.id.value() == preferred) return;
    }
    if (preferred.empty()) return;
    loaded_.warnings.push_back("preferredLeaderId: \"" + preferred +
                               "\" is not one of dLegerPeers: " + config().dledger_peers);
  }

  bool SharesItsHost(const GroupMember& self) {
    for (const GroupMember& other : config().members) {
      if (other.id != self.id && other.host == self.host) return true;
    }
    return false;
  }

  // Several peers on one host and no listenPort: one file serves all of them.
  void ChoosePort(const GroupMember& self) {
    const std::int64_t port = kDefaultPort + 10LL * self.number;
    if (port > 65535) {
      Fault("listenPort", "is needed: members share this host, and 10911 + 10 x " +
                              std::to_string(self.number) + " is no port");
      return;
    }
    config().listen_port = static_cast<std::int32_t>(port);
  }

  void CompleteAlone() {
    if (config().broker_role == BrokerRole::kSlave) {
      Fault("brokerRole",
            "SLAVE needs a master to copy from, which does not exist here; for replicas set "
            "enableDLegerCommitLog=true with dLegerPeers and dLegerSelfId");
    }
    if (config().broker_id > 0) {
      Fault("brokerId",
            "a broker alone is 0; for replicas set enableDLegerCommitLog=true with dLegerPeers "
            "and dLegerSelfId");
    }
    config().members = {{PeerId("n0"), "127.0.0.1", 0, 0}};
    config().self = PeerId("n0");
    config().follower_id = 1;
  }

  void CompleteDefaults() {
    BrokerConfig& c = config();
    if (c.dledger_group.empty()) c.dledger_group = c.broker_name;
    if (c.ha_listen_port == 0) c.ha_listen_port = std::min(c.listen_port + 1, 65535);
    if (c.store_root.empty()) {
      c.store_root = (source_.home.empty() ? "." : source_.home) + "/store";
      // Peers on one host share the default root without sharing a store.
      if (c.members.size() > 1) c.store_root += "/store-" + c.self.value();
    }
    if (c.flush == FlushDiskType::kAsyncFlush && c.members.size() == 1) {
      loaded_.warnings.push_back(
          "flushDiskType=ASYNC_FLUSH on a single peer: a power loss loses acknowledged messages");
    }
  }

  // What elections cost: too early ones, or clients that wait for a late one.
  void CheckTiming() {
    const std::chrono::milliseconds heartbeat = config().raft_heartbeat;
    const std::chrono::milliseconds timeout = config().raft_election_timeout;
    const auto warn = [this](const std::string& what) { loaded_.warnings.push_back(what); };
    const std::string is = "dLegerElectionTimeoutMs=" + std::to_string(timeout.count());
    if (heartbeat >= timeout) {
      return Fault("dLegerHeartbeatIntervalMs",
                   std::to_string(heartbeat.count()) + " is not below " + is +
                       ": followers would call elections without end; at most a third is expected");
    }
    if (heartbeat * 3 > timeout) {
      warn(
          "dLegerHeartbeatIntervalMs is more than a third of dLegerElectionTimeoutMs: one late "
          "heartbeat may start an election");
    }
    if (timeout < kElectionTimeoutLow) {
      warn(is + " is short: it must be longer than three round trips between the peers and the " +
           "slowest sync of their disks, or a healthy leader is deposed now and then; " +
           std::to_string(kElectionTimeoutLow.count()) + " or more is expected");
    }
    if (timeout > kElectionTimeoutHigh) {
      warn(is +
           " is long: for up to twice as long nobody leads when a leader dies, while clients " +
           "give up a send after " + std::to_string(kElectionTimeoutHigh.count()) + " ms");
    }
  }

  void CheckLeaderAddress() {
    const BrokerConfig& c = config();
    if (c.leader_ip.empty()) {
      if (!c.leader_ip_interface.empty()) {
        Fault("leaderIPInterface", "has no meaning without leaderIP");
      }
      return;
    }
    in_addr parsed{};
    if (::inet_pton(AF_INET, c.leader_ip.c_str(), &parsed) != 1) {
      Fault("leaderIP", "\"" + c.leader_ip + "\" is no IPv4 address; expected one like 10.0.0.100");
      return;
    }
    const std::uint32_t first = ::ntohl(parsed.s_addr) >> 24;
    if (first == 0 || first == 127 || first >= 224) {
      Fault("leaderIP", c.leader_ip + " is no address of one machine in a network (loopback, " +
                            "multicast or reserved); expected one like 10.0.0.100");
    }
    if (!c.enable_dledger) {
      Fault("leaderIP", "is for a group; a broker alone needs brokerIP1 only");
    }
    bool is_a_peers = c.leader_ip == c.broker_ip1;
    for (const GroupMember& member : c.members) is_a_peers |= member.host == c.leader_ip;
    if (is_a_peers) {
      Fault("leaderIP", c.leader_ip +
                            " is a peer's own address (brokerIP1, dLegerPeers); expected one that "
                            "no machine has");
    }
    if (c.bind_address != "0.0.0.0") {
      Fault("leaderIP",
            "nobody would listen on it: bindAddress is " + c.bind_address + ", expected 0.0.0.0");
    }
  }

  const BrokerConfigSource& source_;
  Properties properties_;
  LoadedBrokerConfig loaded_;
};

}  // namespace

LoadedBrokerConfig LoadBrokerConfig(const BrokerConfigSource& source) {
  return Loader(source).Load();
}

std::string BrokerConfig::FullClientAddress() const {
  const bool v6 = broker_ip1.find(':') != std::string::npos;
  return (v6 ? "[" + broker_ip1 + "]" : broker_ip1) + ":" + std::to_string(listen_port);
}

std::string BrokerConfig::LeaderAddress() const {
  return leader_ip.empty() ? FullClientAddress() : leader_ip + ":" + std::to_string(listen_port);
}

Result<std::vector<int>> ParseHours(const std::string& text) {
  std::vector<int> hours;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(';', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    int hour = -1;
    const auto [stop, error] = std::from_chars(item.data(), item.data() + item.size(), hour);
    if (error != std::errc() || stop != item.data() + item.size() || hour < 0 || hour > 23) {
      return Status::InvalidArgument("\"" + item + "\" is no hour of the day");
    }
    hours.push_back(hour);
  }
  return hours;
}

Result<std::vector<std::int64_t>> ParseDelayLevels(const std::string& text) {
  std::vector<std::int64_t> levels;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(' ', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    if (item.empty()) continue;
    std::int64_t amount = 0;
    const auto [stop, error] = std::from_chars(item.data(), item.data() + item.size(), amount);
    const std::string unit(stop, static_cast<std::size_t>(item.data() + item.size() - stop));
    std::int64_t factor = 0;
    if (unit == "s") factor = 1000;
    if (unit == "m") factor = 60 * 1000;
    if (unit == "h") factor = 3600 * 1000;
    if (unit == "d") factor = 24LL * 3600 * 1000;
    if (error != std::errc() || factor == 0 || amount < 0 || amount > 100000) {
      return Status::InvalidArgument("\"" + item + "\" is no delay like 1s, 5m, 2h, 1d");
    }
    levels.push_back(amount * factor);
  }
  if (levels.empty() || levels.size() > kDelayLevelsMax) {
    return Status::InvalidArgument("1 to 64 delay levels are needed");
  }
  return levels;
}

}  // namespace triad::broker
