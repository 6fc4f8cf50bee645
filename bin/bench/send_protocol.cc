#include "bin/bench/send_protocol.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "bin/bench/answers.h"
#include "common/byte_order.h"
#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::bench {
namespace {

constexpr std::string_view kUniqPlace = "UUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUU";  // 32
constexpr std::string_view kKeyPlace = "key-KKKKKKKK";
constexpr std::int64_t kBornPlace = 1111111111111;
constexpr Nanos kMillisecond = 1'000'000;

void WriteHex(std::uint64_t value, char* to) {
  for (int i = 15; i >= 0; --i, value >>= 4) to[i] = "0123456789ABCDEF"[value & 15];
}

std::string WallMs() {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count());
}

std::string Properties(bool has_key) {
  std::string text = "UNIQ_KEY\x01" + std::string(kUniqPlace) + "\x02WAIT\x01true\x02";
  if (has_key) text += "KEYS\x01" + std::string(kKeyPlace) + "\x02";
  return text;
}

}  // namespace

void WriteStamp(const Stamp& stamp, char* to) {
  StoreBe64(to, stamp.run);
  StoreBe64(to + 8, stamp.message);
  StoreBe64(to + 16, static_cast<std::uint64_t>(stamp.sent_at));
}

Stamp ReadStamp(const char* from) {
  return {LoadBe64(from), LoadBe64(from + 8), static_cast<Nanos>(LoadBe64(from + 16))};
}

std::string Filler(std::size_t bytes) {
  std::string text(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i)
    text[i] = "abcdefghijklmnopqrstuvwxyz012345"[(i * 11 + i / 29) & 31];
  return text;
}

SendProtocol::SendProtocol(Lanes* lanes, const SendOptions& options)
    : lanes_(*lanes), options_(options), body_(Filler(options.size)) {}

Result<std::unique_ptr<SendProtocol>> SendProtocol::Make(Lanes* lanes, const SendOptions& options) {
  std::unique_ptr<SendProtocol> made(new SendProtocol(lanes, options));
  TRIAD_RETURN_IF_ERROR(made->MakeTemplates());
  made->opened_.resize(made->connections());
  return made;
}

Status SendProtocol::MakeTemplates() {
  const bool is_batch = options_.batch > 1;
  const std::string properties = Properties(options_.keys > 0);
  if (is_batch) {
    AppendBe32(&item_, static_cast<std::uint32_t>(22 + body_.size() + properties.size()));
    item_.append(12, '\0');  // magic, checksum, flag
    AppendBe32(&item_, static_cast<std::uint32_t>(body_.size()));
    item_ += body_;
    AppendBe16(&item_, static_cast<std::uint16_t>(properties.size()));
    item_key_at_ = item_.size() + properties.find(kUniqPlace);
    item_ += properties;
  }
  body_bytes_ = is_batch ? item_.size() * options_.batch : body_.size();
  for (const Lane& lane : lanes_.lanes()) {
    remoting::SendMessageRequest header;
    header.producer_group = "mqbench";
    header.topic = lane.topic;
    header.default_topic = "TBW102";
    header.default_topic_queue_nums = 4;
    header.queue_id = lane.queue;
    header.born_timestamp_ms = kBornPlace;
    header.properties = is_batch ? "" : properties;
    header.batch = is_batch;
    header.broker_name = lane.broker_name;
    remoting::Command request = remoting::Command::Request(is_batch ? remoting::kSendBatchMessage
                                                                    : remoting::kSendMessageV2);
    request.serialize_type = options_.serialize;
    header.EncodeV2(&request.ext);
    const std::string born = std::to_string(kBornPlace);
    std::vector<std::string_view> places = {born};
    if (!is_batch) places.push_back(kUniqPlace);
    if (!is_batch && options_.keys > 0) places.push_back(kKeyPlace);
    Result<FrameTemplate> made = FrameTemplate::Make(std::move(request), body_bytes_, places);
    if (!made.ok()) return made.status();
    templates_.push_back(std::move(*made));
  }
  return Status::Ok();
}

std::size_t SendProtocol::connections() const {
  return lanes_.groups().size() * options_.connections;
}

Status SendProtocol::Open(std::size_t i, Stream* stream) {
  if (!opened_[i].empty()) lanes_.Refresh();
  const std::string& leader = lanes_.groups()[i / options_.connections].leader;
  if (stream->is_open() && opened_[i] == leader) return Status::Ok();
  TRIAD_RETURN_IF_ERROR(stream->Connect(leader));
  opened_[i] = leader;
  return Status::Ok();
}

std::size_t SendProtocol::LaneOf(std::uint64_t request) const {
  const std::uint64_t turn = options_.keys > 0 ? request % options_.keys : request;
  return turn % templates_.size();
}

std::size_t SendProtocol::ConnectionOf(std::uint64_t request) const {
  const std::size_t lane = LaneOf(request);
  return lanes_.lanes()[lane].group * options_.connections + lane % options_.connections;
}

void SendProtocol::Append(std::uint64_t request, Nanos now, std::string* out) {
  if (now - born_at_ >= kMillisecond) {
    born_at_ = now;
    born_text_ = WallMs();
  }
  std::array<char, kUniqPlace.size()> uniq;
  WriteHex(options_.run, uniq.data());
  WriteHex(request, uniq.data() + 16);
  std::array<char, kKeyPlace.size()> key;
  std::memcpy(key.data(), kKeyPlace.data(), kKeyPlace.size());
  if (options_.keys > 0) WriteDecimal(request % options_.keys, 8, key.data() + 4);
  const std::array<std::string_view, 3> texts = {
      born_text_, {uniq.data(), uniq.size()}, {key.data(), key.size()}};
  templates_[LaneOf(request)].Append(kFirstOpaque + static_cast<std::uint32_t>(request), texts,
                                     out);
  for (std::uint64_t i = 0; i < options_.batch; ++i)
    AppendMessage(request * options_.batch + i, now, out);
}

void SendProtocol::AppendMessage(std::uint64_t message, Nanos now, std::string* out) const {
  const std::size_t begin = out->size();
  const bool is_batch = options_.batch > 1;
  out->append(is_batch ? item_ : body_);
  char* const at = out->data() + begin;
  if (is_batch) {
    WriteHex(options_.run, at + item_key_at_);
    WriteHex(message, at + item_key_at_ + 16);
  }
  if (options_.size >= kStampBytes)
    WriteStamp({options_.run, message, now}, at + (is_batch ? 20 : 0));
}

Status SendProtocol::Read(Stream* stream, AnswerSink* sink) {
  return ForEachAnswer(stream, [sink](const AnswerHead& answer, std::string_view frame) {
    const std::uint64_t request = answer.opaque - kFirstOpaque;
    if (answer.code == remoting::kSuccess) {
      sink->Answered(request, {});
    } else {
      sink->Answered(request, DescribeFailure(frame));
    }
    return Status::Ok();
  });
}

}  // namespace triad::bench
