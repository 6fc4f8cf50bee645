// SendMessageRequest: the header of a send, in its two spellings.
//
// Pure; included by headers.h. Source: wire.md §4.4.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"
#include "remoting/command.h"

namespace triad::remoting {

// SEND_MESSAGE (long field names, "V1"), SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE (one-letter names);
// wire.md §4.4.
struct SendMessageRequest {
  std::string producer_group;
  std::string topic;
  std::string default_topic;
  std::int32_t default_topic_queue_nums = 0;
  std::int32_t queue_id = 0;  // < 0: the server picks
  std::int32_t sys_flag = 0;
  std::int64_t born_timestamp_ms = 0;
  std::int32_t flag = 0;
  std::string properties;
  std::int32_t reconsume_times = 0;
  bool unit_mode = false;
  std::optional<std::int32_t> max_reconsume_times;
  bool batch = false;  // this flag, not the code, tells a batch
  std::string broker_name;

  static Result<SendMessageRequest> DecodeV1(const ExtFields& fields);
  static Result<SendMessageRequest> DecodeV2(const ExtFields& fields);
  // By the request code: kSendMessage has long names, the others short ones.
  static Result<SendMessageRequest> Decode(std::int32_t code, const ExtFields& fields);
  void EncodeV1(ExtFields* out) const;
  void EncodeV2(ExtFields* out) const;
};

}  // namespace triad::remoting
