#include "broker/service/other_groups.h"

#include <map>
#include <utility>

#include "broker/service/ask_all.h"
#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::broker {
namespace {

constexpr std::int32_t kPermWrite = 2;

remoting::Command RouteRequest(const Topic& topic) {
  remoting::Command request = remoting::Command::Request(remoting::kGetRouteInfoByTopic);
  remoting::GetRouteInfoRequest header;
  header.topic = topic.value();
  header.accept_standard_json_only = true;
  header.Encode(&request.ext);
  return request;
}

remoting::Command ConfigRequest(const Topic& topic) {
  remoting::Command request = remoting::Command::Request(remoting::kGetTopicConfig);
  request.ext.Set("topic", topic.value());
  return request;
}

// Who takes sends, with the address of its leader, or of the first peer that is there.
void AddTakers(const remoting::TopicRouteData& route, const std::string& own,
               std::map<std::string, std::string>* takers) {
  for (const remoting::QueueData& queues : route.queue_datas) {
    if (queues.broker_name == own || queues.write_queue_nums == 0) continue;
    if ((queues.perm & kPermWrite) == 0) continue;
    for (const remoting::BrokerData& broker : route.broker_datas) {
      if (broker.broker_name != queues.broker_name || broker.broker_addrs.empty()) continue;
      (*takers)[broker.broker_name] = broker.broker_addrs.begin()->second;
    }
  }
}

}  // namespace

void OtherGroups::WhoTakes(const Topic& topic, Done done) {
  const std::vector<std::string> name_servers = registration_.name_servers();
  AskAll(client_, name_servers, RouteRequest(topic), kAskBudget,
         [this, topic, asked = name_servers.size(),
          done = std::move(done)](const std::vector<Answered>& answers) {
           std::map<std::string, std::string> takers;
           std::size_t told = 0;
           for (const auto& [address, answer] : answers) {
             if (!answer.ok()) continue;
             if (answer->code == remoting::kTopicNotExist) ++told;
             if (answer->code != remoting::kSuccess) continue;
             const auto route = remoting::TopicRouteData::Decode(answer->body);
             if (!route.ok()) continue;
             ++told;
             AddTakers(*route, own_, &takers);
           }
           if (asked > 0 && told == 0) {
             done(Status::Unavailable("no name server answered"));
             return;
           }
           std::vector<Holder> holders;
           std::vector<std::string> addresses;
           for (auto& [name, address] : takers) {
             holders.push_back({name, std::nullopt});
             addresses.push_back(address);
           }
           AskHolders(topic, std::move(holders), addresses, done);
         });
}

void OtherGroups::AskHolders(const Topic& topic, std::vector<Holder> holders,
                             const std::vector<std::string>& addresses, Done done) {
  AskAll(client_, addresses, ConfigRequest(topic), kAskBudget,
         [holders = std::move(holders), addresses,
          done = std::move(done)](const std::vector<Answered>& answers) mutable {
           for (const auto& [address, answer] : answers) {
             if (!answer.ok() || answer->code != remoting::kSuccess) continue;
             const auto config = remoting::TopicConfigBody::Decode(answer->body);
             for (std::size_t i = 0; config.ok() && i < holders.size(); ++i) {
               if (addresses[i] == address) holders[i].topic = *config;
             }
           }
           done(std::move(holders));
         });
}

}  // namespace triad::broker
