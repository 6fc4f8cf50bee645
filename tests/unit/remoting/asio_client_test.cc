// The Asio client over real loopback sockets.

#include <gtest/gtest.h>

#include "tests/unit/remoting/asio_fixture.h"

namespace triad::remoting {
namespace {

TEST_F(Asio, ClientCallsInBothEncodings) {
  StartServer();
  for (const SerializeType type : {SerializeType::kJson, SerializeType::kRocketmq}) {
    ClientOptions options;
    options.serialize_type = type;
    StartClient(options);
    Command request = Command::Request(kEcho);
    request.ext.Set("topic", std::string("T1"));
    request.body = "hello";
    const Result<Command> answer = client_->CallSync(Local(port_), request, kLong);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->body, "hello");
    EXPECT_EQ(answer->ext.StringOr("topic", ""), "T1");
    EXPECT_EQ(answer->serialize_type, type);
    ASSERT_TRUE(waiter_.Wait([&] { return last_connection_ != nullptr; }));
    EXPECT_EQ(last_connection_->last_serialize_type(), type);
  }
}

// A binary header has 16 bits for it.
TEST_F(Asio, ACodeThatABinaryHeaderCannotHoldGoesAsJson) {
  StartServer();
  ClientOptions options;
  options.serialize_type = SerializeType::kRocketmq;
  StartClient(options);
  for (const std::int32_t code : {32768, 60010}) {
    const Result<Command> answer = client_->CallSync(Local(port_), Command::Request(code), kLong);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->serialize_type, SerializeType::kJson);
  }
}

TEST_F(Asio, TenThousandPipelinedCallsComeBackInOrderOnOneConnection) {
  StartServer();
  StartClient();
  constexpr int kCalls = 10000;
  std::vector<int> order;
  int wrong = 0;
  for (int i = 0; i < kCalls; ++i) {
    Command request = Command::Request(kEcho);
    request.body = std::to_string(i);
    client_->Call(Local(port_), std::move(request), kLong, [&, i](Result<Command> result) {
      waiter_.Notify([&] {
        if (!result.ok() || result->body != std::to_string(i)) ++wrong;
        order.push_back(i);
      });
    });
  }
  ASSERT_TRUE(waiter_.Wait([&] { return order.size() == kCalls; }));
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(server_->connection_count(), 1u);
}

TEST_F(Asio, LargeBodiesArriveWhole) {
  StartServer();
  StartClient();
  std::string body(5u << 20, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 31 % 251);
  const Result<Command> answer = Echo(body);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->body == body);
}

TEST_F(Asio, ClientTimesOutAndALateAnswerHarmsNobody) {
  StartServer();
  StartClient();
  const Result<Command> held =
      client_->CallSync(Local(port_), Command::Request(kHold), milliseconds(30));
  EXPECT_EQ(held.status().code(), StatusCode::kTimedOut);
  AnswerHeld();
  const Result<Command> next = Echo("next");
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->body, "next");
}

TEST_F(Asio, AConnectionWhoseCallIsNotAnsweredYetIsNotIdle) {
  StartServer();
  ClientOptions options;
  options.idle_timeout = milliseconds(30);
  StartClient(options);
  const auto answer =
      client_->CallSync(Local(port_), Command::Request(kSilence), milliseconds(200));
  EXPECT_EQ(answer.status().code(), StatusCode::kTimedOut) << answer.status();
}

TEST_F(Asio, AShortTimeoutIsNotHeldUpByALongOne) {
  StartServer();
  StartClient();
  std::vector<std::string> order;
  client_->Call(Local(port_), Command::Request(kSilence), seconds(60), [&](Result<Command> result) {
    waiter_.Notify([&] { order.emplace_back(StatusCodeName(result.status().code())); });
  });
  const Result<Command> fast =
      client_->CallSync(Local(port_), Command::Request(kSilence), milliseconds(30));
  EXPECT_EQ(fast.status().code(), StatusCode::kTimedOut);
  EXPECT_TRUE(order.empty());
  client_->Stop();
  ASSERT_EQ(order.size(), 1u);
  EXPECT_EQ(order[0], StatusCodeName(StatusCode::kCancelled));
}

TEST_F(Asio, ConnectionRefusedIsSaidWithTheAddress) {
  StartServer();
  const std::uint16_t port = port_;
  server_->Stop(milliseconds(0));
  StartClient();
  const Result<Command> answer = client_->CallSync(Local(port), Command::Request(kEcho), kLong);
  EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(answer.status().message().find(Local(port)), std::string_view::npos);
  EXPECT_NE(answer.status().message().find("refused"), std::string_view::npos);
  EXPECT_TRUE(waiter_.Wait([&] { return disconnected_ == std::vector{Local(port)}; }));
}

TEST_F(Asio, AnAddressThatIsNoneIsRefused) {
  StartClient();
  for (const char* address : {"", "host", "host:", ":1", "host:x", "host:99999"}) {
    SCOPED_TRACE(address);
    const Result<Command> answer = client_->CallSync(address, Command::Request(kEcho), kLong);
    EXPECT_EQ(answer.status().code(), StatusCode::kInvalidArgument) << answer.status();
  }
}

TEST_F(Asio, HostNamesAreResolved) {
  StartServer();
  StartClient();
  const Result<Command> answer =
      client_->CallSync("localhost:" + std::to_string(port_), Command::Request(kEcho), kLong);
  EXPECT_TRUE(answer.ok()) << answer.status();
}

TEST_F(Asio, OpenCallsFailWhenTheConnectionIsLostAndTheNextUseReconnects) {
  StartServer();
  StartClient();
  std::promise<StatusCode> lost;
  client_->Call(Local(port_), Command::Request(kHold), kLong,
                [&](Result<Command> result) { lost.set_value(result.status().code()); });
  ASSERT_TRUE(waiter_.Wait([&] { return held_.size() == 1; }));
  ServerOptions same_port;
  same_port.ports = {port_};
  server_->Stop(milliseconds(0));
  EXPECT_EQ(lost.get_future().get(), StatusCode::kUnavailable);
  ASSERT_TRUE(waiter_.Wait([&] { return disconnected_.size() == 1; }));
  StartServer(same_port);
  const Result<Command> again = Echo("again");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->body, "again");
}

TEST_F(Asio, DisconnectDropsOneConnection) {
  StartServer();
  StartClient();
  ASSERT_TRUE(Echo("one").ok());
  client_->Disconnect(Local(port_));
  ASSERT_TRUE(waiter_.Wait([&] { return closed_.size() == 1; }));
  EXPECT_TRUE(Echo("two").ok());
}

TEST_F(Asio, MoreThanMaxInflightCallsAreRefusedAsBusy) {
  StartServer();
  ClientOptions options;
  options.max_inflight = 2;
  StartClient(options);
  std::vector<StatusCode> codes;
  for (int i = 0; i < 3; ++i) {
    client_->Call(Local(port_), Command::Request(kHold), kLong, [&](Result<Command> result) {
      waiter_.Notify([&] { codes.push_back(result.status().code()); });
    });
  }
  ASSERT_TRUE(waiter_.Wait([&] { return codes.size() == 1; }));
  EXPECT_EQ(codes[0], StatusCode::kBusy);
  ASSERT_TRUE(waiter_.Wait([&] { return held_.size() == 2; }));
  AnswerHeld();
  ASSERT_TRUE(waiter_.Wait([&] { return codes.size() == 3; }));
  EXPECT_EQ(codes[1], StatusCode::kOk);
}

TEST_F(Asio, OnewayIsHandedOverAndNeverAnswered) {
  StartServer();
  StartClient();
  std::promise<Status> sent;
  client_->Oneway(Local(port_), Command::Request(kEcho),
                  [&](Status status) { sent.set_value(std::move(status)); });
  EXPECT_TRUE(sent.get_future().get().ok());
  ASSERT_TRUE(waiter_.Wait([&] { return received_ == 1; }));
  EXPECT_TRUE(Echo("answered").ok());
}

TEST_F(Asio, AfterStopEveryCallIsCancelled) {
  StartServer();
  StartClient();
  client_->Stop();
  EXPECT_EQ(Echo("x").status().code(), StatusCode::kCancelled);
}

TEST_F(Asio, ManyThreadsShareOneConnection) {
  StartServer();
  StartClient();
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string body = std::to_string(t) + "/" + std::to_string(i);
        const Result<Command> answer = Echo(body);
        if (answer.ok() && answer->body == body) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 800);
  EXPECT_EQ(server_->connection_count(), 1u);
}

}  // namespace
}  // namespace triad::remoting
