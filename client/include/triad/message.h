// Messages as producers send and consumers receive them.
//
// Values; no thread.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace triad::client {

// To be sent.
struct Message {
  std::string topic;
  std::string body;
  std::string tag;                // one tag; empty = none
  std::vector<std::string> keys;  // for queries; without blanks
  std::int32_t flag = 0;
  int delay_level = 0;  // 1..18 by the broker's messageDelayLevel; 0 = deliver at once
  std::map<std::string, std::string> properties;  // the application's own
};

struct MessageQueue {
  std::string topic;
  std::string broker_name;
  std::int32_t queue_id = 0;
  auto operator<=>(const MessageQueue&) const = default;
};

// As received.
struct ReceivedMessage {
  std::string topic;  // of a retried message: the original topic
  std::string body;   // decompressed
  std::string tag;
  std::vector<std::string> keys;
  std::map<std::string, std::string> properties;  // all of them
  std::string message_id;                         // UNIQ_KEY, else the offset message id
  std::string offset_message_id;
  MessageQueue queue;
  std::int64_t queue_offset = 0;
  std::int64_t physical_offset = 0;
  std::int32_t flag = 0;
  std::int32_t sys_flag = 0;
  std::int32_t reconsume_times = 0;  // deliveries before this one
  std::int64_t born_time_ms = 0;
  std::int64_t store_time_ms = 0;
  std::string born_host;
  std::string store_host;
};

}  // namespace triad::client
