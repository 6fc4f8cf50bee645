#include "bin/bench/floor.h"

#include <glog/logging.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "bin/bench/floor_server.h"

namespace triad::bench {

Status Floor::Start(const FloorOptions& options) {
  FloorListener leader;
  std::array<FloorListener, kFloorFollowers> followers;
  TRIAD_RETURN_IF_ERROR(leader.Open());
  for (FloorListener& follower : followers) TRIAD_RETURN_IF_ERROR(follower.Open());
  for (std::size_t i = 0; i <= kFloorFollowers; ++i)
    TRIAD_RETURN_IF_ERROR(PrepareFloorFile(FloorFile(options.directory, i)));
  const pid_t parent = ::getpid();
  for (std::size_t i = 0; i <= kFloorFollowers; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) return Status::IoError("cannot fork a process of the floor");
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(0);
      const std::string file = FloorFile(options.directory, i);
      if (i < kFloorFollowers) {
        RunFloorFollower(followers[i], file, options.syncs);
      } else {
        std::array<std::string, kFloorFollowers> addresses;
        for (std::size_t f = 0; f < kFloorFollowers; ++f) addresses[f] = followers[f].address();
        RunFloorLeader(leader, addresses, file, options.syncs);
      }
      ::_exit(0);
    }
    pids_.push_back(pid);
  }
  address_ = leader.address();
  return Status::Ok();
}

Floor::~Floor() {
  for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
  for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
}

FloorProtocol::FloorProtocol(std::string address, std::size_t size)
    : address_(std::move(address)), message_(kFloorHeaderBytes + size, 'f') {}

Status FloorProtocol::Open(std::size_t /*i*/, Stream* stream) {
  return stream->is_open() ? Status::Ok() : stream->Connect(address_);
}

void FloorProtocol::Append(std::uint64_t request, Nanos /*now*/, std::string* out) {
  const FloorHeader header{static_cast<std::uint32_t>(message_.size() - kFloorHeaderBytes), 0,
                           request};
  std::memcpy(message_.data(), &header, sizeof header);
  out->append(message_);
}

Status FloorProtocol::Read(Stream* stream, AnswerSink* sink) {
  std::string_view input = stream->input();
  for (; input.size() >= sizeof(FloorAnswer); input.remove_prefix(sizeof(FloorAnswer))) {
    FloorAnswer answer;
    std::memcpy(&answer, input.data(), sizeof answer);
    sink->Answered(answer.number, {});
  }
  stream->Consume(stream->input().size() - input.size());
  return Status::Ok();
}

}  // namespace triad::bench
