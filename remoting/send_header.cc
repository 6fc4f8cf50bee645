#include "remoting/send_header.h"

#include <array>

#include "remoting/codes.h"
#include "remoting/header_fields.h"

namespace triad::remoting {
namespace {

using H = SendMessageRequest;

constexpr auto kLongNames = std::tuple(
    Required("producerGroup", &H::producer_group), Required("topic", &H::topic),
    Required("defaultTopic", &H::default_topic),
    Required("defaultTopicQueueNums", &H::default_topic_queue_nums),
    Required("queueId", &H::queue_id), Required("sysFlag", &H::sys_flag),
    Required("bornTimestamp", &H::born_timestamp_ms), Required("flag", &H::flag),
    Optional("properties", &H::properties), Optional("reconsumeTimes", &H::reconsume_times),
    Optional("unitMode", &H::unit_mode), Optional("maxReconsumeTimes", &H::max_reconsume_times),
    Optional("batch", &H::batch), Optional("bname", &H::broker_name));

constexpr auto kShortNames = std::tuple(
    Required("a", &H::producer_group), Required("b", &H::topic), Required("c", &H::default_topic),
    Required("d", &H::default_topic_queue_nums), Required("e", &H::queue_id),
    Required("f", &H::sys_flag), Required("g", &H::born_timestamp_ms), Required("h", &H::flag),
    Optional("i", &H::properties), Optional("j", &H::reconsume_times), Optional("k", &H::unit_mode),
    Optional("l", &H::max_reconsume_times), Optional("m", &H::batch),
    Optional("n", &H::broker_name));

// "a" to "n", with what each means, for error texts.
constexpr std::array<std::string_view, 14> kMeaning = {
    "producerGroup", "topic",          "defaultTopic",  "defaultTopicQueueNums",
    "queueId",       "sysFlag",        "bornTimestamp", "flag",
    "properties",    "reconsumeTimes", "unitMode",      "maxReconsumeTimes",
    "batch",         "bname"};
constexpr std::size_t kRequiredCount = 8;

template <typename T>
Status ParseShort(std::size_t index, std::string_view text, T* out) {
  if (index >= kRequiredCount && text.empty()) return Status::Ok();
  return ParseField(kMeaning[index], text, out);
}

Status ParseLetter(std::size_t index, std::string_view text, H* out) {
  switch (index) {
    case 0: return ParseShort(index, text, &out->producer_group);
    case 1: return ParseShort(index, text, &out->topic);
    case 2: return ParseShort(index, text, &out->default_topic);
    case 3: return ParseShort(index, text, &out->default_topic_queue_nums);
    case 4: return ParseShort(index, text, &out->queue_id);
    case 5: return ParseShort(index, text, &out->sys_flag);
    case 6: return ParseShort(index, text, &out->born_timestamp_ms);
    case 7: return ParseShort(index, text, &out->flag);
    case 8: return ParseShort(index, text, &out->properties);
    case 9: return ParseShort(index, text, &out->reconsume_times);
    case 10: return ParseShort(index, text, &out->unit_mode);
    case 11: return ParseShort(index, text, &out->max_reconsume_times);
    case 12: return ParseShort(index, text, &out->batch);
    default: return ParseShort(index, text, &out->broker_name);
  }
}

}  // namespace

Result<SendMessageRequest> SendMessageRequest::DecodeV1(const ExtFields& fields) {
  return DecodeHeader<H>(kLongNames, fields);
}

// On the hot path, so in a single pass over the fields.
Result<SendMessageRequest> SendMessageRequest::DecodeV2(const ExtFields& fields) {
  H header;
  std::array<bool, kMeaning.size()> seen{};
  Status status;
  fields.Visit([&](std::string_view key, std::string_view value) {
    if (key.size() != 1 || key[0] < 'a' || key[0] > 'n') return true;
    const auto index = static_cast<std::size_t>(key[0] - 'a');
    seen[index] = true;
    status = ParseLetter(index, value, &header);
    return status.ok();
  });
  TRIAD_RETURN_IF_ERROR(status);
  for (std::size_t i = 0; i < kRequiredCount; ++i) {
    if (seen[i]) continue;
    const char letter = static_cast<char>('a' + i);
    return MissingField(std::string(kMeaning[i]) + " (" + letter + ")");
  }
  return header;
}

Result<SendMessageRequest> SendMessageRequest::Decode(std::int32_t code, const ExtFields& fields) {
  return code == kSendMessage ? DecodeV1(fields) : DecodeV2(fields);
}

void SendMessageRequest::EncodeV1(ExtFields* out) const {
  EncodeHeader(*this, kLongNames, out);
}
void SendMessageRequest::EncodeV2(ExtFields* out) const {
  EncodeHeader(*this, kShortNames, out);
}

}  // namespace triad::remoting
