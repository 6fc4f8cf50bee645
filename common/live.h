// Live: a small value of a configuration that may change while other threads read it.
//
// A relaxed atomic that copies and converts like the value itself: readers see the old value or the
// new one, with no order to anything else. Safe on every thread.

#pragma once

#include <atomic>

namespace triad {

template <typename T>
class Live {
 public:
  constexpr Live(T value) : value_(value) {}  // NOLINT: stands for the value
  Live(const Live& other) : value_(other.get()) {}
  Live& operator=(const Live& other) {
    value_.store(other.get(), std::memory_order_relaxed);
    return *this;
  }
  Live& operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  operator T() const { return get(); }  // NOLINT: stands for the value
  T get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<T> value_;
};

}  // namespace triad
