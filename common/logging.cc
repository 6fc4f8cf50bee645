#include "common/logging.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace triad {
namespace {

// Writes each line at once, so that the last words of a crash are in the file. glog calls send()
// under its own lock, one line at a time.
class LogFile final : public google::LogSink {
 public:
  explicit LogFile(std::string stem) : stem_(std::move(stem)) {}

  bool Open() {
    fd_ = ::open(Name(0).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd_ < 0) return false;
    struct stat info {};
    size_ = ::fstat(fd_, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
    return true;
  }

  void send(google::LogSeverity severity, const char* /*full_filename*/, const char* base_filename,
            int line, const google::LogMessageTime& time, const char* message,
            std::size_t message_len) override {
    std::string text = ToString(severity, base_filename, line, time, message, message_len);
    text.push_back('\n');
    if (size_ + text.size() > kLogFileBytes) Rotate();
    if (fd_ < 0) return;
    // A full disk must not stop the program; the line is on standard error when it matters.
    const ssize_t n = ::write(fd_, text.data(), text.size());
    if (n > 0) size_ += static_cast<std::uint64_t>(n);
  }

 private:
  std::string Name(int age) const {
    return age == 0 ? stem_ + ".log" : stem_ + "." + std::to_string(age) + ".log";
  }

  void Rotate() {
    ::close(fd_);
    for (int age = kLogFiles - 1; age >= 0; --age) {
      std::rename(Name(age).c_str(), Name(age + 1).c_str());
    }
    Open();
  }

  const std::string stem_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace

Status InitLogging(const LoggingOptions& options) {
  FLAGS_logtostderr = false;
  FLAGS_stderrthreshold = google::GLOG_INFO;
  // No files of glog's own naming.
  for (int severity = 0; severity < google::NUM_SEVERITIES; ++severity) {
    google::SetLogDestination(severity, "");
  }
  google::InitGoogleLogging(options.program.c_str());
  if (options.directory.empty()) return Status::Ok();

  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  auto file = std::make_unique<LogFile>(options.directory + "/" + options.name);
  if (error || !file->Open()) {
    const int number = error ? error.value() : errno;
    return Status::IoError("cannot write logs to " + options.directory + ": " +
                           std::generic_category().message(number));
  }
  google::AddLogSink(file.release());  // lives for ever, as glog does
  FLAGS_stderrthreshold = google::GLOG_WARNING;
  return Status::Ok();
}

}  // namespace triad
