#include "broker/service/peer_members.h"

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "remoting/client_bodies.h"
#include "remoting/codes.h"
#include "remoting/json.h"

namespace triad::broker {
namespace {

// What has come of one question to several.
struct Gathering {
  using Answers = std::vector<Result<remoting::Command>>;
  std::mutex mutex;
  std::size_t open = 0;
  Answers answers;
  std::function<void(Answers)> done;

  void Take(const Result<remoting::Command>& answer) {
    Answers all;
    {
      const std::lock_guard lock(mutex);
      answers.push_back(answer);
      if (--open > 0) return;
      all.swap(answers);
    }
    done(std::move(all));
  }
};

}  // namespace

void PeerMembers::AskAll(const remoting::Command& request, std::function<void(Answers)> done) {
  std::vector<std::string> addresses;
  for (const dledger::NodeStatus::Peer& peer : node_.status().peers) {
    if (peer.connected && !peer.client_address.empty()) addresses.push_back(peer.client_address);
  }
  if (addresses.empty()) {
    done({});
    return;
  }
  auto gathering = std::make_shared<Gathering>();
  gathering->open = addresses.size();
  gathering->done = std::move(done);
  for (const std::string& address : addresses) {
    client_.Call(address, request, kAskBudget,
                 [gathering](const Result<remoting::Command>& answer) { gathering->Take(answer); });
  }
}

void PeerMembers::Ask(const GroupName& group, std::function<void(std::vector<ClientId>)> done) {
  remoting::Command request = remoting::Command::Request(kRequest);
  request.ext.Set("consumerGroup", group.value());
  AskAll(request, [done = std::move(done)](const Answers& answers) {
    std::vector<ClientId> members;
    for (const Result<remoting::Command>& answer : answers) {
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
  AskAll(request, [topic, done = std::move(done)](const Answers& answers) {
    SubscriptionPtr newest;
    for (const Result<remoting::Command>& answer : answers) {
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
