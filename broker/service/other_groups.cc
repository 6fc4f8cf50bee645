#include "broker/service/other_groups.h"

#include <glog/logging.h>

#include <map>
#include <mutex>
#include <utility>

#include "broker/service/ask_all.h"
#include "broker/state/replicated_state.h"
#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::broker {
namespace {

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

// The answers about several topics, until the last one is there.
struct TopicAnswers {
  std::mutex mutex;
  std::size_t open = 0;
  std::vector<OtherGroups::Found> found;
  std::function<void(std::vector<OtherGroups::Found>)> done;

  void Take(std::size_t at, OtherGroups::Found one) {
    {
      const std::lock_guard lock(mutex);
      found[at] = std::move(one);
      if (--open > 0) return;
    }
    done(std::move(found));  // nobody else comes any more
  }
};

}  // namespace

void OtherGroups::AddTakers(const remoting::TopicRouteData& route, const std::string& own,
                            Takers* takers) {
  for (const remoting::QueueData& queues : route.queue_datas) {
    if (queues.broker_name == own || queues.write_queue_nums == 0) continue;
    if ((queues.perm & kPermWrite) == 0) continue;
    for (const remoting::BrokerData& broker : route.broker_datas) {
      if (broker.broker_name != queues.broker_name) continue;
      std::set<std::string>& addresses = (*takers)[broker.broker_name];
      for (const auto& [id, address] : broker.broker_addrs) addresses.insert(address);
    }
  }
}

void OtherGroups::WhoTakes(const std::vector<Topic>& topics,
                           std::function<void(std::vector<Found>)> done) {
  CHECK_LE(topics.size(), kTopicsMax);
  if (topics.empty()) {
    done({});
    return;
  }
  auto answers_of = std::make_shared<TopicAnswers>();
  answers_of->open = topics.size();
  answers_of->found.assign(topics.size(), Status::Unavailable("not asked"));
  answers_of->done = std::move(done);
  for (std::size_t i = 0; i < topics.size(); ++i) {
    WhoTakesOne(topics[i], [answers_of, i](Found found) { answers_of->Take(i, std::move(found)); });
  }
}

void OtherGroups::WhoTakesOne(const Topic& topic, Done done) {
  const std::vector<std::string> name_servers = registration_.name_servers();
  AskAll(client_, name_servers, RouteRequest(topic), kAskBudget,
         [this, topic, asked = name_servers.size(),
          done = std::move(done)](const std::vector<Answered>& answers) {
           Takers takers;
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
           AskHolders(topic, std::move(takers), done);
         });
}

void OtherGroups::AskHolders(const Topic& topic, Takers takers, Done done) {
  std::vector<std::string> addresses;
  for (const auto& [name, peers] : takers) {
    addresses.insert(addresses.end(), peers.begin(), peers.end());
  }
  AskAll(
      client_, addresses, ConfigRequest(topic), kAskBudget,
      [takers = std::move(takers), done = std::move(done)](const std::vector<Answered>& answers) {
        std::vector<Holder> holders;
        for (const auto& [name, peers] : takers) {
          Holder& holder = holders.emplace_back();
          holder.broker_name = name;
          for (const auto& [address, answer] : answers) {
            if (!answer.ok() || !peers.contains(address)) continue;
            // A peer that finds no leader is no answer of its group.
            const bool knows = answer->code == remoting::kSuccess ||
                               answer->code == remoting::kTopicNotExist ||
                               answer->code == remoting::kRequestCodeNotSupported;
            holder.answered = holder.answered || knows;
            if (answer->code != remoting::kSuccess) continue;
            const auto config = remoting::TopicConfigBody::Decode(answer->body);
            if (config.ok()) holder.topic = *config;
          }
        }
        done(std::move(holders));
      });
}

}  // namespace triad::broker
