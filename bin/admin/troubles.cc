#include "bin/admin/troubles.h"

#include <algorithm>
#include <set>

namespace triad::admin {
namespace {

constexpr std::int64_t kYoungMs = 120000;   // members may still be starting
constexpr std::int64_t kBlockedMs = 60000;  // a message is with its listener for so long

bool IsPush(const remoting::Json& info) {
  return info["properties"]["PROP_CONSUME_TYPE"].AsString() == "CONSUME_PASSIVELY";
}

std::set<std::string> SubscriptionsOf(const remoting::Json& info) {
  std::set<std::string> subscriptions;
  for (const remoting::Json& one : info["subscriptionSet"].items()) {
    subscriptions.insert(one["topic"].AsString() + "@" + one["subString"].AsString());
  }
  return subscriptions;
}

}  // namespace

std::vector<std::string> Troubles(const std::string& client_id, const remoting::Json& info,
                                  std::int64_t now_ms) {
  std::vector<std::string> troubles;
  if (!IsPush(info)) return troubles;
  const bool orderly = info["properties"]["PROP_CONSUMEORDERLY"].AsBool();
  for (const auto& queue : info["mqTable"].members()) {
    const std::string who = client_id +
                            " MessageQueue [topic=" + queue.key_object["topic"].AsString() +
                            ", brokerName=" + queue.key_object["brokerName"].AsString() +
                            ", queueId=" + queue.key_object["queueId"].AsString() + "] ";
    const remoting::Json& at = queue.value;
    const std::int64_t unlocks = at["tryUnlockTimes"].AsInt64();
    const std::int64_t idle_ms = now_ms - at["lastConsumeTimestamp"].AsInt64();
    if (orderly && !at["locked"].AsBool()) {
      const std::int64_t ms = now_ms - at["lastLockTimestamp"].AsInt64();
      troubles.push_back(who + "can't lock for a while, " + std::to_string(ms) + "ms");
    } else if (orderly && at["droped"].AsBool() && unlocks > 0) {
      troubles.push_back(who + "unlock " + std::to_string(unlocks) + " times, still failed");
    } else if (!orderly && idle_ms > kBlockedMs && at["cachedMsgCount"].AsInt64() > 0) {
      troubles.push_back(who + "can't consume for a while, maybe blocked, " +
                         std::to_string(idle_ms) + "ms");
    }
  }
  return troubles;
}

bool SameSubscriptions(const std::map<std::string, remoting::Json>& infos, std::int64_t now_ms) {
  if (infos.empty()) return true;
  const remoting::Json& first = infos.begin()->second;
  const std::int64_t started_ms =
      first["properties"]["PROP_CONSUMER_START_TIMESTAMP"].AsInt64(now_ms);
  if (!IsPush(first) || now_ms - started_ms <= kYoungMs) return true;
  const std::set<std::string> wanted = SubscriptionsOf(first);
  return std::all_of(infos.begin(), infos.end(),
                     [&](const auto& one) { return SubscriptionsOf(one.second) == wanted; });
}

}  // namespace triad::admin
