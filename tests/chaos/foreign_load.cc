#include "tests/chaos/foreign_load.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "bin/local_cluster.h"
#include "tests/chaos/shell.h"

namespace triad::chaos {

namespace {

constexpr std::chrono::seconds kPatience{90};
constexpr std::chrono::milliseconds kLook{50};

}  // namespace

ForeignLoad::ForeignLoad(std::vector<std::string> command, std::string log_file,
                         HistoryWriter* history)
    : command_(std::move(command)), log_file_(std::move(log_file)), history_(history) {}

ForeignLoad::~ForeignLoad() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  ::close(input_);
  reader_.join();
  std::fclose(output_);
}

Status ForeignLoad::Spawn() {
  int in[2];
  int out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return Status::IoError(std::strerror(errno));
  if (::pipe2(out, O_CLOEXEC) != 0) {
    ::close(in[0]);
    ::close(in[1]);
    return Status::IoError(std::strerror(errno));
  }
  std::vector<std::string> words = command_;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setpgid(0, 0);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(::open(log_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644),
           STDERR_FILENO);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  input_ = in[1];
  output_ = ::fdopen(out[0], "r");
  return Status::Ok();
}

Status ForeignLoad::Start() {
  ::signal(SIGPIPE, SIG_IGN);  // the program may end while it is spoken to
  NoteGroups(history_);
  TRIAD_RETURN_IF_ERROR(Spawn());
  reader_ = std::thread([this] { Read(); });
  return WaitUntil([this] { return history_->acked() > 0; }, "send anything");
}

void ForeignLoad::Read() {
  char* line = nullptr;
  std::size_t room = 0;
  for (ssize_t got; (got = ::getline(&line, &room, output_)) > 0;) {
    std::string text(line, static_cast<std::size_t>(got));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    if (text == "sending stopped") {
      sending_stopped_ = true;
      continue;
    }
    Result<Event> event = ParseEvent(text);
    if (event.ok()) {
      history_->Import(std::move(*event));
    } else if (++bad_lines_ <= 5) {
      std::fprintf(stderr, "chaos: the client program wrote '%s'\n", text.c_str());
    }
  }
  std::free(line);
  ended_ = true;
}

template <typename Reached>
Status ForeignLoad::WaitUntil(Reached reached, const std::string& what) {
  const std::int64_t end_ns = NowNs() + std::chrono::nanoseconds(kPatience).count();
  while (!reached()) {
    const char* why = ended_             ? "ended and did not "
                      : NowNs() > end_ns ? "does not within its time "
                      : Pause(kLook)     ? "was interrupted before it could "
                                         : nullptr;
    if (why == nullptr) continue;
    return Status::Unavailable("the client program " + (why + what) + "; the end of " + log_file_ +
                               ":\n" + LocalCluster::Tail(log_file_));
  }
  return Status::Ok();
}

Status ForeignLoad::Say(const std::string& words) {
  const std::string line = words + "\n";
  if (::write(input_, line.data(), line.size()) == static_cast<ssize_t>(line.size())) {
    return Status::Ok();
  }
  return Status::Unavailable("the client program ended by itself; the end of " + log_file_ + ":\n" +
                             LocalCluster::Tail(log_file_));
}

Status ForeignLoad::StopSending() {
  TRIAD_RETURN_IF_ERROR(Say("stop sending"));
  return WaitUntil([this] { return sending_stopped_.load(); }, "stop sending");
}

Status ForeignLoad::StopConsuming() {
  TRIAD_RETURN_IF_ERROR(Say("stop consuming"));
  TRIAD_RETURN_IF_ERROR(WaitUntil([this] { return ended_.load(); }, "end"));
  if (bad_lines_ == 0) return Status::Ok();
  return Status::InvalidArgument("the client program wrote " + std::to_string(bad_lines_) +
                                 " lines that are no events");
}

}  // namespace triad::chaos
