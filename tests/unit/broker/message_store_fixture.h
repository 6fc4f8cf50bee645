// MessageStore on a real one-voter node in a fresh directory.

#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "broker/store/message_store.h"
#include "tests/unit/broker/state_support.h"

namespace triad::broker {

namespace stdfs = std::filesystem;

inline constexpr std::chrono::seconds kStorePatience{20};

// Waits for what other threads report.
class StoreSignal {
 public:
  void Update(const std::function<void()>& change) {
    {
      const std::lock_guard hold(mutex_);
      change();
    }
    changed_.notify_all();
  }
  bool Await(const std::function<bool()>& predicate) {
    std::unique_lock hold(mutex_);
    return changed_.wait_for(hold, kStorePatience, predicate);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class MessageStoreTest : public testing::Test {
 protected:
  ~MessageStoreTest() override {
    if (store_ != nullptr) store_->Stop();
  }

  MessageStoreOptions Options() const {
    MessageStoreOptions options;
    options.root_dir = root();
    options.node.group = "RaftNode";
    options.node.self = PeerId("n0");
    options.node.peers = {{PeerId("n0"), "127.0.0.1", 0}};
    options.node.client_address = "127.0.0.1:10911";
    options.node.segment_bytes = 64u << 10;
    options.node.prepare_bytes = 256u << 10;
    options.node.election_min = std::chrono::milliseconds(30);
    options.node.election_max = std::chrono::milliseconds(60);
    options.node.heartbeat = std::chrono::milliseconds(10);
    options.appender.store_host = Host("127.0.0.1:10911");
    options.state_flush_interval = std::chrono::milliseconds(flush_ms_);
    options.queue_checkpoint_interval = std::chrono::milliseconds(flush_ms_);
    return options;
  }
  MessageStore::Listener Listener() {
    return {.on_arrival =
                [this](const TopicQueue& queue, QueueOffset max) {
                  signal_.Update([&] { arrivals_.emplace_back(queue, max); });
                },
            .on_put = {},
            .on_topics_changed = [this] { signal_.Update([&] { ++topics_changed_; }); },
            .on_settings = {},
            .on_leader_change =
                [this](const dledger::LeaderInfo& info) {
                  signal_.Update([&] { ready_ = info.ready; });
                }};
  }

  Status TryOpen() {
    ready_ = false;
    Result<std::unique_ptr<MessageStore>> store =
        MessageStore::Open(PosixFileSystem(), SystemClock(), Options(), Listener());
    if (!store.ok()) return store.status();
    store_ = std::move(store.value());
    return Status::Ok();
  }
  void Open() {
    const Status opened = TryOpen();
    ASSERT_TRUE(opened.ok()) << opened;
  }
  void Start() {
    ASSERT_TRUE(store_->Start().ok());
    ASSERT_TRUE(signal_.Await([this] { return ready_; }));
    ASSERT_TRUE(signal_.Await([] { return true; }));
  }
  void Begin() {
    Open();
    Start();
  }
  void Close() {
    store_->Stop();
    store_.reset();
  }

  AppendOutcome Propose(StateCommand command, std::vector<MessageDraft> messages = {}) {
    std::promise<AppendOutcome> promise;
    Proposal proposal;
    proposal.command = std::move(command);
    proposal.messages = std::move(messages);
    proposal.deadline = SystemClock().MonoNow() + kStorePatience;
    proposal.done = [&](AppendOutcome outcome) { promise.set_value(std::move(outcome)); };
    store_->appender().Submit(std::move(proposal));
    return promise.get_future().get();
  }
  AppendedMessage Send(const std::string& topic, std::int32_t queue, const std::string& body,
                       const std::string& properties = "") {
    MessageDraft draft = Draft(topic, queue, body);
    draft.properties = properties;
    const AppendOutcome outcome = Propose({}, {draft});
    CHECK(outcome.status.ok()) << outcome.status;
    return outcome.messages.at(0);
  }
  void Create(const std::string& topic) {
    StateCommand command;
    command.put_topics.push_back(TopicOf(topic));
    ASSERT_TRUE(Propose(command).status.ok());
  }
  void Delete(const std::string& topic) {
    StateCommand command;
    command.delete_topics.emplace_back(topic);
    ASSERT_TRUE(Propose(command).status.ok());
  }

  // What is being rebuilt is asked for again.
  template <typename Ask>
  static auto Patiently(Ask ask) {
    auto answer = ask();
    const TimePoint deadline = SystemClock().MonoNow() + kStorePatience;
    while (answer.status().code() == StatusCode::kUnavailable &&
           SystemClock().MonoNow() < deadline) {
      std::this_thread::yield();
      answer = ask();
    }
    return answer;
  }
  // Bodies of a queue, read as a reader thread does.
  std::vector<std::string> Bodies(const TopicQueue& queue) {
    std::vector<std::string> bodies;
    const QueueRange range = store_->RangeOf(queue);
    for (QueueOffset next = range.min; next < range.max;) {
      const auto units = Patiently([&] { return store_->queues().Read(queue, next, 100); });
      CHECK(units.ok()) << units.status();
      CHECK(!units.value().empty());
      for (const QueueUnit& unit : units.value()) {
        const auto loaded = store_->ReadMessage(unit);
        CHECK(loaded.ok()) << loaded.status();
        const MessageView message = ParseMessage(loaded.value().record, true).value();
        EXPECT_EQ(message.queue_offset, next);
        EXPECT_EQ(message.physical_offset, unit.position);
        bodies.emplace_back(message.body);
        ++next;
      }
    }
    return bodies;
  }
  // Bodies found by key, as a reader thread finds them.
  std::vector<std::string> ByKey(const std::string& topic, const std::string& key) {
    KeyQuery query;
    query.topic = Topic(topic);
    query.key = key;
    const auto found = Patiently([&] { return store_->FindMessages(query); });
    CHECK(found.ok()) << found.status();
    std::vector<std::string> bodies;
    for (const LoadedMessage& message : *found) {
      bodies.emplace_back(ParseMessage(message.record, true).value().body);
    }
    return bodies;
  }
  static bool Eventually(const std::function<bool()>& predicate) {
    const TimePoint deadline = SystemClock().MonoNow() + kStorePatience;
    while (!predicate()) {
      if (SystemClock().MonoNow() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
  std::string root() const { return dir_.path() + "/store"; }

  StoreTempDir dir_;
  int flush_ms_ = 3600000;  // never by itself
  std::unique_ptr<MessageStore> store_;
  StoreSignal signal_;
  bool ready_ = false;
  int topics_changed_ = 0;
  std::vector<std::pair<TopicQueue, QueueOffset>> arrivals_;
};

}  // namespace triad::broker
