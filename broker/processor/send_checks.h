// SendChecks: what a message must be like before it may enter the log, and what the broker adds.
//
// Pure. A refusal carries the wire code and the remark that the client shows. Source: wire.md §4.4,
// §4.8, §4.9.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "broker/config/broker_config.h"
#include "broker/store/appender.h"
#include "broker/store/message.h"
#include "common/status.h"
#include "remoting/command.h"
#include "remoting/headers.h"

namespace triad::broker {

// Why a request is answered with a failure; code 0: it is not.
struct Refusal {
  std::int32_t code = 0;
  std::string remark;
  std::int32_t forbidden_type = 0;  // what forbids a pull: 1 broker, 2 group, 3 topic, 4 broadcast
  explicit operator bool() const { return code != 0; }
};
inline constexpr std::chrono::milliseconds kSendBudget{2500};
// The answer to a send that was not stored, or not surely.
remoting::Command SendFailure(const remoting::Command& request, const Status& status);
remoting::Command RefusalResponse(const remoting::Command& request, const Refusal& refusal);

inline constexpr std::size_t kPropertiesBytesMax = 32767;
// Of a message; far from where counting on would overflow.
inline constexpr std::int32_t kReconsumeTimesMax = 1 << 30;

// What the broker itself looks at among a message's properties, found in one pass.
struct KnownProperties {
  std::string_view unique_key;   // UNIQ_KEY
  std::string_view delay;        // DELAY
  std::string_view transaction;  // TRAN_MSG
  bool timer = false;            // a TIMER_ property of a timer message
  bool inner = false;            // INNER_NUM
  bool broker_own = false;       // one that the broker sets, or takes off
};
KnownProperties ScanProperties(std::string_view properties);

// Message types that do not exist here: they are never stored, on no path.
Refusal CheckMessageType(std::int32_t sys_flag, const KnownProperties& known);
// Body and properties as they would be stored.
Refusal CheckSizes(const BrokerConfig& config, std::string_view body, std::size_t properties_bytes);

// MSG_REGION, TRACE_ON and CLUSTER; takes off POP_CK, REAL_TOPIC and REAL_QID (the broker's own
// mark of a message that was parked: it would not be compared with others of its key). `known` is
// of *properties.
void AddBrokerProperties(const BrokerConfig& config, const KnownProperties& known,
                         std::string* properties);

// What the messages of a send to a topic with a dedup rule are known by. Refused when a key is too
// long to be remembered.
Refusal CollectKeys(DedupMode mode, const remoting::SendMessageRequest& header,
                    const std::vector<MessageDraft>& drafts, DedupKeys* keys);

// The messages of a batch body, all to (topic, queue of `header`), checked and completed.
// *refusal says why there are none.
std::vector<MessageDraft> UnpackBatch(const BrokerConfig& config,
                                      const remoting::SendMessageRequest& header,
                                      std::string_view body, const HostPort& born_host,
                                      Refusal* refusal);

}  // namespace triad::broker
