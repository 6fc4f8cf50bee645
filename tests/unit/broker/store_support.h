// What the tests of broker/state and broker/store share: a directory, a clock, drafts, entries.

#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "broker/store/appender.h"
#include "broker/store/message.h"
#include "common/clock.h"
#include "dledger/log/entry_codec.h"

namespace triad::broker {

class StoreTempDir {
 public:
  StoreTempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "triad-store-XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~StoreTempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  StoreTempDir(const StoreTempDir&) = delete;
  StoreTempDir& operator=(const StoreTempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class ManualClock final : public Clock {
 public:
  TimePoint MonoNow() const override { return TimePoint(std::chrono::nanoseconds(mono_ns_)); }
  std::int64_t WallNowMs() const override { return wall_ms_; }
  void Advance(std::chrono::milliseconds by) {
    mono_ns_ += std::chrono::nanoseconds(by).count();
    wall_ms_ += by.count();
  }

 private:
  std::atomic<std::int64_t> mono_ns_{1000000000};
  std::atomic<std::int64_t> wall_ms_{1700000000000};
};

inline HostPort Host(std::string_view text) {
  return ParseHostPort(text).value();
}

inline TopicQueue Queue(const std::string& topic, std::int32_t id) {
  return {Topic(topic), QueueId{id}};
}

inline MessageDraft Draft(const std::string& topic, std::int32_t queue, const std::string& body) {
  MessageDraft draft;
  draft.topic = Topic(topic);
  draft.queue_id = QueueId{queue};
  draft.born_time_ms = 1700000000000;
  draft.born_host = Host("10.0.0.9:50000");
  draft.body = body;
  return draft;
}

// All records of a payload, checked.
inline std::vector<MessageView> RecordsOf(std::string_view payload) {
  std::vector<MessageView> messages;
  std::string_view rest = ParsePayload(payload).value().records;
  while (rest.size() >= 8) {
    messages.push_back(ParseMessage(rest, true).value());
    rest.remove_prefix(messages.back().record.size());
  }
  return messages;
}

}  // namespace triad::broker
