// The Asio server over real loopback sockets.

#include <gtest/gtest.h>

#include "tests/unit/remoting/asio_fixture.h"

namespace triad::remoting {
namespace {

TEST_F(Asio, AnswersInTheEncodingOfTheRequest) {
  StartServer();
  RawSocket raw(port_);
  ASSERT_TRUE(raw.Write(RequestBytes(kEcho, 7, "json")));
  ASSERT_TRUE(raw.Write(RequestBytes(kEcho, 8, "binary", SerializeType::kRocketmq)));
  const auto first = raw.Read();
  const auto second = raw.Read();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->serialize_type, SerializeType::kJson);
  EXPECT_EQ(first->opaque, 7);
  EXPECT_EQ(first->body, "json");
  EXPECT_TRUE(first->is_response());
  EXPECT_EQ(second->serialize_type, SerializeType::kRocketmq);
  EXPECT_EQ(second->opaque, 8);
  EXPECT_EQ(second->body, "binary");
}

TEST_F(Asio, ServerCallsAndNotifiesItsClient) {
  std::string notified;
  ClientHandler handler;
  handler.on_request = [&](const ConnectionPtr& connection, Command request) {
    if (request.is_oneway()) {
      waiter_.Notify([&] { notified = request.body; });
      return;
    }
    Command response = Command::ResponseTo(request, 0);
    response.body = "from client: " + request.body;
    connection->Send(std::move(response));
  };
  StartServer();
  StartClient({}, handler);
  ASSERT_TRUE(Echo("open").ok());

  Command notice = Command::Request(40);
  notice.body = "changed";
  last_connection_->Send(std::move(notice));
  std::optional<Result<Command>> answer;
  Command question = Command::Request(307);
  question.body = "info";
  last_connection_->Call(std::move(question), kLong, [&](Result<Command> result) {
    waiter_.Notify([&] { answer.emplace(std::move(result)); });
  });
  ASSERT_TRUE(waiter_.Wait([&] { return answer.has_value() && !notified.empty(); }));
  ASSERT_TRUE(answer->ok()) << answer->status();
  EXPECT_EQ((*answer)->body, "from client: info");
  EXPECT_EQ(notified, "changed");
}

TEST_F(Asio, ServerCallTimesOutWhenTheClientIsSilent) {
  ClientHandler handler;
  handler.on_request = [](const ConnectionPtr&, Command) {};
  StartServer();
  StartClient({}, handler);
  ASSERT_TRUE(Echo("open").ok());
  std::promise<StatusCode> code;
  last_connection_->Call(Command::Request(307), milliseconds(30),
                         [&](Result<Command> result) { code.set_value(result.status().code()); });
  EXPECT_EQ(code.get_future().get(), StatusCode::kTimedOut);
}

TEST_F(Asio, FramesMayArriveByteByByte) {
  StartServer();
  RawSocket raw(port_);
  for (const char byte : RequestBytes(kEcho, 1, "slow") + RequestBytes(kEcho, 2, "slower")) {
    ASSERT_TRUE(raw.Write(std::string_view(&byte, 1)));
  }
  const auto first = raw.Read();
  const auto second = raw.Read();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->body, "slow");
  EXPECT_EQ(second->body, "slower");
}

TEST_F(Asio, AHeldRequestDoesNotBlockOthers) {
  StartServer();
  RawSocket raw(port_);
  ASSERT_TRUE(raw.Write(RequestBytes(kHold, 1) + RequestBytes(kEcho, 2)));
  const auto first = raw.Read();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->opaque, 2);
  AnswerHeld();
  const auto second = raw.Read();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->opaque, 1);
  EXPECT_EQ(second->remark, "held");
}

TEST_F(Asio, WIRE_2_BadInputClosesOnlyItsSender) {
  StartServer();
  StartClient();
  ASSERT_TRUE(Echo("before").ok());
  struct Case {
    const char* name;
    std::string bytes;
  };
  const Case cases[] = {
      {"TLS hello", std::string("\x16\x03\x01\x02\x00\x01", 6)},
      {"length too large", std::string("\x7f\xff\xff\xff", 4)},
      {"negative length", std::string("\xff\xff\xff\xff", 4)},
      {"length below four", std::string("\x00\x00\x00\x01\x00", 5)},
      {"header longer than frame", std::string("\x00\x00\x00\x08\x00\x00\xff\xff{}{}", 12)},
      {"header is no JSON", std::string("\x00\x00\x00\x08\x00\x00\x00\x04oops", 12)},
      {"HTTP", "GET / HTTP/1.1\r\n\r\n"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    RawSocket raw(port_);
    ASSERT_TRUE(raw.Write(c.bytes));
    EXPECT_TRUE(raw.ReadsEnd());
  }
  EXPECT_TRUE(Echo("after").ok());
  EXPECT_TRUE(disconnected_.empty());
}

TEST_F(Asio, ASlowReaderIsClosedAndItsOutputDropped) {
  ServerOptions options;
  options.max_output_bytes = 4u << 20;
  StartServer(options);
  RawSocket raw(port_, 4096);
  // 64 answers of 1 MiB that nobody reads: at most 4 MiB plus the kernel's buffers may wait.
  std::string requests;
  for (int i = 0; i < 64; ++i) requests += RequestBytes(kBig, i);
  ASSERT_TRUE(raw.Write(requests));
  ASSERT_TRUE(waiter_.Wait([&] { return !closed_.empty(); }));
  EXPECT_TRUE(last_connection_->closed());
  EXPECT_EQ(server_->connection_count(), 0u);
}

TEST_F(Asio, ReadingPausesAtTheLimitOfUnansweredRequests) {
  ServerOptions options;
  options.max_inflight_requests = 3;
  options.threads = 1;
  StartServer(options);
  RawSocket raw(port_);
  std::string requests;
  for (int i = 0; i < 5; ++i) requests += RequestBytes(kHold, i);
  ASSERT_TRUE(raw.Write(requests));
  ASSERT_TRUE(waiter_.Wait([&] { return received_ >= 3; }));
  // The same thread serves this one: when it is answered, the first connection has had its turn.
  RawSocket other(port_);
  ASSERT_TRUE(other.Write(RequestBytes(kEcho, 9)));
  ASSERT_TRUE(other.Read());
  EXPECT_EQ(held_.size(), 3u);
  AnswerHeld();
  ASSERT_TRUE(waiter_.Wait([&] { return held_.size() == 2; }));
  AnswerHeld();
  for (int i = 0; i < 5; ++i) {
    const auto answer = raw.Read();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->opaque, i);
  }
}

TEST_F(Asio, WIRE_6_AnIdleConnectionIsClosed) {
  ServerOptions options;
  options.idle_timeout = milliseconds(60);
  StartServer(options);
  RawSocket raw(port_);
  ASSERT_TRUE(raw.Write(RequestBytes(kEcho, 1)));
  ASSERT_TRUE(raw.Read());
  EXPECT_TRUE(raw.ReadsEnd());
}

TEST_F(Asio, WIRE_6_AConnectionThatWaitsForAnAnswerIsNotIdle) {
  ServerOptions server;
  server.idle_timeout = milliseconds(60);
  StartServer(server);
  RawSocket waits(port_);
  ASSERT_TRUE(waits.Write(RequestBytes(kHold, 1)));
  ASSERT_TRUE(waiter_.Wait([&] { return received_ == 1; }));
  // One that came later and waits for nothing is closed, twice over.
  for (int i = 0; i < 2; ++i) {
    RawSocket idle(port_);
    ASSERT_TRUE(idle.Write(RequestBytes(kEcho, 2)));
    ASSERT_TRUE(idle.Read());
    EXPECT_TRUE(idle.ReadsEnd());
  }
  AnswerHeld();
  const auto answer = waits.Read();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->remark, "held");
  EXPECT_TRUE(waits.ReadsEnd()) << "idle from here on";
}

TEST_F(Asio, AFrameThatStaysIncompleteCostsTheConnection) {
  ServerOptions options;
  options.partial_frame_timeout = milliseconds(60);
  StartServer(options);
  RawSocket raw(port_);
  ASSERT_TRUE(raw.Write(RequestBytes(kEcho, 1).substr(0, 10)));
  EXPECT_TRUE(raw.ReadsEnd());
}

TEST_F(Asio, StopFlushesWhatIsQueued) {
  StartServer();
  auto raw = std::make_unique<RawSocket>(port_, 4096);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(raw->Write(RequestBytes(kBig, i)));
  ASSERT_TRUE(waiter_.Wait([&] { return received_ == 8; }));
  std::thread stopper([&] { server_->Stop(kLong); });
  int whole = 0;
  while (const auto answer = raw->Read()) {
    if (answer->body.size() == (1u << 20)) ++whole;
  }
  raw.reset();
  stopper.join();
  EXPECT_EQ(whole, 8);
}

TEST_F(Asio, StopWaitsForAnAnswerThatIsBeingWorkedOut) {
  StartServer();
  auto raw = std::make_unique<RawSocket>(port_);
  ASSERT_TRUE(raw->Write(RequestBytes(kHold, 1)));
  ASSERT_TRUE(waiter_.Wait([&] { return received_ == 1; }));
  std::thread stopper([&] { server_->Stop(kLong); });
  while (RawSocket(port_).connected()) std::this_thread::yield();  // until it has begun
  AnswerHeld();
  const auto answer = raw->Read();
  EXPECT_TRUE(answer && answer->remark == "held");
  EXPECT_TRUE(raw->ReadsEnd());
  raw.reset();
  stopper.join();
}

TEST_F(Asio, StopSendsEachAnswerOnceWhateverThreadsHaveThem) {
  constexpr int kRounds = 20;
  constexpr std::size_t kRequests = 2000;
  constexpr std::size_t kThreads = 4;
  for (int round = 0; round < kRounds; ++round) {
    StartServer();
    auto raw = std::make_unique<RawSocket>(port_);
    std::string requests;
    for (std::size_t i = 0; i < kRequests; ++i) {
      requests += RequestBytes(kHold, static_cast<std::int32_t>(i));
    }
    ASSERT_TRUE(raw->Write(requests));
    ASSERT_TRUE(waiter_.Wait([&] { return held_.size() == kRequests; }));
    std::thread stopper([&] { server_->Stop(kLong); });
    while (RawSocket(port_).connected()) std::this_thread::yield();  // until it has begun
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < kRequests; i += kThreads) {
          held_[i].first->Send(Command::ResponseTo(held_[i].second, 0, "held"));
        }
      });
    }
    std::vector<int> seen(kRequests);
    while (const auto answer = raw->Read()) ++seen.at(static_cast<std::size_t>(answer->opaque));
    for (std::thread& thread : threads) thread.join();
    raw.reset();
    stopper.join();
    held_.clear();
    for (std::size_t i = 0; i < kRequests; ++i) ASSERT_EQ(seen[i], 1) << "answer " << i;
  }
}

TEST_F(Asio, StopEndsWithinItsGraceWhenAPeerDoesNotRead) {
  StartServer();
  RawSocket raw(port_, 4096);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(raw.Write(RequestBytes(kBig, i)));
  ASSERT_TRUE(waiter_.Wait([&] { return received_ == 8; }));
  const auto begin = std::chrono::steady_clock::now();
  server_->Stop(milliseconds(50));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
  EXPECT_EQ(server_->connection_count(), 0u);
  EXPECT_EQ(closed_.size(), 1u);
}

TEST_F(Asio, AConnectionSurvivesItsServerAsAnObject) {
  StartServer();
  StartClient();
  ASSERT_TRUE(Echo("open").ok());
  const ConnectionPtr connection = last_connection_;
  server_->Stop(milliseconds(0));
  server_.reset();
  EXPECT_TRUE(connection->closed());
  connection->Send(Command::Request(40));
  connection->Post([] { FAIL() << "must be dropped"; });
  connection->Close();
  std::promise<StatusCode> code;
  connection->Call(Command::Request(307), kLong,
                   [&](Result<Command> result) { code.set_value(result.status().code()); });
  EXPECT_EQ(code.get_future().get(), StatusCode::kUnavailable);
}

TEST_F(Asio, ServesSeveralPortsAndNamesTheOneItCannotBind) {
  ServerOptions options;
  options.ports = {0, 0};
  StartServer(options);
  ASSERT_EQ(server_->ports().size(), 2u);
  StartClient();
  for (const std::uint16_t port : server_->ports()) {
    EXPECT_TRUE(client_->CallSync(Local(port), Command::Request(kEcho), kLong).ok());
  }
  ServerOptions taken;
  taken.ports = {port_};
  ServerHandler handler;
  handler.on_request = [](const ConnectionPtr&, Command) {};
  const auto second = CreateServer(taken, handler);
  const Status status = second->Start();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(std::to_string(port_)), std::string_view::npos) << status;
}

TEST_F(Asio, MappedAddressesArePrintedAsIpv4) {
  ServerOptions options;
  options.bind_address = "::";
  options.ports = {0};
  StartServer(options);
  RawSocket raw(port_);
  ASSERT_TRUE(raw.Write(RequestBytes(kEcho, 1)));
  ASSERT_TRUE(raw.Read());
  EXPECT_EQ(last_connection_->remote_address().substr(0, 10), "127.0.0.1:");
}

TEST_F(Asio, NewConnectionsBeyondTheLimitAreRefusedAndOldOnesLive) {
  ServerOptions options;
  options.max_connections = 2;
  StartServer(options);
  RawSocket first(port_);
  RawSocket second(port_);
  ASSERT_TRUE(first.Write(RequestBytes(kEcho, 1)) && first.Read());
  ASSERT_TRUE(second.Write(RequestBytes(kEcho, 1)) && second.Read());
  RawSocket third(port_);
  EXPECT_TRUE(third.ReadsEnd());
  EXPECT_TRUE(first.Write(RequestBytes(kEcho, 2)) && first.Read());
}

TEST_F(Asio, AcceptingGoesOnAfterTheDescriptorsRanOut) {
  StartServer();
  RawSocket first(port_);
  ASSERT_TRUE(first.Write(RequestBytes(kEcho, 1)) && first.Read());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<int> fillers;
  rlimit small = before;
  small.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
  for (int fd = dup(0); fd >= 0; fd = dup(0)) fillers.push_back(fd);
  close(fillers.back());
  fillers.pop_back();
  RawSocket starved(port_);  // takes the last descriptor of the process: accept cannot
  ASSERT_TRUE(starved.connected());
  ASSERT_TRUE(starved.Write(RequestBytes(kEcho, 1, "late")));
  EXPECT_TRUE(first.Write(RequestBytes(kEcho, 2)) && first.Read());  // the others live
  for (const int fd : fillers) close(fd);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  const auto answer = starved.Read();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "late");
}

TEST_F(Asio, StopAcceptingKeepsTheConnections) {
  StartServer();
  StartClient();
  ASSERT_TRUE(Echo("before").ok());
  server_->StopAccepting();
  EXPECT_TRUE(Echo("after").ok());
  StartClient();
  EXPECT_EQ(Echo("new").status().code(), StatusCode::kUnavailable);
}

TEST_F(Asio, ConnectionsAreSpreadOverTheThreads) {
  ServerOptions options;
  options.threads = 2;
  StartServer(options);
  std::vector<std::thread::id> ids;
  RawSocket first(port_);
  RawSocket second(port_);
  for (RawSocket* raw : {&first, &second}) {
    ASSERT_TRUE(raw->Write(RequestBytes(kEcho, 1)) && raw->Read());
    last_connection_->Post(
        [&] { waiter_.Notify([&] { ids.push_back(std::this_thread::get_id()); }); });
  }
  ASSERT_TRUE(waiter_.Wait([&] { return ids.size() == 2; }));
  EXPECT_NE(ids[0], ids[1]);
}

}  // namespace
}  // namespace triad::remoting
