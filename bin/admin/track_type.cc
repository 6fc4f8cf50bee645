#include "bin/admin/track_type.h"

#include <algorithm>

namespace triad::admin {
namespace {

bool Takes(const remoting::SubscriptionData& subscription, const std::string& tag) {
  const std::vector<std::string>& tags = subscription.tags_set;
  return tags.empty() || std::any_of(tags.begin(), tags.end(), [&tag](const std::string& one) {
           return one == tag || one == "*";
         });
}

}  // namespace

std::string_view TrackTypeOf(const remoting::ConsumerConnection& group,
                             const remoting::ConsumeStats& progress, const Tracked& message) {
  if (group.consume_type == remoting::ConsumeType::kActively) return "PULL";
  if (group.consume_type != remoting::ConsumeType::kPassively) return "UNKNOWN";
  if (progress.offset_table.empty() &&
      group.message_model == remoting::MessageModel::kBroadcasting) {
    return "CONSUME_BROADCASTING";
  }
  const auto at = progress.offset_table.find(message.queue);
  if (at == progress.offset_table.end() || at->second.consumer_offset <= message.offset) {
    return "NOT_CONSUME_YET";
  }
  const auto subscription = group.subscription_table.find(message.queue.topic);
  const bool taken =
      subscription == group.subscription_table.end() || Takes(subscription->second, message.tag);
  return taken ? "CONSUMED" : "CONSUMED_BUT_FILTERED";
}

std::string BrokerNameAt(const std::string& store_host,
                         const std::vector<client::BrokerGroup>& groups) {
  for (const client::BrokerGroup& group : groups) {
    if (std::any_of(group.addresses.begin(), group.addresses.end(),
                    [&store_host](const auto& peer) { return peer.second == store_host; })) {
      return group.broker_name;
    }
  }
  return groups.size() == 1 ? groups.front().broker_name : std::string();
}

}  // namespace triad::admin
