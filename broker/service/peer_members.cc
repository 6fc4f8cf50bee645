#include "broker/service/peer_members.h"

#include <memory>
#include <string>
#include <utility>

#include "remoting/client_bodies.h"
#include "remoting/codes.h"
#include "remoting/json.h"

namespace triad::broker {
void PeerMembers::AskOthers(const remoting::Command& request,
                            std::function<void(std::vector<Answered>)> done) {
  std::vector<std::string> addresses;
  for (const dledger::NodeStatus::Peer& peer : node_.status().peers) {
    if (peer.connected && !peer.client_address.empty()) addresses.push_back(peer.client_address);
  }
  AskAll(client_, addresses, request, kAskBudget, std::move(done));
}

void PeerMembers::Ask(const GroupName& group, std::function<void(std::vector<ClientId>)> done) {
  remoting::Command request = remoting::Command::Request(kRequest);
  request.ext.Set("consumerGroup", group.value());
  AskOthers(request, [done = std::move(done)](const std::vector<Answered>& answers) {
    std::vector<ClientId> members;
    for (const auto& [address, answer] : answers) {
      if (!answer.ok() || answer->code != remoting::kSuccess) continue;
      const auto list = remoting::ConsumerIdList::Decode(answer->body);
      for (std::size_t i = 0; list.ok() && i < list->ids.size(); ++i) {
        members.emplace_back(list->ids[i]);
      }
    }
    done(std::move(members));
  });
}

void PeerMembers::AskSubscription(const GroupName& group, const Topic& topic,
                                  std::function<void(SubscriptionPtr)> done) {
  remoting::Command request = remoting::Command::Request(kSubscriptionRequest);
  request.ext.Set("consumerGroup", group.value());
  request.ext.Set("topic", topic.value());
  AskOthers(request, [topic, done = std::move(done)](const std::vector<Answered>& answers) {
    SubscriptionPtr newest;
    for (const auto& [address, answer] : answers) {
      if (!answer.ok() || answer->code != remoting::kSuccess) continue;
      const Result<remoting::Json> json = remoting::Json::Parse(answer->body);
      if (!json.ok()) continue;
      auto known = std::make_shared<const remoting::SubscriptionData>(
          remoting::SubscriptionData::From(*json));
      if (known->topic != topic.value()) continue;
      if (!newest || newest->sub_version < known->sub_version) newest = std::move(known);
    }
    done(std::move(newest));
  });
}

}  // namespace triad::broker
