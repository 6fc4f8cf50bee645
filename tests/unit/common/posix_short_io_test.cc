// The machine's file system where the kernel gives and takes less than was asked for, or is
// interrupted. This program's own pread and pwritev stand in front of the C library's.

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "common/file_system.h"

namespace {

bool g_is_short = false;
int g_calls = 0;

// Every third call is interrupted; the others move one to three bytes.
bool Interrupts() {
  if (!g_is_short || ++g_calls % 3 != 0) return false;
  errno = EINTR;
  return true;
}

std::size_t Some(std::size_t size) {
  const auto few = static_cast<std::size_t>(1 + g_calls % 3);
  return g_is_short ? std::min(size, few) : size;
}

}  // namespace

extern "C" ssize_t pread(int fd, void* buffer, std::size_t size, off_t offset) {
  if (Interrupts()) return -1;
  return syscall(SYS_pread64, fd, buffer, Some(size), offset);
}

extern "C" ssize_t pread64(int fd, void* buffer, std::size_t size, off_t offset) {
  return pread(fd, buffer, size, offset);
}

extern "C" ssize_t pwritev(int fd, const struct iovec* vectors, int count, off_t offset) {
  if (Interrupts()) return -1;
  if (!g_is_short) return syscall(SYS_pwritev, fd, vectors, count, offset, 0L);
  return syscall(SYS_pwrite64, fd, vectors[0].iov_base, Some(vectors[0].iov_len), offset);
}

extern "C" ssize_t pwritev64(int fd, const struct iovec* vectors, int count, off_t offset) {
  return pwritev(fd, vectors, count, offset);
}

namespace triad {
namespace {

TEST(PosixShortIo, GoesOnUntilAllIsDone) {
  const std::string path =
      std::filesystem::path(::testing::TempDir()) / ("short-" + std::to_string(::getpid()));
  Result<std::unique_ptr<File>> file = PosixFileSystem().Open(path, OpenFlags{.create = true});
  ASSERT_TRUE(file.ok()) << file.status();
  std::string expected;
  for (int i = 0; i < 200; ++i) expected.push_back(static_cast<char>('a' + i % 26));
  const std::array<std::string_view, 3> parts = {std::string_view(expected).substr(0, 70),
                                                 std::string_view(),
                                                 std::string_view(expected).substr(70)};
  std::string read(300, '\0');
  g_is_short = true;
  g_calls = 0;
  const Status written = (*file)->Write(5, parts);
  const int write_calls = g_calls;
  const Result<std::size_t> n = (*file)->Read(5, std::span<char>(read));
  g_is_short = false;
  ASSERT_TRUE(written.ok()) << written;
  ASSERT_TRUE(n.ok()) << n.status();
  EXPECT_EQ(read.substr(0, *n), expected);
  EXPECT_GT(write_calls, 60) << "the short calls were met";
  EXPECT_GT(g_calls - write_calls, 60);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace triad
