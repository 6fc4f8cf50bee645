// PlannedMoves: clients that must not notice a planned move of the leadership: an ordered producer,
// a concurrent and an orderly consumer. An error is a failed send, any warning that the client
// library logs, a message twice, out of order or missing.
//
// Thread: the test's.

#pragma once

#include <glog/logging.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/e2e/cluster_fixture.h"

namespace triad {

class PlannedMoves {
 public:
  // `options_of`: ClientOf of the test.
  PlannedMoves(const std::function<client::ClientOptions(const std::string&)>& options_of,
               std::string topic);
  ~PlannedMoves();

  Status Start();
  // Sends, with the consumers running.
  void Send(int count) { load_.Send(count); }
  // Waits until both consumers have everything; fails the test on any error. A warning that holds
  // `expected` is none.
  void ExpectUnnoticed(const std::string& expected = {});
  OrderedLoad& load() { return load_; }

 private:
  // What one consumer got.
  struct Received {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, int> next;  // key -> step
    std::size_t count = 0;
    std::vector<std::string> errors;
    void Take(const client::ReceivedMessage& message, bool in_order);
  };
  // Warnings of the client library: everything else in this process is the test.
  class Warnings : public google::LogSink {
   public:
    Warnings() { google::AddLogSink(this); }
    ~Warnings() override { google::RemoveLogSink(this); }
    void send(google::LogSeverity severity, const char* full_filename, const char* base_filename,
              int line, const google::LogMessageTime& time, const char* message,
              std::size_t length) override;
    std::vector<std::string> lines();

   private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
  };

  void Expect(const char* who, Received* received);

  Warnings warnings_;
  Received concurrent_;
  Received orderly_;
  OrderedLoad load_;
  std::unique_ptr<client::PushConsumer> concurrent_consumer_;
  std::unique_ptr<client::PushConsumer> orderly_consumer_;
};

}  // namespace triad
