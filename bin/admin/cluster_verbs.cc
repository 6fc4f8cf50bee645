// clusterList, brokerStatus.

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bin/admin/verbs.h"
#include "bin/table.h"

namespace triad::admin {
namespace {

std::string FirstWord(const std::map<std::string, std::string>& info, const std::string& key) {
  const auto it = info.find(key);
  return it == info.end() ? "" : it->second.substr(0, it->second.find(' '));
}

int ClusterList(const std::string& cluster, Session* session) {
  Result<std::vector<client::BrokerGroup>> groups = session->admin().ClusterList();
  if (!groups.ok()) return Fail(groups.status());
  Table table({"#Cluster Name", "#Broker Name", "#BID", "#Addr", "#Version", "#InTPS(LOAD)",
               "#OutTPS(LOAD)", "#Hour", "#SPACE", "#ACTIVATED"});
  for (const client::BrokerGroup& group : *groups) {
    if (!cluster.empty() && group.cluster != cluster) continue;
    for (const auto& [id, address] : group.addresses) {
      Result<std::map<std::string, std::string>> info = session->admin().RuntimeInfo(address);
      if (!info.ok()) {
        table.Add({group.cluster, group.broker_name, std::to_string(id), address, "", "", "", "",
                   "", "no answer: " + std::string(info.status().message())});
        continue;
      }
      const double earliest = std::atof(FirstWord(*info, "earliestMessageTimeStamp").c_str());
      char hours[32];
      std::snprintf(
          hours, sizeof hours, "%.2f",
          earliest > 0 ? (static_cast<double>(std::time(nullptr)) - earliest / 1000) / 3600 : 0.0);
      table.Add({group.cluster, group.broker_name, std::to_string(id), address,
                 FirstWord(*info, "brokerVersionDesc"), FirstWord(*info, "putTps"),
                 FirstWord(*info, "getTransferredTps"), hours,
                 FirstWord(*info, "commitLogDiskRatio").substr(0, 6),
                 FirstWord(*info, "brokerActive")});
    }
  }
  table.Print();
  return table.rows() > 0 ? kDone : kRefused;
}

struct Place {
  std::string cluster, broker;
};

int BrokerStatus(const Place& o, Session* session) {
  std::vector<std::string> addresses;
  if (!o.broker.empty()) {
    addresses.push_back(o.broker);
  } else {
    Result<std::vector<client::BrokerGroup>> groups = session->admin().ClusterList();
    if (!groups.ok()) return Fail(groups.status());
    for (const client::BrokerGroup& group : *groups) {
      if (!o.cluster.empty() && group.cluster != o.cluster) continue;
      for (const auto& [id, address] : group.addresses) addresses.push_back(address);
    }
  }
  if (addresses.empty()) return Fail(Status::NotFound("no broker in cluster " + o.cluster));
  for (const std::string& address : addresses) {
    Result<std::map<std::string, std::string>> info = session->admin().RuntimeInfo(address);
    if (!info.ok()) return Fail(info.status());
    for (const auto& [key, value] : *info) {
      const std::string prefix = addresses.size() > 1 ? address + " " : "";
      std::printf("%s%-36s: %s\n", prefix.c_str(), key.c_str(), value.c_str());
    }
  }
  return kDone;
}

}  // namespace

void AddClusterVerbs(Registry* verbs) {
  const auto cluster = std::make_shared<std::string>();
  CLI::App* verb =
      verbs->Add("clusterList", "list clusters, their groups and peers",
                 [cluster](Session* session) { return ClusterList(*cluster, session); });
  verb->add_option("-c,--clusterName", *cluster, "only this cluster");

  const auto place = std::make_shared<Place>();
  verb = verbs->Add("brokerStatus", "show what a broker says of itself",
                    [place](Session* session) { return BrokerStatus(*place, session); });
  AddPlace(verb, &place->cluster, &place->broker);
}

}  // namespace triad::admin
