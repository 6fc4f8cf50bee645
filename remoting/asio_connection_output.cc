// AsioConnection, the way out: queueing, the write loop, calls.

#include <glog/logging.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <asio/write.hpp>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "common/log_rate_limiter.h"
#include "remoting/asio_connection.h"

namespace triad::remoting {

namespace {

constexpr std::size_t kBorrowBytes = 16 * 1024;  // a body this large is moved, not copied
constexpr std::size_t kChunkBytes = 64 * 1024;

LogRateLimiter slow_reader_lines(std::chrono::seconds(5));
LogRateLimiter too_large_lines(std::chrono::seconds(5));

// A binary header has 16 bits for the code: requests of our own (60000 and up) go as JSON.
SerializeType EncodingOf(const Command& request, SerializeType wanted) {
  const bool fits = request.code >= std::numeric_limits<std::int16_t>::min() &&
                    request.code <= std::numeric_limits<std::int16_t>::max();
  return fits ? wanted : SerializeType::kJson;
}

// As much as the socket takes now, at most kPiecesMax chunks. 0 also for an error: whoever tries
// again gets it.
std::size_t SendSome(int fd, std::span<const std::string> chunks) {
  constexpr std::size_t kPiecesMax = 64;
  std::array<iovec, kPiecesMax> pieces;
  const std::size_t count = std::min(chunks.size(), kPiecesMax);
  for (std::size_t i = 0; i < count; ++i) {
    pieces[i] = {const_cast<char*>(chunks[i].data()), chunks[i].size()};
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  const ssize_t sent = ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 ? 0 : static_cast<std::size_t>(sent);
}

}  // namespace

void AsioConnection::Send(Command command) {
  if (!command.is_response()) {
    SendOneway(std::move(command), nullptr);
    return;
  }
  Turn turn = Turn::kNone;
  bool overflow = false;
  {
    std::lock_guard hold(mutex_);
    if (!open_) return;
    Status appended = AppendLocked(&command);
    if (appended.code() == StatusCode::kInvalidArgument) {  // larger than a frame may be
      if (auto suppressed = too_large_lines.Allow(MonoNow())) {
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
    if (!overflow) turn = ClaimLocked();
  }
  if (overflow) CloseSlowReader();
  GoOn(turn);
}

void AsioConnection::SendOneway(Command request, std::function<void(Status)> done) {
  request.flag = kFlagOneway;
  request.serialize_type = EncodingOf(request, last_serialize_type());
  Turn turn = Turn::kNone;
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
      turn = ClaimLocked();
    }
  }
  GoOn(turn);
  if (refused.ok()) return;
  if (refused.code() == StatusCode::kBusy) CloseSlowReader();
  if (!done) return;
  Refuse(std::move(refused),
         [done = std::move(done)](const Result<Command>& result) { done(result.status()); });
}

void AsioConnection::Call(Command request, std::chrono::milliseconds timeout, CallDone done) {
  request.flag = 0;
  request.serialize_type = EncodingOf(request, last_serialize_type());
  const TimePoint deadline = MonoNow() + timeout;
  Turn turn = Turn::kNone;
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
      turn = ClaimLocked();
      arm = deadline < next_check_;
      if (arm) next_check_ = deadline;
    }
  }
  GoOn(turn);
  if (arm) asio::post(thread_->io(), [self = shared_from_this()] { self->ArmTimer(); });
  if (!refused.ok()) Refuse(std::move(refused), std::move(done));
}

void AsioConnection::Refuse(Status why, CallDone done) {
  if (!thread_->Post([why, done] { done(Result<Command>(why)); })) done(std::move(why));
}

Status AsioConnection::CheckRoomLocked(std::size_t bytes) const {
  if (output_bytes_ == 0 || output_bytes_ + bytes <= limits_->max_output_bytes) return {};
  return Status::Busy(remote_address_ + " does not read: its output buffer is full");
}

// Where small pieces are gathered.
std::string& AsioConnection::TailChunkLocked() {
  std::vector<std::string>& chunks = queued_.chunks;
  if (chunks.empty() || queued_.tail_is_body || chunks.back().size() >= kChunkBytes) {
    chunks.emplace_back();
    queued_.tail_is_body = false;
  }
  return chunks.back();
}

Status AsioConnection::AppendLocked(Command* command) {
  const std::size_t body_bytes = command->body.size();
  TRIAD_RETURN_IF_ERROR(CheckRoomLocked(body_bytes));
  std::string& tail = TailChunkLocked();
  const std::size_t before = tail.size();
  Status encoded = EncodeFrameHead(*command, body_bytes, &tail);
  if (!encoded.ok()) {
    tail.resize(before);
    return encoded;
  }
  std::size_t added = tail.size() - before + body_bytes;
  if (body_bytes >= kBorrowBytes) {
    queued_.chunks.push_back(std::move(command->body));
    queued_.tail_is_body = true;
  } else {
    tail.append(command->body);
  }
  queued_.bytes += added;
  output_bytes_ += added;
  return Status::Ok();
}

void AsioConnection::SendFrames(std::string frames, std::size_t count) {
  const std::size_t bytes = frames.size();
  Turn turn = Turn::kNone;
  bool overflow = false;
  {
    std::lock_guard hold(mutex_);
    if (!open_) return;
    overflow = !CheckRoomLocked(bytes).ok();
    if (!overflow) {
      if (bytes >= kBorrowBytes) {
        queued_.chunks.push_back(std::move(frames));
        queued_.tail_is_body = true;
      } else {
        TailChunkLocked().append(frames);
      }
      queued_.bytes += bytes;
      output_bytes_ += bytes;
      queued_.responses += count;
      turn = ClaimLocked();
    }
  }
  if (overflow) CloseSlowReader();
  GoOn(turn);
}

// What is to be sent directly is taken in the same breath: the write loop may be awake for another
// reason, and would take it too.
AsioConnection::Turn AsioConnection::ClaimLocked() {
  if (writer_busy_) return Turn::kNone;
  writer_busy_ = true;
  if (thread_->IsCurrent() || direct_fd_ < 0 || !queued_.done.empty()) return Turn::kWake;
  CHECK(!is_sending_);
  is_sending_ = true;
  std::swap(queued_, writing_);
  return Turn::kSend;
}

void AsioConnection::WakeWriter() {
  asio::post(thread_->io(), [self = shared_from_this()] {
    if (self->writer_waits_) self->wakeup_.cancel();
  });
}

void AsioConnection::CloseSlowReader() {
  if (auto suppressed = slow_reader_lines.Allow(MonoNow())) {
    LOG(WARNING) << "closing " << remote_address_ << ": it does not read, and "
                 << limits_->max_output_bytes << " bytes wait for it"
                 << SuppressedNote(*suppressed);
  }
  Close();
}

void AsioConnection::GoOn(Turn turn) {
  if (turn == Turn::kWake) WakeWriter();
  if (turn == Turn::kSend) SendNow();
}

// Never blocks. What the socket does not take is left to the write loop, errors too.
void AsioConnection::SendNow() {
  const std::size_t sent = SendSome(direct_fd_, writing_.chunks);
  bool was_closed = false;
  bool is_more = true;
  bool is_watched = false;
  {
    std::lock_guard hold(mutex_);
    is_sending_ = false;
    was_closed = !open_;
    if (sent == writing_.bytes) {
      output_bytes_ -= writing_.bytes;
      answered_elsewhere_ += writing_.responses;
      writing_.Clear();
      is_watched = watches_answers_;
      is_more = queued_.bytes > 0;
      writer_busy_ = is_more;
    } else {
      sent_of_writing_ = sent;
    }
  }
  if (was_closed) {
    Post([self = shared_from_this()] {
      asio::error_code ignored;
      self->socket_.close(ignored);
    });
  } else if (is_more) {
    WakeWriter();
  }
  if (is_watched) Post([self = shared_from_this()] { self->OnAnsweredElsewhere(); });
}

std::optional<bool> AsioConnection::TakeBatch() {
  if (closed()) return std::nullopt;
  std::lock_guard hold(mutex_);
  if (is_sending_) return false;  // it wakes this loop when something is left
  if (writing_.bytes == 0) {
    if (queued_.bytes == 0) {
      writer_busy_ = false;
      return false;
    }
    std::swap(queued_, writing_);
  }
  gather_.clear();
  std::size_t skip = std::exchange(sent_of_writing_, 0);
  for (const std::string& chunk : writing_.chunks) {
    const std::size_t skipped = std::min(skip, chunk.size());
    skip -= skipped;
    if (skipped < chunk.size()) {
      gather_.emplace_back(chunk.data() + skipped, chunk.size() - skipped);
    }
  }
  return true;
}

void AsioConnection::BatchSent() {
  last_traffic_ = MonoNow();
  {
    std::lock_guard hold(mutex_);
    output_bytes_ -= writing_.bytes;
  }
  NoteAnswered(writing_.responses);
  std::vector<std::function<void(Status)>> done;
  done.swap(writing_.done);
  writing_.Clear();
  for (auto& callback : done) callback(Status::Ok());
}

void AsioConnection::NoteAnswered(std::size_t requests) {
  inflight_ -= std::min(inflight_, requests);
  if (!paused_ || inflight_ >= limits_->max_inflight_requests) return;
  paused_ = false;
  resume_.cancel();
}

// What SendNow answered is taken off. `watch`: from now on OnAnsweredElsewhere follows each time.
void AsioConnection::TakeAnswered(bool watch) {
  std::lock_guard hold(mutex_);
  inflight_ -= std::min(inflight_, std::exchange(answered_elsewhere_, 0));
  watches_answers_ = watch;
}

void AsioConnection::OnAnsweredElsewhere() {
  TakeAnswered(true);
  NoteAnswered(0);
  if (!paused_ && !draining_) TakeAnswered(false);
  if (draining_ && writer_waits_) wakeup_.cancel();
}

void AsioConnection::ForgetRequest() {
  Post([self = shared_from_this()] {
    self->NoteAnswered(1);
    if (self->draining_ && self->writer_waits_) self->wakeup_.cancel();  // was it the last one?
  });
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
      if (self->draining_) self->TakeAnswered(true);
      if (self->draining_ && self->inflight_ == 0) self->EndSending();
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

}  // namespace triad::remoting
