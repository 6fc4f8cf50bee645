// A real NameServer on a free port, spoken to over raw sockets, also one byte at a time.

#include "nameserver/name_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "remoting/codes.h"
#include "remoting/frame.h"
#include "remoting/headers.h"
#include "remoting/json.h"
#include "temp_dir.h"
#include "tests/unit/remoting/hex_file.h"

namespace triad::nameserver {
namespace {

using remoting::Command;
using testing::HasSubstr;

// The machine's clock, moved forward by the test.
class MovedClock final : public Clock {
 public:
  TimePoint MonoNow() const override { return SystemClock().MonoNow() + offset_.load(); }
  std::int64_t WallNowMs() const override { return SystemClock().WallNowMs(); }
  void Advance(std::chrono::nanoseconds by) { offset_ = offset_.load() + by; }

 private:
  std::atomic<std::chrono::nanoseconds> offset_{std::chrono::nanoseconds(0)};
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    timeval limit{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~RawClient() { ::close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // The server may close while we write: no error then.
  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void SendByteByByte(std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) Send(bytes.substr(i, 1));
  }

  // nullopt: the connection ended (or nothing came within 10 s, which fails the test).
  std::optional<Command> Receive() {
    while (true) {
      Result<std::optional<Command>> next = decoder_.Next();
      EXPECT_TRUE(next.ok()) << next.status();
      if (!next.ok()) return std::nullopt;
      if (next->has_value()) return std::move(**next);
      char buffer[4096];
      const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
      EXPECT_FALSE(n < 0 && errno == EAGAIN) << "no answer within 10 s";
      if (n <= 0) return std::nullopt;
      decoder_.Append(std::string_view(buffer, static_cast<std::size_t>(n)));
    }
  }
  Command Ask(const Command& request) {
    Send(remoting::EncodeFrame(request).value());
    std::optional<Command> response = Receive();
    EXPECT_TRUE(response.has_value());
    return response.value_or(Command{});
  }

 private:
  const int fd_;
  remoting::FrameDecoder decoder_;
};

std::string SpecFile(const std::string& name) {
  return ReadFile(PosixFileSystem(), std::string(TRIAD_TEST_DATA) + "/spec/" + name).value();
}

Command RouteRequest(const std::string& topic) {
  Command request = Command::Request(remoting::kGetRouteInfoByTopic);
  request.ext.Set("topic", topic);
  return request;
}

Command Registration(const std::string& id, const std::string& address) {
  Command request = Command::Request(remoting::kRegisterBroker);
  remoting::RegisterBrokerRequest header;
  header.broker_name = "broker-a";
  header.broker_addr = address;
  header.cluster_name = "C";
  header.ha_server_addr = "h:1";
  header.broker_id = std::stoll(id);
  header.heartbeat_timeout_ms = 10000;
  header.Encode(&request.ext);
  remoting::RegisterBrokerBody body;
  for (const char* topic : {"T1", "T2"}) {
    body.topics.topic_config_table[topic].topic_name = topic;
  }
  request.body = body.Encode();
  return request;
}

class NameServerTest : public testing::Test {
 protected:
  NameServerTest() {
    config_.listen_port = 0;
    config_.bind_address = "127.0.0.1";
    config_.kv_config_path = dir_.Path("kv.json");
    config_.config_store_path = dir_.Path("namesrv.conf");
    config_.scan_interval = std::chrono::milliseconds(20);
    Start();
  }
  void Start() {
    server_ = std::make_unique<NameServer>(config_, PosixFileSystem(), clock_);
    const Status started = server_->Start();
    ASSERT_TRUE(started.ok()) << started;
  }
  std::uint16_t port() const { return server_->port(); }

  // Asks until the topic has no route. The server acts on its own threads.
  bool RouteDisappears(const std::string& topic) {
    RawClient client(port());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < deadline) {
      if (client.Ask(RouteRequest(topic)).code == remoting::kTopicNotExist) return true;
      std::this_thread::yield();
    }
    return false;
  }

  TempDir dir_;
  NameServerConfig config_;
  MovedClock clock_;
  std::unique_ptr<NameServer> server_;
};

struct FrameCase {
  std::string name;
  std::string bytes;
  remoting::Json expected;
};

std::vector<FrameCase> FramesForANameServer() {
  std::vector<FrameCase> cases;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(TRIAD_TEST_DATA) + "/spec")) {
    if (file.path().extension() != ".hex") continue;
    const std::string name = file.path().filename().string();
    FrameCase c{name, test::FromHex(SpecFile(name)),
                remoting::Json::Parse(SpecFile(name + ".expected.json")).value()};
    if (c.expected["sendTo"].AsString().find("nameserver") == std::string::npos) continue;
    cases.push_back(std::move(c));
  }
  return cases;
}

void CheckAnswer(const Command& response, const remoting::Json& expected) {
  EXPECT_TRUE(response.is_response());
  if (expected.Has("code")) {
    EXPECT_EQ(response.code, expected["code"].AsInt64());
  }
  if (expected.Has("codeNot")) {
    EXPECT_NE(response.code, expected["codeNot"].AsInt64());
  }
  if (expected.Has("opaque")) {
    EXPECT_EQ(response.opaque, expected["opaque"].AsInt64());
  }
  if (expected.Has("serializeType")) {
    EXPECT_EQ(static_cast<int>(response.serialize_type), expected["serializeType"].AsInt64());
  }
}

void CheckExchange(RawClient* client, const FrameCase& c) {
  const std::string result = c.expected["result"].AsString();
  if (result == "close") {
    EXPECT_FALSE(client->Receive().has_value());
    return;
  }
  if (result == "responses") {
    std::set<std::int64_t> opaques;
    for (std::size_t i = 0; i < c.expected["opaques"].items().size(); ++i) {
      const std::optional<Command> response = client->Receive();
      ASSERT_TRUE(response.has_value());
      CheckAnswer(*response, c.expected);
      opaques.insert(response->opaque);
    }
    for (const remoting::Json& opaque : c.expected["opaques"].items()) {
      EXPECT_TRUE(opaques.contains(opaque.AsInt64()));
    }
    return;
  }
  const std::optional<Command> response = client->Receive();
  if (result == "error-or-close" && !response) return;
  ASSERT_TRUE(response.has_value());
  CheckAnswer(*response, c.expected);
  // The connection stays usable.
  EXPECT_EQ(client->Ask(RouteRequest("none")).code, remoting::kTopicNotExist);
}

TEST_F(NameServerTest, WIRE_3_AnswersEveryFrameOfTheSpecAsExpectedAndHarmsNobodyElse) {
  RawClient other(port());
  const std::vector<FrameCase> cases = FramesForANameServer();
  ASSERT_GE(cases.size(), 9u);
  for (const FrameCase& c : cases) {
    SCOPED_TRACE(c.name);
    RawClient client(port());
    client.Send(c.bytes);
    CheckExchange(&client, c);
    EXPECT_EQ(other.Ask(RouteRequest("none")).code, remoting::kTopicNotExist);
  }
  EXPECT_EQ(other.Ask(Command::Request(remoting::kGetAllTopicListFromNameServer)).body,
            "{\"topicList\":[]}");
}

TEST_F(NameServerTest, AnswersEveryFrameOfTheSpecSentOneByteAtATime) {
  for (const FrameCase& c : FramesForANameServer()) {
    SCOPED_TRACE(c.name);
    RawClient client(port());
    client.SendByteByByte(c.bytes);
    CheckExchange(&client, c);
  }
}

TEST_F(NameServerTest, ABrokerThatRegisteredOverTheWireIsInTheRoute) {
  RawClient broker(port());
  EXPECT_EQ(broker.Ask(Registration("0", "10.0.0.1:10911")).code, 0);
  RawClient client(port());
  const Command response = client.Ask(RouteRequest("T1"));
  EXPECT_EQ(response.code, 0);
  EXPECT_THAT(response.body, HasSubstr("{\"0\":\"10.0.0.1:10911\"}"));
}

TEST_F(NameServerTest, ABrokenConnectionRemovesItsBrokerAtOnce) {
  {
    RawClient broker(port());
    ASSERT_EQ(broker.Ask(Registration("0", "10.0.0.1:10911")).code, 0);
  }
  EXPECT_TRUE(RouteDisappears("T1"));
}

TEST_F(NameServerTest, ABrokerThatCameBackOnAnotherConnectionGoesWithThatOne) {
  RawClient first(port());
  ASSERT_EQ(first.Ask(Registration("0", "10.0.0.1:10911")).code, 0);
  {
    RawClient second(port());
    Command query = Command::Request(remoting::kQueryDataVersion);
    query.ext.Set("brokerName", "broker-a");
    query.ext.Set("brokerAddr", "10.0.0.1:10911");
    query.ext.Set("clusterName", "C");
    query.ext.Set("brokerId", "0");
    query.body = "{\"counter\":1,\"stateVersion\":0,\"timestamp\":1}";
    ASSERT_EQ(second.Ask(query).code, 0);
  }
  EXPECT_TRUE(RouteDisappears("T1"));
}

TEST_F(NameServerTest, ASilentBrokerIsDroppedAndItsConnectionClosed) {
  RawClient broker(port());
  ASSERT_EQ(broker.Ask(Registration("0", "10.0.0.1:10911")).code, 0);
  clock_.Advance(std::chrono::seconds(11));
  EXPECT_FALSE(broker.Receive().has_value());
  EXPECT_TRUE(RouteDisappears("T1"));
}

TEST_F(NameServerTest, AOnewayRequestIsDoneAndNotAnswered) {
  RawClient client(port());
  Command put = Command::Request(remoting::kPutKvConfig);
  put.flag = remoting::kFlagOneway;
  put.ext.Set("namespace", "n");
  put.ext.Set("key", "k");
  put.ext.Set("value", "v");
  client.Send(remoting::EncodeFrame(put).value());
  Command route = RouteRequest("none");
  route.flag = remoting::kFlagOneway;
  client.Send(remoting::EncodeFrame(route).value());
  // The next answer is the one to a request that wants one; it waits behind the put.
  Command other = Command::Request(remoting::kDeleteKvConfig);
  other.opaque = 5;
  other.ext.Set("namespace", "n");
  other.ext.Set("key", "none");
  EXPECT_EQ(client.Ask(other).opaque, 5);
  Command get = Command::Request(remoting::kGetKvConfig);
  get.ext.Set("namespace", "n");
  get.ext.Set("key", "k");
  EXPECT_EQ(*client.Ask(get).ext.Find("value"), "v");
}

TEST_F(NameServerTest, KvSettingsSurviveARestart) {
  Command put = Command::Request(remoting::kPutKvConfig);
  put.ext.Set("namespace", "n");
  put.ext.Set("key", "k");
  put.ext.Set("value", "v");
  EXPECT_EQ(RawClient(port()).Ask(put).code, 0);
  server_->Stop();
  Start();
  Command get = Command::Request(remoting::kGetKvConfig);
  get.ext.Set("namespace", "n");
  get.ext.Set("key", "k");
  EXPECT_EQ(*RawClient(port()).Ask(get).ext.Find("value"), "v");
}

TEST_F(NameServerTest, ADamagedKvFileStopsTheStart) {
  server_->Stop();
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), config_.kv_config_path, "{").ok());
  NameServer server(config_, PosixFileSystem(), clock_);
  EXPECT_EQ(server.Start().code(), StatusCode::kCorruption);
}

TEST_F(NameServerTest, ATakenPortStopsTheStartNamingTheAddress) {
  NameServerConfig config = config_;
  config.listen_port = port();
  NameServer server(config, PosixFileSystem(), clock_);
  const Status status = server.Start();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(port())));
}

TEST_F(NameServerTest, StoppingClosesConnectionsAndMayBeRepeated) {
  RawClient client(port());
  ASSERT_EQ(client.Ask(RouteRequest("none")).code, remoting::kTopicNotExist);
  server_->Stop();
  EXPECT_FALSE(client.Receive().has_value());
  server_->Stop();
}

TEST(BackgroundThread, RefusesWhatDoesNotFitAndRunsTheRestInOrder) {
  std::vector<int> done;
  std::mutex gate;
  gate.lock();
  BackgroundThread thread(2, std::chrono::hours(1), [] { return std::chrono::hours(1); });
  std::atomic<bool> running = false;
  ASSERT_TRUE(thread.Post([&] {
    running = true;
    const std::lock_guard wait(gate);
    done.push_back(1);
  }));
  while (!running) std::this_thread::yield();
  EXPECT_TRUE(thread.Post([&] { done.push_back(2); }));
  EXPECT_TRUE(thread.Post([&] { done.push_back(3); }));
  EXPECT_FALSE(thread.Post([&] { done.push_back(4); }));
  gate.unlock();
  thread.Stop();
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
  EXPECT_FALSE(thread.Post([] {}));
}

}  // namespace
}  // namespace triad::nameserver
