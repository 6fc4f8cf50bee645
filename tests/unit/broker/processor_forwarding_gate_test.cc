// Two peers' gates and dispatchers over real sockets: what only the leader does is done there, once
// (architecture.md §5, "Forwarding").

#include <gtest/gtest.h>

#include <atomic>

#include "broker/processor/dispatcher.h"
#include "broker/processor/forwarding_gate.h"
#include "broker/processor/response.h"
#include "remoting/client.h"
#include "remoting/server.h"
#include "tests/unit/broker/one_peer.h"

namespace triad::broker {
namespace {

using remoting::Command;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int32_t kWork = 10;    // not repeatable, 14 when late
constexpr std::int32_t kRepeat = 41;  // repeatable, 14 when late
constexpr std::int32_t kSilent = 14;  // silence when late
constexpr std::int32_t kLocal = 34;   // served by everybody

// A peer without a store: gate, dispatcher, server.
class Peer {
 public:
  explicit Peer(const std::string& id, milliseconds budget = seconds(10),
                std::size_t max_held = 100)
      : id_(id), client_(remoting::CreateClient({}, {})) {
    ForwardingGate::Options options;
    options.self = PeerId(id);
    options.max_held = max_held;
    gate_ = std::make_unique<ForwardingGate>(options, SystemClock(), timers_, *client_);
    dispatcher_ = std::make_unique<Dispatcher>(SystemClock(), *gate_);
    const Handler serve = [this](const RequestPtr& request, const Reply& reply) {
      Serve(request, reply);
    };
    dispatcher_->RegisterForLeader(kWork, LeaderGate::For(budget, 14), serve);
    auto repeatable = LeaderGate::For(budget, 14);
    repeatable.repeatable = true;
    dispatcher_->RegisterForLeader(kRepeat, repeatable, serve);
    dispatcher_->RegisterForLeader(kSilent, LeaderGate::Silent(budget), serve);
    dispatcher_->Register(kLocal, serve);
    Listen();
  }
  ~Peer() {
    gate_->Stop();
    if (server_) server_->Stop(milliseconds(100));
    timers_.Stop();
    client_->Stop();
  }

  void Listen() {
    remoting::ServerOptions options;
    options.bind_address = "127.0.0.1";
    options.ports = {0};
    options.threads = 1;
    remoting::ServerHandler handler;
    handler.on_request = [this](const remoting::ConnectionPtr& connection, Command command) {
      if (hang_up_) {
        connection->Close();
      } else if (!mute_) {
        dispatcher_->OnRequest(connection, std::move(command));
      }
    };
    server_ = remoting::CreateServer(options, handler);
    const Status started = server_->Start();
    CHECK(started.ok()) << started;
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(server_->ports()[0]); }

  void Leads(std::uint64_t term = 1) {
    dledger::LeaderInfo info;
    info.role = dledger::Role::kLeader;
    info.term = Term(term);
    info.leader = PeerId(id_);
    info.ready = true;
    gate_->OnLeaderChange(info);
  }
  void Follows(const Peer& leader, std::uint64_t term = 1) {
    dledger::LeaderInfo info;
    info.term = Term(term);
    info.leader = PeerId(leader.id_);
    info.leader_client_address = leader.address();
    gate_->OnLeaderChange(info);
  }
  void KnowsNobody() { gate_->OnLeaderChange(dledger::LeaderInfo{}); }

  // A request of a client of this peer; its answer lands in the connection.
  std::shared_ptr<RecordingConnection> Ask(std::int32_t code, std::int32_t flag = 0) {
    auto connection = std::make_shared<RecordingConnection>(1, "10.0.0.9:5000");
    Command command = Command::Request(code);
    command.opaque = 77;
    command.flag = flag;
    command.body = "payload";
    dispatcher_->OnRequest(connection, std::move(command));
    return connection;
  }
  std::shared_ptr<RecordingConnection> AskWith(Command command) {
    auto connection = std::make_shared<RecordingConnection>(1, "10.0.0.9:5000");
    dispatcher_->OnRequest(connection, std::move(command));
    return connection;
  }

  ForwardingGate& gate() { return *gate_; }
  std::size_t served() const { return served_; }
  void RefuseNext(int times) { refuse_ = times; }
  void HangUp(bool on) { hang_up_ = on; }
  void Mute(bool on) { mute_ = on; }
  std::vector<std::string> order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  // Nothing that waits for the timer goes on until the result is set.
  std::shared_ptr<std::promise<void>> HoldTimer() {
    auto release = std::make_shared<std::promise<void>>();
    auto held = std::make_shared<std::promise<void>>();
    timers_.Schedule(milliseconds(0), [release, held] {
      held->set_value();
      release->get_future().wait_for(kPatience);
    });
    held->get_future().wait_for(kPatience);
    return release;
  }
  void AskOn(const std::shared_ptr<RecordingConnection>& connection, const std::string& body) {
    Command command = Command::Request(kWork);
    command.body = body;
    dispatcher_->OnRequest(connection, std::move(command));
  }
  // One that arrived earlier and comes to the gate only now.
  std::shared_ptr<RecordingConnection> AskBodyFrom(TimePoint arrived, const std::string& body) {
    auto connection = std::make_shared<RecordingConnection>(1, "10.0.0.9:5000");
    Command command = Command::Request(kWork);
    command.body = body;
    dispatcher_->OnRequestFrom(connection, std::move(command), arrived);
    return connection;
  }
  std::shared_ptr<RecordingConnection> AskBody(const std::string& body) {
    Command command = Command::Request(kWork);
    command.body = body;
    return AskWith(std::move(command));
  }

 private:
  void Serve(const RequestPtr& request, const Reply& reply) {
    if (refuse_ > 0) {
      --refuse_;
      reply(NotLeaderResponse(request->command));
      return;
    }
    ++served_;
    {
      const std::lock_guard lock(mutex_);
      order_.push_back(request->command.body);
    }
    Command response = Success(request->command);
    response.remark = id_ + " " + request->client_address + " " + request->command.body;
    reply(std::move(response));
  }

  const std::string id_;
  TimerQueue timers_;
  std::unique_ptr<remoting::Client> client_;
  std::unique_ptr<ForwardingGate> gate_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<remoting::Server> server_;
  std::atomic<std::size_t> served_{0};
  std::atomic<int> refuse_{0};
  std::atomic<bool> hang_up_{false};
  std::atomic<bool> mute_{false};
  std::mutex mutex_;
  std::vector<std::string> order_;
};

TEST(ForwardingGate, TheReadyLeaderServesItself) {
  Peer n0("n0");
  n0.Leads();
  EXPECT_EQ(n0.Ask(kWork)->Next().remark, "n0 10.0.0.9:5000 payload");
}

TEST(ForwardingGate, AFollowerForwardsWithTheClientsAddressAndOpaque) {
  Peer n0("n0");
  Peer n1("n1");
  n1.Leads();
  n0.Follows(n1);
  const Command answer = n0.Ask(kWork)->Next();
  EXPECT_EQ(answer.remark, "n1 10.0.0.9:5000 payload");
  EXPECT_EQ(answer.opaque, 77);
  EXPECT_TRUE(answer.is_response());
  EXPECT_EQ(n0.served(), 0u);
}

TEST(ForwardingGate, WithoutALeaderARequestIsHeldUntilThereIsOne) {
  Peer n0("n0");
  n0.KnowsNobody();
  const auto waiting = n0.Ask(kWork);
  EXPECT_EQ(n0.gate().held(), 1u);
  n0.Leads();
  EXPECT_EQ(waiting->Next().code, 0);
  EXPECT_EQ(n0.gate().held(), 0u);
}

TEST(ForwardingGate, HeldRequestsAreServedInOrder) {
  Peer n0("n0");
  n0.KnowsNobody();
  auto connection = std::make_shared<RecordingConnection>(1, "10.0.0.9:5000");
  std::vector<std::shared_ptr<RecordingConnection>> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(n0.Ask(kWork));
  n0.Leads();
  for (const auto& client : clients) EXPECT_EQ(client->Next().code, 0);
  EXPECT_EQ(n0.served(), 5u);
}

TEST(ForwardingGate, NothingOvertakesWhatIsHeldOfItsConnectionWhenThereIsALeader) {
  Peer n0("n0");
  n0.KnowsNobody();
  const auto timer = n0.HoldTimer();
  const auto first = n0.AskBody("first");
  n0.Leads();
  const auto second = n0.AskBody("second");
  const auto third = n0.AskBody("third");
  EXPECT_EQ(n0.gate().held(), 3u);
  timer->set_value();
  for (const auto& client : {first, second, third}) EXPECT_EQ(client->Next().code, 0);
  EXPECT_EQ(n0.order(), (std::vector<std::string>{"first", "second", "third"}));
  EXPECT_EQ(n0.AskBody("later")->Next().code, 0);
  EXPECT_EQ(n0.gate().held(), 0u);
}

TEST(ForwardingGate, WhatArrivedFirstIsInFrontAlsoWhenItComesToTheGateLater) {
  Peer n0("n0");
  n0.KnowsNobody();
  const TimePoint earlier = SystemClock().MonoNow();
  const auto third = n0.AskBody("third");
  const auto first = n0.AskBodyFrom(earlier, "first");
  const auto second = n0.AskBodyFrom(earlier + std::chrono::nanoseconds(1), "second");
  n0.Leads();
  for (const auto& client : {first, second, third}) EXPECT_EQ(client->Next().code, 0);
  EXPECT_EQ(n0.order(), (std::vector<std::string>{"first", "second", "third"}));
}

// As the sends of one read of a connection, which the short way brings back.
TEST(ForwardingGate, WhatArrivedAtOneMomentWaitsAndStaysInOrderWhileLeadersComeAndGo) {
  Peer n0("n0");
  n0.KnowsNobody();
  const TimePoint moment = SystemClock().MonoNow();
  std::vector<std::shared_ptr<RecordingConnection>> clients;
  std::vector<std::string> sent;
  for (int i = 0; i < 4; ++i) {
    sent.push_back("m" + std::to_string(i));
    clients.push_back(n0.AskBodyFrom(moment, sent.back()));
  }
  for (int i = 0; i < 3; ++i) {
    n0.KnowsNobody();
    const auto timer = n0.HoldTimer();  // behind what that change woke
    EXPECT_EQ(n0.gate().held(), 4u);
    timer->set_value();
  }
  n0.Leads();
  for (const auto& client : clients) EXPECT_EQ(client->Next().code, 0);
  EXPECT_EQ(n0.order(), sent);
}

TEST(ForwardingGate, ANewLeaderHoldsRequestsUntilItsFirstEntryIsApplied) {
  Peer n0("n0");
  dledger::LeaderInfo elected;
  elected.role = dledger::Role::kLeader;
  elected.term = Term(1);
  elected.leader = PeerId("n0");
  n0.gate().OnLeaderChange(elected);
  const auto work = n0.Ask(kWork);
  const auto query = n0.Ask(kSilent);
  EXPECT_EQ(n0.gate().held(), 2u);
  EXPECT_EQ(n0.served(), 0u);
  n0.Leads();  // ready
  EXPECT_EQ(work->Next().code, 0);
  EXPECT_EQ(query->Next().code, 0);
}

TEST(ForwardingGate, NothingOvertakesWhatWasRefusedAndIsTriedAgain) {
  Peer n0("n0");
  n0.Leads();
  const auto timer = n0.HoldTimer();
  n0.RefuseNext(3);
  const auto first = n0.AskBody("first");
  const auto second = n0.AskBody("second");
  EXPECT_EQ(n0.gate().held(), 2u);
  timer->set_value();
  for (const auto& client : {first, second}) EXPECT_EQ(client->Next().code, 0);
  EXPECT_EQ(n0.order(), (std::vector<std::string>{"first", "second"}));
}

TEST(ForwardingGate, OtherConnectionsDoNotWaitForWhatIsHeld) {
  Peer n0("n0");
  n0.Leads();
  const auto timer = n0.HoldTimer();
  n0.RefuseNext(1);
  const auto held = n0.AskBody("held");
  auto other = std::make_shared<RecordingConnection>(2, "10.0.0.9:5001");
  n0.AskOn(other, "other");
  EXPECT_EQ(other->Next().code, 0);
  timer->set_value();
  EXPECT_EQ(held->Next().code, 0);
}

TEST(ForwardingGate, WhatIsBehindAHeldRequestIsAnsweredAtTheEndOfItsBudgetToo) {
  Peer n0("n0", milliseconds(100));
  n0.KnowsNobody();
  const auto first = n0.AskBody("first");
  const auto second = n0.AskBody("second");
  EXPECT_EQ(first->Next().code, 14);
  EXPECT_EQ(second->Next().code, 14);
  EXPECT_EQ(n0.gate().held(), 0u);
}

TEST(ForwardingGate, AnUnknownOutcomeIsNeverCalledNothing) {
  Peer n0("n0", milliseconds(150));
  Peer n1("n1");
  n1.Mute(true);
  n0.Follows(n1);
  const Command repeatable = n0.Ask(kRepeat)->Next();
  EXPECT_EQ(repeatable.code, 14);
  EXPECT_EQ(repeatable.remark.find("nothing was done"), std::string::npos) << repeatable.remark;
  EXPECT_NE(repeatable.remark.find("may or may not"), std::string::npos) << repeatable.remark;
  const Command once = n0.Ask(kWork)->Next();
  EXPECT_EQ(once.code, 1);
  EXPECT_NE(once.remark.find("did not answer in time (budget 150 ms)"), std::string::npos)
      << once.remark;
}

TEST(ForwardingGate, TheEndOfTheBudgetIsAnsweredWithTheCodeOfTheFamily) {
  Peer n0("n0", milliseconds(50));
  n0.KnowsNobody();
  const Command answer = n0.Ask(kWork)->Next();
  EXPECT_EQ(answer.code, 14);
  EXPECT_NE(answer.remark.find("50 ms"), std::string::npos);
  EXPECT_NE(answer.remark.find("nobody leads the group"), std::string::npos);
  n0.Leads();
  EXPECT_EQ(n0.served(), 0u);  // what is past its budget is never done
}

TEST(ForwardingGate, AnOffsetQueryEndsInSilence) {
  Peer n0("n0", milliseconds(50));
  n0.KnowsNobody();
  const auto silent = n0.Ask(kSilent);
  EXPECT_EQ(n0.Ask(kWork)->Next().code, 14);  // later, with the same budget
  EXPECT_EQ(silent->sent(), 0u);
  EXPECT_EQ(silent->forgotten(), 1) << "the connection still counts it as in flight";
}

TEST(ForwardingGate, AForwardedOffsetQueryIsGivenBackWhereItsFirstPeerKeepsTheSilence) {
  Peer n0("n0", milliseconds(50));
  dledger::LeaderInfo elected;  // not ready
  elected.role = dledger::Role::kLeader;
  elected.leader = PeerId("n0");
  n0.gate().OnLeaderChange(elected);
  Request query;
  query.command = Command::Request(kSilent);
  query.client_address = "10.0.0.9:5000";
  auto outer = WrapForwarded(query, milliseconds(0));
  ASSERT_TRUE(outer.ok());
  EXPECT_EQ(n0.AskWith(std::move(outer.value()))->Next().code, kNotLeaderResponse);
}

TEST(ForwardingGate, AForwardedRequestGoesOneHopOnly) {
  Peer n0("n0", milliseconds(200));
  Peer n1("n1");
  Peer n2("n2");
  n2.Leads();
  n1.Follows(n2);
  n0.Follows(n1);  // an old view
  EXPECT_EQ(n0.Ask(kWork)->Next().code, 14);
  EXPECT_EQ(n2.served(), 0u);
}

TEST(ForwardingGate, ARefusedRequestWaitsForTheNewLeader) {
  Peer n0("n0");
  Peer n1("n1");
  Peer n2("n2");
  n2.Leads(2);
  n1.Follows(n2, 2);
  n0.Follows(n1, 1);
  const auto waiting = n0.Ask(kWork);
  n0.Follows(n2, 2);
  EXPECT_EQ(waiting->Next().remark, "n2 10.0.0.9:5000 payload");
}

TEST(ForwardingGate, AHandlerThatIsNotTheLeaderAnyMoreHasItRoutedAgain) {
  Peer n0("n0");
  n0.Leads();
  n0.RefuseNext(2);
  EXPECT_EQ(n0.Ask(kWork)->Next().code, 0);
  EXPECT_EQ(n0.served(), 1u);
}

TEST(ForwardingGate, AnUnknownOutcomeIsRepeatedOnlyWhereItDoesNoHarm) {
  Peer n0("n0");
  Peer n1("n1");
  n1.HangUp(true);
  n0.Follows(n1);
  EXPECT_EQ(n0.Ask(kWork)->Next().code, 1);
  const auto repeated = n0.Ask(kRepeat);
  n1.HangUp(false);
  n1.Leads();
  EXPECT_EQ(repeated->Next().code, 0);
}

TEST(ForwardingGate, ALeaderThatCannotBeReachedCertainlyDidNothing) {
  Peer n0("n0");
  {
    Peer gone("n1");
    n0.Follows(gone);
  }
  const auto waiting = n0.Ask(kWork);
  Peer n1("n1");
  n1.Leads(2);
  n0.Follows(n1, 2);
  EXPECT_EQ(waiting->Next().code, 0);
  EXPECT_EQ(n1.served(), 1u);
}

TEST(ForwardingGate, WhatCannotBeHeldIsAnsweredAtOnce) {
  Peer n0("n0", seconds(30), /*max_held=*/1);
  n0.KnowsNobody();
  const auto held = n0.Ask(kWork);
  EXPECT_EQ(n0.Ask(kWork)->Next().code, 14);
  EXPECT_EQ(held->sent(), 0u);
}

TEST(ForwardingGate, StoppingAnswersWhatIsHeld) {
  Peer n0("n0", seconds(30));
  n0.KnowsNobody();
  const auto held = n0.Ask(kWork);
  n0.gate().Stop();
  EXPECT_EQ(held->Next().code, 14);
}

TEST(Dispatcher, AnUnknownCodeIsAnsweredThreeAndTheConnectionStays) {
  Peer n0("n0");
  const auto connection = n0.Ask(4711);
  const Command answer = connection->Next();
  EXPECT_EQ(answer.code, 3);
  EXPECT_EQ(answer.remark, " request type 4711 not supported");
  EXPECT_FALSE(connection->closed());
}

TEST(Dispatcher, AOnewayRequestIsDoneAndNotAnswered) {
  Peer n0("n0");
  const auto connection = n0.Ask(kLocal, remoting::kFlagOneway);
  EXPECT_EQ(n0.served(), 1u);
  EXPECT_EQ(connection->sent(), 0u);
}

TEST(Dispatcher, AForwardedOnewayRequestReachesTheLeader) {
  Peer n0("n0");
  Peer n1("n1");
  n1.Leads();
  n0.Follows(n1);
  n0.Ask(kWork, remoting::kFlagOneway);
  EXPECT_EQ(n0.Ask(kWork)->Next().code, 0);  // the same connection: in order
  EXPECT_EQ(n1.served(), 2u);
}

TEST(Dispatcher, AForwardedRequestThatIsNoneIsRefused) {
  Peer n0("n0");
  n0.Leads();
  EXPECT_EQ(n0.Ask(kForwardRequest)->Next().code, 29);
}

TEST(Forwarded, SurvivesTheWrapping) {
  Request request;
  request.command = Command::Request(310);
  request.command.opaque = 5;
  request.command.body = std::string("a\0b", 3);
  request.command.ext.Set("b", "T");
  request.client_address = "10.0.0.9:5000";
  auto outer = WrapForwarded(request, milliseconds(120));
  ASSERT_TRUE(outer.ok()) << outer.status();
  auto inner = UnwrapForwarded(outer.value());
  ASSERT_TRUE(inner.ok()) << inner.status();
  EXPECT_EQ(inner->command.code, 310);
  EXPECT_EQ(inner->command.opaque, 5);
  EXPECT_EQ(inner->command.body, request.command.body);
  EXPECT_EQ(*inner->command.ext.Find("b"), "T");
  EXPECT_EQ(inner->client_address, "10.0.0.9:5000");
  EXPECT_EQ(inner->elapsed, milliseconds(120));
}

TEST(Response, CodesFollowTheRetrySetsOfClients) {
  EXPECT_EQ(ResponseCodeOf(Status::Ok()), 0);
  EXPECT_EQ(ResponseCodeOf(Status::TimedOut("")), 1);      // unknown: try again (D4)
  EXPECT_EQ(ResponseCodeOf(Status::Busy("")), 2);          // flow control
  EXPECT_EQ(ResponseCodeOf(Status::NoSpace("")), 14);      // disk full
  EXPECT_EQ(ResponseCodeOf(Status::Unavailable("")), 14);  // stopping, too late
  EXPECT_EQ(ResponseCodeOf(Status::InvalidArgument("")), 29);
  EXPECT_EQ(ResponseCodeOf(Status::NotLeader("")), kNotLeaderResponse);  // stays among peers
}

}  // namespace
}  // namespace triad::broker
