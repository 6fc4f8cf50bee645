// The Asio server and client over real loopback sockets.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "remoting/client.h"
#include "remoting/frame.h"
#include "remoting/server.h"

namespace triad::remoting {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLong{10000};

// Waits until `predicate` holds, woken by Notify.
class Waiter {
 public:
  void Notify(const std::function<void()>& change) {
    std::lock_guard hold(mutex_);
    change();
    changed_.notify_all();
  }
  bool Wait(const std::function<bool()>& predicate, milliseconds limit = kLong) {
    std::unique_lock hold(mutex_);
    return changed_.wait_for(hold, limit, predicate);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

std::string Local(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

// A plain blocking socket: the peer that does what our client never would.
class RawSocket {
 public:
  explicit RawSocket(std::uint16_t port, int receive_buffer = 0) {
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    if (receive_buffer > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~RawSocket() { close(fd_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  bool connected() const { return connected_; }
  bool Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  // The next frame; nullopt at the end of the stream or after ten seconds.
  std::optional<Command> Read() {
    for (;;) {
      Result<std::optional<Command>> next = decoder_.Next();
      if (!next.ok()) return std::nullopt;
      if (next->has_value()) return std::move(**next);
      char buffer[65536];
      const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
      if (n <= 0) return std::nullopt;
      decoder_.Append(std::string_view(buffer, static_cast<std::size_t>(n)));
    }
  }
  // True when the peer closed, within ten seconds.
  bool ReadsEnd() {
    char buffer[65536];
    for (;;) {
      const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
      if (n == 0) return true;
      if (n < 0) return errno == ECONNRESET;
    }
  }

 private:
  int fd_ = -1;
  bool connected_ = false;
  FrameDecoder decoder_;
};

std::string RequestBytes(std::int32_t code, std::int32_t opaque, std::string body = {},
                         SerializeType type = SerializeType::kJson) {
  Command request = Command::Request(code);
  request.opaque = opaque;
  request.body = std::move(body);
  request.serialize_type = type;
  return EncodeFrame(request).value();
}

// Codes of the test server.
constexpr int kEcho = 1;
constexpr int kHold = 2;     // answered by AnswerHeld
constexpr int kBig = 3;      // answered with 1 MiB
constexpr int kSilence = 4;  // never answered

class Asio : public testing::Test {
 protected:
  void StartServer(ServerOptions options = {}) {
    if (options.ports.empty()) options.ports = {0};
    ServerHandler handler;
    handler.on_request = [this](const ConnectionPtr& connection, Command request) {
      OnRequest(connection, std::move(request));
    };
    handler.on_closed = [this](const ConnectionPtr& connection) {
      waiter_.Notify([&] { closed_.push_back(connection->id()); });
    };
    server_ = CreateServer(options, handler);
    const Status started = server_->Start();
    ASSERT_TRUE(started.ok()) << started;
    port_ = server_->ports().at(0);
  }

  void OnRequest(const ConnectionPtr& connection, Command request) {
    waiter_.Notify([&] {
      ++received_;
      last_connection_ = connection;
      if (request.code == kHold) held_.emplace_back(connection, request);
    });
    if (request.is_oneway()) return;
    if (request.code == kEcho) {
      Command response = Command::ResponseTo(request, 0);
      response.body = request.body;
      response.ext = request.ext;
      connection->Send(std::move(response));
    } else if (request.code == kBig) {
      Command response = Command::ResponseTo(request, 0);
      response.body.assign(1 << 20, 'b');
      connection->Send(std::move(response));
    }
  }

  void AnswerHeld() {
    std::vector<std::pair<ConnectionPtr, Command>> held;
    waiter_.Notify([&] { held.swap(held_); });
    for (const auto& [connection, request] : held) {
      connection->Send(Command::ResponseTo(request, 0, "held"));
    }
  }

  void StartClient(ClientOptions options = {}, ClientHandler handler = {}) {
    if (!handler.on_disconnect) {
      handler.on_disconnect = [this](const std::string& address) {
        waiter_.Notify([&] { disconnected_.push_back(address); });
      };
    }
    client_ = CreateClient(options, handler);
  }

  Result<Command> Echo(std::string body, milliseconds timeout = kLong) {
    Command request = Command::Request(kEcho);
    request.body = std::move(body);
    return client_->CallSync(Local(port_), std::move(request), timeout);
  }

  void TearDown() override {
    client_.reset();
    if (server_) server_->Stop(milliseconds(0));
  }

  Waiter waiter_;
  int received_ = 0;
  std::vector<std::uint64_t> closed_;
  std::vector<std::string> disconnected_;
  ConnectionPtr last_connection_;
  std::vector<std::pair<ConnectionPtr, Command>> held_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

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

TEST_F(Asio, BadInputClosesOnlyItsSender) {
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

TEST_F(Asio, AnIdleConnectionIsClosed) {
  ServerOptions options;
  options.idle_timeout = milliseconds(60);
  StartServer(options);
  RawSocket raw(port_);
  ASSERT_TRUE(raw.Write(RequestBytes(kEcho, 1)));
  ASSERT_TRUE(raw.Read());
  EXPECT_TRUE(raw.ReadsEnd());
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
