#include "broker/service/registration.h"

#include <glog/logging.h>

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <list>
#include <mutex>
#include <set>
#include <utility>

#include "broker/service/config_bodies.h"
#include "common/java_crc32.h"
#include "common/log_rate_limiter.h"
#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::broker {
namespace {

constexpr std::chrono::milliseconds kTick{1000};
constexpr std::chrono::milliseconds kConfirmTimeout{2000};
constexpr std::chrono::milliseconds kHeartbeatTimeout{3000};
// A name server drops us after so long without a sign of life (wire.md §3.4).
constexpr std::int64_t kExpiryMs = 10000;
// A 5.x name server refuses a first table of exactly one topic.
constexpr std::size_t kTopicsMin = 2;
constexpr std::int64_t kLeaderId = 0;

remoting::Command Unregistration(const BrokerConfig& config, std::int64_t broker_id) {
  remoting::BrokerIdentityRequest header;
  header.broker_id = broker_id;
  header.broker_name = config.broker_name;
  header.broker_addr = config.FullClientAddress();
  header.cluster_name = config.cluster_name;
  remoting::Command request = remoting::Command::Request(remoting::kUnregisterBroker);
  header.Encode(&request.ext);
  return request;
}

}  // namespace

std::vector<std::string> SplitAddressList(const std::string& list) {
  std::vector<std::string> addresses;
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(';', begin), list.size());
    const std::string item(TrimBlanks(std::string_view(list).substr(begin, end - begin)));
    begin = end + 1;
    if (item.empty()) continue;
    if (std::find(addresses.begin(), addresses.end(), item) == addresses.end()) {
      addresses.push_back(item);
    }
  }
  return addresses;
}

struct Registration::Shared : std::enable_shared_from_this<Shared> {
  Shared(const BrokerConfig& cfg, const Clock& c, TimerQueue& t, remoting::Client& cl,
         const ReplicatedState& s, LeaderReads& r)
      : config(cfg), clock(c), timers(t), client(cl), state(s), reads(r) {}

  struct Server {
    std::string address;
    std::uint64_t version = 0;  // of what it was told last
    TimePoint registered_at;
    std::int64_t told_id = -1;  // the brokerId of the last registration
    bool registering = false;
    bool beating = false;
    bool failed = false;           // the last attempt; tried again every tick
    bool takes_heartbeats = true;  // until it answers 3
    bool dropped = false;          // not in the list any more; its place is kept
  };
  struct Waiter {
    std::uint64_t version = 0;
    std::set<std::size_t> open;  // servers that have neither got it nor failed
    std::function<void()> done;
  };

  void Tick();
  void Kick();
  void Register(std::size_t index);
  void Send(std::size_t index, std::uint64_t at, std::int64_t broker_id, Term term);
  void OnRegistered(std::size_t index, std::uint64_t at, std::int64_t broker_id,
                    const Result<remoting::Command>& answer);
  void Finish(std::size_t index, std::uint64_t at, bool ok);
  void Heartbeat(std::size_t index);
  void OnHeartbeat(std::size_t index, const Result<remoting::Command>& answer);
  std::vector<std::function<void()>> TakeServed(std::size_t index, std::uint64_t at);
  void Bump();
  std::string HaAddress() const;

  const BrokerConfig& config;
  const Clock& clock;
  TimerQueue& timers;
  remoting::Client& client;
  const ReplicatedState& state;
  LeaderReads& reads;

  std::mutex mutex;
  std::vector<Server> servers;
  std::uint64_t version = 1;
  dledger::LeaderInfo info;
  bool member = false;  // has been a registered member of the group
  bool aside = false;
  bool started = false;
  bool stopped = false;
  std::int64_t last_id = -1;
  std::list<Waiter> waiters;
};

void Registration::Shared::Bump() {
  {
    const std::lock_guard lock(mutex);
    ++version;
    if (!started || stopped) return;
  }
  timers.Schedule(std::chrono::milliseconds(0), [self = shared_from_this()] { self->Kick(); });
}

void Registration::Shared::Kick() {
  std::vector<std::size_t> behind;
  {
    const std::lock_guard lock(mutex);
    if (stopped) return;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      if (servers[i].dropped) continue;
      if (!servers[i].registering && servers[i].version < version) behind.push_back(i);
    }
  }
  for (const std::size_t index : behind) Register(index);
}

void Registration::Shared::Tick() {
  std::vector<std::size_t> to_register;
  std::vector<std::size_t> to_beat;
  const TimePoint now = clock.MonoNow();
  const auto period = std::clamp(config.register_period, std::chrono::milliseconds(10000),
                                 std::chrono::milliseconds(60000));
  {
    const std::lock_guard lock(mutex);
    if (stopped) return;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      Server& server = servers[i];
      if (server.registering || server.dropped) continue;
      if (server.failed || server.version < version || now - server.registered_at >= period) {
        to_register.push_back(i);
      } else if (server.takes_heartbeats && !server.beating) {
        server.beating = true;
        to_beat.push_back(i);
      }
    }
  }
  for (const std::size_t index : to_register) Register(index);
  for (const std::size_t index : to_beat) Heartbeat(index);
  timers.Schedule(kTick, [self = shared_from_this()] { self->Tick(); });
}

void Registration::Shared::Register(std::size_t index) {
  dledger::LeaderInfo now;
  std::uint64_t at = 0;
  bool as_leader = false;
  {
    const std::lock_guard lock(mutex);
    if (stopped || servers[index].registering) return;
    now = info;
    at = version;
    as_leader = now.ready && !aside;
    const bool as_follower = member || (!now.leader.empty() && !now.recovering);
    // Somebody who never was part of the group does not belong into its route.
    if (!as_leader && !as_follower) return;
    servers[index].registering = true;
  }
  if (state.Topics().size() < kTopicsMin) {
    Finish(index, at, false);  // behind the leader still; the next tick tries again
    return;
  }
  if (!as_leader) {
    Send(index, at, config.follower_id, now.term);
    return;
  }
  reads.Confirm(kConfirmTimeout,
                [self = shared_from_this(), index, at, term = now.term](const Status& confirmed) {
                  if (confirmed.ok()) {
                    self->Send(index, at, kLeaderId, term);
                  } else {
                    self->Finish(index, at, false);
                  }
                });
}

std::string Registration::Shared::HaAddress() const {
  const std::string& ip = config.broker_ip2.empty() ? config.broker_ip1 : config.broker_ip2;
  return ip + ":" + std::to_string(config.ha_listen_port);
}

void Registration::Shared::Send(std::size_t index, std::uint64_t at, std::int64_t broker_id,
                                Term term) {
  remoting::RegisterBrokerBody body;
  body.topics =
      TopicTable(state, static_cast<std::int64_t>(term.value()), config.broker_permission);
  remoting::Command request = remoting::Command::Request(remoting::kRegisterBroker);
  request.body = body.Encode();
  remoting::RegisterBrokerRequest header;
  header.broker_name = config.broker_name;
  header.broker_addr = broker_id == kLeaderId ? config.LeaderAddress() : config.FullClientAddress();
  header.cluster_name = config.cluster_name;
  header.ha_server_addr = HaAddress();
  header.broker_id = broker_id;
  header.heartbeat_timeout_ms = kExpiryMs;
  header.enable_acting_master = false;
  header.body_crc32 = static_cast<std::int32_t>(JavaCrc32(request.body));
  header.Encode(&request.ext);
  std::string address;
  {
    const std::lock_guard lock(mutex);
    address = servers[index].address;
  }
  client.Call(address, std::move(request), config.register_timeout,
              [self = shared_from_this(), index, at, broker_id](Result<remoting::Command> answer) {
                self->OnRegistered(index, at, broker_id, answer);
              });
}

void Registration::Shared::OnRegistered(std::size_t index, std::uint64_t at, std::int64_t broker_id,
                                        const Result<remoting::Command>& answer) {
  const bool ok = answer.ok() && answer->code == remoting::kSuccess;
  std::string address;
  bool news = false;
  bool moved = false;  // from its own address to the leader's: a peer is listed once
  {
    const std::lock_guard lock(mutex);
    if (stopped) return;
    address = servers[index].address;
    Server& server = servers[index];
    moved = ok && broker_id == kLeaderId && server.told_id > kLeaderId && !config.leader_ip.empty();
    news = ok ? (server.failed || server.told_id != broker_id) : !server.failed;
    if (ok) {
      server.told_id = broker_id;
      member = true;
      last_id = broker_id;
    }
  }
  if (moved) {
    client.Call(address, Unregistration(config, config.follower_id), kHeartbeatTimeout,
                [](const Result<remoting::Command>& gone) {
                  IgnoreError(gone.status(), "it expires by itself");
                });
  }
  if (news && ok) {
    LOG(INFO) << "registered at name server " << address << " as brokerId " << broker_id;
  } else if (news) {
    LOG(WARNING) << "cannot register at name server " << address << ": "
                 << (answer.ok() ? "code " + std::to_string(answer->code) + " " + answer->remark
                                 : answer.status().ToString());
  }
  Finish(index, at, ok);
}

void Registration::Shared::Finish(std::size_t index, std::uint64_t at, bool ok) {
  bool again = false;
  {
    const std::lock_guard lock(mutex);
    Server& server = servers[index];
    server.registering = false;
    server.failed = !ok;
    if (ok) {
      server.version = at;
      server.registered_at = clock.MonoNow();
      again = !stopped && version > at;
    }
  }
  // A dead name server delays nobody: its failure counts as an answer.
  for (auto& done : TakeServed(index, ok ? at : std::numeric_limits<std::uint64_t>::max())) done();
  if (again) Register(index);
}

std::vector<std::function<void()>> Registration::Shared::TakeServed(std::size_t index,
                                                                    std::uint64_t at) {
  std::vector<std::function<void()>> served;
  const std::lock_guard lock(mutex);
  for (auto it = waiters.begin(); it != waiters.end();) {
    if (it->version <= at) it->open.erase(index);
    if (!it->open.empty()) {
      ++it;
      continue;
    }
    served.push_back(std::move(it->done));
    it = waiters.erase(it);
  }
  return served;
}

void Registration::Shared::Heartbeat(std::size_t index) {
  remoting::Command request = remoting::Command::Request(remoting::kBrokerHeartbeat);
  remoting::BrokerHeartbeatRequest header;
  header.cluster_name = config.cluster_name;
  header.broker_addr = config.FullClientAddress();
  header.broker_name = config.broker_name;
  header.heartbeat_timeout_ms = kExpiryMs;
  std::string address;
  {
    const std::lock_guard lock(mutex);
    address = servers[index].address;
    if (last_id >= 0) header.broker_id = last_id;
    // Somebody else's by now if this peer does not lead any more, which it may not know yet: our
    // name server compares the terms.
    if (last_id == kLeaderId && info.ready) header.broker_addr = config.LeaderAddress();
    header.epoch = static_cast<std::int32_t>(
        std::min<std::uint64_t>(info.term.value(), std::numeric_limits<std::int32_t>::max()));
  }
  header.Encode(&request.ext);
  client.Call(address, std::move(request), kHeartbeatTimeout,
              [self = shared_from_this(), index](Result<remoting::Command> answer) {
                self->OnHeartbeat(index, answer);
              });
}

void Registration::Shared::OnHeartbeat(std::size_t index, const Result<remoting::Command>& answer) {
  {
    const std::lock_guard lock(mutex);
    Server& server = servers[index];
    server.beating = false;
    if (!answer.ok()) {
      server.failed = true;  // registers again as soon as it is back
      return;
    }
    if (answer->code == remoting::kRequestCodeNotSupported) server.takes_heartbeats = false;
    if (answer->ext.BoolOr("registered", true)) return;
    server.version = 0;  // it has not what it was told: again, at once
  }
  Kick();
}

Registration::Registration(const BrokerConfig& config, const Clock& clock, TimerQueue& timers,
                           remoting::Client& client, const ReplicatedState& state,
                           LeaderReads& reads)
    : shared_(std::make_shared<Shared>(config, clock, timers, client, state, reads)) {
  for (std::string& address : SplitAddressList(config.namesrv_addr)) {
    shared_->servers.emplace_back().address = std::move(address);
  }
}

Registration::~Registration() = default;

void Registration::Start() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->started = true;
  }
  shared_->timers.Schedule(std::chrono::milliseconds(0), [shared = shared_] { shared->Tick(); });
}

void Registration::OnLeaderChange(const dledger::LeaderInfo& info) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->info = info;
  }
  shared_->Bump();
}

void Registration::OnTopicsChanged() {
  shared_->Bump();
}

void Registration::OnDisconnect(const std::string& address) {
  const std::lock_guard lock(shared_->mutex);
  for (auto& server : shared_->servers) {
    if (server.address == address) server.failed = true;
  }
}

void Registration::SetNameServers(const std::string& list) {
  const std::vector<std::string> addresses = SplitAddressList(list);
  {
    const std::lock_guard lock(shared_->mutex);
    for (auto& server : shared_->servers) server.dropped = true;
    for (const std::string& address : addresses) {
      const auto known = std::ranges::find(shared_->servers, address, &Shared::Server::address);
      if (known != shared_->servers.end()) {
        known->dropped = false;
      } else {
        shared_->servers.emplace_back().address = address;
      }
    }
  }
  shared_->Bump();
}

std::vector<std::string> Registration::name_servers() const {
  const std::lock_guard lock(shared_->mutex);
  std::vector<std::string> addresses;
  for (const auto& server : shared_->servers) {
    if (!server.dropped) addresses.push_back(server.address);
  }
  return addresses;
}

void Registration::RegisterNow(std::chrono::milliseconds timeout, std::function<void()> done) {
  std::list<Shared::Waiter>::iterator added;
  std::uint64_t at = 0;
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->stopped && shared_->started && !shared_->servers.empty()) {
      Shared::Waiter waiter;
      waiter.version = at = shared_->version + 1;
      for (std::size_t i = 0; i < shared_->servers.size(); ++i) {
        if (!shared_->servers[i].failed && !shared_->servers[i].dropped) waiter.open.insert(i);
      }
      if (!waiter.open.empty()) {
        waiter.done = std::move(done);
        done = nullptr;
        shared_->waiters.push_back(std::move(waiter));
      }
    }
  }
  shared_->Bump();
  if (done) {
    done();
    return;
  }
  shared_->timers.Schedule(timeout, [shared = shared_, at] {
    std::vector<std::function<void()>> late;
    {
      const std::lock_guard lock(shared->mutex);
      for (auto it = shared->waiters.begin(); it != shared->waiters.end();) {
        if (it->version > at) {
          ++it;
          continue;
        }
        late.push_back(std::move(it->done));
        it = shared->waiters.erase(it);
      }
    }
    for (auto& each : late) each();
  });
}

void Registration::StepAside() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->aside = true;
  }
  shared_->Bump();
}

void Registration::Stop(std::chrono::milliseconds timeout) {
  std::vector<std::string> addresses;
  std::int64_t broker_id = 0;
  std::list<Shared::Waiter> waiters;
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->stopped) return;
    shared_->stopped = true;
    waiters.swap(shared_->waiters);
    for (const auto& server : shared_->servers) {
      if (!server.failed && !server.dropped && server.version > 0)
        addresses.push_back(server.address);
    }
    broker_id = std::max<std::int64_t>(shared_->last_id, 0);
  }
  for (auto& waiter : waiters) waiter.done();

  struct Latch {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t open = 0;
  };
  auto latch = std::make_shared<Latch>();
  latch->open = addresses.size();
  for (const std::string& address : addresses) {
    shared_->client.Call(address, Unregistration(shared_->config, broker_id), timeout,
                         [latch](const Result<remoting::Command>& answer) {
                           IgnoreError(answer.status(), "it expires by itself");
                           const std::lock_guard lock(latch->mutex);
                           --latch->open;
                           latch->changed.notify_one();
                         });
  }
  std::unique_lock lock(latch->mutex);
  latch->changed.wait_for(lock, timeout, [&] { return latch->open == 0; });
}

}  // namespace triad::broker
