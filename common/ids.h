// Strong ids: an offset of one kind never silently becomes one of another kind.
//
// Pure values. Convert with .value(), at the edges only. `QueueOffset{5} + PhysicalOffset{7}` does
// not compile.

#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace triad {

// An integer that only mixes with its own kind. Supports +/- a plain distance and ++.
template <typename Tag, typename Int>
class StrongInt {
 public:
  using Value = Int;
  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Int value) : value_(value) {}
  constexpr Int value() const { return value_; }

  constexpr auto operator<=>(const StrongInt&) const = default;
  constexpr StrongInt& operator++() {
    ++value_;
    return *this;
  }
  constexpr StrongInt operator+(Int distance) const {
    return StrongInt(static_cast<Int>(value_ + distance));
  }
  constexpr StrongInt operator-(Int distance) const {
    return StrongInt(static_cast<Int>(value_ - distance));
  }
  constexpr Int operator-(StrongInt other) const { return static_cast<Int>(value_ - other.value_); }
  constexpr StrongInt& operator+=(Int distance) {
    value_ = static_cast<Int>(value_ + distance);
    return *this;
  }

  friend std::ostream& operator<<(std::ostream& out, StrongInt id) { return out << id.value_; }

 private:
  Int value_ = 0;
};

// A name that only compares with its own kind.
template <typename Tag>
class StrongString {
 public:
  StrongString() = default;
  explicit StrongString(std::string value) : value_(std::move(value)) {}
  const std::string& value() const { return value_; }
  bool empty() const { return value_.empty(); }

  auto operator<=>(const StrongString&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const StrongString& id) {
    return out << id.value_;
  }

 private:
  std::string value_;
};

using Term = StrongInt<struct TermTag, std::uint64_t>;  // Raft term; 0 = before any election
using LogIndex =
    StrongInt<struct LogIndexTag, std::uint64_t>;  // ordinal of a log entry; first is 1, 0 = none
using PhysicalOffset =
    StrongInt<struct PhysicalOffsetTag, std::int64_t>;  // absolute byte position in the CommitLog
using QueueOffset =
    StrongInt<struct QueueOffsetTag, std::int64_t>;  // message ordinal in one ConsumeQueue
using QueueId = StrongInt<struct QueueIdTag, std::int32_t>;
using BrokerId = StrongInt<struct BrokerIdTag, std::int64_t>;  // 0 = leader

using PeerId = StrongString<struct PeerIdTag>;  // "n0"
using Topic = StrongString<struct TopicTag>;
using GroupName = StrongString<struct GroupNameTag>;
using ClientId = StrongString<struct ClientIdTag>;

// One queue of one topic. Ordered, so that every replica iterates alike.
struct TopicQueue {
  Topic topic;
  QueueId queue_id;
  auto operator<=>(const TopicQueue&) const = default;
};

}  // namespace triad

template <typename Tag, typename Int>
struct std::hash<triad::StrongInt<Tag, Int>> {
  std::size_t operator()(triad::StrongInt<Tag, Int> id) const noexcept {
    return std::hash<Int>()(id.value());
  }
};
template <typename Tag>
struct std::hash<triad::StrongString<Tag>> {
  std::size_t operator()(const triad::StrongString<Tag>& id) const noexcept {
    return std::hash<std::string>()(id.value());
  }
};
template <>
struct std::hash<triad::TopicQueue> {
  std::size_t operator()(const triad::TopicQueue& queue) const noexcept {
    return std::hash<triad::Topic>()(queue.topic) * 1000003u +
           static_cast<std::size_t>(queue.queue_id.value());
  }
};
