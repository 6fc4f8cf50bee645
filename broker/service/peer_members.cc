#include "broker/service/peer_members.h"

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "remoting/client_bodies.h"
#include "remoting/codes.h"

namespace triad::broker {
namespace {

// What has come of one question to several.
struct Gathering {
  std::mutex mutex;
  std::size_t open = 0;
  std::vector<ClientId> members;
  std::function<void(std::vector<ClientId>)> done;

  void Take(const Result<remoting::Command>& answer) {
    std::vector<ClientId> all;
    {
      const std::lock_guard lock(mutex);
      if (answer.ok() && answer->code == remoting::kSuccess) {
        const auto list = remoting::ConsumerIdList::Decode(answer->body);
        for (std::size_t i = 0; list.ok() && i < list->ids.size(); ++i) {
          members.emplace_back(list->ids[i]);
        }
      }
      if (--open > 0) return;
      all.swap(members);
    }
    done(std::move(all));
  }
};

}  // namespace

void PeerMembers::Ask(const GroupName& group, std::function<void(std::vector<ClientId>)> done) {
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
    remoting::Command request = remoting::Command::Request(kRequest);
    request.ext.Set("consumerGroup", group.value());
    client_.Call(address, std::move(request), kAskBudget,
                 [gathering](const Result<remoting::Command>& answer) { gathering->Take(answer); });
  }
}

}  // namespace triad::broker
