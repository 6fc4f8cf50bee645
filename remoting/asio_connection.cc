#include "remoting/asio_connection.h"

#include <glog/logging.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <span>
#include <utility>

#include "common/log_rate_limiter.h"
#include "remoting/endpoint_text.h"

namespace triad::remoting {

namespace {

LogRateLimiter bad_input_lines(std::chrono::seconds(5));

// A peer that vanished without a word is found within a minute.
void WatchPeer(int fd) {
  const int on = 1;
  const int idle_s = 30;
  const int interval_s = 10;
  const int probes = 3;
  const unsigned int unacknowledged_ms = 60000;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof(unacknowledged_ms));
}

}  // namespace

AsioConnection::AsioConnection(std::shared_ptr<IoThread> thread, std::uint64_t id,
                               std::shared_ptr<const ConnectionLimits> limits,
                               std::shared_ptr<const ConnectionHooks> hooks)
    : thread_(std::move(thread)),
      id_(id),
      limits_(std::move(limits)),
      hooks_(std::move(hooks)),
      writer_busy_(true),  // until the write loop first finds nothing to do
      calls_(limits_->max_calls),
      socket_(thread_->io()),
      timer_(thread_->io()),
      wakeup_(thread_->io()),
      resume_(thread_->io()) {}

void AsioConnection::Adopt(IoSocket socket) {
  adopted_ = true;
  socket_ = std::move(socket);
  StartLoops();
}

void AsioConnection::SetAcceptedFrom(const asio::ip::tcp::endpoint& peer) {
  remote_address_ = EndpointText(peer);
}

void AsioConnection::SetTarget(std::string address, SerializeType type) {
  remote_address_ = std::move(address);
  own_type_.store(type, std::memory_order_relaxed);
}

void AsioConnection::Connect() {
  if (closed()) return;
  connecting_ = true;
  connect_deadline_ = MonoNow() + limits_->connect_timeout;
  CheckBefore(connect_deadline_);
  asio::co_spawn(thread_->io(), ConnectThenRun(shared_from_this()), CrashOnException{"connect"});
}

void AsioConnection::StartLoops() {
  asio::error_code error;
  socket_.non_blocking(true, error);
  socket_.set_option(asio::ip::tcp::no_delay(true), error);
  WatchPeer(socket_.native_handle());
  last_traffic_ = MonoNow();
  CheckBefore(last_traffic_ + limits_->idle_timeout);
  {
    std::lock_guard hold(mutex_);
    direct_fd_ = socket_.native_handle();
  }
  asio::co_spawn(thread_->io(), WriteLoop(shared_from_this()), CrashOnException{"write loop"});
  asio::co_spawn(thread_->io(), ReadLoop(shared_from_this()), CrashOnException{"read loop"});
}

// ---- the end ------------------------------------------------------------------------------------

void AsioConnection::Close() {
  if (closed()) return;
  Post([self = shared_from_this()] {
    self->Shut(Status::Unavailable("the connection to " + self->remote_address_ +
                                   " was closed on this side"));
  });
}

void AsioConnection::Post(std::function<void()> task) {
  thread_->Post(std::move(task));  // dropped after the end, as promised
}

void AsioConnection::Shut(Status why) {
  if (closed()) return;
  const auto self = shared_from_this();
  std::vector<CallDone> calls;
  Batch dropped;
  bool is_sending = false;
  {
    std::lock_guard hold(mutex_);
    open_ = false;
    is_sending = is_sending_;
    why_closed_ = why;
    calls = calls_.TakeAll();
    std::swap(dropped, queued_);
  }
  closed_.store(true, std::memory_order_release);
  asio::error_code ignored;
  if (is_sending) {  // on another thread, which lets it be closed
    socket_.cancel(ignored);
    socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  } else {
    socket_.close(ignored);
  }
  timer_.cancel();
  wakeup_.cancel();
  resume_.cancel();
  for (CallDone& done : calls) done(why);
  FailBatch(&dropped, why);
  if (hooks_->on_closed) hooks_->on_closed(self);
}

void AsioConnection::Drain() {
  if (closed() || draining_) return;
  draining_ = true;
  TakeAnswered(true);
  if (writer_waits_) wakeup_.cancel();
  if (paused_) resume_.cancel();
}

// ---- input --------------------------------------------------------------------------------------

IoAwaitable<void> AsioConnection::ReadLoop(std::shared_ptr<AsioConnection> self) {
  for (;;) {
    const Delivery delivery = self->DeliverFrames();
    if (delivery == Delivery::kClosed) break;
    if (delivery == Delivery::kPaused) {
      self->resume_.expires_at(TimePoint::max());
      co_await self->resume_.async_wait(kIoToken);
      continue;
    }
    const std::span<char> room = self->decoder_.Room();
    auto [error, bytes] =
        co_await self->socket_.async_read_some(asio::buffer(room.data(), room.size()), kIoToken);
    if (error) {
      self->Shut(Status::Unavailable("the connection to " + self->remote_address_ +
                                     " ended before the answer: " + error.message()));
      break;
    }
    self->NoteBytes(bytes);
  }
}

void AsioConnection::NoteBytes(std::size_t bytes) {
  last_traffic_ = MonoNow();
  if (draining_) return;  // what comes now is for the next server
  decoder_.Filled(bytes);
}

AsioConnection::Delivery AsioConnection::DeliverFrames() {
  if (hooks_->before_requests) hooks_->before_requests();
  const Delivery delivery = DeliverEach();
  if (hooks_->after_requests) hooks_->after_requests();
  return delivery;
}

AsioConnection::Delivery AsioConnection::DeliverEach() {
  while (!closed() && !draining_) {
    if (inflight_ >= limits_->max_inflight_requests) TakeAnswered(true);
    if (inflight_ >= limits_->max_inflight_requests) {
      paused_ = true;
      partial_since_.reset();
      return Delivery::kPaused;
    }
    const Result<std::optional<std::string_view>> frame = decoder_.Peek();
    if (!frame.ok()) {
      BadInput(frame.status());
      return Delivery::kClosed;
    }
    if (!frame->has_value()) {
      NotePartialFrame();
      return Delivery::kNeedBytes;
    }
    partial_since_.reset();
    if (hooks_->on_frame && TakenAsFrame(**frame)) {
      decoder_.Drop(**frame);
      continue;
    }
    Result<Command> command = DecodeFrame(**frame);
    if (!command.ok()) {
      BadInput(command.status());
      return Delivery::kClosed;
    }
    decoder_.Drop(**frame);
    Dispatch(std::move(*command));
  }
  return closed() ? Delivery::kClosed : Delivery::kNeedBytes;
}

bool AsioConnection::TakenAsFrame(std::string_view frame) {
  ++inflight_;  // before the answer can come
  if (!hooks_->on_frame(shared_from_this(), frame)) {
    --inflight_;
    return false;
  }
  if (adopted_) own_type_.store(TypeOfFrame(frame), std::memory_order_relaxed);
  return true;
}

void AsioConnection::NotePartialFrame() {
  if (decoder_.buffered_bytes() == 0 || partial_since_.has_value()) return;
  partial_since_ = last_traffic_;
  CheckBefore(last_traffic_ + limits_->partial_frame_timeout);
}

void AsioConnection::BadInput(const Status& why) {
  if (auto suppressed = bad_input_lines.Allow(MonoNow())) {
    LOG(WARNING) << "closing " << remote_address_ << ": bad input: " << why.message()
                 << SuppressedNote(*suppressed);
  }
  Shut(
      Status::Unavailable("bad input from " + remote_address_ + ": " + std::string(why.message())));
}

void AsioConnection::Dispatch(Command command) {
  if (command.is_response()) {
    CallDone done;
    {
      std::lock_guard hold(mutex_);
      done = calls_.Take(command.opaque);
    }
    if (done) done(std::move(command));  // else: it came too late, its caller has been told
    return;
  }
  if (adopted_) own_type_.store(command.serialize_type, std::memory_order_relaxed);
  if (!hooks_->on_request) return;
  if (!command.is_oneway()) ++inflight_;
  hooks_->on_request(shared_from_this(), std::move(command));
}

// ---- time ---------------------------------------------------------------------------------------

void AsioConnection::CheckBefore(TimePoint at) {
  {
    std::lock_guard hold(mutex_);
    if (next_check_ <= at) return;
    next_check_ = at;
  }
  ArmTimer();
}

void AsioConnection::ArmTimer() {
  if (closed()) return;
  TimePoint at;
  {
    std::lock_guard hold(mutex_);
    at = next_check_;
  }
  timer_.expires_at(at);
  timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error) self->OnTimer();
  });
}

bool AsioConnection::IsOwed() {
  std::lock_guard hold(mutex_);
  return calls_.size() > 0 || inflight_ > answered_elsewhere_;
}

Status AsioConnection::Overdue(TimePoint now) const {
  if (connecting_) {
    if (now < connect_deadline_) return Status::Ok();
    return Status::Unavailable(std::string(kCannot) + "connect to " + remote_address_ +
                               ": no answer within " +
                               std::to_string(limits_->connect_timeout.count()) + " ms");
  }
  if (now >= last_traffic_ + limits_->idle_timeout) {
    return Status::Unavailable("the connection to " + remote_address_ + " was idle for too long");
  }
  if (partial_since_ && now >= *partial_since_ + limits_->partial_frame_timeout) {
    return Status::Unavailable(remote_address_ + " did not complete a frame in time");
  }
  return Status::Ok();
}

TimePoint AsioConnection::NextCheck(TimePoint now, TimePoint call_deadline) const {
  TimePoint next = call_deadline;
  if (connecting_) {
    next = std::min(next, connect_deadline_);
  } else {
    next = std::min(next, last_traffic_ + limits_->idle_timeout);
    if (partial_since_) next = std::min(next, *partial_since_ + limits_->partial_frame_timeout);
  }
  return std::max(next, now + std::chrono::milliseconds(10));  // coarse on purpose
}

void AsioConnection::OnTimer() {
  if (closed()) return;
  const TimePoint now = MonoNow();
  if (IsOwed()) last_traffic_ = now;  // not idle: somebody waits for an answer
  Status overdue = Overdue(now);
  if (!overdue.ok()) {
    Shut(std::move(overdue));
    return;
  }
  std::vector<CallDone> expired;
  {
    std::lock_guard hold(mutex_);
    next_check_ = NextCheck(now, calls_.Expire(now, &expired));
  }
  ArmTimer();
  for (CallDone& done : expired) {
    done(Status::TimedOut("no answer from " + remote_address_ +
                          " in time; whether it did the work is unknown"));
  }
}

}  // namespace triad::remoting
