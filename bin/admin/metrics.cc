#include "bin/admin/metrics.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "bin/admin/ask.h"
#include "bin/admin/file_text.h"
#include "bin/admin/user_state.h"
#include "remoting/codes.h"
#include "remoting/json.h"
#include "remoting/version_text.h"

namespace triad::admin {
namespace {

using Info = std::map<std::string, std::string>;  // what a broker says of itself

std::string TextOf(const Info& info, const std::string& key) {
  const auto found = info.find(key);
  return found == info.end() ? "" : found->second;
}

// "12.5 10.0 9.8": of the last 10 seconds, minute, ten minutes.
double FirstNumber(const Info& info, const std::string& key) {
  return std::atof(TextOf(info, key).c_str());
}

std::int64_t Yesterday(const Info& info, const std::string& what) {
  return std::atoll(TextOf(info, what + "TotalTodayMorning").c_str()) -
         std::atoll(TextOf(info, what + "TotalYesterdayMorning").c_str());
}

struct Load {
  double in_tps = 0, out_tps = 0;
  std::int64_t in_day = 0, out_day = 0;
  Figure transactions, delayed;

  void Add(const Load& other) {
    in_tps += other.in_tps;
    out_tps += other.out_tps;
    in_day += other.in_day;
    out_day += other.out_day;
    transactions.tps += other.transactions.tps;
    transactions.day += other.transactions.day;
    delayed.tps += other.delayed.tps;
    delayed.day += other.delayed.day;
  }
};

// `names`: of the rates in, out, of transactions and of delayed messages.
void WriteRates(const Load& load, const std::vector<const char*>& names,
                remoting::JsonWriter* writer) {
  writer->BeginObject();
  writer->Key(names[0]).Double(load.in_tps);
  writer->Key(names[1]).Double(load.out_tps);
  writer->Key(names[2]).Double(load.transactions.tps);
  writer->Key(names[3]).Double(load.delayed.tps);
  writer->EndObject();
}

void WriteDay(const Load& load, remoting::JsonWriter* writer) {
  writer->BeginObject();
  writer->Key("normalOneDayInNum").Int(load.in_day);
  writer->Key("normalOneDayOutNum").Int(load.out_day);
  writer->Key("transOneDayInNum").Int(load.transactions.day);
  writer->Key("scheduleOneDayInNum").Int(load.delayed.day);
  writer->EndObject();
}

// What is not known is left out.
void WriteKnown(const char* name, const std::string& value, remoting::JsonWriter* writer) {
  if (!value.empty()) writer->Key(name).String(value);
}

void WriteQuota(const Info& info, const Load& load, std::size_t topics, std::size_t groups,
                remoting::JsonWriter* writer) {
  writer->BeginObject().Key("diskRatio").BeginObject();
  WriteKnown("commitLogDiskRatio", TextOf(info, "commitLogDiskRatio"), writer);
  WriteKnown("consumeQueueDiskRatio", TextOf(info, "consumeQueueDiskRatio"), writer);
  writer->EndObject().Key("tps");
  WriteRates(load, {"normalInTps", "normalOutTps", "transInTps", "scheduleInTps"}, writer);
  writer->Key("oneDayNum");
  WriteDay(load, writer);
  WriteKnown("messageAverageSize", TextOf(info, "putMessageAverageSize"), writer);
  writer->Key("topicSize").Int(static_cast<std::int64_t>(topics));
  writer->Key("groupSize").Int(static_cast<std::int64_t>(groups)).EndObject();
}

// The languages and versions of all members of the groups.
std::set<std::string> ClientsOf(const Descriptions& groups, Session* session) {
  std::set<std::string> clients;
  for (const auto& [group, description] : groups) {
    const auto members = session->admin().ConsumerConnections(group);
    if (!members.ok()) continue;  // nobody is online
    for (const client::ClientConnection& member : *members) {
      clients.insert(member.language + "%" + remoting::VersionName(member.version));
    }
  }
  return clients;
}

// Writes the member of one broker, and adds what it does to `total`.
Status WriteBroker(const Leader& broker, Load* total, remoting::JsonWriter* writer,
                   Session* session) {
  const auto info = session->admin().RuntimeInfo(broker.address);
  if (!info.ok()) return info.status();
  const auto config = AskOk(broker.address, remoting::kGetBrokerConfig, {}, "", session);
  if (!config.ok()) return config.status();
  const auto topics = UserTopics(broker.address, false, session);
  if (!topics.ok()) return topics.status();
  const auto groups = UserGroups(broker.address, session);
  if (!groups.ok()) return groups.status();
  Load load{FirstNumber(*info, "putTps"),
            FirstNumber(*info, "getTransferredTps"),
            Yesterday(*info, "msgPut"),
            Yesterday(*info, "msgGet"),
            StatsOf({broker}, "TOPIC_PUT_NUMS", "RMQ_SYS_TRANS_HALF_TOPIC", session),
            StatsOf({broker}, "TOPIC_PUT_NUMS", "SCHEDULE_TOPIC_XXXX", session)};
  total->Add(load);
  std::string cpus;
  for (const auto& [key, value] : ConfigLines(config->body)) {
    if (key == "clientCallbackExecutorThreads") cpus = value;  // as many as the machine has
  }
  writer->Key(broker.broker_name).BeginObject().Key("runtimeEnv").BeginObject();
  WriteKnown("cpuNum", cpus, writer);
  WriteKnown("totalMemKBytes", TextOf(*info, "totalMemKBytes"), writer);
  writer->EndObject().Key("runtimeQuota");
  WriteQuota(*info, load, topics->size(), groups->size(), writer);
  writer->Key("runtimeVersion").BeginObject();
  WriteKnown("rocketmqVersion", TextOf(*info, "brokerVersionDesc"), writer);
  writer->Key("clientInfo").BeginArray();
  for (const std::string& one : ClientsOf(*groups, session)) writer->String(one);
  writer->EndArray().EndObject().EndObject();
  return Status::Ok();
}

// Each with its name: the export is by name.
Result<std::vector<Leader>> LeadersOfCluster(const Given& given, Session* session) {
  const auto groups = session->admin().ClusterList();
  if (!groups.ok()) return groups.status();
  const std::string& cluster = given.Text("clusterName");
  std::vector<Leader> leaders;
  for (const client::BrokerGroup& group : *groups) {
    if (group.addresses.empty() || (!cluster.empty() && group.cluster != cluster)) continue;
    leaders.push_back({group.broker_name, group.addresses.begin()->second, group.cluster});
  }
  if (leaders.empty()) return Status::NotFound("cluster " + cluster + " has no broker");
  return leaders;
}

}  // namespace

Result<std::string> MetricsJson(const Given& given, Session* session) {
  const auto brokers = LeadersOfCluster(given, session);
  if (!brokers.ok()) return brokers.status();
  Load total;
  remoting::JsonWriter writer;
  writer.BeginObject().Key("evaluateReport").BeginObject();
  for (const Leader& broker : *brokers) {
    TRIAD_RETURN_IF_ERROR(WriteBroker(broker, &total, &writer, session));
  }
  writer.EndObject().Key("totalData").BeginObject().Key("totalTps");
  WriteRates(total,
             {"totalNormalInTps", "totalNormalOutTps", "totalTransInTps", "totalScheduleInTps"},
             &writer);
  writer.Key("totalOneDayNum");
  WriteDay(total, &writer);
  writer.EndObject().EndObject();
  return writer.Take();
}

}  // namespace triad::admin
