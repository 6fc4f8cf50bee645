// One peer with everything that the message processors use: a real store on a one-voter group in a
// temporary directory, real services, a real gate. Only the client's connection is ours.

#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "broker/processor/dlq_processor.h"
#include "broker/processor/forwarding_gate.h"
#include "broker/processor/plain_sends.h"
#include "broker/processor/pull_processor.h"
#include "broker/processor/query_processor.h"
#include "broker/processor/send_back_processor.h"
#include "broker/processor/send_processor.h"
#include "broker/service/delay_service.h"
#include "broker/service/long_polling.h"
#include "remoting/client.h"
#include "remoting/frame.h"
#include "tests/unit/broker/patience.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {

// The client's end. Posted tasks run on a timer thread, like on a connection thread.
class TestConnection : public remoting::Connection {
 public:
  TestConnection(std::uint64_t id, TimerQueue& timers, std::string address = "10.0.0.9:50000")
      : id_(id), address_(std::move(address)), timers_(timers) {}
  void Send(remoting::Command) override {}
  void SendFrames(std::string, std::size_t) override {}
  void ForgetRequest() override {}
  void Call(remoting::Command, std::chrono::milliseconds,
            std::function<void(Result<remoting::Command>)> done) override {
    done(Status::Unavailable("a test's connection calls nobody"));
  }
  void Close() override {}
  bool closed() const override { return false; }
  std::uint64_t id() const override { return id_; }
  const std::string& remote_address() const override { return address_; }
  remoting::SerializeType last_serialize_type() const override {
    return remoting::SerializeType::kJson;
  }
  void Post(std::function<void()> task) override {
    timers_.Schedule(std::chrono::milliseconds(0), std::move(task));
  }

 private:
  const std::uint64_t id_;
  const std::string address_;
  TimerQueue& timers_;
};

// A client's end that waits for one answer.
class AnswerConnection final : public TestConnection {
 public:
  AnswerConnection(std::uint64_t id, std::string address, TimerQueue& timers)
      : TestConnection(id, timers, std::move(address)) {}
  std::future<remoting::Command> answer() { return answer_.get_future(); }

  void Send(remoting::Command command) override { answer_.set_value(std::move(command)); }
  void SendFrames(std::string frames, std::size_t count) override {
    auto command = remoting::DecodeFrame(frames);
    CHECK(command.ok() && count == 1) << command.status();
    answer_.set_value(std::move(*command));
  }

 private:
  std::promise<remoting::Command> answer_;
};

class MessageHarness {
 public:
  // `adjust` changes the configuration before anything starts; `fs` outlives the harness.
  explicit MessageHarness(const std::function<void(BrokerConfig*)>& adjust = {},
                          FileSystem& fs = PosixFileSystem());
  ~MessageHarness();

  // Stops everything and starts it again on the same directory. `opened` is called before there
  // can be a leader, `started` before it is waited for one.
  void Restart(const std::function<void()>& opened = {}, const std::function<void()>& started = {});

  // As from a socket: what PlainSends takes goes its way.
  using Answer = std::future<remoting::Command>;
  Answer Ask(remoting::Command request) { return Ask(std::move(request), connection_); }
  Answer Ask(remoting::Command request, remoting::ConnectionPtr connection);
  remoting::Command Call(remoting::Command request);  // waits for the answer
  void Dispatch(remoting::Command request, Reply reply) {
    Dispatch(std::move(request), std::move(reply), connection_);
  }
  void Dispatch(remoting::Command request, Reply reply, remoting::ConnectionPtr connection);

  // A send with defaults; the caller changes what it is about.
  static remoting::SendMessageRequest SendHeader(const std::string& topic);
  remoting::Command SendCommand(const remoting::SendMessageRequest& header, std::string body) const;
  remoting::Command Send(const remoting::SendMessageRequest& header, std::string body) {
    return Call(SendCommand(header, std::move(body)));
  }
  // A pull with its own subscription and no hold.
  static remoting::PullMessageRequest PullHeader(const std::string& topic, std::int32_t queue,
                                                 std::int64_t offset);
  static remoting::Command PullCommand(const remoting::PullMessageRequest& header);

  void CreateTopic(const std::string& name, std::int32_t queues, std::int32_t perm = 6);
  void CreateGroup(GroupConfig group);
  // Applies a command through the log.
  void Propose(StateCommand command);
  // Records of a queue, parsed; the bytes live as long as the harness.
  std::vector<MessageView> Messages(const std::string& topic, std::int32_t queue);
  // Waits until the queue holds `count` messages. False: it did not come to that.
  bool WaitForMessages(const std::string& topic, std::int32_t queue, std::int64_t count);
  // Waits until `condition` holds, looking after every arrival and at least every 10 ms.
  bool Eventually(const std::function<bool()>& condition);

  // Whether PlainSends would take the request; if so it is done.
  bool TakenAsPlain(const remoting::Command& request, Answer* answer);
  bool plain_sends = true;  // false: everything goes the long way

  BrokerContext& context() { return *context_; }
  const Dispatcher& dispatcher() const { return *dispatcher_; }
  PlainSends& plain() { return *plain_; }
  MessageStore& store() { return *store_; }
  LongPolling& long_polling() { return *long_polling_; }
  TimerQueue& timers() { return *timers_; }
  const remoting::ConnectionPtr& connection() const { return connection_; }

 private:
  void Start(const std::function<void()>& opened = {}, const std::function<void()>& started = {});
  void Stop();

  FileSystem& fs_;
  StoreTempDir dir_;
  BrokerConfig config_;
  Counters counters_;
  std::unique_ptr<TimerQueue> timers_;
  std::unique_ptr<remoting::Client> client_;
  std::unique_ptr<ForwardingGate> gate_;
  std::unique_ptr<MessageStore> store_;
  std::unique_ptr<LeaderReads> reads_;
  std::unique_ptr<OffsetService> offsets_;
  std::unique_ptr<LockService> locks_;
  std::unique_ptr<Registration> registration_;
  std::unique_ptr<DiskGuard> disk_;
  std::unique_ptr<ConsumerRegistry> consumers_;
  std::unique_ptr<ProducerRegistry> producers_;
  std::unique_ptr<LongPolling> long_polling_;
  std::unique_ptr<DelayService> delays_;
  std::unique_ptr<BrokerContext> context_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<SendProcessor> send_;
  std::unique_ptr<PlainSends> plain_;
  std::unique_ptr<PullProcessor> pull_;
  std::unique_ptr<SendBackProcessor> send_back_;
  std::unique_ptr<QueryProcessor> query_;
  std::unique_ptr<DlqProcessor> dlq_;
  remoting::ConnectionPtr connection_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ready_ = false;
  bool wired_ = false;
  std::vector<LoadedMessage> kept_;
};

}  // namespace triad::broker
