#include "bin/bench/pull_loop.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "bin/bench/answers.h"
#include "common/byte_order.h"
#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::bench {
namespace {

constexpr Nanos kRetryPause = kSecond / 10;
constexpr std::int64_t kOffsetPlace = 1111111111111111111;  // 19 digits
constexpr std::size_t kOffsetDigits = 19;
constexpr std::int32_t kMaySuspend = 0x2;
constexpr std::int32_t kHasSubscription = 0x4;
constexpr std::int64_t kSuspendMs = 15000;

// Of a stored record.
constexpr std::size_t kCrcAt = 8;
constexpr std::size_t kQueueOffsetAt = 20;
constexpr std::size_t kSysFlagAt = 36;
constexpr std::size_t kBodyLengthAt = 84;  // both hosts IPv4
constexpr std::int32_t kBornHostV6 = 0x10;
constexpr std::int32_t kStoreHostV6 = 0x20;
constexpr std::size_t kV6Extra = 12;

struct Reader {
  std::size_t lane = 0;
  std::size_t connection = 0;
  FrameTemplate head;
  std::int64_t next = 0;
  std::int64_t end = -1;  // -1 = not known
  Nanos sent_at = 0;
  bool is_waiting = false;
  bool is_done = false;
};

class PullRun {
 public:
  PullRun(Lanes* lanes, const PullOptions& options)
      : lanes_(*lanes), options_(options), shows_(options.shows_progress && ::isatty(2) != 0) {}

  Result<PullOutcome> Run() {
    TRIAD_RETURN_IF_ERROR(Prepare());
    const Nanos start = Now();
    const Nanos begin = start + static_cast<Nanos>(options_.warmup_s * 1e9);
    const Nanos end = begin + static_cast<Nanos>(options_.seconds * 1e9);
    last_message_at_ = start;
    std::uint64_t shown = 0;
    Nanos measured_from = start;
    for (Nanos now = start, next_show = begin + kSecond; now < end && open_readers_ > 0;
         now = Now()) {
      if (!is_measuring_ && now >= begin) {
        is_measuring_ = true;
        measured_from = now;
        if (options_.on_begin) options_.on_begin();
      }
      if (now >= retry_at_) SendWaiting(now);
      Wait(end);
      if (shows_ && now >= next_show) {
        std::fprintf(stderr, "\r\033[K%llu messages/s",
                     static_cast<unsigned long long>(outcome_.messages - shown));
        shown = outcome_.messages;
        next_show += kSecond;
      }
    }
    outcome_.is_at_end = open_readers_ == 0;
    const Nanos until = outcome_.is_at_end ? last_message_at_ : Now();
    outcome_.seconds = static_cast<double>(std::max<Nanos>(1, until - measured_from)) / 1e9;
    if (options_.on_end) options_.on_end();
    if (shows_) std::fprintf(stderr, "\r\033[K");
    return std::move(outcome_);
  }

 private:
  const std::string& Address(std::size_t connection) const {
    return options_.peer.empty() ? lanes_.groups()[connection / options_.connections].leader
                                 : options_.peer;
  }

  Status Prepare() {
    streams_.resize(lanes_.groups().size() * options_.connections);
    for (std::size_t i = 0; i < streams_.size(); ++i)
      TRIAD_RETURN_IF_ERROR(streams_[i].Connect(Address(i)));
    const auto& lanes = lanes_.lanes();
    for (int group = 0; group < options_.groups; ++group) {
      for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        Result<FrameTemplate> head = MakeHead(lanes[lane], group);
        if (!head.ok()) return head.status();
        const std::size_t turn = readers_.size() % options_.connections;
        readers_.push_back({.lane = lane,
                            .connection = lanes[lane].group * options_.connections + turn,
                            .head = std::move(*head),
                            .next = options_.begins.empty() ? 0 : options_.begins[lane]});
      }
    }
    open_readers_ = readers_.size();
    return Status::Ok();
  }

  Result<FrameTemplate> MakeHead(const Lane& lane, int group) const {
    remoting::PullMessageRequest header;
    header.consumer_group = "mqbench_consumer";
    if (group > 0) header.consumer_group += "_" + std::to_string(group);
    header.topic = lane.topic;
    header.queue_id = lane.queue;
    header.queue_offset = kOffsetPlace;
    header.max_msg_nums = options_.max_messages;
    header.sys_flag = kHasSubscription | (options_.follows ? kMaySuspend : 0);
    header.suspend_timeout_ms = kSuspendMs;
    header.subscription = "*";
    header.expression_type = "TAG";
    remoting::Command request = remoting::Command::Request(remoting::kPullMessage);
    request.serialize_type = options_.serialize;
    header.Encode(&request.ext);
    const std::string place = std::to_string(kOffsetPlace);
    return FrameTemplate::Make(std::move(request), 0, {place});
  }

  void SendWaiting(Nanos now) {
    retry_at_ = now + kRetryPause;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (streams_[i].is_open()) continue;
      lanes_.Refresh();
      const Status status = streams_[i].Connect(Address(i));
      if (!status.ok()) Count(status.message());
    }
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      if (!readers_[i].is_waiting && !readers_[i].is_done) Pull(i, now);
    }
    FlushAll();
  }

  void Pull(std::size_t i, Nanos now) {
    Reader& reader = readers_[i];
    Stream& stream = streams_[reader.connection];
    if (!stream.is_open()) return;
    std::array<char, kOffsetDigits> offset;
    WriteDecimal(static_cast<std::uint64_t>(reader.next), kOffsetDigits, offset.data());
    const std::array<std::string_view, 1> texts = {{{offset.data(), offset.size()}}};
    reader.head.Append(kFirstOpaque + static_cast<std::uint32_t>(i), texts, &stream.out());
    reader.sent_at = now;
    reader.is_waiting = true;
  }

  void FlushAll() {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (!streams_[i].wants_to_write()) continue;
      const Status status = streams_[i].Flush();
      if (!status.ok()) Break(i, status);
    }
  }

  void Break(std::size_t connection, const Status& why) {
    streams_[connection].Close();
    for (Reader& reader : readers_) {
      if (reader.connection == connection) reader.is_waiting = false;
    }
    Count(why.message());
  }

  void Count(std::string_view error) {
    ++outcome_.errors;
    if (outcome_.first_error.empty()) outcome_.first_error = std::string(error);
  }

  void Wait(Nanos end) {
    polled_.clear();
    for (const Stream& stream : streams_) {
      const int events = stream.wants_to_write() ? POLLIN | POLLOUT : POLLIN;
      polled_.push_back({stream.fd(), static_cast<short>(events), 0});
    }
    const Nanos wait = std::max<Nanos>(0, std::min(end, retry_at_) - Now());
    const timespec timeout{wait / kSecond, wait % kSecond};
    if (::ppoll(polled_.data(), polled_.size(), &timeout, nullptr) <= 0) return;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (polled_[i].revents == 0 || !streams_[i].is_open()) continue;
      Status status = streams_[i].Fill();
      if (status.ok()) status = ReadAnswers(&streams_[i]);
      if (!status.ok()) Break(i, status);
    }
    FlushAll();
  }

  Status ReadAnswers(Stream* stream) {
    const Nanos now = Now();
    return ForEachAnswer(stream, [&](const AnswerHead& answer, std::string_view frame) {
      const std::size_t i = answer.opaque - kFirstOpaque;
      if (i >= readers_.size() || !readers_[i].is_waiting) return Status::Ok();  // not ours
      return OnAnswer(i, answer, frame, now);
    });
  }

  Status OnAnswer(std::size_t i, const AnswerHead& answer, std::string_view frame, Nanos now) {
    Reader& reader = readers_[i];
    reader.is_waiting = false;
    const bool is_known =
        answer.code == remoting::kSuccess || answer.code == remoting::kPullNotFound ||
        answer.code == remoting::kPullRetryImmediately || answer.code == remoting::kPullOffsetMoved;
    if (!is_known) {
      Count(DescribeFailure(frame));
      return Status::Ok();  // pulled again after a pause
    }
    ++outcome_.pulls;
    const std::int64_t next = FindNumber(answer, "nextBeginOffset");
    const std::int64_t end = FindNumber(answer, "maxOffset");
    if (next < 0 || end < 0) return Status::Corruption("a pull answer without offsets");
    if (answer.code == remoting::kSuccess) TRIAD_RETURN_IF_ERROR(Take(reader, answer, now));
    reader.next = next;
    if (reader.end < 0) reader.end = end;
    if (!options_.follows && reader.next >= reader.end) {
      reader.is_done = true;
      --open_readers_;
    } else {
      Pull(i, now);
    }
    return Status::Ok();
  }

  Status Take(const Reader& reader, const AnswerHead& answer, Nanos now) {
    const std::size_t lane = reader.lane;
    const Result<std::uint64_t> messages =
        WalkMessages(answer.body, [&](const StoredMessage& message) {
          if (options_.on_message) options_.on_message(lane, message);
        });
    if (!messages.ok()) return messages.status();
    last_message_at_ = now;
    if (!is_measuring_) return Status::Ok();
    outcome_.messages += *messages;
    outcome_.bytes += answer.body.size();
    outcome_.latency.Record(static_cast<std::uint64_t>(now - reader.sent_at) / 1000);
    return Status::Ok();
  }

  Lanes& lanes_;
  const PullOptions& options_;
  std::vector<Stream> streams_;
  std::vector<Reader> readers_;
  std::vector<pollfd> polled_;
  std::size_t open_readers_ = 0;
  Nanos retry_at_ = 0;
  Nanos last_message_at_ = 0;
  bool is_measuring_ = false;
  const bool shows_;
  PullOutcome outcome_;
};

}  // namespace

Result<std::uint64_t> WalkMessages(std::string_view body,
                                   const std::function<void(const StoredMessage&)>& visit) {
  std::uint64_t count = 0;
  for (; !body.empty(); ++count) {
    std::size_t length_at = kBodyLengthAt;
    if (body.size() < length_at + 4) return Status::Corruption("a cut message in a pull answer");
    const std::size_t total = LoadBe32(body.data());
    const auto flags = static_cast<std::int32_t>(LoadBe32(body.data() + kSysFlagAt));
    length_at += ((flags & kBornHostV6) != 0 ? kV6Extra : 0);
    length_at += ((flags & kStoreHostV6) != 0 ? kV6Extra : 0);
    if (total > body.size() || total < length_at + 4)
      return Status::Corruption("a message of " + std::to_string(total) +
                                " bytes in a pull answer");
    const std::size_t body_bytes = LoadBe32(body.data() + length_at);
    if (body_bytes > total - length_at - 4)
      return Status::Corruption("a message whose body is longer than itself");
    visit({body.substr(length_at + 4, body_bytes), LoadBe32(body.data() + kCrcAt),
           static_cast<std::int64_t>(LoadBe64(body.data() + kQueueOffsetAt))});
    body.remove_prefix(total);
  }
  return count;
}

Result<PullOutcome> RunPullLoop(Lanes* lanes, const PullOptions& options) {
  return PullRun(lanes, options).Run();
}

}  // namespace triad::bench
