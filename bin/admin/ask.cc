#include "bin/admin/ask.h"

#include "remoting/admin_bodies.h"
#include "remoting/bodies.h"
#include "remoting/codes.h"

namespace triad::admin {
namespace {

// `whom`: how many peers of each group, the leader (id 0, or the lowest) first.
Result<std::vector<std::string>> Addresses(const Given& given, std::size_t whom, Session* session) {
  if (given.Has("brokerAddr")) return std::vector<std::string>{given.Text("brokerAddr")};
  const auto groups = session->admin().ClusterList();
  if (!groups.ok()) return groups.status();
  const std::string& cluster = given.Text("clusterName");
  std::vector<std::string> addresses;
  for (const client::BrokerGroup& group : *groups) {
    if (!cluster.empty() && group.cluster != cluster) continue;
    std::size_t taken = 0;
    for (const auto& [id, address] : group.addresses) {
      if (taken++ < whom) addresses.push_back(address);
    }
  }
  if (!addresses.empty()) return addresses;
  return Status::NotFound(cluster.empty() ? "no broker is registered"
                                          : "no broker in cluster " + cluster);
}

}  // namespace

Result<client::Admin::Answer> AskOk(const std::string& address, int code, const Fields& fields,
                                    const std::string& body, Session* session) {
  auto answer = session->admin().Ask(address, code, fields, body);
  if (!answer.ok() || answer->code == remoting::kSuccess) return answer;
  const std::string text =
      address + " answers CODE: " + std::to_string(answer->code) + "  DESC: " + answer->remark;
  const bool absent = answer->code == remoting::kTopicNotExist ||
                      answer->code == remoting::kQueryNotFound ||
                      answer->code == remoting::kConsumerNotOnline ||
                      answer->code == remoting::kSubscriptionGroupNotExist;
  return absent ? Status::NotFound(text) : Status::Internal(text);
}

Result<std::vector<std::string>> AddressesOf(const Given& given, Session* session) {
  return Addresses(given, static_cast<std::size_t>(-1), session);
}

Result<std::vector<std::string>> LeadersAt(const Given& given, Session* session) {
  return Addresses(given, 1, session);
}

Result<std::vector<Leader>> LeadersOf(const std::string& topic, Session* session) {
  const auto route = session->admin().Route(topic);
  if (!route.ok()) return route.status();
  std::vector<Leader> leaders;
  for (const client::BrokerGroup& group : route->brokers) {
    if (group.addresses.empty()) continue;
    leaders.push_back({group.broker_name, group.addresses.begin()->second, group.cluster});
  }
  if (leaders.empty()) return Status::NotFound("no broker serves topic " + topic);
  return leaders;
}

Result<std::set<std::string>> GroupsOf(const std::string& topic, Session* session) {
  const auto leaders = LeadersOf(topic, session);
  if (!leaders.ok()) return leaders.status();
  std::set<std::string> groups;
  for (const Leader& leader : *leaders) {
    const auto answer =
        AskOk(leader.address, remoting::kQueryTopicConsumeByWho, {{"topic", topic}}, "", session);
    if (!answer.ok()) return answer.status();
    const auto list = remoting::GroupList::Decode(answer->body);
    if (!list.ok()) return list.status();
    groups.insert(list->groups.begin(), list->groups.end());
  }
  return groups;
}

Figure StatsOf(const std::vector<Leader>& leaders, const std::string& name, const std::string& key,
               Session* session) {
  Figure figure;
  for (const Leader& leader : leaders) {
    const auto answer = AskOk(leader.address, remoting::kViewBrokerStatsData,
                              {{"statsName", name}, {"statsKey", key}}, "", session);
    if (!answer.ok()) continue;
    const auto data = remoting::BrokerStatsData::Decode(answer->body);
    if (!data.ok()) continue;
    figure.tps += data->minute.tps;
    figure.day += data->day.sum != 0    ? data->day.sum
                  : data->hour.sum != 0 ? data->hour.sum
                                        : data->minute.sum;
  }
  return figure;
}

std::vector<std::string> NameServersOf(Session* session) {
  std::vector<std::string> addresses;
  const std::string list = session->client_options().namesrv_address + ";";
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = list.find(';', begin);
    std::string one = list.substr(begin, end - begin);
    while (!one.empty() && one.front() == ' ') one.erase(0, 1);
    while (!one.empty() && one.back() == ' ') one.pop_back();
    if (!one.empty()) addresses.push_back(one);
    begin = end + 1;
  }
  return addresses;
}

std::string RetryTopic(const std::string& group) {
  return "%RETRY%" + group;
}

}  // namespace triad::admin
