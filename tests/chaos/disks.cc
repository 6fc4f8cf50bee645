#include "tests/chaos/disks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tests/chaos/shell.h"

namespace triad::chaos {
namespace {
constexpr int kMountTries = 200;
constexpr std::chrono::milliseconds kMountWait{25};
}  // namespace

bool Disks::IsMounted(const Disk& disk) {
  struct stat control {};
  return ::stat((disk.mount + "/.crashfs").c_str(), &control) == 0;
}

Result<std::unique_ptr<Disks>> Disks::Mount(const std::string& program, const std::string& work_dir,
                                            std::size_t count) {
  if (::access("/dev/fuse", R_OK | W_OK) != 0) {
    return Status::IoError("/dev/fuse cannot be used (" + std::string(std::strerror(errno)) + ")");
  }
  if (::access(program.c_str(), X_OK) != 0) {
    return Status::IoError(program + " was not built: libfuse3-dev is missing (bin/setup)");
  }
  std::unique_ptr<Disks> disks(new Disks());
  for (std::size_t i = 0; i < count; ++i) {
    Disk disk;
    disk.backing = work_dir + "/disk-n" + std::to_string(i);
    disk.mount = work_dir + "/mount-n" + std::to_string(i);
    disk.log = work_dir + "/crashfs-n" + std::to_string(i) + ".log";
    std::filesystem::create_directories(disk.mount);
    disk.pid = ::fork();
    if (disk.pid == 0) {
      ::setpgid(0, 0);
      // It must hear SIGTERM: unmounting alone does not end it while a process of another namespace
      // still has a copy of the mount.
      sigset_t none;
      ::sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      const int log = ::open(disk.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
      ::dup2(log, STDOUT_FILENO);
      ::dup2(log, STDERR_FILENO);
      ::execl(program.c_str(), program.c_str(), disk.backing.c_str(), disk.mount.c_str(), nullptr);
      ::_exit(127);
    }
    disks->disks_.push_back(disk);
    int tries = 0;
    while (!IsMounted(disk) && ++tries < kMountTries && !Pause(kMountWait)) {
    }
    if (!IsMounted(disk)) {
      return Status::IoError("crashfs does not mount " + disk.mount + "; see " + disk.log);
    }
  }
  return disks;
}

Disks::~Disks() {
  for (const Disk& disk : disks_) {
    ::umount2(disk.mount.c_str(), MNT_DETACH);
    if (disk.pid <= 0) continue;
    ::kill(disk.pid, SIGTERM);
    ::waitpid(disk.pid, nullptr, 0);
  }
}

Result<std::string> Disks::Order(std::size_t i, const std::string& words) {
  const std::string path = disks_[i].mount + "/.crashfs";
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return Status::IoError("cannot open " + path + ": " + std::strerror(errno));
  const ssize_t wrote = ::pwrite(fd, words.data(), words.size(), 0);
  const int error = errno;
  char report[256];
  const ssize_t got = ::pread(fd, report, sizeof report, 0);
  ::close(fd);
  if (wrote != static_cast<ssize_t>(words.size())) {
    return Status::IoError(path + " refused '" + words + "': " + std::strerror(error));
  }
  return std::string(report, got > 0 ? static_cast<std::size_t>(got) : 0);
}

}  // namespace triad::chaos
