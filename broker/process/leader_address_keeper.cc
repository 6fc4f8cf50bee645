#include "broker/process/leader_address_keeper.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/process/advertised_address.h"
#include "broker/process/leader_address_port.h"
#include "broker/process/leader_address_rule.h"
#include "common/clock.h"

namespace triad::broker {
namespace {

constexpr char kLeads = 'l';
constexpr char kFollows = 'f';
constexpr std::chrono::milliseconds kTriesAgain{100};
constexpr std::chrono::milliseconds kRenews{1000};  // what the kernel would remove otherwise

// The child's life.
class Keeper {
 public:
  Keeper(LeaderAddressPort* port, int pipe, std::string name)
      : port_(*port), pipe_(pipe), name_(std::move(name)) {}

  void Run() {
    while (Act() || !broker_gone_) {
      pollfd wait[3] = {{broker_gone_ ? -1 : pipe_, POLLIN, 0},
                        {port_.arp(), POLLIN, 0},
                        {port_.name(), POLLIN, 0}};
      ::poll(wait, 3, Patience());
      if (wait[0].revents != 0) Hear();
      if (wait[2].revents != 0) port_.ForgetSuccessor();
      // Only of a broker that is gone: anybody on this machine can say so.
      if (wait[2].revents != 0 && broker_gone_) return;
      if (const auto rival = port_.HeardClaim(); rival && has_) Yield(*rival);
    }
  }

 private:
  void Hear() {
    char words[64];
    const ssize_t got = ::read(pipe_, words, sizeof words);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    broker_gone_ = got <= 0;
    rule_.OnLeading(!broker_gone_ && words[got - 1] == kLeads, MonoNow());
  }

  void Yield(const std::string& rival) {
    if (rival != rival_) Say("another machine claims it (" + rival + ")");
    rival_ = rival;
    if (!rule_.OnClaim(MonoNow())) return;
    Say(rival + " claims it again and again while this broker leads: not taken for " +
        std::to_string(LeaderAddressRule::kYields.count() / 1000) +
        " s, in which clients do not reach this broker; expected an address that no other machine "
        "has");
  }

  // What nobody reads must not hold up who has the address.
  void Say(const std::string& what) const {
    const std::string line = name_ + ": " + what + "\n";
    pollfd out{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) return;
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // nobody is left to tell
  }

  // Does what the rule says; whether the address is here.
  bool Act() {
    const TimePoint now = MonoNow();
    const LeaderAddressRule::Step step = rule_.At(now);
    next_ = step.next;
    const bool renew = step.has && (step.announce || now >= renew_at_);
    int error = renew || step.has != has_ ? port_.Change(step.has) : 0;
    if (!step.has && error == ENODEV) error = 0;  // gone with its interface
    Note("change", error);
    if (step.announce && error == 0) Note("announcement", port_.Announce());
    if (error != 0) {
      next_ = now + kTriesAgain;
      return has_;
    }
    if (renew) renew_at_ = now + kRenews;
    if (step.has) next_ = std::min(*step.next, renew_at_);
    if (step.has == has_) return has_;
    Say(step.has ? "taken" : "released");
    rival_.clear();
    return has_ = step.has;
  }

  void Note(const char* what, int error) {
    if (error != 0 && error != error_) {
      Say("no " + std::string(what) + ": " + std::strerror(error) +
          "; as long as this broker leads, clients do not reach it");
    }
    if (error != 0) error_ = error;
  }

  int Patience() const {
    return next_ ? static_cast<int>(TimeLeft(*next_, MonoNow()).count()) : -1;
  }

  LeaderAddressPort& port_;
  const int pipe_;
  const std::string name_;
  LeaderAddressRule rule_;
  std::optional<TimePoint> next_;
  TimePoint renew_at_;
  std::string rival_;  // has claimed it since this one took it
  bool has_ = false;
  bool broker_gone_ = false;
  int error_ = 0;  // told last
};

Result<std::string> ChooseInterface(const BrokerConfig& config) {
  std::vector<Interface> all = ListInterfaces();
  std::erase_if(all, [&](const Interface& one) { return one.address == config.leader_ip; });
  std::string known;
  for (const Interface& one : all) {
    known += (known.empty() ? "" : ", ") + one.name + " " + one.address;
  }
  if (!config.leader_ip_interface.empty()) {
    if (::if_nametoindex(config.leader_ip_interface.c_str()) != 0)
      return config.leader_ip_interface;
    return Status::InvalidArgument("leaderIPInterface: no interface \"" +
                                   config.leader_ip_interface + "\"; expected one of " + known);
  }
  std::string own = config.broker_ip1.empty() ? ChooseAddress(all).address : config.broker_ip1;
  if (auto resolved = ResolveHost(own); resolved.ok()) own = *std::move(resolved);
  for (const Interface& one : all) {
    if (one.address == own) return one.name;
  }
  return Status::InvalidArgument("leaderIP: brokerIP1 " + own + " is on no interface (found " +
                                 known + "); expected leaderIPInterface to name one");
}

}  // namespace

Result<std::unique_ptr<LeaderAddressKeeper>> LeaderAddressKeeper::Start(
    const BrokerConfig& config) {
  const Result<std::string> interface = ChooseInterface(config);
  if (!interface.ok()) return interface.status();
  auto port = std::make_unique<LeaderAddressPort>();
  TRIAD_RETURN_IF_ERROR(port->Open(config.leader_ip, *interface));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return Status::IoError(std::string("leaderIP: no pipe: ") + std::strerror(errno));
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    // A terminal or a service manager means the broker; this process ends after it.
    ::setsid();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGTSTP}) {
      ::signal(signal, SIG_IGN);
    }
    ::prctl(PR_SET_NAME, "triad-leaderip");
    Keeper(port.get(), ends[0], "leaderIP " + config.leader_ip + " on " + *interface).Run();
    ::_exit(0);
  }
  ::close(ends[0]);
  std::unique_ptr<LeaderAddressKeeper> keeper(
      new LeaderAddressKeeper(ends[1], child, std::move(port)));
  if (child < 0) return Status::IoError(std::string("leaderIP: no fork: ") + std::strerror(errno));
  return keeper;
}

LeaderAddressKeeper::LeaderAddressKeeper(int pipe, pid_t process,
                                         std::unique_ptr<LeaderAddressPort> port)
    : pipe_(pipe), process_(process), port_(std::move(port)) {}

LeaderAddressKeeper::~LeaderAddressKeeper() {
  ::close(pipe_);
  if (alone_) MoveItself(false);
}

void LeaderAddressKeeper::Lead(bool leads) {
  const char word = leads ? kLeads : kFollows;
  if (!alone_) {
    // Full: it is asleep, and hears the next one.
    if (::write(pipe_, &word, 1) == 1 || errno == EAGAIN) return;
    alone_ = true;
    LOG(ERROR) << "leaderIP: process " << process_ << " (triad-leaderip) has ended ("
               << std::strerror(errno)
               << "): this broker moves the address itself; restart it, for as it is now the "
                  "address stays for "
               << LeaderAddressPort::kKernelKeeps.count() << " s when the broker is killed";
  }
  ::waitpid(process_, nullptr, WNOHANG);
  MoveItself(leads);
}

void LeaderAddressKeeper::MoveItself(bool leads) {
  int error = port_->Change(leads);
  if (leads && error == 0) error = port_->Announce();
  LOG_IF(ERROR, error != 0) << "leaderIP: not " << (leads ? "taken" : "released") << ": "
                            << std::strerror(error);
}

}  // namespace triad::broker
