// PlainSend: a SEND_MESSAGE_V2 request, read straight out of its frame, and the answer to it,
// written straight into the bytes that leave. Nothing is allocated per message.
//
// Pure. Reads exactly what DecodeFrame and SendMessageRequest::Decode read, and refuses to read
// what is unusual or wrong: that is left to them. The answer has the bytes that EncodeFrameHead
// gives it. Source: wire.md §1.1-§1.4, §4.4, §4.5.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "remoting/command.h"

namespace triad::remoting {

// Views into the frame; `properties` may be one into the scratch text.
struct PlainSend {
  SerializeType serialize_type = SerializeType::kJson;
  std::int32_t opaque = 0;
  std::string_view topic;
  std::int32_t queue_id = 0;
  std::int32_t sys_flag = 0;
  std::int64_t born_timestamp_ms = 0;
  std::int32_t flag = 0;
  std::string_view properties;
  std::int32_t reconsume_times = 0;
  std::string_view head;  // all of the frame in front of the body
  std::string_view body;
};

// `frame`: a whole one, length field included. False: no such request, a batch, oneway, or
// something that DecodeFrame has to judge; *out and *scratch are then as good as empty.
bool ReadPlainSend(std::string_view frame, std::string* scratch, PlainSend* out);

// A send that was stored.
struct PlainSendAnswer {
  SerializeType serialize_type = SerializeType::kJson;
  std::int32_t opaque = 0;
  std::string_view msg_id;
  std::int32_t queue_id = 0;
  std::int64_t queue_offset = 0;
  std::string_view transaction_id;
  std::string_view msg_region;
  bool trace_on = false;
};
// Appends the whole frame.
void AppendPlainSendAnswer(const PlainSendAnswer& answer, std::string* out);

}  // namespace triad::remoting
