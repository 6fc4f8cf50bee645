// Status and Result<T>: how every fallible call here answers. Errors are values; nothing throws.
//
// A code says what the CALLER can do next: kNotLeader redirect, kBusy back off, kTimedOut outcome
// unknown, kCorruption stop. Wire response codes are made from a Status in one table
// (broker/processor/response.h). Thread: values; safe to move between threads.

#pragma once

#include <glog/logging.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace triad {

enum class StatusCode {
  kOk = 0,
  kInvalidArgument,  // the caller's input is wrong; do not repeat it unchanged
  kNotFound,
  kAlreadyExists,
  kNotLeader,    // ask the leader (message: its id, when known)
  kBusy,         // a bounded queue is full; back off and repeat
  kTimedOut,     // outcome unknown
  kUnavailable,  // not now (peer gone, shutting down); repeat later
  kPermissionDenied,
  kUnsupported,
  kCorruption,  // bytes on disk or wire that must not be trusted
  kIoError,
  kNoSpace,
  kCancelled,
  kInternal,
};

std::string_view StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() noexcept = default;  // OK
  Status(StatusCode code, std::string message);

  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;

  static Status Ok() { return {}; }
  static Status InvalidArgument(std::string m) {
    return {StatusCode::kInvalidArgument, std::move(m)};
  }
  static Status NotFound(std::string m) { return {StatusCode::kNotFound, std::move(m)}; }
  static Status AlreadyExists(std::string m) { return {StatusCode::kAlreadyExists, std::move(m)}; }
  static Status NotLeader(std::string m) { return {StatusCode::kNotLeader, std::move(m)}; }
  static Status Busy(std::string m) { return {StatusCode::kBusy, std::move(m)}; }
  static Status TimedOut(std::string m) { return {StatusCode::kTimedOut, std::move(m)}; }
  static Status Unavailable(std::string m) { return {StatusCode::kUnavailable, std::move(m)}; }
  static Status PermissionDenied(std::string m) {
    return {StatusCode::kPermissionDenied, std::move(m)};
  }
  static Status Unsupported(std::string m) { return {StatusCode::kUnsupported, std::move(m)}; }
  static Status Corruption(std::string m) { return {StatusCode::kCorruption, std::move(m)}; }
  static Status IoError(std::string m) { return {StatusCode::kIoError, std::move(m)}; }
  static Status NoSpace(std::string m) { return {StatusCode::kNoSpace, std::move(m)}; }
  static Status Cancelled(std::string m) { return {StatusCode::kCancelled, std::move(m)}; }
  static Status Internal(std::string m) { return {StatusCode::kInternal, std::move(m)}; }

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  std::string_view message() const {
    return rep_ ? std::string_view(rep_->message) : std::string_view();
  }
  // "OK" or "NotFound: message".
  std::string ToString() const;

 private:
  struct Rep {
    StatusCode code;
    std::string message;
  };
  std::unique_ptr<Rep> rep_;  // null is OK
};

std::ostream& operator<<(std::ostream& out, const Status& status);

// A value, or why there is none. value() on an error ends the process (a programmer's mistake).
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by design
    CHECK(!status_.ok()) << "an OK status carries no value";
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  T& value() & {
    CHECK(ok()) << status_.ToString();
    return *value_;
  }
  const T& value() const& {
    CHECK(ok()) << status_.ToString();
    return *value_;
  }
  T&& value() && {
    CHECK(ok()) << status_.ToString();
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

// Says out loud that a failure may be ignored here, and why.
inline void IgnoreError(const Status& /*status*/, const char* /*why_it_is_safe*/) {}

}  // namespace triad

#define TRIAD_RETURN_IF_ERROR(expr)                \
  do {                                             \
    ::triad::Status triad_status_ = (expr);        \
    if (!triad_status_.ok()) return triad_status_; \
  } while (false)
