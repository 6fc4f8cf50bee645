// A real message store of one peer in a fresh directory, with the services that stand on it, and a
// client connection that records what it is sent.

#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/service/leader_reads.h"
#include "broker/service/lock_service.h"
#include "broker/service/offset_service.h"
#include "broker/service/timer_queue.h"
#include "broker/store/message_store.h"
#include "common/clock.h"
#include "common/file_system.h"
#include "remoting/frame.h"
#include "remoting/server.h"
#include "tests/unit/broker/patience.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {

// The outcome of one asynchronous call.
template <typename T>
class Outcome {
 public:
  std::function<void(T)> Callback() {
    return [state = state_](T value) { state->set_value(std::move(value)); };
  }
  T Get() {
    auto future = state_->get_future();
    CHECK(future.wait_for(kPatience) == std::future_status::ready) << "nobody called back";
    return future.get();
  }

 private:
  std::shared_ptr<std::promise<T>> state_ = std::make_shared<std::promise<T>>();
};

class OnePeerStore {
 public:
  OnePeerStore() : OnePeerStore(nullptr) {}
  // `on_leader` also gets every leader change, `on_settings` what is put.
  explicit OnePeerStore(std::function<void(const dledger::LeaderInfo&)> on_leader,
                        std::function<void(const Settings&)> on_settings = nullptr,
                        const Clock& clock = SystemClock())
      : on_leader_(std::move(on_leader)), on_settings_(std::move(on_settings)), clock_(clock) {
    Open();
  }
  ~OnePeerStore() { store_->Stop(); }

  MessageStore& store() { return *store_; }
  Term term() { return store_->node().leader_info().term; }

  // Puts a command into the log and waits until it is applied.
  void Apply(StateCommand command) {
    Outcome<AppendOutcome> outcome;
    Proposal proposal;
    proposal.command = std::move(command);
    proposal.deadline = SystemClock().MonoNow() + kPatience;
    proposal.done = outcome.Callback();
    store_->appender().Submit(std::move(proposal));
    const AppendOutcome result = outcome.Get();
    CHECK(result.status.ok()) << result.status;
  }
  void Send(std::vector<MessageDraft> messages) {
    Outcome<AppendOutcome> outcome;
    Proposal proposal;
    proposal.messages = std::move(messages);
    proposal.deadline = SystemClock().MonoNow() + kPatience;
    proposal.done = outcome.Callback();
    store_->appender().Submit(std::move(proposal));
    const AppendOutcome result = outcome.Get();
    CHECK(result.status.ok()) << result.status;
  }
  void Restart() {
    store_->Stop();
    store_.reset();
    Open();
  }

 private:
  void Open() {
    MessageStoreOptions options;
    options.root_dir = dir_.path() + "/root";
    options.appender.store_host = Host("127.0.0.1:10911");
    options.node.group = "g";
    options.node.self = PeerId("n0");
    options.node.peers.push_back({PeerId("n0"), "127.0.0.1", 0});
    options.node.segment_bytes = 4u << 20;
    options.node.prepare_bytes = 1u << 20;
    auto ready = std::make_shared<std::promise<void>>();
    auto once = std::make_shared<std::once_flag>();
    MessageStore::Listener listener;
    listener.on_leader_change = [this, ready, once](const dledger::LeaderInfo& info) {
      if (on_leader_) on_leader_(info);
      if (info.ready) std::call_once(*once, [&] { ready->set_value(); });
    };
    listener.on_settings = on_settings_;
    auto opened = MessageStore::Open(PosixFileSystem(), clock_, options, listener);
    CHECK(opened.ok()) << opened.status();
    store_ = std::move(opened.value());
    const Status started = store_->Start();
    CHECK(started.ok()) << started;
    CHECK(ready->get_future().wait_for(kPatience) == std::future_status::ready);
  }

  const std::function<void(const dledger::LeaderInfo&)> on_leader_;
  const std::function<void(const Settings&)> on_settings_;
  const Clock& clock_;
  StoreTempDir dir_;
  std::unique_ptr<MessageStore> store_;
};

// A client's connection: keeps what it is sent.
class RecordingConnection final : public remoting::Connection {
 public:
  RecordingConnection(std::uint64_t id, std::string address)
      : id_(id), address_(std::move(address)) {}

  void Send(remoting::Command command) override {
    const std::lock_guard lock(mutex_);
    sent_.push_back(std::move(command));
    changed_.notify_all();
  }
  void SendFrames(std::string frames, std::size_t count) override {
    remoting::FrameDecoder decoder;
    decoder.Append(frames);
    for (; count > 0; --count) {
      auto next = decoder.Next();
      CHECK(next.ok() && next->has_value()) << "fewer frames than said";
      Send(std::move(**next));
    }
    CHECK_EQ(decoder.buffered_bytes(), 0u);
  }
  void ForgetRequest() override { ++forgotten_; }
  void Call(remoting::Command request, std::chrono::milliseconds timeout,
            std::function<void(Result<remoting::Command>)> done) override {
    if (answer_call) {
      done(answer_call(request, timeout));
    } else {
      done(Status::Unavailable("a recording takes no calls"));
    }
  }
  // What the client answers to calls. Set before any.
  std::function<Result<remoting::Command>(const remoting::Command&, std::chrono::milliseconds)>
      answer_call;
  void Close() override { closed_ = true; }
  bool closed() const override { return closed_; }
  std::uint64_t id() const override { return id_; }
  const std::string& remote_address() const override { return address_; }
  remoting::SerializeType last_serialize_type() const override {
    return remoting::SerializeType::kJson;
  }
  void Post(std::function<void()> task) override { task(); }

  // The next command that was sent, in order.
  remoting::Command Next() {
    std::unique_lock lock(mutex_);
    CHECK(changed_.wait_for(lock, kPatience, [this] { return !sent_.empty(); }))
        << "nothing was sent";
    remoting::Command command = std::move(sent_.front());
    sent_.pop_front();
    return command;
  }
  std::size_t sent() {
    const std::lock_guard lock(mutex_);
    return sent_.size();
  }
  int forgotten() const { return forgotten_; }

 private:
  const std::uint64_t id_;
  const std::string address_;
  std::atomic<bool> closed_{false};
  std::atomic<int> forgotten_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<remoting::Command> sent_;
};

}  // namespace triad::broker
