// A consume queue store in a fresh directory, whose unit n is message n of the log.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "broker/store/consume_queue.h"
#include "broker/store/consume_queue_store.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {

namespace stdfs = std::filesystem;

inline constexpr std::int64_t kLogMessageBytes = 100;

// Message number n of the log stands at n * 100.
inline QueueUnit LogUnit(std::int64_t number) {
  return {PhysicalOffset{number * kLogMessageBytes}, static_cast<std::int32_t>(kLogMessageBytes),
          number * 7};
}
inline PhysicalOffset LogPosition(std::int64_t number) {
  return PhysicalOffset{number * kLogMessageBytes};
}

class ConsumeQueueTest : public testing::Test {
 protected:
  ConsumeQueueTest() { Open(LogPosition(0)); }

  void Open(PhysicalOffset checkpoint) {
    store_.reset();
    Result<std::unique_ptr<ConsumeQueueStore>> store = TryOpen(checkpoint);
    CHECK(store.ok()) << store.status();
    store_ = std::move(store.value());
  }
  Result<std::unique_ptr<ConsumeQueueStore>> TryOpen(PhysicalOffset checkpoint) {
    return ConsumeQueueStore::Open(PosixFileSystem(), root(), checkpoint);
  }
  // Units [from, to); unit n is message n of the log.
  void Fill(const TopicQueue& queue, std::int64_t from, std::int64_t to) {
    for (std::int64_t n = from; n < to; ++n) store_->Append(queue, QueueOffset{n}, LogUnit(n));
  }
  void ExpectRange(const TopicQueue& queue, std::int64_t min, std::int64_t max) {
    const auto range = store_->Range(queue);
    ASSERT_TRUE(range.has_value());
    EXPECT_EQ(range->min, QueueOffset{min});
    EXPECT_EQ(range->max, QueueOffset{max});
  }
  void ExpectReads(const TopicQueue& queue, std::int64_t from, std::int64_t to) {
    std::int64_t next = from;
    while (next < to) {
      const auto units =
          store_->Read(queue, QueueOffset{next}, static_cast<std::size_t>(to - next));
      ASSERT_TRUE(units.ok()) << units.status();
      ASSERT_FALSE(units.value().empty()) << next;
      for (const QueueUnit& unit : units.value()) ASSERT_EQ(unit, LogUnit(next++));
    }
  }
  // A reader that comes to `begin` is told to come later; then the store knows of the hole.
  void ExpectHole(std::int64_t begin, std::int64_t end, const char* what) {
    EXPECT_EQ(store_->Read(q_, QueueOffset{begin}, 5).status().code(), StatusCode::kUnavailable);
    const auto hole = store_->FindHole();
    ASSERT_TRUE(hole.ok() && hole->has_value()) << what;
    EXPECT_EQ((*hole)->begin, QueueOffset{begin}) << what;
    EXPECT_EQ((*hole)->end, QueueOffset{end}) << what;
    const bool is_first = (*hole)->begin == store_->Range(q_)->min;
    EXPECT_EQ((*hole)->behind.has_value(), !is_first) << what;
    if (!is_first) {
      EXPECT_EQ(*(*hole)->behind, LogPosition(begin - 1)) << what;
    }
    EXPECT_EQ(store_->Read(q_, QueueOffset{end - 1}, 5).status().code(), StatusCode::kUnavailable);
  }
  void FillHoles() {
    for (auto hole = store_->FindHole(); hole.value().has_value(); hole = store_->FindHole()) {
      std::vector<QueueUnit> units;
      const std::int64_t end = std::min((*hole)->end.value(), (*hole)->begin.value() + 7000);
      for (std::int64_t n = (*hole)->begin.value(); n < end; ++n) units.push_back(LogUnit(n));
      ASSERT_TRUE(store_->Feed((*hole)->queue, (*hole)->begin, units).ok());
    }
  }
  std::string root() const { return dir_.path() + "/consumequeue"; }
  std::string FilePath(const std::string& topic, int queue, const std::string& name) const {
    return root() + "/" + topic + "/" + std::to_string(queue) + "/" + name;
  }

  StoreTempDir dir_;
  std::unique_ptr<ConsumeQueueStore> store_;
  const TopicQueue q_ = Queue("T", 0);
};

inline constexpr char kFirstFile[] = "00000000000000000000";
inline constexpr char kSecondFile[] = "00000000000007200000";

}  // namespace triad::broker
