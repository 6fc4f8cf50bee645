#include "tests/chaos/world.h"

#include <signal.h>

#include <fstream>
#include <iostream>

#include "tests/chaos/load.h"
#include "tests/chaos/shell.h"
#include "triad/pull_consumer.h"

namespace triad::chaos {

using std::chrono::milliseconds;

namespace {
constexpr milliseconds kLook{100};
}  // namespace

std::optional<std::size_t> World::Leader() {
  const Result<std::size_t> leader = cluster_.WaitForLeader(milliseconds(400));
  if (leader.ok()) return *leader;
  return std::nullopt;
}

std::size_t World::LeaderOrAny() {
  if (random_.OneIn(3)) return AnyPeer();
  return Leader().value_or(AnyPeer());
}

FaultPtr World::Begin(const std::string& kind, const std::string& whom, bool leader) {
  Event event;
  event.op = Op::kFault;
  event.key = kind;
  event.value = whom;
  event.leader = leader;
  const std::int64_t id = history_.Begin(event);
  std::cerr << "chaos: " << kind << " " << whom << (leader ? " (leader)" : "") << "\n";
  return std::make_shared<Fault>(this, kind, id);
}

void Fault::TookEffect(int count) {
  took_effect_ = true;
  world_.counts_[kind_] += count;
}

Fault::~Fault() {
  Event end;
  end.outcome = took_effect_ ? Outcome::kOk : Outcome::kFail;
  end.value = seen_;
  world_.history_.End(id_, end);
  if (!took_effect_) std::cerr << "chaos:   " << kind_ << " had no effect: " << seen_ << "\n";
}

void World::Problem(const std::string& text) {
  problems_.push_back(text);
  std::cerr << "chaos: PROBLEM " << text << "\n";
}

bool World::SendKill(std::size_t peer) {
  if (!cluster_.Running(peer)) return false;
  killed_.insert(peer);
  return ::kill(cluster_.brokers()[peer].pid, SIGKILL) == 0;
}

void World::Kill(std::size_t peer, FaultPtr fault) {
  SendKill(peer);
  if (fault) down_[peer] = std::move(fault);
  if (!cluster_.Running(peer)) return;
  const Result<int> ended = cluster_.Signal(peer, SIGKILL, milliseconds(20000));
  if (!ended.ok()) Problem(ended.status().ToString());
}

bool World::Freeze(pid_t pid) {
  ::kill(pid, SIGSTOP);
  const std::int64_t end_ns = NowNs() + 5'000'000'000;
  while (NowNs() < end_ns) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(in, text);
    const std::size_t name_end = text.rfind(") ");  // "pid (name) state ..."
    if (name_end != std::string::npos && text[name_end + 2] == 'T') return true;
    if (Pause(milliseconds(1))) break;
  }
  return false;
}

void World::Start(std::size_t peer) {
  killed_.erase(peer);
  if (!cluster_.Running(peer)) {
    const Status started = cluster_.StartBroker(peer);
    if (!started.ok()) Problem(started.ToString());
  }
  down_.erase(peer);
}

Status World::Admin(std::vector<std::string> words, milliseconds limit) {
  words.insert(words.begin(), admin_);
  words.insert(words.end(), {"-n", cluster_.namesrv_address()});
  const std::int64_t end_ns = NowNs() + std::chrono::nanoseconds(limit).count();
  for (;;) {
    Status done = RunProgram(words);
    if (done.ok() || NowNs() > end_ns || Wait(milliseconds(300))) return done;
  }
}

void World::TakePlace(std::size_t newcomer, std::size_t old) {
  const Status took = cluster_.TakePlace(newcomer, old);
  if (!took.ok()) Problem(took.ToString());
  killed_.erase(old);
  down_.erase(old);
  may_end_.erase(old);
  if (members_changed_) members_changed_();
}

void World::LookAfterProcesses() {
  for (std::size_t i = 0; i < cluster_.brokers().size(); ++i) {
    if (killed_.contains(i) || may_end_.contains(i) || cluster_.Running(i)) continue;
    const LocalBroker& broker = cluster_.brokers()[i];
    Problem(broker.peer_id + " ended by itself; the end of " + broker.log_file + ":\n" +
            LocalCluster::Tail(broker.log_file));
    Start(i);
  }
}

bool World::Wait(milliseconds time) {
  const std::int64_t end_ns = NowNs() + std::chrono::nanoseconds(time).count();
  while (!stopped_ && NowNs() < end_ns) {
    const milliseconds left((end_ns - NowNs()) / 1'000'000 + 1);
    stopped_ = Pause(std::min(left, kLook));
    LookAfterProcesses();
  }
  return stopped_;
}

bool World::WaitForAcks(std::int64_t since_ns, milliseconds limit) {
  const std::int64_t end_ns = NowNs() + std::chrono::nanoseconds(limit).count();
  while (NowNs() < end_ns) {
    if (history_.oldest_ack_ns() > since_ns + 20'000'000) return true;
    if (Wait(milliseconds(20))) return false;
  }
  return false;
}

void World::AllUp(milliseconds limit) {
  for (std::size_t i = 0; i < cluster_.brokers().size(); ++i) Start(i);
  if (cluster_.namesrv_pid() == 0) {
    const Status started = cluster_.StartNameServer();
    if (!started.ok()) Problem(started.ToString());
  }
  const std::int64_t end_ns = NowNs() + std::chrono::nanoseconds(limit).count();
  Status listed = Status::TimedOut("not asked");
  while (!stopped_ && NowNs() < end_ns) {
    listed = cluster_.WaitForMembers(cluster_.brokers().size(), milliseconds(500));
    if (listed.ok()) break;
    Wait(milliseconds(1));
  }
  if (!stopped_ && !listed.ok()) {
    Problem("the group did not come back: " + std::string(listed.message()));
  }
}

void World::WaitCaughtUp(std::size_t peer, milliseconds limit) {
  client::PullConsumerOptions options;
  options.client.namesrv_address = cluster_.namesrv_address();
  options.client.instance_name = "caught-up";
  options.timeout = milliseconds(3000);
  client::PullConsumer reader(options);
  const std::int64_t end_ns = NowNs() + std::chrono::nanoseconds(limit).count();
  const client::MessageQueue queue{kFreeTopic, cluster_.broker_name(), 0};
  Result<std::int64_t> wanted = Status::Unavailable("not asked");
  if (reader.Start().ok()) {
    while (!wanted.ok() && NowNs() < end_ns && !Wait(milliseconds(50))) {
      wanted = reader.MaxOffset(queue);
    }
    while (wanted.ok() && NowNs() < end_ns && !stopped_) {
      const Result<client::PullResult> pull =
          reader.PullFrom(cluster_.brokers()[peer].client_address, queue, "*",
                          std::max<std::int64_t>(*wanted - 1, 0), 1);
      if (pull.ok() && pull->max_offset >= *wanted) return;
      Wait(milliseconds(100));
    }
  }
  if (stopped_) return;
  Problem(HostOf(peer) + " did not catch up within " + std::to_string(limit.count()) + " ms" +
          (wanted.ok() ? "" : ": " + wanted.status().ToString()));
}

}  // namespace triad::chaos
