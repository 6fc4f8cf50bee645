#include "broker/processor/send_checks.h"

#include <algorithm>
#include <array>
#include <utility>

#include "broker/store/dedup_tail.h"
#include "remoting/codes.h"

namespace triad::broker {
namespace {

constexpr std::int32_t kSysFlagPrepared = 0x4;
constexpr std::array<std::string_view, 3> kTimerProperties = {"TIMER_DELIVER_MS", "TIMER_DELAY_MS",
                                                              "TIMER_DELAY_SEC"};

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
                       std::string_view properties) {
  if (const Refusal type = CheckMessageType(0, properties)) return type;
  if (!FindProperty(properties, "DELAY").empty())
    return Illegal("a batch holds no delayed message");
  return CheckSizes(config, item.body, properties);
}

}  // namespace

remoting::Command RefusalResponse(const remoting::Command& request, const Refusal& refusal) {
  return remoting::Command::ResponseTo(request, refusal.code, refusal.remark);
}

Refusal CheckMessageType(std::int32_t sys_flag, std::string_view properties) {
  if ((sys_flag & kSysFlagPrepared) != 0 || IsTrue(FindProperty(properties, "TRAN_MSG"))) {
    return {.code = remoting::kNoPermission, .remark = "sending transaction message is forbidden"};
  }
  for (const std::string_view name : kTimerProperties) {
    if (FindProperty(properties, name).empty()) continue;
    return {.code = remoting::kSystemError, .remark = "accurate timer message is not enabled"};
  }
  if (!FindProperty(properties, "INNER_NUM").empty())
    return Illegal("INNER_NUM is not for clients");
  return {};
}

Refusal CheckSizes(const BrokerConfig& config, std::string_view body, std::string_view properties) {
  if (body.empty()) return Illegal("its body is empty");
  if (body.size() > static_cast<std::size_t>(config.max_message_bytes)) {
    return Illegal("its body has " + std::to_string(body.size()) + " bytes, the limit is " +
                   std::to_string(config.max_message_bytes) + " (maxMessageSize)");
  }
  if (properties.size() > kPropertiesBytesMax) {
    return Illegal("its properties have " + std::to_string(properties.size()) +
                   " bytes, the limit is " + std::to_string(kPropertiesBytesMax));
  }
  return {};
}

void AddBrokerProperties(const BrokerConfig& config, std::string* properties) {
  RemoveProperty(properties, "POP_CK");
  SetProperty(properties, "MSG_REGION", config.region_id);
  SetProperty(properties, "TRACE_ON", config.trace_on ? "true" : "false");
  SetProperty(properties, "CLUSTER", config.cluster_name);
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
    *refusal = CheckSizes(config, body, {});
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
    draft.properties = item.properties;
    AddBrokerProperties(config, &draft.properties);
    *refusal = CheckBatchItem(config, item, draft.properties);
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
