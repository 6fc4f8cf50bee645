// The floating address of a group: when a peer has it (the rule, with given times), and that a real
// interface gets it and loses it (in a network namespace of the test's own).

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "broker/process/advertised_address.h"
#include "broker/process/leader_address_keeper.h"
#include "broker/process/leader_address_rule.h"

namespace triad::broker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

TimePoint At(std::int64_t ms) {
  return TimePoint(seconds(1000)) + milliseconds(ms);
}
constexpr std::int64_t kKeepsMs = LeaderAddressRule::kKeeps.count();
constexpr std::int64_t kEchoesMs = LeaderAddressRule::kEchoes.count();

TEST(LeaderAddressRule, OnlyALeaderTakesAndAnnouncesIt) {
  LeaderAddressRule rule;
  EXPECT_FALSE(rule.At(At(0)).has);
  rule.OnLeading(false, At(1));
  EXPECT_FALSE(rule.At(At(1)).has);
  rule.OnLeading(true, At(2));
  const auto step = rule.At(At(2));
  EXPECT_TRUE(step.has);
  EXPECT_TRUE(step.announce);
}

TEST(LeaderAddressRule, AnnouncementsAreRepeatedAsLongAsItLeads) {
  LeaderAddressRule rule;
  int announced = 0;
  for (std::int64_t ms = 0; ms < 10000; ms += 10) {
    if (ms % 1000 == 0) rule.OnLeading(true, At(ms));
    const auto step = rule.At(At(ms));
    EXPECT_TRUE(step.has);
    ASSERT_TRUE(step.next.has_value());
    EXPECT_GT(*step.next, At(ms));
    if (step.announce) ++announced;
    if (ms == 1500) {
      EXPECT_EQ(announced, 5);
    }
  }
  EXPECT_EQ(announced, 9);  // at 0, 0.1, 0.3, 0.7, 1.5, and then every two seconds
}

TEST(LeaderAddressRule, WhoDoesNotLeadAnyMoreKeepsItInSilenceUntilAnotherClaimsIt) {
  LeaderAddressRule rule;
  rule.OnLeading(true, At(0));
  rule.At(At(0));
  rule.OnLeading(false, At(1));
  for (std::int64_t ms = 1; ms < 1000; ms += 50) {
    EXPECT_TRUE(rule.At(At(ms)).has);
    EXPECT_FALSE(rule.At(At(ms)).announce);
  }
  EXPECT_FALSE(rule.OnClaim(At(1000)));
  const std::int64_t away = 1000 + LeaderAddressRule::kLingers.count();
  EXPECT_EQ(rule.At(At(1000)).next, At(away));
  EXPECT_FALSE(rule.OnClaim(At(1100)));  // said again: no longer for that
  EXPECT_TRUE(rule.At(At(away - 1)).has);
  EXPECT_FALSE(rule.At(At(away)).has);
  rule.OnLeading(false, At(away));
  EXPECT_FALSE(rule.At(At(away)).has);
}

TEST(LeaderAddressRule, NobodyKeepsItForLongWithoutLeading) {
  LeaderAddressRule rule;
  rule.OnLeading(true, At(0));
  rule.OnLeading(false, At(1));
  rule.OnLeading(false, At(1000));  // said again: no longer for that
  EXPECT_EQ(rule.At(At(1000)).next, At(1 + kKeepsMs));
  EXPECT_TRUE(rule.At(At(kKeepsMs)).has);
  EXPECT_FALSE(rule.At(At(1 + kKeepsMs)).has);
}

TEST(LeaderAddressRule, APausedLeaderLosesItAndAWokenOneDoesNotTakeItByItself) {
  LeaderAddressRule rule;
  rule.OnLeading(true, At(0));
  EXPECT_FALSE(rule.At(At(kKeepsMs)).has);  // not renewed
  rule.OnLeading(false, At(kKeepsMs + 1));
  EXPECT_FALSE(rule.At(At(kKeepsMs + 1)).has);
}

TEST(LeaderAddressRule, ALeaderTakesItBackWithItsNextRenewal) {
  LeaderAddressRule rule;
  rule.OnLeading(true, At(0));
  rule.OnLeading(true, At(kKeepsMs));
  rule.OnClaim(At(kKeepsMs));
  rule.OnClaim(At(kKeepsMs + kEchoesMs));
  EXPECT_FALSE(rule.At(At(kKeepsMs + kEchoesMs)).has);
  rule.OnLeading(true, At(kKeepsMs + 1000));
  EXPECT_TRUE(rule.At(At(kKeepsMs + 1000)).announce);
}

TEST(LeaderAddressRule, ALeaderAnswersAFirstClaimAndObeysARepeatedOne) {
  LeaderAddressRule rule;
  rule.OnLeading(true, At(0));
  rule.OnLeading(true, At(kKeepsMs));
  EXPECT_TRUE(rule.At(At(kKeepsMs)).announce);
  const std::int64_t claimed = kKeepsMs + 50;
  EXPECT_FALSE(rule.At(At(claimed)).announce);
  EXPECT_FALSE(rule.OnClaim(At(claimed)));
  EXPECT_TRUE(rule.At(At(claimed)).announce);
  for (std::int64_t ms = 1; ms < kEchoesMs; ms += 100) rule.OnClaim(At(claimed + ms));
  EXPECT_TRUE(rule.At(At(claimed + kEchoesMs - 1)).has);
  EXPECT_FALSE(rule.OnClaim(At(claimed + kEchoesMs)));
  EXPECT_FALSE(rule.At(At(claimed + kEchoesMs)).has);
}

TEST(LeaderAddressRule, WhoTookItJustNowKeepsItWhateverAFormerLeaderSays) {
  LeaderAddressRule rule;
  for (std::int64_t ms = 0; ms < kKeepsMs; ms += 50) {
    if (ms % 1000 == 0) rule.OnLeading(true, At(ms));
    EXPECT_FALSE(rule.OnClaim(At(ms)));
    EXPECT_TRUE(rule.At(At(ms)).has);
  }
}

TEST(LeaderAddressRule, AClaimLongAfterTheLastOneIsAFirstOne) {
  LeaderAddressRule rule;
  for (const std::int64_t ms : {std::int64_t{0}, LeaderAddressRule::kDisputed.count()}) {
    rule.OnLeading(true, At(ms));
    rule.OnClaim(At(ms));
    EXPECT_TRUE(rule.At(At(ms)).has);
  }
}

TEST(LeaderAddressRule, AnAddressThatSomebodyElseKeepsClaimingIsLeftAloneForAWhile) {
  LeaderAddressRule rule;
  std::int64_t ms = 0;
  int lost = 0;
  for (bool yields = false; !yields; ms += 1000) {
    ASSERT_LT(ms, 20'000);
    rule.OnLeading(true, At(ms));
    EXPECT_TRUE(rule.At(At(ms)).has);
    yields = rule.OnClaim(At(ms));
    if (!rule.At(At(ms)).has) ++lost;
    EXPECT_FALSE(rule.OnClaim(At(ms))) << "said again by the same: no claim of what it has not";
  }
  EXPECT_EQ(lost, LeaderAddressRule::kClaimsMax - 1);  // the first one was answered
  const std::int64_t ends = ms - 1000 + LeaderAddressRule::kYields.count();
  for (; ms < ends; ms += 1000) {
    rule.OnLeading(true, At(ms));
    EXPECT_FALSE(rule.At(At(ms)).has);
  }
  rule.OnLeading(true, At(ends));
  EXPECT_TRUE(rule.At(At(ends)).announce);
}

TEST(LeaderAddressRule, WhoLeadsAgainBeforeItLetGoSaysSoAtOnce) {
  LeaderAddressRule rule;
  rule.OnLeading(true, At(0));
  rule.At(At(0));
  rule.OnLeading(false, At(10));
  rule.OnClaim(At(20));
  rule.OnLeading(true, At(30));
  EXPECT_TRUE(rule.At(At(30)).announce);
  EXPECT_TRUE(rule.At(At(1000)).has);
}

TEST(LeaderAddressRule, ClaimsOfNextLeadersMakeItNobodyElses) {
  LeaderAddressRule rule;
  for (std::int64_t ms = 0; ms < 60'000; ms += 5000) {
    rule.OnLeading(true, At(ms));
    EXPECT_TRUE(rule.At(At(ms)).has);
    EXPECT_FALSE(rule.OnClaim(At(ms + 2000)));  // this one was paused
    rule.OnLeading(false, At(ms + 4000));
  }
}

TEST(LeaderAddressRule, AFewClaimsLongAgoDoNotAddUp) {
  LeaderAddressRule rule;
  for (std::int64_t i = 0; i < 20; ++i) {
    const TimePoint now = At(i * (LeaderAddressRule::kRivalry.count() / 2));
    rule.OnLeading(true, now);
    EXPECT_FALSE(rule.OnClaim(now));
  }
}

BrokerConfig ConfigOn(const std::string& interface) {
  BrokerConfig config;
  config.broker_ip1 = "10.98.0.1";
  config.leader_ip = "10.98.0.100";
  config.leader_ip_interface = interface;
  return config;
}

bool Run(const std::string& command) {
  return std::system(command.c_str()) == 0;
}

bool Has(const std::string& interface) {
  for (const Interface& one : ListInterfaces()) {
    if (one.name == interface && one.address == "10.98.0.100") return true;
  }
  return false;
}

// Nothing tells of a change of addresses but looking.
bool Within(seconds patience, const std::function<bool()>& reached) {
  const TimePoint deadline = MonoNow() + patience;
  while (!reached()) {
    if (MonoNow() > deadline) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

// A machine is a network namespace.
class Machine {
 public:
  Machine() : fd_(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) {}  // where we are
  ~Machine() { ::close(fd_); }
  std::string path() const {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_);
  }
  void Enter() const {
    if (::setns(fd_, CLONE_NEWNET) != 0) ::_exit(3);
  }

 private:
  const int fd_;
};

// In the child: two machines, tied to each other. Returns what was not as it must be.
std::string TakeOver() {
  const Machine here;
  if (::unshare(CLONE_NEWNET) != 0) return "no second machine";
  const Machine there;
  here.Enter();
  if (!Run("ip link add name v0 type veth peer name v1 netns " + there.path()) ||
      !Run("ip addr add 10.98.0.1/24 dev v0 && ip addr add 10.98.0.100/32 dev v0 && ip link set v0 "
           "up")) {
    return "no interfaces";
  }
  there.Enter();
  if (!Run("ip link set v1 up")) return "no interfaces";
  const auto start_there = [&] {
    there.Enter();
    auto keeper = LeaderAddressKeeper::Start(ConfigOn("v1"));
    here.Enter();
    return keeper;
  };
  const auto is_there = [&] {
    there.Enter();
    const bool has = Has("v1");
    here.Enter();
    return has;
  };
  here.Enter();
  auto first = LeaderAddressKeeper::Start(ConfigOn(""));  // chosen by brokerIP1
  if (!first.ok()) return first.status().ToString();
  if (Has("v0")) return "what a crash had left over is still there";
  (*first)->Lead(true);
  if (!Within(seconds(20), [] { return Has("v0"); })) return "the leader did not get it";
  for (const Interface& one : ListInterfaces()) {
    if (one.moves != (one.address == "10.98.0.100")) return one.address + " moves, or does not";
  }
  if (::getsid((*first)->process()) == ::getsid(0)) return "the process is one of the terminal's";
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) {
    ::kill((*first)->process(), signal);
  }

  auto second = start_there();
  if (!second.ok()) return second.status().ToString();
  const auto renewed_in_vain = [&] {
    (*first)->Lead(true);
    return !Has("v0");
  };
  if (Within(seconds(4), renewed_in_vain)) return "the leader lost it";
  (*second)->Lead(true);
  if (!Within(seconds(20), is_there)) return "the new leader did not get it";
  // Before the kernel removes what is not renewed any more.
  if (!Within(LeaderAddressPort::kKernelKeeps - seconds(1), [] { return !Has("v0"); })) {
    return "the old one did not let it go";
  }
  *second = nullptr;       // as if it were killed: nothing but the end of the pipe
  second = start_there();  // started again at once
  if (!second.ok()) return second.status().ToString();
  if (is_there()) return "a successor found it there";
  (*second)->Lead(true);
  if (!Within(seconds(20), is_there)) return "the successor did not get it";
  *second = nullptr;
  if (!Within(seconds(20), [&] { return !is_there(); })) return "a killed one did not let it go";
  return "";
}

bool MakeOneInterface() {
  return Run(
      "ip link add name v0 type veth peer name v1 && ip addr add 10.98.0.1/24 dev v0 && ip "
      "link set v0 up && ip link set v1 up");
}

std::string LoseTheProcess() {
  if (!MakeOneInterface()) return "no interfaces";
  auto keeper = LeaderAddressKeeper::Start(ConfigOn("v0"));
  if (!keeper.ok()) return keeper.status().ToString();
  (*keeper)->Lead(true);
  if (!Within(seconds(20), [] { return Has("v0"); })) return "the leader did not get it";
  ::kill((*keeper)->process(), SIGKILL);
  siginfo_t dead;
  ::waitid(P_PID, static_cast<id_t>((*keeper)->process()), &dead, WEXITED | WNOWAIT);
  (*keeper)->Lead(true);
  if (!Has("v0")) return "the leader lost it with the process";
  if (::waitpid((*keeper)->process(), nullptr, WNOHANG) != -1) return "the process is a zombie";
  (*keeper)->Lead(false);
  if (Has("v0")) return "it was left behind by who does not lead any more";
  (*keeper)->Lead(true);
  if (!Has("v0")) return "the next leadership did not get it";
  *keeper = nullptr;
  return Has("v0") ? "it was left behind at the end" : "";
}

// A broker that leads, with a standard error that takes nothing any more. Never returns.
void LeadUnheard(int report) {
  int unread[2];
  if (::pipe2(unread, O_NONBLOCK) != 0) ::_exit(3);
  char full[4096] = {};
  while (::write(unread[1], full, sizeof full) > 0) {
  }
  ::fcntl(unread[1], F_SETFL, 0);
  ::dup2(unread[1], STDERR_FILENO);
  auto keeper = LeaderAddressKeeper::Start(ConfigOn("v0"));
  const pid_t process = keeper.ok() ? (*keeper)->process() : 0;
  if (::write(report, &process, sizeof process) < 0 || process <= 0) ::_exit(3);
  for (;; ::poll(nullptr, 0, 100)) (*keeper)->Lead(true);
}

std::string LoseBoth() {
  if (!MakeOneInterface()) return "no interfaces";
  int report[2];
  if (::pipe(report) != 0) return "no pipe";
  const pid_t broker = ::fork();
  if (broker == 0) LeadUnheard(report[1]);
  pid_t process = 0;
  if (::read(report[0], &process, sizeof process) < 0 || process <= 0) return "no process";
  std::string found;
  if (!Within(seconds(20), [] { return Has("v0"); })) {
    found = "the leader did not get it";
  } else if (Within(LeaderAddressPort::kKernelKeeps + seconds(2), [] { return !Has("v0"); })) {
    found = "the leader lost it";
  }
  // Neither must see the other's end.
  for (const int signal : {SIGSTOP, SIGKILL}) {
    for (const pid_t one : {process, broker}) ::kill(one, signal);
  }
  ::waitpid(broker, nullptr, 0);
  if (!found.empty()) return found;
  return Within(seconds(20), [] { return !Has("v0"); }) ? "" : "it was left behind";
}

std::string MeetOthers() {
  if (!MakeOneInterface()) return "no interfaces";
  if (!Run("ip addr add 10.98.0.100/24 dev v1")) return "no address";
  const auto taken = LeaderAddressKeeper::Start(ConfigOn("v0"));
  const std::string told = taken.status().ToString();
  if (told.find("interface v1 of this machine has this address already") == std::string::npos) {
    return "of an address that this machine has for good it said: " + told;
  }
  if (!Has("v1")) return "what somebody else put there was removed";
  if (!Run("ip addr del 10.98.0.100/24 dev v1")) return "no address";
  const auto first = LeaderAddressKeeper::Start(ConfigOn("v0"));
  if (!first.ok()) return first.status().ToString();
  const auto second = LeaderAddressKeeper::Start(ConfigOn("v0"));
  const std::string why = second.status().ToString();
  if (why.find("another broker on this machine") == std::string::npos) {
    return "of two on one machine it said: " + why;
  }
  const auto loopback = LeaderAddressKeeper::Start(ConfigOn("lo"));
  const std::string no = loopback.status().ToString();
  return no.find("no Ethernet interface") == std::string::npos ? "of lo it said: " + no : "";
}

// Runs `story` in a process with a network of its own. What was not as it must be.
void Tell(const std::function<std::string()>& story) {
  int report[2];
  ASSERT_EQ(::pipe(report), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGPIPE, SIG_IGN);
    std::string found = "MISSING ON THIS MACHINE: no network namespace";
    if (::unshare(CLONE_NEWNET) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) {
      found = story();
    }
    if (::write(report[1], found.data(), found.size()) < 0) ::_exit(2);
    ::_exit(0);
  }
  ::close(report[1]);
  std::string found;
  char text[512];
  for (ssize_t got; (got = ::read(report[0], text, sizeof text)) > 0;) {
    found.append(text, static_cast<std::size_t>(got));
  }
  ::close(report[0]);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  if (found.starts_with("MISSING")) {
    std::fprintf(stderr, "%s\n", found.c_str());  // the rule above is all that was tried
  } else {
    EXPECT_EQ(found, "");
  }
}

TEST(LeaderAddressKeeper, TheAddressIsTakenOverAndNeverLeftBehind) {
  Tell(TakeOver);
}

TEST(LeaderAddressKeeper, ABrokerWhoseProcessWasKilledMovesTheAddressItself) {
  Tell(LoseTheProcess);
}

TEST(LeaderAddressKeeper, ALeaderKeepsItUnheardAndTheKernelRemovesItWhenBothAreKilled) {
  Tell(LoseBoth);
}

TEST(LeaderAddressKeeper, WhatBelongsToOthersIsRefusedAndLeftAlone) {
  Tell(MeetOthers);
}

TEST(LeaderAddressKeeper, AnInterfaceThatIsNotThereIsNamedWithThoseThatAre) {
  const auto keeper = LeaderAddressKeeper::Start(ConfigOn("eth77"));
  EXPECT_EQ(keeper.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(keeper.status().message()),
              AllOf(HasSubstr("leaderIPInterface"), HasSubstr("eth77"), HasSubstr("lo 127.0.0.1")));
}

TEST(LeaderAddressKeeper, ABrokerWhoseAddressIsElsewhereMustSayWhichInterface) {
  const auto keeper = LeaderAddressKeeper::Start(ConfigOn(""));
  EXPECT_EQ(keeper.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(keeper.status().message()),
              AllOf(HasSubstr("brokerIP1 10.98.0.1"), HasSubstr("leaderIPInterface")));
}

}  // namespace
}  // namespace triad::broker
