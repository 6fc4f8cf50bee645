#include "bin/bench/publish_loop.h"

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>

namespace triad::bench {
namespace {

constexpr Nanos kDrain = 10 * kSecond;          // for the last answers
constexpr Nanos kReopenPause = kSecond / 10;    // after a failure
constexpr std::uint64_t kRequestsPerLook = 64;  // between two looks at the sockets

class PublishRun : public AnswerSink {
 public:
  PublishRun(PublishProtocol* protocol, const PublishOptions& options)
      : protocol_(*protocol),
        options_(options),
        streams_(protocol->connections()),
        slots_(std::bit_ceil(4 * options.window)),
        shows_progress_(::isatty(STDERR_FILENO) != 0) {}

  Result<PublishOutcome> Run() {
    ::prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);  // due times are microseconds apart
    for (std::size_t i = 0; i < streams_.size(); ++i)
      TRIAD_RETURN_IF_ERROR(protocol_.Open(i, &streams_[i]));
    const Nanos start = Now();
    schedule_ = Schedule(options_.window, options_.rate, start);
    begin_ = start + static_cast<Nanos>(options_.warmup_s * 1e9);
    end_ = begin_ + static_cast<Nanos>(options_.seconds * 1e9);
    next_progress_ = begin_ + kSecond;
    for (Nanos now = start; now < end_; now = Now()) {
      Tick(now);
      Send(now);
      Wait(end_);
    }
    Finish();
    return std::move(outcome_);
  }

  void Answered(std::uint64_t request, std::string_view error) override {
    if (request >= next_ || request < oldest_) return;
    Slot& slot = slots_[request & (slots_.size() - 1)];
    if (!slot.is_waiting) return;
    slot.is_waiting = false;
    ++answered_;
    while (oldest_ < next_ && !slots_[oldest_ & (slots_.size() - 1)].is_waiting) ++oldest_;
    if (!error.empty()) {
      Failed(error);
      return;
    }
    if (options_.keeps_acknowledged) outcome_.acknowledged[request] = true;
    if (!is_measuring_) return;
    ++outcome_.requests;
    outcome_.latency.Record(static_cast<std::uint64_t>(answer_time_ - slot.counts_from) / 1000);
  }

 private:
  struct Slot {
    Nanos counts_from = 0;
    std::uint32_t connection = 0;
    bool is_waiting = false;
  };

  void Failed(std::string_view error) {
    ++outcome_.errors;
    if (outcome_.first_error.empty()) outcome_.first_error = std::string(error);
    paused_until_ = std::max(paused_until_, Now() + kReopenPause);
    must_reopen_ = true;
  }

  void Tick(Nanos now) {
    if (!is_measuring_ && now >= begin_) {
      is_measuring_ = true;
      measured_from_ = now;
      if (options_.on_begin) options_.on_begin();
    }
    if (must_reopen_ && now >= paused_until_) Reopen();
    if (!shows_progress_ || now < next_progress_) return;
    std::fprintf(stderr, "\r\033[K%llu requests/s, %llu errors",
                 static_cast<unsigned long long>(outcome_.requests - progress_),
                 static_cast<unsigned long long>(outcome_.errors));
    progress_ = outcome_.requests;
    next_progress_ += kSecond;
  }

  // After a failure the leader may be another one: the protocol looks and connects anew.
  void Reopen() {
    must_reopen_ = false;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      const std::uint64_t before = streams_[i].generation();
      if (!protocol_.Open(i, &streams_[i]).ok()) streams_[i].Close();
      if (streams_[i].generation() != before) Lose(i, "the connection was left before an answer");
      must_reopen_ = must_reopen_ || !streams_[i].is_open();
    }
    paused_until_ = must_reopen_ ? Now() + kReopenPause : 0;
  }

  // What was sent on this connection and has no answer never gets one.
  void Lose(std::size_t connection, std::string_view why) {
    const Nanos paused_until = paused_until_;
    const bool must_reopen = must_reopen_;
    for (std::uint64_t n = oldest_; n < next_; ++n) {
      const Slot& slot = slots_[n & (slots_.size() - 1)];
      if (slot.is_waiting && slot.connection == connection) Answered(n, why);
    }
    paused_until_ = paused_until;
    must_reopen_ = must_reopen;
  }

  void Send(Nanos now) {
    if (now < paused_until_) return;
    std::uint64_t allowed = schedule_.Allowed(now, answered_);
    allowed = std::min({allowed, oldest_ + slots_.size(), next_ + kRequestsPerLook, kRequestsMax});
    while (next_ < allowed) {
      const std::size_t connection = protocol_.ConnectionOf(next_);
      Stream& stream = streams_[connection];
      if (!stream.is_open() || !stream.has_room()) break;
      protocol_.Append(next_, now, &stream.out());
      slots_[next_ & (slots_.size() - 1)] = {schedule_.CountsFrom(next_, now),
                                             static_cast<std::uint32_t>(connection), true};
      if (options_.keeps_acknowledged) outcome_.acknowledged.push_back(false);
      ++next_;
    }
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (!streams_[i].wants_to_write()) continue;
      const Status flushed = streams_[i].Flush();
      if (!flushed.ok()) Break(i, flushed);
    }
  }

  void Break(std::size_t i, const Status& why) {
    streams_[i].Close();
    Lose(i, why.message());
    Failed(why.message());
  }

  // Until an answer comes, the next request is due, or `end`.
  void Wait(Nanos end) {
    const Nanos now = Now();
    Nanos until = std::min(end, now + kSecond / 10);
    if (now < paused_until_) {
      until = std::min(until, paused_until_);
    } else if (next_ < std::min(schedule_.Allowed(now, answered_), oldest_ + slots_.size()) &&
               !AnyIsFull()) {
      until = now;
    } else if (const auto due = schedule_.NextDue(next_, answered_)) {
      until = std::min(until, *due);
    }
    polled_.clear();
    for (const Stream& stream : streams_) {
      const int events = stream.wants_to_write() ? POLLIN | POLLOUT : POLLIN;
      polled_.push_back({stream.fd(), static_cast<short>(events), 0});
    }
    const Nanos wait = std::max<Nanos>(0, until - now);
    const timespec timeout{wait / kSecond, wait % kSecond};
    if (::ppoll(polled_.data(), polled_.size(), &timeout, nullptr) <= 0) return;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (polled_[i].revents != 0 && streams_[i].is_open()) Serve(i, polled_[i].revents);
    }
  }

  bool AnyIsFull() const {
    return std::any_of(streams_.begin(), streams_.end(),
                       [](const Stream& stream) { return !stream.has_room(); });
  }

  void Serve(std::size_t i, short events) {
    Stream& stream = streams_[i];
    Status status = (events & POLLOUT) != 0 ? stream.Flush() : Status::Ok();
    if (status.ok() && (events & ~POLLOUT) != 0) {
      status = stream.Fill();
      answer_time_ = Now();
      if (status.ok()) status = protocol_.Read(&stream, this);
    }
    if (!status.ok()) Break(i, status);
  }

  void Finish() {
    outcome_.seconds = static_cast<double>(Now() - measured_from_) / 1e9;
    is_measuring_ = false;
    if (options_.on_end) options_.on_end();
    for (const Nanos give_up = Now() + kDrain; answered_ < next_ && Now() < give_up;) Wait(give_up);
    outcome_.unanswered = next_ - answered_;
    if (shows_progress_) std::fprintf(stderr, "\r\033[K");
  }

  PublishProtocol& protocol_;
  const PublishOptions& options_;
  Schedule schedule_{1, 0, 0};
  std::vector<Stream> streams_;
  std::vector<Slot> slots_;
  std::vector<pollfd> polled_;
  std::uint64_t next_ = 0;      // the next request
  std::uint64_t oldest_ = 0;    // everything before has its answer
  std::uint64_t answered_ = 0;  // how many have
  Nanos answer_time_ = 0;
  Nanos begin_ = 0;
  Nanos end_ = 0;
  Nanos measured_from_ = 0;
  Nanos paused_until_ = 0;
  bool must_reopen_ = false;
  bool is_measuring_ = false;
  const bool shows_progress_;
  Nanos next_progress_ = 0;
  std::uint64_t progress_ = 0;
  PublishOutcome outcome_;
};

}  // namespace

Result<PublishOutcome> RunPublishLoop(PublishProtocol* protocol, const PublishOptions& options) {
  return PublishRun(protocol, options).Run();
}

}  // namespace triad::bench
