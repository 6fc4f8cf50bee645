#include "bin/local_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>

#include "common/file_system.h"
#include "remoting/codes.h"
#include "remoting/json.h"

namespace triad {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kPollInterval{50};

void Pause() {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable never;
  never.wait_for(lock, kPollInterval, [] { return false; });
}

bool PortIsFree(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const bool free = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return free;
}

// Among all processes that pick ports here, until this one ends: a broker that is down keeps its
// own. A name in the abstract namespace of Unix sockets goes with its process.
bool Reserve(std::uint16_t port) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = "triad-port-" + std::to_string(port);
  text.copy(name.sun_path + 1, text.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&name), bytes) == 0) return true;
  if (fd >= 0) ::close(fd);
  return false;
}

bool IsPickable(std::uint16_t port) {
  return PortIsFree(port) && Reserve(port);
}

// A port p such that p and p - 2 (the VIP port) are free, outside the ephemeral range, so that no
// outgoing connection takes it between two starts of the same broker.
std::uint16_t PickPort(std::uint16_t* next) {
  for (int tries = 0; tries < 20000; ++tries) {
    const std::uint16_t port = *next;
    *next = port >= 31900 ? 12000 : static_cast<std::uint16_t>(port + 5);
    if (IsPickable(port) && IsPickable(static_cast<std::uint16_t>(port - 2))) return port;
  }
  LOG(FATAL) << "no free port between 12000 and 31900";
  return 0;
}

// `line` sets `key`, by the properties syntax our own conf files use (key=value or key = value).
bool SetsKey(const std::string& line, const std::string& key) {
  if (line.compare(0, key.size(), key) != 0) return false;
  const std::size_t at = line.find_first_not_of(" \t", key.size());
  return at != std::string::npos && line[at] == '=';
}

std::string ReplaceKeys(const std::string& text, std::map<std::string, std::string> values) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    for (auto it = values.begin(); it != values.end(); ++it) {
      if (!SetsKey(line, it->first)) continue;
      line = it->first + "=" + it->second;
      values.erase(it);
      break;
    }
    out += line + "\n";
  }
  for (const auto& [key, value] : values) out += key + "=" + value + "\n";
  return out;
}

// The dLegerSelfId of whoever answers there; empty: nobody does.
std::string PeerIdAt(remoting::Client* client, const std::string& address) {
  const Result<remoting::Command> answer = client->CallSync(
      address, remoting::Command::Request(remoting::kGetBrokerConfig), milliseconds(200));
  if (!answer.ok()) return {};
  const std::string key = "\ndLegerSelfId=";
  const std::size_t begin = answer->body.find(key);
  if (begin == std::string::npos) return {};
  const std::size_t end = answer->body.find('\n', begin + 1);
  return answer->body.substr(begin + key.size(), end - begin - key.size());
}

}  // namespace

LocalCluster::LocalCluster(LocalClusterOptions options) : options_(std::move(options)) {
  client_ = remoting::CreateClient({}, {});
}

LocalCluster::~LocalCluster() {
  if (!released_) StopAll();
  client_->Stop();
}

Result<std::unique_ptr<LocalCluster>> LocalCluster::Start(LocalClusterOptions options) {
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(std::move(options)));
  TRIAD_RETURN_IF_ERROR(cluster->Prepare());
  TRIAD_RETURN_IF_ERROR(cluster->StartNameServer());
  for (std::size_t i = 0; i < cluster->brokers_.size(); ++i) {
    TRIAD_RETURN_IF_ERROR(cluster->StartBroker(i));
  }
  Result<std::size_t> leader = cluster->WaitForLeader(std::chrono::seconds(60));
  if (!leader.ok()) return leader.status();
  TRIAD_RETURN_IF_ERROR(
      cluster->WaitForMembers(cluster->brokers_.size(), std::chrono::seconds(30)));
  return cluster;
}

Status LocalCluster::Prepare() {
  if (!options_.hosts.empty() &&
      options_.hosts.size() != static_cast<std::size_t>(options_.peers)) {
    return Status::InvalidArgument(std::to_string(options_.hosts.size()) + " hosts for " +
                                   std::to_string(options_.peers) + " peers");
  }
  TRIAD_RETURN_IF_ERROR(PosixFileSystem().CreateDirs(options_.work_dir));
  next_port_ = static_cast<std::uint16_t>(12000 + (::getpid() * 37) % 19000);
  namesrv_port_ = PickPort(&next_port_);
  namesrv_address_ = options_.namesrv_host.address + ":" + std::to_string(namesrv_port_);
  for (int i = 0; i < options_.peers; ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    brokers_.push_back(MakeBroker(options_.hosts.empty() ? LocalHost{} : options_.hosts[at]));
  }
  for (std::size_t i = 0; i < brokers_.size(); ++i) TRIAD_RETURN_IF_ERROR(WriteBrokerConfig(i));
  return WriteFileAtomically(PosixFileSystem(), options_.work_dir + "/namesrv.conf",
                             "listenPort=" + std::to_string(namesrv_port_) +
                                 "\nbindAddress=" + options_.namesrv_host.address +
                                 "\nkvConfigPath=" + options_.work_dir +
                                 "/namesrv/kvConfig.json\n");
}

LocalBroker LocalCluster::MakeBroker(LocalHost host) {
  LocalBroker broker;
  broker.peer_id = "n" + std::to_string(next_peer_++);
  // The leader's address is the same wherever it is, with its port.
  const bool same_port = options_.overrides.contains("leaderIP") && !brokers_.empty();
  broker.listen_port = same_port ? brokers_[0].listen_port : PickPort(&next_port_);
  broker.peer_port = PickPort(&next_port_);
  if (options_.overrides.contains("metricsExporterType")) {
    broker.metrics_port = PickPort(&next_port_);
  }
  broker.host = std::move(host);
  broker.client_address = broker.host.address + ":" + std::to_string(broker.listen_port);
  broker.config_file = options_.work_dir + "/broker-" + broker.peer_id + ".conf";
  broker.store_dir = broker.host.store_dir.empty() ? options_.work_dir + "/" + broker.peer_id
                                                   : broker.host.store_dir;
  broker.log_file = options_.work_dir + "/" + broker.peer_id + ".log";
  return broker;
}

Result<std::size_t> LocalCluster::AddBroker(LocalHost host) {
  const std::size_t i = brokers_.size();
  brokers_.push_back(MakeBroker(std::move(host)));
  TRIAD_RETURN_IF_ERROR(WriteBrokerConfig(i));
  return i;
}

Status LocalCluster::TakePlace(std::size_t newcomer, std::size_t gone) {
  if (Running(gone)) return Status::InvalidArgument(brokers_[gone].peer_id + " still runs");
  brokers_[gone] = std::move(brokers_[newcomer]);
  brokers_.erase(brokers_.begin() + static_cast<std::ptrdiff_t>(newcomer));
  for (std::size_t i = 0; i < brokers_.size(); ++i) TRIAD_RETURN_IF_ERROR(WriteBrokerConfig(i));
  return Status::Ok();
}

Status LocalCluster::WriteBrokerConfig(std::size_t i) {
  const LocalBroker& broker = brokers_[i];
  const std::string from = options_.conf_dir + "/dledger/broker-n" +
                           std::to_string(std::min<std::size_t>(i, 2)) + ".conf";
  Result<std::string> text = ReadFile(PosixFileSystem(), from);
  if (!text.ok()) return text.status();
  std::string peers;
  for (const LocalBroker& peer : brokers_) {
    if (!peers.empty()) peers += ";";
    const LocalHost& host = peer.host;
    peers += peer.peer_id + "-" + (host.peer_name.empty() ? host.address : host.peer_name) + ":" +
             std::to_string(peer.peer_port);
  }
  std::map<std::string, std::string> values = options_.overrides;
  values["brokerName"] = broker_name_;
  values["listenPort"] = std::to_string(broker.listen_port);
  values["brokerIP1"] = broker.host.address;
  std::string& name_servers = values["namesrvAddr"];  // overridden: further ones
  name_servers = namesrv_address_ + (name_servers.empty() ? "" : ";") + name_servers;
  values["storePathRootDir"] = broker.store_dir;
  values["dLegerPeers"] = peers;
  values["dLegerSelfId"] = broker.peer_id;
  if (broker.metrics_port > 0) {
    values["metricsPromExporterPort"] = std::to_string(broker.metrics_port);
  }
  return WriteFileAtomically(PosixFileSystem(), broker.config_file,
                             ReplaceKeys(*text, std::move(values)));
}

Result<pid_t> LocalCluster::Spawn(const LocalHost& host, const std::vector<std::string>& command,
                                  const std::string& log_file) {
  std::vector<std::string> words = host.wrapper;
  words.insert(words.end(), command.begin(), command.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return Status::IoError("cannot open " + log_file + ": " + std::strerror(errno));
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);  // a Ctrl-C at the terminal is for the parent; it ends us in order
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, STDIN_FILENO);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(log);
  if (pid < 0) return Status::IoError(std::string("fork failed: ") + std::strerror(errno));
  return pid;
}

Status LocalCluster::StartNameServer() {
  const std::string log = options_.work_dir + "/namesrv.log";
  Result<pid_t> pid = Spawn(
      options_.namesrv_host,
      {options_.program_dir + "/triad-namesrv", "-c", options_.work_dir + "/namesrv.conf"}, log);
  if (!pid.ok()) return pid.status();
  namesrv_pid_ = *pid;
  const auto end = SteadyClock::now() + std::chrono::seconds(20);
  while (SteadyClock::now() < end) {
    if (ListedAddresses().ok()) return Status::Ok();
    if (::waitpid(namesrv_pid_, nullptr, WNOHANG) == namesrv_pid_) {
      namesrv_pid_ = 0;
      return Status::Unavailable("the NameServer ended at its start:\n" + Tail(log));
    }
    Pause();
  }
  return Status::TimedOut("the NameServer does not answer at " + namesrv_address_ + ":\n" +
                          Tail(log));
}

Status LocalCluster::StartBroker(std::size_t i) {
  LocalBroker& broker = brokers_[i];
  if (Running(i)) return Status::AlreadyExists(broker.peer_id + " is running");
  Result<pid_t> pid =
      Spawn(broker.host, {options_.program_dir + "/triad-broker", "-c", broker.config_file},
            broker.log_file);
  if (!pid.ok()) return pid.status();
  broker.pid = *pid;
  return Status::Ok();
}

bool LocalCluster::Running(std::size_t i) {
  LocalBroker& broker = brokers_[i];
  if (broker.pid == 0) return false;
  if (::waitpid(broker.pid, nullptr, WNOHANG) == 0) return true;
  broker.pid = 0;
  return false;
}

Result<int> LocalCluster::Signal(std::size_t i, int signal, milliseconds wait) {
  LocalBroker& broker = brokers_[i];
  if (broker.pid == 0) return Status::NotFound(broker.peer_id + " is not running");
  if (::kill(broker.pid, signal) != 0) {
    return Status::IoError("cannot signal " + broker.peer_id + ": " + std::strerror(errno));
  }
  if (signal != SIGKILL && signal != SIGTERM) return 0;
  const auto end = SteadyClock::now() + wait;
  int status = 0;
  while (::waitpid(broker.pid, &status, WNOHANG) == 0) {
    if (SteadyClock::now() > end)
      return Status::TimedOut(broker.peer_id + " does not end:\n" + Tail(broker.log_file));
    Pause();
  }
  broker.pid = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void LocalCluster::KillNameServer() {
  if (namesrv_pid_ == 0) return;
  ::kill(namesrv_pid_, SIGKILL);
  ::waitpid(namesrv_pid_, nullptr, 0);
  namesrv_pid_ = 0;
}

Result<std::map<std::string, std::string>> LocalCluster::ListedAddresses() {
  Result<remoting::Command> answer = client_->CallSync(
      namesrv_address_, remoting::Command::Request(remoting::kGetBrokerClusterInfo),
      milliseconds(2000));
  if (!answer.ok()) return answer.status();
  Result<remoting::Json> body = remoting::Json::Parse(answer->body);
  if (!body.ok()) return body.status();
  std::map<std::string, std::string> addresses;
  for (const remoting::Json::Member& member :
       (*body)["brokerAddrTable"][broker_name_]["brokerAddrs"].members()) {
    addresses[member.key] = member.value.AsString();
  }
  return addresses;
}

Result<std::size_t> LocalCluster::WaitForLeader(milliseconds wait) {
  const bool moves = options_.overrides.contains("leaderIP");  // the leader's address
  const auto end = SteadyClock::now() + wait;
  while (SteadyClock::now() < end) {
    Result<std::map<std::string, std::string>> listed = ListedAddresses();
    if (listed.ok() && listed->contains("0")) {
      const std::string id = moves ? PeerIdAt(client_.get(), (*listed)["0"]) : "";
      for (std::size_t i = 0; i < brokers_.size(); ++i) {
        const bool leads =
            moves ? brokers_[i].peer_id == id : brokers_[i].client_address == (*listed)["0"];
        if (leads && Running(i)) return i;
      }
    }
    for (std::size_t i = 0; i < brokers_.size(); ++i) {
      if (brokers_[i].pid != 0 && !Running(i)) {
        return Status::Unavailable("peer " + brokers_[i].peer_id + " ended:\n" +
                                   Tail(brokers_[i].log_file));
      }
    }
    Pause();
  }
  std::string logs;
  for (const LocalBroker& broker : brokers_)
    logs += broker.peer_id + ":\n" + Tail(broker.log_file, 6);
  return Status::TimedOut("no leader within " + std::to_string(wait.count()) + " ms\n" + logs);
}

Status LocalCluster::WaitForMembers(std::size_t count, milliseconds wait) {
  const auto end = SteadyClock::now() + wait;
  std::size_t listed_count = 0;
  while (SteadyClock::now() < end) {
    Result<std::map<std::string, std::string>> listed = ListedAddresses();
    listed_count = listed.ok() ? listed->size() : 0;
    if (listed_count >= count && listed->contains("0")) return Status::Ok();
    Pause();
  }
  return Status::TimedOut("the NameServer lists " + std::to_string(listed_count) + " of " +
                          std::to_string(count) + " peers");
}

void LocalCluster::StopAll() {
  for (LocalBroker& broker : brokers_) {
    if (broker.pid != 0) ::kill(broker.pid, SIGCONT);
    if (broker.pid != 0) ::kill(broker.pid, SIGTERM);
  }
  // A second SIGTERM skips the wait for clients to move away: nobody is left to move to.
  for (LocalBroker& broker : brokers_) {
    if (broker.pid != 0) ::kill(broker.pid, SIGTERM);
  }
  const auto end = SteadyClock::now() + std::chrono::seconds(5);
  for (std::size_t i = 0; i < brokers_.size(); ++i) {
    while (Running(i) && SteadyClock::now() < end) Pause();
    if (!Running(i)) continue;
    ::kill(brokers_[i].pid, SIGKILL);
    ::waitpid(brokers_[i].pid, nullptr, 0);
    brokers_[i].pid = 0;
  }
  KillNameServer();
}

std::string LocalCluster::Tail(const std::string& file, std::size_t lines) {
  std::ifstream in(file);
  std::deque<std::string> last;
  for (std::string line; std::getline(in, line);) {
    last.push_back("  | " + line + "\n");
    if (last.size() > lines) last.pop_front();
  }
  std::string out;
  for (const std::string& line : last) out += line;
  return out;
}

}  // namespace triad
