#include "remoting/asio_connection.h"

#include <glog/logging.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <asio/write.hpp>
#include <span>
#include <utility>

#include "common/log_rate_limiter.h"
#include "remoting/endpoint_text.h"

namespace triad::remoting {

namespace {

constexpr std::size_t kBorrowBytes = 16 * 1024;  // a body this large is moved, not copied
constexpr std::size_t kChunkBytes = 64 * 1024;
constexpr int kReadRoundsMax = 4;  // of the thread's read buffer, before others get their turn

LogRateLimiter bad_input_lines(std::chrono::seconds(5));
LogRateLimiter slow_reader_lines(std::chrono::seconds(5));
LogRateLimiter too_large_lines(std::chrono::seconds(5));

TimePoint Now() {
  return SystemClock().MonoNow();
}

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
  connect_deadline_ = Now() + limits_->connect_timeout;
  CheckBefore(connect_deadline_);
  asio::co_spawn(thread_->io(), ConnectThenRun(shared_from_this()), CrashOnException{"connect"});
}

void AsioConnection::StartLoops() {
  asio::error_code error;
  socket_.non_blocking(true, error);
  socket_.set_option(asio::ip::tcp::no_delay(true), error);
  WatchPeer(socket_.native_handle());
  last_traffic_ = Now();
  CheckBefore(last_traffic_ + limits_->idle_timeout);
  asio::co_spawn(thread_->io(), WriteLoop(shared_from_this()), CrashOnException{"write loop"});
  asio::co_spawn(thread_->io(), ReadLoop(shared_from_this()), CrashOnException{"read loop"});
}

// ---- output -------------------------------------------------------------------------------------

void AsioConnection::Send(Command command) {
  if (!command.is_response()) {
    SendOneway(std::move(command), nullptr);
    return;
  }
  bool wake = false;
  bool overflow = false;
  {
    std::lock_guard hold(mutex_);
    if (!open_) return;
    Status appended = AppendLocked(&command);
    if (appended.code() == StatusCode::kInvalidArgument) {  // larger than a frame may be
      if (auto suppressed = too_large_lines.Allow(Now())) {
        LOG(ERROR) << remote_address_ << ": " << appended.message() << SuppressedNote(*suppressed);
      }
      command.body.clear();
      command.code = 1;  // SYSTEM_ERROR
      command.remark = std::string(appended.message());
      command.ext = ExtFields();
      appended = AppendLocked(&command);
    }
    overflow = !appended.ok();
    if (!overflow) ++queued_.responses;
    wake = !overflow && ClaimWakeLocked();
  }
  if (overflow) CloseSlowReader();
  if (wake) WakeWriter();
}

void AsioConnection::SendOneway(Command request, std::function<void(Status)> done) {
  request.flag = kFlagOneway;
  request.serialize_type = last_serialize_type();
  bool wake = false;
  Status refused;
  {
    std::lock_guard hold(mutex_);
    if (open_) {
      request.opaque = calls_.NextOpaque();
      refused = AppendLocked(&request);
    } else {
      refused = why_closed_;
    }
    if (refused.ok()) {
      if (done) queued_.done.push_back(std::move(done));
      wake = ClaimWakeLocked();
    }
  }
  if (wake) WakeWriter();
  if (refused.ok()) return;
  if (refused.code() == StatusCode::kBusy) CloseSlowReader();
  if (!done) return;
  Refuse(std::move(refused),
         [done = std::move(done)](const Result<Command>& result) { done(result.status()); });
}

void AsioConnection::Call(Command request, std::chrono::milliseconds timeout, CallDone done) {
  request.flag = 0;
  request.serialize_type = last_serialize_type();
  const TimePoint deadline = Now() + timeout;
  bool wake = false;
  bool arm = false;
  Status refused;
  {
    std::lock_guard hold(mutex_);
    if (!open_) {
      refused = why_closed_;
    } else if (calls_.full()) {
      refused = Status::Busy("too many unanswered requests on the connection to " +
                             remote_address_ + "; wait for answers");
    } else {
      request.opaque = calls_.Add(deadline, std::move(done));
      refused = AppendLocked(&request);
      if (!refused.ok()) done = calls_.Take(request.opaque);
    }
    if (refused.ok()) {
      wake = ClaimWakeLocked();
      arm = deadline < next_check_;
      if (arm) next_check_ = deadline;
    }
  }
  if (wake) WakeWriter();
  if (arm) asio::post(thread_->io(), [self = shared_from_this()] { self->ArmTimer(); });
  if (!refused.ok()) Refuse(std::move(refused), std::move(done));
}

void AsioConnection::Refuse(Status why, CallDone done) {
  if (!thread_->Post([why, done] { done(Result<Command>(why)); })) done(std::move(why));
}

Status AsioConnection::AppendLocked(Command* command) {
  const std::size_t body_bytes = command->body.size();
  if (output_bytes_ > 0 && output_bytes_ + body_bytes > limits_->max_output_bytes) {
    return Status::Busy(remote_address_ + " does not read: its output buffer is full");
  }
  std::vector<std::string>& chunks = queued_.chunks;
  if (chunks.empty() || queued_.tail_is_body || chunks.back().size() >= kChunkBytes) {
    chunks.emplace_back();
    queued_.tail_is_body = false;
  }
  std::string& tail = chunks.back();
  const std::size_t before = tail.size();
  Status encoded = EncodeFrameHead(*command, body_bytes, &tail);
  if (!encoded.ok()) {
    tail.resize(before);
    return encoded;
  }
  std::size_t added = tail.size() - before + body_bytes;
  if (body_bytes >= kBorrowBytes) {
    chunks.push_back(std::move(command->body));
    queued_.tail_is_body = true;
  } else {
    tail.append(command->body);
  }
  queued_.bytes += added;
  output_bytes_ += added;
  return Status::Ok();
}

bool AsioConnection::ClaimWakeLocked() {
  if (writer_busy_) return false;
  writer_busy_ = true;
  return true;
}

void AsioConnection::WakeWriter() {
  asio::post(thread_->io(), [self = shared_from_this()] {
    if (self->writer_waits_) self->wakeup_.cancel();
  });
}

void AsioConnection::CloseSlowReader() {
  if (auto suppressed = slow_reader_lines.Allow(Now())) {
    LOG(WARNING) << "closing " << remote_address_ << ": it does not read, and "
                 << limits_->max_output_bytes << " bytes wait for it"
                 << SuppressedNote(*suppressed);
  }
  Close();
}

std::optional<bool> AsioConnection::TakeBatch() {
  if (closed()) return std::nullopt;
  std::lock_guard hold(mutex_);
  if (queued_.bytes == 0) {
    writer_busy_ = false;
    return false;
  }
  std::swap(queued_, writing_);
  gather_.clear();
  for (const std::string& chunk : writing_.chunks) gather_.emplace_back(chunk.data(), chunk.size());
  return true;
}

void AsioConnection::BatchSent() {
  last_traffic_ = Now();
  {
    std::lock_guard hold(mutex_);
    output_bytes_ -= writing_.bytes;
  }
  inflight_ -= std::min(inflight_, writing_.responses);
  if (paused_ && inflight_ < limits_->max_inflight_requests) {
    paused_ = false;
    resume_.cancel();
  }
  std::vector<std::function<void(Status)>> done;
  done.swap(writing_.done);
  writing_.chunks.clear();
  writing_.bytes = 0;
  writing_.responses = 0;
  writing_.tail_is_body = false;
  for (auto& callback : done) callback(Status::Ok());
}

void AsioConnection::FailBatch(Batch* batch, const Status& why) {
  for (auto& callback : batch->done) callback(why);
  *batch = Batch();
}

void AsioConnection::EndSending() {
  if (send_ended_) return;
  send_ended_ = true;
  asio::error_code error;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
  if (error) Shut(Status::Unavailable("the connection to " + remote_address_ + " was closed"));
}

IoAwaitable<void> AsioConnection::WriteLoop(std::shared_ptr<AsioConnection> self) {
  while (std::optional<bool> taken = self->TakeBatch()) {
    if (!*taken) {
      if (self->draining_) self->EndSending();
      if (self->closed()) break;
      self->writer_waits_ = true;
      self->wakeup_.expires_at(TimePoint::max());
      co_await self->wakeup_.async_wait(kIoToken);
      self->writer_waits_ = false;
      continue;
    }
    const std::span<const asio::const_buffer> gather(self->gather_);
    auto [error, bytes] = co_await asio::async_write(self->socket_, gather, kIoToken);
    if (error) {
      Status why = Status::Unavailable("the connection to " + self->remote_address_ +
                                       " was lost while sending: " + error.message());
      FailBatch(&self->writing_, why);
      self->Shut(std::move(why));
      break;
    }
    self->BatchSent();
  }
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
  {
    std::lock_guard hold(mutex_);
    open_ = false;
    why_closed_ = why;
    calls = calls_.TakeAll();
    std::swap(dropped, queued_);
  }
  closed_.store(true, std::memory_order_release);
  asio::error_code ignored;
  socket_.close(ignored);
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
    auto [error, bytes] =
        co_await self->socket_.async_read_some(asio::buffer(self->read_buffer_), kIoToken);
    if (error) {
      self->Shut(Status::Unavailable("the connection to " + self->remote_address_ +
                                     " ended before the answer: " + error.message()));
      break;
    }
    self->ReadMore(bytes);
  }
}

void AsioConnection::ReadMore(std::size_t first_bytes) {
  last_traffic_ = Now();
  if (draining_) return;  // what comes now is for the next server
  if (!saw_first_byte_) {
    saw_first_byte_ = true;
    if (read_buffer_[0] == 0x16) {
      BadInput(Status::InvalidArgument("a TLS handshake; this port speaks plain text only"));
      return;
    }
  }
  decoder_.Append(std::string_view(read_buffer_.data(), first_bytes));
  if (first_bytes < read_buffer_.size()) return;
  auto& more = thread_->read_buffer();
  for (int round = 0; round < kReadRoundsMax; ++round) {
    asio::error_code error;
    const std::size_t bytes = socket_.read_some(asio::buffer(more), error);
    if (error) return;  // would_block; or the next read says it again
    decoder_.Append(std::string_view(more.data(), bytes));
    if (bytes < more.size()) return;
  }
}

AsioConnection::Delivery AsioConnection::DeliverFrames() {
  while (!closed() && !draining_) {
    if (inflight_ >= limits_->max_inflight_requests) {
      paused_ = true;
      partial_since_.reset();
      return Delivery::kPaused;
    }
    Result<std::optional<Command>> next = decoder_.Next();
    if (!next.ok()) {
      BadInput(next.status());
      return Delivery::kClosed;
    }
    if (!next->has_value()) {
      NotePartialFrame();
      return Delivery::kNeedBytes;
    }
    partial_since_.reset();
    Dispatch(std::move(**next));
  }
  return closed() ? Delivery::kClosed : Delivery::kNeedBytes;
}

void AsioConnection::NotePartialFrame() {
  if (decoder_.buffered_bytes() == 0 || partial_since_.has_value()) return;
  partial_since_ = last_traffic_;
  CheckBefore(last_traffic_ + limits_->partial_frame_timeout);
}

void AsioConnection::BadInput(const Status& why) {
  if (auto suppressed = bad_input_lines.Allow(Now())) {
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
  const TimePoint now = Now();
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

// ---- connecting ---------------------------------------------------------------------------------

IoAwaitable<Status> AsioConnection::Resolve(std::shared_ptr<AsioConnection> self,
                                            std::vector<asio::ip::tcp::endpoint>* endpoints) {
  std::string host;
  std::string port;
  Status parsed = SplitAddress(self->remote_address_, &host, &port);
  if (!parsed.ok()) co_return parsed;
  asio::error_code not_numeric;
  const asio::ip::address numeric = asio::ip::make_address(host, not_numeric);
  if (!not_numeric) {
    endpoints->emplace_back(numeric, static_cast<std::uint16_t>(std::stoi(port)));
    co_return Status::Ok();
  }
  asio::ip::basic_resolver<asio::ip::tcp, IoExecutor> resolver(self->thread_->io());
  auto [error, results] = co_await resolver.async_resolve(host, port, kIoToken);
  if (error) {
    co_return Status::Unavailable(std::string(kCannot) + "resolve " + self->remote_address_ + ": " +
                                  error.message());
  }
  for (const auto& entry : results) endpoints->push_back(entry.endpoint());
  co_return Status::Ok();
}

IoAwaitable<void> AsioConnection::ConnectThenRun(std::shared_ptr<AsioConnection> self) {
  std::vector<asio::ip::tcp::endpoint> endpoints;
  Status resolved = co_await Resolve(self, &endpoints);
  if (!resolved.ok()) {
    self->Shut(std::move(resolved));
    co_return;
  }
  std::string last_error = "the name has no address";
  asio::error_code ignored;
  for (const asio::ip::tcp::endpoint& endpoint : endpoints) {
    if (self->closed()) co_return;
    self->socket_.close(ignored);  // of the address before
    auto [error] = co_await self->socket_.async_connect(endpoint, kIoToken);
    if (self->closed()) co_return;
    if (!error) {
      self->connecting_ = false;
      self->StartLoops();
      co_return;
    }
    last_error = error.message();
  }
  self->Shut(Status::Unavailable(std::string(kCannot) + "connect to " + self->remote_address_ +
                                 ": " + last_error));
}

}  // namespace triad::remoting
