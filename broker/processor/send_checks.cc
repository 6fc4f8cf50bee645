#include "broker/processor/send_checks.h"

#include <algorithm>
#include <utility>

#include "broker/processor/response.h"
#include "broker/store/dedup_tail.h"
#include "remoting/codes.h"

namespace triad::broker {
namespace {

constexpr std::int32_t kSysFlagPrepared = 0x4;
bool IsTrue(std::string_view text) {
  static constexpr std::string_view kTrue = "true";
  return std::ranges::equal(text, kTrue, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

Refusal Illegal(std::string why) {
  return {.code = remoting::kMessageIllegal, .remark = "the message is illegal: " + std::move(why)};
}

Refusal CheckBatchItem(const BrokerConfig& config, const BatchItem& item,
                       const KnownProperties& known, std::string_view properties) {
  if (const Refusal type = CheckMessageType(0, known)) return type;
  if (!known.delay.empty()) return Illegal("a batch holds no delayed message");
  return CheckSizes(config, item.body, properties.size());
}

}  // namespace

remoting::Command RefusalResponse(const remoting::Command& request, const Refusal& refusal) {
  return remoting::Command::ResponseTo(request, refusal.code, refusal.remark);
}

remoting::Command SendFailure(const remoting::Command& request, const Status& status) {
  remoting::Command response = ResponseOf(request, status);
  // Too large for an entry of the log: the client's message is what is wrong.
  if (status.code() == StatusCode::kInvalidArgument) response.code = remoting::kMessageIllegal;
  if (status.code() == StatusCode::kNotFound) response.code = remoting::kTopicNotExist;
  return response;
}

KnownProperties ScanProperties(std::string_view properties) {
  KnownProperties known;
  PropertyReader reader(properties);
  std::string_view name;
  std::string_view value;
  while (reader.Next(&name, &value)) {
    if (name == "UNIQ_KEY") known.unique_key = value;
    if (name == "DELAY") known.delay = value;
    if (name == "TRAN_MSG") known.transaction = value;
    known.timer = known.timer || name == "TIMER_DELIVER_MS" || name == "TIMER_DELAY_MS" ||
                  name == "TIMER_DELAY_SEC";
    known.inner = known.inner || name == "INNER_NUM";
    known.broker_own = known.broker_own || name == "POP_CK" || name == "MSG_REGION" ||
                       name == "TRACE_ON" || name == "CLUSTER" || name == "REAL_TOPIC" ||
                       name == "REAL_QID";
  }
  return known;
}

Refusal CheckMessageType(std::int32_t sys_flag, const KnownProperties& known) {
  if ((sys_flag & kSysFlagPrepared) != 0 || IsTrue(known.transaction)) {
    return {.code = remoting::kNoPermission, .remark = "sending transaction message is forbidden"};
  }
  if (known.timer) {
    return {.code = remoting::kSystemError, .remark = "accurate timer message is not enabled"};
  }
  if (known.inner) return Illegal("INNER_NUM is not for clients");
  return {};
}

Refusal CheckSizes(const BrokerConfig& config, std::string_view body,
                   std::size_t properties_bytes) {
  if (body.empty()) return Illegal("its body is empty");
  if (body.size() > static_cast<std::size_t>(config.max_message_bytes)) {
    return Illegal("its body has " + std::to_string(body.size()) + " bytes, the limit is " +
                   std::to_string(config.max_message_bytes) + " (maxMessageSize)");
  }
  if (properties_bytes > kPropertiesBytesMax) {
    return Illegal("its properties have " + std::to_string(properties_bytes) +
                   " bytes, the limit is " + std::to_string(kPropertiesBytesMax));
  }
  return {};
}

void AddBrokerProperties(const BrokerConfig& config, const KnownProperties& known,
                         std::string* properties) {
  if (known.broker_own) {
    for (const std::string_view name :
         {"POP_CK", "MSG_REGION", "TRACE_ON", "CLUSTER", "REAL_TOPIC", "REAL_QID"}) {
      RemoveProperty(properties, name);
    }
  }
  AppendProperty(properties, "MSG_REGION", config.region_id);
  AppendProperty(properties, "TRACE_ON", config.trace_on ? "true" : "false");
  AppendProperty(properties, "CLUSTER", config.cluster_name);
}

Refusal CollectKeys(DedupMode mode, const remoting::SendMessageRequest& header,
                    const std::vector<MessageDraft>& drafts, DedupKeys* keys) {
  if (mode == DedupMode::kNone) return {};
  keys->topic = Topic(header.topic);
  keys->queue_id = QueueId(header.queue_id);
  for (const MessageDraft& draft : drafts) {
    const DedupTarget target = DedupTargetOf(draft.topic.value(), draft.queue_id, draft.properties);
    const bool counts = target.topic == header.topic;
    keys->keys.emplace_back(counts ? DedupKeyOf(mode, draft.properties) : std::string_view());
    if (keys->keys.back().size() <= kDedupKeyBytesMax) continue;
    return Illegal("its key has " + std::to_string(keys->keys.back().size()) +
                   " bytes, the limit in a topic with the attribute dedup is " +
                   std::to_string(kDedupKeyBytesMax));
  }
  return {};
}

std::vector<MessageDraft> UnpackBatch(const BrokerConfig& config,
                                      const remoting::SendMessageRequest& header,
                                      std::string_view body, const HostPort& born_host,
                                      Refusal* refusal) {
  if (body.size() > static_cast<std::size_t>(config.max_message_bytes)) {
    *refusal = CheckSizes(config, body, 0);
    return {};
  }
  const auto items = ParseBatchBody(body);
  if (!items.ok() || items->empty()) {
    *refusal = Illegal(items.ok() ? "an empty batch" : std::string(items.status().message()));
    return {};
  }
  std::vector<MessageDraft> drafts;
  drafts.reserve(items->size());
  for (const BatchItem& item : *items) {
    MessageDraft draft;
    const KnownProperties known = ScanProperties(item.properties);
    draft.properties = item.properties;
    AddBrokerProperties(config, known, &draft.properties);
    *refusal = CheckBatchItem(config, item, known, draft.properties);
    if (*refusal) return {};
    draft.topic = Topic(header.topic);
    draft.queue_id = QueueId(header.queue_id);
    draft.flag = item.flag;
    draft.sys_flag = header.sys_flag;
    draft.born_time_ms = header.born_timestamp_ms;
    draft.born_host = born_host;
    draft.reconsume_times = header.reconsume_times;
    draft.body = item.body;
    drafts.push_back(std::move(draft));
  }
  return drafts;
}

}  // namespace triad::broker
