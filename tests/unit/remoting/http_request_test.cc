// Heads of HTTP requests: which are read, which are refused.

#include "remoting/http_request.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace triad::remoting {
namespace {

constexpr std::string_view kGood =
    "GET /metrics?x=1 HTTP/1.1\r\nHost: a:5557\r\nAccept: */*\r\nX-A.b_c:\r\n\r\n";

TEST(HttpRequest, AWholeHeadIsReadAndNothingBehindIt) {
  HttpRequest request;
  const auto size = ReadHttpRequest(std::string(kGood) + "GET / HTTP/1.1\r\n\r\n", &request);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(*size, kGood.size());
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/metrics");
  EXPECT_TRUE(request.keep_alive);
  EXPECT_FALSE(request.has_body);
}

TEST(HttpRequest, EveryPrefixWantsMore) {
  for (std::size_t bytes = 0; bytes < kGood.size(); ++bytes) {
    HttpRequest request;
    const auto size = ReadHttpRequest(kGood.substr(0, bytes), &request);
    ASSERT_TRUE(size.ok()) << bytes << ": " << size.status();
    EXPECT_EQ(*size, 0u) << bytes;
  }
}

TEST(HttpRequest, WhetherAnotherMayFollow) {
  struct Case {
    const char* head;
    bool keep_alive;
    bool has_body;
  };
  const Case cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", true, false},
      {"GET / HTTP/1.1\n\n", true, false},
      {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", false, false},
      {"GET / HTTP/1.1\r\ncONNECTION:\tClose \r\n\r\n", false, false},
      {"GET / HTTP/1.0\r\n\r\n", false, false},
      {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true, false},
      {"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", true, false},
      {"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", true, true},
      {"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", true, true},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", true, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.head);
    HttpRequest request;
    const auto size = ReadHttpRequest(c.head, &request);
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_GT(*size, 0u);
    EXPECT_EQ(request.keep_alive, c.keep_alive);
    EXPECT_EQ(request.has_body, c.has_body);
  }
}

TEST(HttpRequest, WhatIsNoHttpIsRefused) {
  const std::string cases[] = {
      "\r\n\r\n",
      "GET\r\n\r\n",
      "GET /\r\n\r\n",
      "GET / HTTP/2.0\r\n\r\n",
      "GET / http/1.1\r\n\r\n",
      "GET  HTTP/1.1\r\n\r\n",
      "GET metrics HTTP/1.1\r\n\r\n",
      "GET /a b HTTP/1.1\r\n\r\n",
      "GET /a\x01 HTTP/1.1\r\n\r\n",
      "GET http://h/ HTTP/1.1\r\n\r\n",
      "G T / HTTP/1.1\r\n\r\n",
      "(GET) / HTTP/1.1\r\n\r\n",
      " GET / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nNoColon\r\n\r\n",
      "GET / HTTP/1.1\r\n: nameless\r\n\r\n",
      "GET / HTTP/1.1\r\nBad Name: x\r\n\r\n",
      "GET / HTTP/1.1\r\n folded: x\r\n\r\n",
      std::string("GET / HTTP/1.1\r\nA\0B: x\r\n\r\n", 26),
      "\x16\x03\x01\x02\r\n\r\n",  // TLS knocks
  };
  for (const std::string& head : cases) {
    SCOPED_TRACE(head);
    HttpRequest request;
    const auto size = ReadHttpRequest(head, &request);
    EXPECT_EQ(size.status().code(), StatusCode::kInvalidArgument);
    EXPECT_FALSE(size.status().message().empty());
  }
}

// Any change of a good head is read, refused or wants more; what is read ends where it says.
TEST(HttpRequest, ChangedHeadsHurtNobody) {
  std::mt19937 random(20261130);
  for (int run = 0; run < 20000; ++run) {
    std::string head(kGood);
    for (std::size_t changes = 1 + random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % head.size();
      switch (random() % 3) {
        case 0: head[at] = static_cast<char>(random()); break;
        case 1: head.erase(at, 1 + random() % 3); break;
        default: head.insert(at, 1, "\r\n :/\0"[random() % 6]); break;
      }
      if (head.empty()) head = " ";
    }
    HttpRequest request;
    const auto size = ReadHttpRequest(head, &request);
    if (!size.ok() || *size == 0) continue;
    ASSERT_LE(*size, head.size());
    EXPECT_EQ(head[*size - 1], '\n');
    EXPECT_TRUE(request.path.starts_with('/')) << head;
    EXPECT_EQ(request.path.find(' '), std::string::npos) << head;
  }
}

}  // namespace
}  // namespace triad::remoting
