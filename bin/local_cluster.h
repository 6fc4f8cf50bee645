// LocalCluster: a NameServer and a broker group as real processes on this machine, on free ports,
// in one directory.
//
// For bin/quickstart and the tests. Configuration files are made from conf/dledger/broker-n*.conf
// with only the addresses, paths and given keys replaced. Every process it started ends with it
// (unless Release was called). Thread: one thread at a time. Errors: kIoError (cannot write,
// start), kTimedOut (the message ends with the last lines of the process's log).

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "remoting/client.h"

namespace triad {

// Where one process runs: its address, what is put in front of its command line (e.g. "ip netns
// exec b1"), and for a broker the directory of its store (empty: one in work_dir) and the name that
// its peers know it by (empty: its address).
struct LocalHost {
  std::string address = "127.0.0.1";
  std::vector<std::string> wrapper;
  std::string store_dir;
  std::string peer_name{};
};

struct LocalClusterOptions {
  std::string program_dir;  // holds triad-namesrv and triad-broker
  std::string conf_dir;     // holds dledger/broker-n0.conf ...
  std::string work_dir;     // absolute; created when absent
  int peers = 3;
  // broker.conf keys for every peer; namesrvAddr: NameServers beside the cluster's own.
  std::map<std::string, std::string> overrides;
  LocalHost namesrv_host;
  std::vector<LocalHost> hosts;  // one per peer; empty: all on the loopback
};

struct LocalBroker {
  std::string peer_id;  // "n0"
  std::string config_file;
  std::string store_dir;
  std::string log_file;  // stdout and stderr
  LocalHost host;
  std::string client_address;  // "127.0.0.1:port"
  std::uint16_t listen_port = 0;
  std::uint16_t peer_port = 0;
  std::uint16_t metrics_port = 0;  // 0: `overrides` say nothing of metricsExporterType
  pid_t pid = 0;                   // 0 = not running
};

class LocalCluster {
 public:
  // Writes the files and starts everything; returns when a leader serves.
  static Result<std::unique_ptr<LocalCluster>> Start(LocalClusterOptions options);
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  const std::string& namesrv_address() const { return namesrv_address_; }
  const std::string& broker_name() const { return broker_name_; }
  const std::vector<LocalBroker>& brokers() const { return brokers_; }
  pid_t namesrv_pid() const { return namesrv_pid_; }

  // One more peer, not started and no member yet: its dLegerPeers names itself and everybody else.
  // Its index; its id is a new one.
  Result<std::size_t> AddBroker(LocalHost host = {});
  // Forgets `gone`, which does not run and is no member any more; `newcomer` gets its index, and
  // all files name the peers that are left.
  Status TakePlace(std::size_t newcomer, std::size_t gone);
  Status StartBroker(std::size_t i);
  Status StartNameServer();  // on the same port as before
  // Sends the signal; SIGKILL and SIGTERM also wait for the end (at most `wait`). Returns the exit
  // status for those.
  Result<int> Signal(std::size_t i, int signal,
                     std::chrono::milliseconds wait = std::chrono::seconds(60));
  void KillNameServer();
  bool Running(std::size_t i);

  // The peer that the NameServer lists as brokerId 0 and that answers. kTimedOut when there is none
  // within `wait`.
  Result<std::size_t> WaitForLeader(std::chrono::milliseconds wait);
  // Until the NameServer lists all running peers.
  Status WaitForMembers(std::size_t count, std::chrono::milliseconds wait);
  // Ends all processes with SIGTERM, then SIGKILL.
  void StopAll();
  // Leaves the processes running after this object.
  void Release() { released_ = true; }

  // The last lines of a process's log, for messages.
  static std::string Tail(const std::string& file, std::size_t lines = 12);

 private:
  explicit LocalCluster(LocalClusterOptions options);
  Status Prepare();
  LocalBroker MakeBroker(LocalHost host);
  Status WriteBrokerConfig(std::size_t i);
  Result<pid_t> Spawn(const LocalHost& host, const std::vector<std::string>& command,
                      const std::string& log_file);
  // id -> address of our broker name, as the NameServer says.
  Result<std::map<std::string, std::string>> ListedAddresses();

  LocalClusterOptions options_;
  std::string namesrv_address_;
  std::uint16_t namesrv_port_ = 0;
  std::uint16_t next_port_ = 0;  // to be tried
  int next_peer_ = 0;            // the number in its id
  pid_t namesrv_pid_ = 0;
  std::string broker_name_ = "RaftNode00";
  std::vector<LocalBroker> brokers_;
  std::unique_ptr<remoting::Client> client_;
  bool released_ = false;
};

}  // namespace triad
