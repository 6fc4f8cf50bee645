// libtriad-fault.so, for LD_PRELOAD in chaos only: the wall clock as a file says.
//
// TRIAD_CLOCK_FILE names a file of two native 64-bit numbers: nanoseconds added to CLOCK_REALTIME,
// and, when not 0, the time at which the clock stands still. The monotonic clock is untouched.
// Thread: safe on every thread; the file is mapped once.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

struct Shift {
  std::atomic<std::int64_t> added_ns;
  std::atomic<std::int64_t> frozen_ns;
};

const Shift* Map() {
  const char* const path = ::getenv("TRIAD_CLOCK_FILE");
  if (path == nullptr) return nullptr;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* const mapped = ::mmap(nullptr, sizeof(Shift), PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  return mapped == MAP_FAILED ? nullptr : static_cast<const Shift*>(mapped);
}

std::int64_t RealNs() {
  timespec now{};
  ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  static const Shift* const shift = Map();
  const std::int64_t ns = now.tv_sec * 1'000'000'000 + now.tv_nsec;
  if (shift == nullptr) return ns;
  const std::int64_t frozen = shift->frozen_ns.load(std::memory_order_relaxed);
  return frozen != 0 ? frozen : ns + shift->added_ns.load(std::memory_order_relaxed);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) {
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
  }
  const std::int64_t ns = RealNs();
  out->tv_sec = ns / 1'000'000'000;
  out->tv_nsec = ns % 1'000'000'000;
  return 0;
}

int gettimeofday(timeval* out, void*) noexcept {
  const std::int64_t ns = RealNs();
  out->tv_sec = ns / 1'000'000'000;
  out->tv_usec = ns % 1'000'000'000 / 1000;
  return 0;
}

time_t time(time_t* out) noexcept {
  const time_t now = RealNs() / 1'000'000'000;
  if (out != nullptr) *out = now;
  return now;
}
}
