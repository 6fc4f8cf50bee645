// AsioConnection: one TCP connection of a server or a client, with both directions of calls.
//
// Shell: Asio; included by remoting's .cc files only.
// Owner: its IoThread, on which the socket, the decoder, the loops and every callback live. The
// output queue and the table of calls are shared with all threads under one leaf mutex: a sender
// appends, and when nobody is writing it takes the writer's role: on another thread it sends what
// the socket takes at once (nobody has to be woken for an answer), on the io thread it wakes the
// write loop, which sends all that has gathered in one gather-write. Bodies of kBorrowBytes and
// more are moved, never copied.
// Bounds: output bytes (the connection is closed: its peer does not read), unanswered requests
// (reading pauses), own calls (kBusy), time without traffic, time a frame may stay incomplete.

#pragma once

#include <asio/awaitable.hpp>
#include <asio/basic_stream_socket.hpp>
#include <asio/basic_waitable_timer.hpp>
#include <asio/buffer.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/use_awaitable.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "remoting/call_table.h"
#include "remoting/frame.h"
#include "remoting/io_thread.h"
#include "remoting/server.h"

namespace triad::remoting {

using IoExecutor = asio::io_context::executor_type;
using IoSocket = asio::basic_stream_socket<asio::ip::tcp, IoExecutor>;
using IoTimer =
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>, IoExecutor>;
template <typename T>
using IoAwaitable = asio::awaitable<T, IoExecutor>;
using IoToken = asio::experimental::as_tuple_t<asio::use_awaitable_t<IoExecutor>>;
inline constexpr IoToken kIoToken{asio::use_awaitable_t<IoExecutor>()};

// How the message of every failure to connect begins.
inline constexpr std::string_view kCannot = "cannot ";

struct ConnectionLimits {
  std::size_t max_output_bytes = 64u << 20;
  std::size_t max_inflight_requests = 100000;
  std::size_t max_calls = 65535;
  std::chrono::milliseconds idle_timeout{120000};
  std::chrono::milliseconds partial_frame_timeout{30000};
  std::chrono::milliseconds connect_timeout{3000};  // clients
};

struct ConnectionHooks {
  std::function<void(const ConnectionPtr&, Command)> on_request;  // null: requests are dropped
  std::function<bool(const ConnectionPtr&, std::string_view)> on_frame;  // null: nobody looks
  std::function<void()> before_requests;                                 // null: nobody asks
  std::function<void()> after_requests;                                  // null: nobody asks
  std::function<void(const ConnectionPtr&)> on_closed;                   // null: nobody asks
};

class AsioConnection final : public Connection,
                             public std::enable_shared_from_this<AsioConnection> {
 public:
  // `limits` and `hooks` are shared by all connections of one server or client.
  AsioConnection(std::shared_ptr<IoThread> thread, std::uint64_t id,
                 std::shared_ptr<const ConnectionLimits> limits,
                 std::shared_ptr<const ConnectionHooks> hooks);

  // Before anything else: who is at the other end. A target is called as "host:port", with own
  // requests in encoding `type`.
  void SetAcceptedFrom(const asio::ip::tcp::endpoint& peer);
  void SetTarget(std::string address, SerializeType type);
  // One of them, once, on the io thread. What is sent before has waited in the output queue.
  void Adopt(IoSocket socket);
  void Connect();

  void Send(Command command) override;
  void SendFrames(std::string frames, std::size_t count) override;
  void ForgetRequest() override;
  void Call(Command request, std::chrono::milliseconds timeout, CallDone done) override;
  // Like Send for an own request; `done` (may be null) on the io thread.
  void SendOneway(Command request, std::function<void(Status)> done);
  void Close() override;
  bool closed() const override { return closed_.load(std::memory_order_acquire); }
  std::uint64_t id() const override { return id_; }
  const std::string& remote_address() const override { return remote_address_; }
  SerializeType last_serialize_type() const override {
    return own_type_.load(std::memory_order_relaxed);
  }
  void Post(std::function<void()> task) override;

  // On the io thread. Shut ends the connection at once; `why` goes into the answers of the open
  // calls. Drain reads no more, sends what is queued and the answers that are still being worked
  // out, then ends the connection when the peer has read it.
  void Shut(Status why);
  void Drain();

 private:
  enum class Delivery { kNeedBytes, kPaused, kClosed };
  struct Batch {  // what one gather-write sends
    std::vector<std::string> chunks;
    std::vector<std::function<void(Status)>> done;
    std::size_t bytes = 0;
    std::size_t responses = 0;
    bool tail_is_body = false;  // the last chunk is a moved body: append to a new one

    void Clear() {  // keeps the memory
      chunks.clear();
      done.clear();
      bytes = 0;
      responses = 0;
      tail_is_body = false;
    }
  };

  static IoAwaitable<void> ReadLoop(std::shared_ptr<AsioConnection> self);
  static IoAwaitable<void> WriteLoop(std::shared_ptr<AsioConnection> self);
  static IoAwaitable<void> ConnectThenRun(std::shared_ptr<AsioConnection> self);
  // The addresses of remote_address_; `endpoints` outlives the call.
  static IoAwaitable<Status> Resolve(std::shared_ptr<AsioConnection> self,
                                     std::vector<asio::ip::tcp::endpoint>* endpoints);

  // Output; with mutex_ held.
  Status AppendLocked(Command* command);
  Status CheckRoomLocked(std::size_t bytes) const;
  std::string& TailChunkLocked();
  // What the caller has to do about what it queued, with GoOn, after it let the mutex go. kSend: it
  // has the writer's role and `writing_`.
  enum class Turn { kNone, kWake, kSend };
  Turn ClaimLocked();
  void GoOn(Turn turn);
  void SendNow();
  void WakeWriter();
  void CloseSlowReader();
  void Refuse(Status why, CallDone done);
  std::optional<bool> TakeBatch();  // false: nothing to send; nullopt: closed
  void BatchSent();
  void NoteAnswered(std::size_t requests);
  void TakeAnswered(bool watch);
  void OnAnsweredElsewhere();
  void EndSending();
  static void FailBatch(Batch* batch, const Status& why);

  // Input.
  void StartLoops();
  Delivery DeliverFrames();
  Delivery DeliverEach();
  void NoteBytes(std::size_t bytes);
  bool TakenAsFrame(std::string_view frame);
  void Dispatch(Command command);
  void BadInput(const Status& why);
  void NotePartialFrame();

  // Time.
  void ArmTimer();  // for next_check_
  void CheckBefore(TimePoint at);
  void OnTimer();
  bool IsOwed();  // an answer, to its peer or to us
  Status Overdue(TimePoint now) const;
  TimePoint NextCheck(TimePoint now, TimePoint call_deadline) const;

  const std::shared_ptr<IoThread> thread_;  // first: outlives the socket and the timers
  const std::uint64_t id_;
  const std::shared_ptr<const ConnectionLimits> limits_;
  const std::shared_ptr<const ConnectionHooks> hooks_;
  std::string remote_address_;
  std::atomic<SerializeType> own_type_{SerializeType::kJson};
  std::atomic<bool> closed_ = false;

  std::mutex mutex_;  // leaf: output and calls
  bool open_ = true;
  Status why_closed_;
  Batch queued_;
  std::size_t output_bytes_ = 0;  // queued and being written
  bool writer_busy_ = false;      // somebody has the writer's role: the queue is looked at again
  bool is_sending_ = false;       // and it is not the write loop: the descriptor stays open
  int direct_fd_ = -1;            // for SendNow; -1: not connected yet; set once
  std::size_t answered_elsewhere_ = 0;  // by SendNow; `inflight_` does not know yet
  bool watches_answers_ = false;        // the io thread wants to hear of them
  CallTable calls_;
  TimePoint next_check_ = TimePoint::max();  // when the timer fires at the latest

  // All below: on the io thread only.
  IoSocket socket_;
  IoTimer timer_;   // calls, idle, partial frame, connect
  IoTimer wakeup_;  // cancelled to wake the write loop
  IoTimer resume_;  // cancelled to let a paused read loop go on
  FrameDecoder decoder_;
  Batch writing_;                    // of whoever has the writer's role
  std::size_t sent_of_writing_ = 0;  // the rest is the write loop's
  std::vector<asio::const_buffer> gather_;
  std::size_t inflight_ = 0;
  bool adopted_ = false;
  bool connecting_ = false;
  bool paused_ = false;
  bool writer_waits_ = false;
  bool draining_ = false;
  bool send_ended_ = false;
  TimePoint connect_deadline_{};
  TimePoint last_traffic_{};
  std::optional<TimePoint> partial_since_;
};

}  // namespace triad::remoting
