// What name servers are told, over real sockets (wire.md §3.2, §3.4; cases.md NS-2, NS-4).

#include <gtest/gtest.h>

#include "broker/service/registration.h"
#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "remoting/headers.h"
#include "tests/unit/broker/one_peer.h"

namespace triad::broker {
namespace {

using remoting::Command;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A name server that records what it is asked.
class RecordingNameServer {
 public:
  explicit RecordingNameServer(std::uint16_t port = 0) {
    remoting::ServerOptions options;
    options.bind_address = "127.0.0.1";
    options.ports = {port};
    options.threads = 1;
    remoting::ServerHandler handler;
    handler.on_request = [this](const remoting::ConnectionPtr& connection, Command command) {
      const bool refuse = command.code == remoting::kBrokerHeartbeat && !takes_heartbeats_;
      Command answer = Command::ResponseTo(command, refuse ? 3 : 0);
      if (command.code == remoting::kBrokerHeartbeat && forgets_.exchange(false)) {
        answer.ext.SetBool("registered", false);
      }
      connection->Send(answer);
      const std::lock_guard lock(mutex_);
      requests_.push_back(std::move(command));
      changed_.notify_all();
    };
    server_ = remoting::CreateServer(options, handler);
    const Status started = server_->Start();
    CHECK(started.ok()) << started;
  }
  ~RecordingNameServer() { server_->Stop(milliseconds(100)); }

  std::uint16_t port() const { return server_->ports()[0]; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
  void TakesHeartbeats(bool takes) { takes_heartbeats_ = takes; }
  void Forget() { forgets_ = true; }  // told with the next heartbeat

  // The next request with this code; others are passed over.
  Command Next(std::int32_t code) {
    std::unique_lock lock(mutex_);
    std::optional<Command> found;
    const bool came = changed_.wait_for(lock, kPatience, [&] {
      while (next_ < requests_.size()) {
        const Command& one = requests_[next_++];
        if (one.code == code) found = one;
        if (found) return true;
      }
      return false;
    });
    CHECK(came) << "no request with code " << code;
    return *found;
  }
  std::size_t Count(std::int32_t code) {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count_if(
        requests_.begin(), requests_.end(), [&](const Command& c) { return c.code == code; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Command> requests_;
  std::size_t next_ = 0;
  std::atomic<bool> takes_heartbeats_{true};
  std::atomic<bool> forgets_{false};
  std::unique_ptr<remoting::Server> server_;
};

class RegistrationTest : public testing::Test {
 protected:
  RegistrationTest() : reads_(peer_.store().node()) {
    StateCommand command;
    for (const char* name : {"T", "U"}) {
      TopicConfig& topic = command.put_topics.emplace_back();
      topic.name = Topic(name);
      topic.read_queues = topic.write_queues = 4;
    }
    peer_.Apply(command);
    remoting::ClientHandler handler;
    handler.on_disconnect = [this](const std::string& address) {
      const std::lock_guard lock(mutex_);
      if (registration_) registration_->OnDisconnect(address);
    };
    client_ = remoting::CreateClient({.connect_timeout = seconds(1)}, handler);
    config_.broker_name = "b0";
    config_.broker_ip1 = "127.0.0.1";
    config_.ha_listen_port = 10912;
    config_.follower_id = 3;
  }
  ~RegistrationTest() override {
    if (registration_) registration_->Stop(milliseconds(200));
    timers_.Stop();
    client_->Stop();
  }
  Registration& Start(const std::string& name_servers) {
    config_.namesrv_addr = name_servers;
    const std::lock_guard lock(mutex_);
    registration_ = std::make_unique<Registration>(config_, SystemClock(), timers_, *client_,
                                                   peer_.store().state(), reads_);
    registration_->Start();
    return *registration_;
  }
  dledger::LeaderInfo Leading() { return peer_.store().node().leader_info(); }
  static dledger::LeaderInfo Following(std::uint64_t term) {
    dledger::LeaderInfo info;
    info.term = Term(term);
    info.leader = PeerId("n1");
    return info;
  }
  static std::int64_t IdOf(const Command& registration) {
    return remoting::RegisterBrokerRequest::Decode(registration.ext).value().broker_id;
  }

  BrokerConfig config_;
  OnePeerStore peer_;
  TimerQueue timers_;
  LeaderReads reads_;
  std::mutex mutex_;
  std::unique_ptr<remoting::Client> client_;
  std::unique_ptr<Registration> registration_;
};

TEST_F(RegistrationTest, ALeaderRegistersTheWholeTableAsZeroWithItsTerm) {
  RecordingNameServer server;
  Start(server.address()).OnLeaderChange(Leading());
  const Command request = server.Next(remoting::kRegisterBroker);
  const auto header = remoting::RegisterBrokerRequest::Decode(request.ext).value();
  EXPECT_EQ(header.broker_id, 0);
  EXPECT_EQ(header.broker_name, "b0");
  EXPECT_EQ(header.broker_addr, "127.0.0.1:10911");
  EXPECT_EQ(header.ha_server_addr, "127.0.0.1:10912");
  EXPECT_EQ(header.heartbeat_timeout_ms, 10000);
  EXPECT_EQ(header.enable_acting_master, false);
  const auto body = remoting::RegisterBrokerBody::Decode(request.body).value();
  EXPECT_EQ(body.topics.topic_config_table.size(), 2u);
  EXPECT_EQ(body.topics.data_version.state_version,
            static_cast<std::int64_t>(peer_.term().value()));
}

TEST_F(RegistrationTest, AFollowerRegistersWithItsNumberPlusOne) {
  RecordingNameServer server;
  Start(server.address()).OnLeaderChange(Following(4));
  EXPECT_EQ(IdOf(server.Next(remoting::kRegisterBroker)), 3);
}

TEST_F(RegistrationTest, WhoNeverWasPartOfTheGroupDoesNotRegister) {
  RecordingNameServer server;
  Registration& registration = Start(server.address());
  registration.OnLeaderChange(dledger::LeaderInfo{});
  bool answered = false;
  registration.RegisterNow(milliseconds(200), [&] { answered = true; });
  registration.OnLeaderChange(Following(1));
  server.Next(remoting::kRegisterBroker);
  EXPECT_EQ(server.Count(remoting::kRegisterBroker), 1u);
}

TEST_F(RegistrationTest, ADeposedLeaderRegistersAsFollowerAtOnce) {
  RecordingNameServer server;
  Registration& registration = Start(server.address());
  registration.OnLeaderChange(Leading());
  EXPECT_EQ(IdOf(server.Next(remoting::kRegisterBroker)), 0);
  registration.OnLeaderChange(dledger::LeaderInfo{});
  EXPECT_EQ(IdOf(server.Next(remoting::kRegisterBroker)), 3);
}

TEST_F(RegistrationTest, LeavingRegistersAsFollowerThenUnregisters) {
  RecordingNameServer server;
  Registration& registration = Start(server.address());
  registration.OnLeaderChange(Leading());
  EXPECT_EQ(IdOf(server.Next(remoting::kRegisterBroker)), 0);
  registration.StepAside();
  EXPECT_EQ(IdOf(server.Next(remoting::kRegisterBroker)), 3);
  registration.Stop(seconds(5));
  const auto header =
      remoting::BrokerIdentityRequest::Decode(server.Next(remoting::kUnregisterBroker).ext);
  EXPECT_EQ(header.value().broker_addr, "127.0.0.1:10911");
}

TEST_F(RegistrationTest, ALeaderIsListedUnderTheLeadersAddressAloneAFollowerUnderItsOwn) {
  config_.leader_ip = "127.0.0.9";
  RecordingNameServer server;
  Registration& registration = Start(server.address());
  const auto next = [&] {
    return remoting::RegisterBrokerRequest::Decode(server.Next(remoting::kRegisterBroker).ext)
        .value()
        .broker_addr;
  };
  registration.OnLeaderChange(Following(1));
  EXPECT_EQ(next(), "127.0.0.1:10911");
  registration.OnLeaderChange(Leading());
  EXPECT_EQ(next(), "127.0.0.9:10911");
  const auto gone =
      remoting::BrokerIdentityRequest::Decode(server.Next(remoting::kUnregisterBroker).ext).value();
  EXPECT_EQ(gone.broker_addr, "127.0.0.1:10911");
  EXPECT_EQ(gone.broker_id, 3);
  const auto beat =
      remoting::BrokerHeartbeatRequest::Decode(server.Next(remoting::kBrokerHeartbeat).ext).value();
  EXPECT_EQ(beat.broker_addr, "127.0.0.9:10911");
  EXPECT_EQ(beat.epoch, static_cast<std::int32_t>(peer_.term().value()));
  registration.OnLeaderChange(Following(9));
  EXPECT_EQ(next(), "127.0.0.1:10911");
}

TEST_F(RegistrationTest, ADeadNameServerDelaysNobody) {
  RecordingNameServer server;
  Registration& registration =
      Start(" 127.0.0.1:1 ; ;" + server.address() + "; dead.invalid:9876;");
  registration.OnLeaderChange(Leading());
  EXPECT_EQ(IdOf(server.Next(remoting::kRegisterBroker)), 0);
}

TEST_F(RegistrationTest, ANewTopicIsThereWhenRegisterNowCallsBack) {
  RecordingNameServer server;
  Registration& registration = Start(server.address());
  registration.OnLeaderChange(Leading());
  server.Next(remoting::kRegisterBroker);
  StateCommand command;
  command.put_topics.emplace_back().name = Topic("New");
  peer_.Apply(command);
  std::promise<void> done;
  registration.RegisterNow(kPatience, [&] { done.set_value(); });
  ASSERT_EQ(done.get_future().wait_for(kPatience), std::future_status::ready);
  bool found = false;
  for (std::size_t left = server.Count(remoting::kRegisterBroker) - 1; left > 0 && !found; --left) {
    const Command request = server.Next(remoting::kRegisterBroker);
    const auto body = remoting::RegisterBrokerBody::Decode(request.body).value();
    found = body.topics.topic_config_table.contains("New");
  }
  EXPECT_TRUE(found);
}

TEST_F(RegistrationTest, HeartbeatsGoOnceASecondUnlessRefused) {
  RecordingNameServer modern;
  RecordingNameServer old;
  old.TakesHeartbeats(false);
  Start(modern.address() + ";" + old.address()).OnLeaderChange(Leading());
  modern.Next(remoting::kBrokerHeartbeat);
  modern.Next(remoting::kBrokerHeartbeat);
  const auto header =
      remoting::BrokerHeartbeatRequest::Decode(modern.Next(remoting::kBrokerHeartbeat).ext);
  EXPECT_EQ(header.value().broker_addr, "127.0.0.1:10911");
  EXPECT_EQ(old.Count(remoting::kBrokerHeartbeat), 1u);
}

TEST_F(RegistrationTest, ANameServerThatComesBackIsToldAgain) {
  auto server = std::make_unique<RecordingNameServer>();
  const std::uint16_t port = server->port();
  Start(server->address()).OnLeaderChange(Leading());
  server->Next(remoting::kRegisterBroker);
  server.reset();
  server = std::make_unique<RecordingNameServer>(port);
  const TimePoint before = SystemClock().MonoNow();
  EXPECT_EQ(IdOf(server->Next(remoting::kRegisterBroker)), 0);
  EXPECT_LT(SystemClock().MonoNow() - before, seconds(10));
}

TEST_F(RegistrationTest, ANameServerThatDoesNotKnowItAnyMoreIsToldAtOnce) {
  RecordingNameServer server;
  Start(server.address()).OnLeaderChange(Leading());
  server.Next(remoting::kRegisterBroker);
  server.Next(remoting::kBrokerHeartbeat);
  server.Forget();
  const TimePoint before = SystemClock().MonoNow();
  EXPECT_EQ(IdOf(server.Next(remoting::kRegisterBroker)), 0);
  EXPECT_LT(SystemClock().MonoNow() - before, seconds(8));  // without it after 30
}

TEST(AddressList, BlanksAndEmptyItemsAreHarmless) {
  EXPECT_EQ(SplitAddressList(" a:1; ;b:2;a:1;"), (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_TRUE(SplitAddressList(" ; ").empty());
}

}  // namespace
}  // namespace triad::broker
