// The server of the metrics page, and those who abuse it.

#include "remoting/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/http_exchange.h"

namespace triad::remoting {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr seconds kPatience{20};

class HttpServerTest : public testing::Test {
 protected:
  ~HttpServerTest() override {
    if (server_ != nullptr) server_->Stop();
  }

  // /metrics answers at once, /big with 8 MiB, /held when AnswerHeld is called.
  void Start(HttpServerOptions options = {}) {
    options.bind_address = "127.0.0.1";
    std::map<std::string, HttpServer::Page> pages;
    pages["/metrics"] = [](HttpServer::Answer answer) { answer(Text("a 1\n")); };
    pages["/big"] = [](HttpServer::Answer answer) { answer(Text(std::string(8 << 20, 'x'))); };
    pages["/held"] = [this](HttpServer::Answer answer) {
      const std::lock_guard hold(mutex_);
      held_.push_back(std::move(answer));
      changed_.notify_all();
    };
    server_ = CreateHttpServer(options, std::move(pages));
    const Status started = server_->Start();
    ASSERT_TRUE(started.ok()) << started;
  }
  std::unique_ptr<HttpExchange> Connect() {
    auto exchange = std::make_unique<HttpExchange>(server_->port());
    EXPECT_TRUE(exchange->connected());
    return exchange;
  }
  bool WaitForHeld(std::size_t count) {
    std::unique_lock hold(mutex_);
    return changed_.wait_for(hold, kPatience, [&] { return held_.size() == count; });
  }
  void AnswerHeld() {
    std::vector<HttpServer::Answer> held;
    {
      const std::lock_guard hold(mutex_);
      held.swap(held_);
    }
    for (const auto& answer : held) answer(Text("late\n"));
  }
  static HttpResponse Text(std::string body) {
    HttpResponse response;
    response.content_type = "text/plain; version=0.0.4";
    response.body = std::make_shared<const std::string>(std::move(body));
    return response;
  }
  // What the server says to these bytes, and whether it then closes.
  static void ExpectRefused(HttpExchange* exchange, const std::string& bytes, int status) {
    SCOPED_TRACE(bytes.substr(0, 60));
    ASSERT_TRUE(exchange->Write(bytes));
    const auto response = exchange->Read();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->status, status);
    EXPECT_THAT(response->head, HasSubstr("\r\nConnection: close\r\n"));
    EXPECT_TRUE(exchange->ReadsEnd());
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<HttpServer::Answer> held_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, APageComesWithItsTypeAndLength) {
  Start();
  const auto response = Connect()->Get("/metrics?debug=1");
  ASSERT_TRUE(response.has_value());
  EXPECT_THAT(response->head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(response->head, HasSubstr("\r\nContent-Type: text/plain; version=0.0.4\r\n"));
  EXPECT_THAT(response->head, HasSubstr("\r\nContent-Length: 4\r\n"));
  EXPECT_EQ(response->body, "a 1\n");
}

TEST_F(HttpServerTest, OneConnectionServesManyRequestsAlsoWrittenAtOnce) {
  Start();
  const auto client = Connect();
  ASSERT_TRUE(client->Get("/metrics").has_value());
  const std::string request = "GET /metrics HTTP/1.1\r\n\r\n";
  std::string many;
  for (int i = 0; i < 1000; ++i) many += request;
  std::thread writer([&] { EXPECT_TRUE(client->Write(many)); });
  for (int i = 0; i < 1000; ++i) {
    const auto response = client->Read();
    if (!response || response->body != "a 1\n") {
      ADD_FAILURE() << "answer " << i;
      break;
    }
  }
  writer.join();
}

TEST_F(HttpServerTest, WhatIsNotServedIsRefusedByItsCode) {
  Start();
  const auto client = Connect();
  const auto missing = client->Get("/");
  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->status, 404);
  EXPECT_THAT(missing->body, HasSubstr("/metrics"));
  for (const char* method : {"POST", "PUT", "DELETE", "get"}) {
    ASSERT_TRUE(client->Write(std::string(method) + " /metrics HTTP/1.1\r\n\r\n"));
    const auto response = client->Read();
    ASSERT_TRUE(response.has_value()) << method;
    EXPECT_EQ(response->status, 405) << method;
    EXPECT_THAT(response->head, HasSubstr("\r\nAllow: GET\r\n"));
  }
  EXPECT_EQ(client->Get("/metrics")->status, 200) << "the connection is good for more";
}

TEST_F(HttpServerTest, ABodyOrNoHttpCostsTheConnection) {
  Start();
  ExpectRefused(Connect().get(), "POST /metrics HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", 405);
  ExpectRefused(Connect().get(), "HEAD /metrics HTTP/1.1\r\n\r\n", 405);
  ExpectRefused(Connect().get(), "\x16\x03\x01 hello\r\n\r\n", 400);
  ExpectRefused(Connect().get(), "GET /metrics HTTP/3\r\n\r\n", 400);
  ExpectRefused(Connect().get(), std::string("\0\0\0\0\n\n", 6), 400);
  EXPECT_EQ(Connect()->Get("/metrics")->status, 200);
}

TEST_F(HttpServerTest, ARequestHasEightKibibytes) {
  Start();
  const std::string head = "GET /metrics HTTP/1.1\r\nX: ";
  const std::string fits(8192 - head.size() - 4, 'x');
  const auto client = Connect();
  ASSERT_TRUE(client->Write(head + fits + "\r\n\r\n"));
  EXPECT_EQ(client->Read()->status, 200);
  ExpectRefused(Connect().get(), head + fits + "x\r\n\r\n", 431);
  ExpectRefused(Connect().get(), std::string(20000, 'x'), 431);  // no line ends
}

TEST_F(HttpServerTest, WhoSendsARequestTooSlowlyIsCutOff) {
  HttpServerOptions options;
  options.idle_timeout = milliseconds(200);
  Start(options);
  const auto silent = Connect();
  const auto slow = Connect();
  // Each byte comes in time, the request does not.
  std::thread drip([&] {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (slow->Write("G") && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
  EXPECT_TRUE(silent->ReadsEnd());
  drip.join();
  EXPECT_EQ(Connect()->Get("/metrics")->status, 200);
}

TEST_F(HttpServerTest, WhoDoesNotReadIsCutOff) {
  HttpServerOptions options;
  options.idle_timeout = milliseconds(200);
  options.max_connections = 1;
  Start(options);
  const auto deaf = Connect();
  ASSERT_TRUE(deaf->Write("GET /big HTTP/1.1\r\n\r\n"));
  // Its place is free again though it never read a byte.
  const auto end = std::chrono::steady_clock::now() + kPatience;
  bool served = false;
  while (!served && std::chrono::steady_clock::now() < end) {
    served = Connect()->Get("/metrics").has_value();
  }
  EXPECT_TRUE(served);
}

TEST_F(HttpServerTest, ANewcomerTakesThePlaceOfTheLongestSilent) {
  HttpServerOptions options;
  options.max_connections = 3;
  Start(options);
  std::vector<std::unique_ptr<HttpExchange>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(Connect());
    ASSERT_TRUE(clients.back()->Get("/metrics").has_value());
  }
  ASSERT_TRUE(clients[0]->Get("/metrics").has_value());  // now 1 is silent longest
  const auto newcomer = Connect();
  ASSERT_TRUE(newcomer->Get("/metrics").has_value());
  EXPECT_TRUE(clients[1]->ReadsEnd());
  EXPECT_TRUE(clients[0]->Get("/metrics").has_value());
  EXPECT_TRUE(clients[2]->Get("/metrics").has_value());
}

TEST_F(HttpServerTest, ANewcomerIsClosedWhileAllAreBeingAnswered) {
  HttpServerOptions options;
  options.max_connections = 2;
  Start(options);
  const auto first = Connect();
  const auto second = Connect();
  ASSERT_TRUE(first->Write("GET /held HTTP/1.1\r\n\r\n"));
  ASSERT_TRUE(second->Write("GET /held HTTP/1.1\r\n\r\n"));
  ASSERT_TRUE(WaitForHeld(2));
  EXPECT_TRUE(Connect()->ReadsEnd());
  AnswerHeld();
  EXPECT_EQ(first->Read()->body, "late\n");
  EXPECT_EQ(second->Read()->body, "late\n");
}

TEST_F(HttpServerTest, AnAnswerForOneWhoLeftOrAfterStopIsDropped) {
  Start();
  auto leaver = Connect();
  ASSERT_TRUE(leaver->Write("GET /held HTTP/1.1\r\n\r\n"));
  ASSERT_TRUE(WaitForHeld(1));
  leaver.reset();
  AnswerHeld();
  EXPECT_EQ(Connect()->Get("/metrics")->status, 200);
  const auto waiter = Connect();
  ASSERT_TRUE(waiter->Write("GET /held HTTP/1.1\r\n\r\n"));
  ASSERT_TRUE(WaitForHeld(1));
  server_->Stop();
  EXPECT_TRUE(waiter->ReadsEnd());
  AnswerHeld();
}

TEST_F(HttpServerTest, APortInUseIsNamed) {
  Start();
  HttpServerOptions options;
  options.bind_address = "127.0.0.1";
  options.port = server_->port();
  const auto second = CreateHttpServer(options, {});
  const Status started = second->Start();
  EXPECT_EQ(started.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(started.message()),
              HasSubstr("127.0.0.1:" + std::to_string(options.port)));
}

}  // namespace
}  // namespace triad::remoting
