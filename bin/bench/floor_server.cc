#include "bin/bench/floor_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <glog/logging.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bin/bench/stream.h"
#include "common/crc32c.h"

namespace triad::bench {
namespace {

constexpr std::uint64_t kFileBytes = 512u << 20;
constexpr std::size_t kReadBytes = 1u << 20;
constexpr std::size_t kFollowerBacklogMax = 32u << 20;

using Bytes = std::shared_ptr<const std::string>;

// A file used as a ring.
class RingFile {
 public:
  RingFile(const std::string& path, bool syncs) : syncs_(syncs) {
    fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    PCHECK(fd_ >= 0) << path;
  }
  void Append(std::string_view bytes) {
    if (at_ + bytes.size() > kFileBytes) at_ = 0;
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at_));
      PCHECK(n > 0) << "pwrite";
      at_ += static_cast<std::uint64_t>(n);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void Sync() const { PCHECK(!syncs_ || ::fdatasync(fd_) == 0) << "fdatasync"; }

 private:
  int fd_ = -1;
  std::uint64_t at_ = 0;
  const bool syncs_;
};

// The leader's file has a thread of its own: it takes all that waits, writes it, syncs once.
class FileThread {
 public:
  FileThread(const std::string& path, bool syncs)
      : file_(path, syncs), woken_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    thread_ = std::thread([this] { Run(); });
  }
  ~FileThread() {
    {
      const std::lock_guard hold(mutex_);
      is_over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void Add(Bytes bytes) {
    {
      const std::lock_guard hold(mutex_);
      waiting_.push_back(std::move(bytes));
    }
    changed_.notify_one();
  }
  std::uint64_t durable() const { return durable_.load(std::memory_order_acquire); }
  int woken() const { return woken_; }
  void ClearWoken() const {
    std::uint64_t count = 0;
    if (::read(woken_, &count, sizeof count) < 0) return;  // nothing new
  }

 private:
  void Run() {
    std::vector<Bytes> batch;
    std::uint64_t written = 0;
    for (;;) {
      batch.clear();
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        batch.swap(waiting_);
      }
      for (const Bytes& bytes : batch) {
        file_.Append(*bytes);
        written += bytes->size();
      }
      file_.Sync();
      durable_.store(written, std::memory_order_release);
      const std::uint64_t one = 1;
      PCHECK(::write(woken_, &one, sizeof one) == sizeof one);
    }
  }

  RingFile file_;
  const int woken_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Bytes> waiting_;
  bool is_over_ = false;
  std::atomic<std::uint64_t> durable_{0};
  std::thread thread_;
};

// How many bytes of whole messages stand at the front of `input`; calls each(header at, bytes).
template <typename Each>
std::size_t WholeMessages(char* input, std::size_t size, Each each) {
  std::size_t at = 0;
  while (size - at >= kFloorHeaderBytes) {
    FloorHeader header;
    std::memcpy(&header, input + at, sizeof header);
    if (size - at - kFloorHeaderBytes < header.body_bytes) break;
    each(&header, input + at);
    at += kFloorHeaderBytes + header.body_bytes;
  }
  return at;
}

std::string_view BodyAt(const FloorHeader& header, const char* at) {
  return {at + kFloorHeaderBytes, header.body_bytes};
}

// Reads once more behind the `kept` bytes. False: the other side is gone.
bool ReadMore(int fd, std::vector<char>* buffer, std::size_t* kept) {
  if (buffer->size() - *kept < kReadBytes) buffer->resize(*kept + kReadBytes);
  const ssize_t n = ::recv(fd, buffer->data() + *kept, buffer->size() - *kept, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (n <= 0) return false;
  *kept += static_cast<std::size_t>(n);
  return true;
}

void Forget(std::size_t bytes, std::vector<char>* buffer, std::size_t* kept) {
  std::memmove(buffer->data(), buffer->data() + bytes, *kept - bytes);
  *kept -= bytes;
}

struct Follower {
  Stream stream;
  std::deque<Bytes> waiting;  // not yet written to the socket
  std::size_t written = 0;    // of the first of them
  std::size_t waiting_bytes = 0;
  std::uint64_t durable = 0;

  void Write() {
    while (!waiting.empty()) {
      const std::string& first = *waiting.front();
      const ssize_t n =
          ::send(stream.fd(), first.data() + written, first.size() - written, MSG_NOSIGNAL);
      if (n < 0 && errno == EAGAIN) return;
      PCHECK(n > 0) << "a follower of the floor is gone";
      written += static_cast<std::size_t>(n);
      waiting_bytes -= static_cast<std::size_t>(n);
      if (written < first.size()) return;
      waiting.pop_front();
      written = 0;
    }
  }
};

class Leader {
 public:
  Leader(int client, const std::array<std::string, kFloorFollowers>& followers,
         const std::string& file, bool syncs)
      : client_(client), file_(file, syncs) {
    for (std::size_t i = 0; i < kFloorFollowers; ++i) {
      const Status status = followers_[i].stream.Connect(followers[i]);
      CHECK(status.ok()) << status.ToString();
    }
  }

  void Run() {
    for (;;) {
      std::array<pollfd, 2 + kFloorFollowers> polled;
      polled[0] = {file_.woken(), POLLIN, 0};
      const bool has_room = std::all_of(
          followers_.begin(), followers_.end(),
          [](const Follower& follower) { return follower.waiting_bytes < kFollowerBacklogMax; });
      polled[1] = {client_,
                   static_cast<short>((has_room ? POLLIN : 0) | (answers_.empty() ? 0 : POLLOUT)),
                   0};
      for (std::size_t i = 0; i < kFloorFollowers; ++i) {
        const int events = followers_[i].waiting.empty() ? POLLIN : POLLIN | POLLOUT;
        polled[2 + i] = {followers_[i].stream.fd(), static_cast<short>(events), 0};
      }
      PCHECK(::poll(polled.data(), polled.size(), -1) >= 0 || errno == EINTR);
      if (polled[0].revents != 0) file_.ClearWoken();
      for (std::size_t i = 0; i < kFloorFollowers; ++i) {
        if ((polled[2 + i].revents & POLLIN) != 0) ReadPosition(&followers_[i]);
      }
      if ((polled[1].revents & (POLLIN | POLLHUP)) != 0 && !Take()) return;
      for (Follower& follower : followers_) follower.Write();
      Acknowledge();
    }
  }

 private:
  struct Pending {
    std::uint64_t number;
    std::uint64_t end;
  };

  static void ReadPosition(Follower* follower) {
    CHECK(follower->stream.Fill().ok()) << "a follower of the floor is gone";
    const std::string_view input = follower->stream.input();
    const std::size_t whole = input.size() / sizeof(std::uint64_t) * sizeof(std::uint64_t);
    if (whole == 0) return;
    std::memcpy(&follower->durable, input.data() + whole - sizeof(std::uint64_t),
                sizeof(std::uint64_t));
    follower->stream.Consume(whole);
  }

  bool Take() {
    if (!ReadMore(client_, &input_, &kept_)) return false;
    const std::size_t whole =
        WholeMessages(input_.data(), kept_, [this](FloorHeader* header, char* at) {
          header->crc = Crc32c(BodyAt(*header, at));
          std::memcpy(at, header, sizeof *header);
          end_ += kFloorHeaderBytes + header->body_bytes;
          pending_.push_back({header->number, end_});
        });
    if (whole == 0) return true;
    const Bytes batch = std::make_shared<const std::string>(input_.data(), whole);
    file_.Add(batch);
    for (Follower& follower : followers_) {
      follower.waiting.push_back(batch);
      follower.waiting_bytes += whole;
    }
    Forget(whole, &input_, &kept_);
    return true;
  }

  void Acknowledge() {
    std::array<std::uint64_t, 1 + kFloorFollowers> ends = {file_.durable(), followers_[0].durable,
                                                           followers_[1].durable};
    std::sort(ends.begin(), ends.end());
    const std::uint64_t majority = ends[1];
    while (!pending_.empty() && pending_.front().end <= majority) {
      const FloorAnswer answer{pending_.front().number, pending_.front().end};
      answers_.append(reinterpret_cast<const char*>(&answer), sizeof answer);
      pending_.pop_front();
    }
    if (answers_.empty()) return;
    const ssize_t n = ::send(client_, answers_.data(), answers_.size(), MSG_NOSIGNAL);
    if (n > 0) answers_.erase(0, static_cast<std::size_t>(n));
  }

  const int client_;
  FileThread file_;
  std::array<Follower, kFloorFollowers> followers_;
  std::vector<char> input_;
  std::size_t kept_ = 0;
  std::uint64_t end_ = 0;
  std::deque<Pending> pending_;
  std::string answers_;
};

}  // namespace

Status FloorListener::Open() {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (fd_ < 0 || ::bind(fd_, plain, size) != 0 || ::listen(fd_, 8) != 0 ||
      ::getsockname(fd_, plain, &size) != 0) {
    return Status::IoError(std::string("cannot listen on the loopback: ") + std::strerror(errno));
  }
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  return Status::Ok();
}

int FloorListener::Accept() const {
  const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  PCHECK(fd >= 0) << "accept";
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

std::string FloorFile(const std::string& directory, std::size_t number) {
  return directory + "/floor-" + std::to_string(number) + ".log";
}

Status PrepareFloorFile(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0 && found.st_size == static_cast<off_t>(kFileBytes))
    return Status::Ok();
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const std::string zeros(kReadBytes, '\0');
  bool is_good = fd >= 0;
  for (std::uint64_t at = 0; is_good && at < kFileBytes; at += zeros.size()) {
    is_good = ::pwrite(fd, zeros.data(), zeros.size(), static_cast<off_t>(at)) ==
              static_cast<ssize_t>(zeros.size());
  }
  is_good = is_good && ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (is_good) return Status::Ok();
  return Status::IoError("cannot prepare " + path + ": " + std::strerror(error));
}

void RunFloorFollower(const FloorListener& listener, const std::string& path, bool syncs) {
  RingFile file(path, syncs);
  const int leader = listener.Accept();
  std::vector<char> input;
  std::size_t kept = 0;
  std::uint64_t durable = 0;
  while (ReadMore(leader, &input, &kept)) {
    const std::size_t whole = WholeMessages(input.data(), kept, [](FloorHeader* header, char* at) {
      CHECK_EQ(Crc32c(BodyAt(*header, at)), header->crc) << "damaged on the way";
    });
    if (whole == 0) continue;
    file.Append({input.data(), whole});
    file.Sync();
    durable += whole;
    Forget(whole, &input, &kept);
    if (::send(leader, &durable, sizeof durable, MSG_NOSIGNAL) != sizeof durable) return;
  }
}

void RunFloorLeader(const FloorListener& listener,
                    const std::array<std::string, kFloorFollowers>& followers,
                    const std::string& file, bool syncs) {
  const int client = listener.Accept();
  ::fcntl(client, F_SETFL, O_NONBLOCK);
  Leader(client, followers, file, syncs).Run();
}

}  // namespace triad::bench
