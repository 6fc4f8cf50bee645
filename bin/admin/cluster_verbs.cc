// clusterList, brokerStatus, haStatus, cleanExpiredCQ, cleanUnusedTopic, deleteExpiredCommitLog.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "bin/admin/ask.h"
#include "bin/admin/number_text.h"
#include "bin/admin/verbs.h"
#include "remoting/codes.h"
#include "remoting/json.h"

namespace triad::admin {
namespace {

using Info = std::map<std::string, std::string>;

std::string ValueOf(const Info& info, const std::string& key) {
  const auto it = info.find(key);
  return it == info.end() ? "" : it->second;
}

std::string FirstWord(const Info& info, const std::string& key) {
  const std::string value = ValueOf(info, key);
  return value.substr(0, value.find(' '));
}

std::int64_t Count(const Info& info, const std::string& key) {
  return std::atoll(ValueOf(info, key).c_str());
}

std::string HoursSince(const std::string& ms) {
  const double earliest = std::atof(ms.c_str());
  const auto now = static_cast<double>(std::time(nullptr));
  return Decimal(earliest > 0 ? (now - earliest / 1000) / 3600 : 0.0);
}

// "100.00(0,0ms)": a rate, and how many requests wait how long.
std::string Load(const Info& info, const std::string& rate, const std::string& queue) {
  return FirstWord(info, rate) + "(" + ValueOf(info, queue + "ThreadPoolQueueSize") + "," +
         ValueOf(info, queue + "ThreadPoolQueueHeadWaitTimeMills") + "ms)";
}

using Row = std::vector<std::string>;

Row StateRow(const client::BrokerGroup& group, std::int64_t id, const std::string& address,
             const Info& info) {
  return {group.cluster,
          group.broker_name,
          std::to_string(id),
          address,
          FirstWord(info, "brokerVersionDesc"),
          Load(info, "putTps", "send"),
          Load(info, "getTransferredTps", "pull"),
          HoursSince(FirstWord(info, "earliestMessageTimeStamp")),
          FirstWord(info, "commitLogDiskRatio").substr(0, 6),
          FirstWord(info, "brokerActive")};
}

Row TotalsRow(const client::BrokerGroup& group, const Info& info) {
  const std::int64_t in = Count(info, "msgPutTotalTodayNow");
  const std::int64_t out = Count(info, "msgGetTotalTodayNow");
  const std::int64_t in_morning = Count(info, "msgPutTotalTodayMorning");
  const std::int64_t out_morning = Count(info, "msgGetTotalTodayMorning");
  return {group.cluster,
          group.broker_name,
          std::to_string(in_morning - Count(info, "msgPutTotalYesterdayMorning")),
          std::to_string(out_morning - Count(info, "msgGetTotalYesterdayMorning")),
          std::to_string(in - in_morning),
          std::to_string(out - out_morning)};
}

int ClusterList(const Given& given, Session* session) {
  const auto groups = session->admin().ClusterList();
  if (!groups.ok()) return Fail(groups.status());
  const bool totals = given.Is("moreStats");
  Table table(totals ? Row{"#Cluster Name", "#Broker Name", "#InTotalYest", "#OutTotalYest",
                           "#InTotalToday", "#OutTotalToday"}
                     : Row{"#Cluster Name", "#Broker Name", "#BID", "#Addr", "#Version",
                           "#InTPS(LOAD)", "#OutTPS(LOAD)", "#Hour", "#SPACE", "#ACTIVATED"});
  bool answered = false;
  for (const client::BrokerGroup& group : *groups) {
    if (given.Has("clusterName") && group.cluster != given.Text("clusterName")) continue;
    for (const auto& [id, address] : group.addresses) {
      const auto info = session->admin().RuntimeInfo(address);
      answered = answered || info.ok();
      if (info.ok()) {
        table.Add(totals ? TotalsRow(group, *info) : StateRow(group, id, address, *info));
      } else if (!totals) {
        table.Add({group.cluster, group.broker_name, std::to_string(id), address, "", "", "", "",
                   "", "no answer: " + std::string(info.status().message())});
      }
    }
  }
  Print(table, given);
  if (table.rows() == 0) return Fail(Status::NotFound("no broker is registered"));
  return answered ? kDone : kUnreachable;
}

int BrokerStatus(const Given& given, Session* session) {
  const auto addresses = AddressesOf(given, session);
  if (!addresses.ok()) return Fail(addresses.status());
  std::vector<Record> records;
  for (const std::string& address : *addresses) {
    const auto info = session->admin().RuntimeInfo(address);
    if (!info.ok()) return Fail(info.status());
    Record record;
    if (addresses->size() > 1) record.emplace_back("brokerAddr", address);
    record.insert(record.end(), info->begin(), info->end());
    records.push_back(std::move(record));
  }
  Print(records, given);
  return kDone;
}

int HaStatus(const Given& given, Session* session) {
  const auto addresses = AddressesOf(given, session);
  if (!addresses.ok()) return Fail(addresses.status());
  Table table({"#Addr", "#Master", "#In Sync", "#Slave Addr", "#Slave Ack Offset", "#Max Offset",
               "#Diff", "#Slave In Sync"});
  for (const std::string& address : *addresses) {
    const auto answer = AskOk(address, remoting::kGetBrokerHaStatus, {}, "", session);
    if (!answer.ok()) return Fail(answer.status());
    const auto body = remoting::Json::Parse(answer->body);
    if (!body.ok()) return Fail(body.status());
    const Row head = {address, (*body)["master"].AsBool() ? "true" : "false",
                      (*body)["inSyncSlaveNums"].AsString()};
    for (const remoting::Json& slave : (*body)["haConnectionInfo"].items()) {
      Row row = head;
      row.insert(row.end(),
                 {slave["addr"].AsString(), slave["slaveAckOffset"].AsString(),
                  (*body)["masterCommitLogMaxOffset"].AsString(), slave["diff"].AsString(),
                  slave["inSync"].AsBool() ? "true" : "false"});
      table.Add(std::move(row));
    }
    if (!(*body)["haConnectionInfo"].items().empty()) continue;
    Row row = head;
    row.insert(row.end(),
               {"", "", (*body)["haClientRuntimeInfo"]["maxOffset"].AsString("0"), "", ""});
    table.Add(std::move(row));
  }
  Print(table, given);
  return kDone;
}

// One request without fields to every broker of the place.
int TellBrokers(int code, const char* what, const Given& given, Session* session) {
  const auto addresses = AddressesOf(given, session);
  if (!addresses.ok()) return Fail(addresses.status());
  for (const std::string& address : *addresses) {
    const auto answer = AskOk(address, code, {}, "", session);
    if (!answer.ok()) return Fail(answer.status());
  }
  return Done(std::string(what) + " success at " + std::to_string(addresses->size()) + " broker" +
                  (addresses->size() == 1 ? "" : "s"),
              given);
}

// Runs a verb again every --interval seconds, until it fails or is ended.
int Repeatedly(int (*run)(const Given&, Session*), const Given& given, Session* session) {
  while (true) {
    const int code = run(given, session);
    if (code != kDone || given.Number("interval") == 0) return code;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return code;  // nobody reads it any more
    std::this_thread::sleep_for(std::chrono::seconds(given.Number("interval")));
  }
}

std::vector<Option> CleaningPlace() {  // the original's long name differs here
  return {{"-b,--brokerAddr", "only at this address", ""},
          {"-c,--cluster,--clusterName", "in this cluster (without -c and -b: in every one)", ""}};
}

}  // namespace

std::vector<Verb> ClusterVerbs() {
  const Option interval = {"-i,--interval", "again every so many seconds; 0: once", "0", kCount};
  return {
      {"clusterList",
       "list clusters, their groups and peers",
       "",
       {{"-c,--clusterName", "only this cluster", ""},
        {"-m,--moreStats", "messages in and out, yesterday and today", "", kSwitch},
        interval},
       [](const Given& given, Session* session) {
         return Repeatedly(ClusterList, given, session);
       }},
      {"brokerStatus", "show what a broker says of itself", "-b 127.0.0.1:10911", WithPlace({}),
       BrokerStatus},
      {"haStatus", "show how far each peer's copy of the log is", "-b 127.0.0.1:10911",
       WithPlace({interval}),
       [](const Given& given, Session* session) { return Repeatedly(HaStatus, given, session); }},
      {"cleanExpiredCQ", "have consume queues without messages cleaned", "-b 127.0.0.1:10911",
       CleaningPlace(),
       [](const Given& given, Session* session) {
         return TellBrokers(remoting::kCleanExpiredConsumeQueue, "cleanExpiredCQ", given, session);
       }},
      {"cleanUnusedTopic", "have queues of topics that are gone cleaned", "-b 127.0.0.1:10911",
       CleaningPlace(),
       [](const Given& given, Session* session) {
         return TellBrokers(remoting::kCleanUnusedTopic, "cleanUnusedTopic", given, session);
       }},
      {"deleteExpiredCommitLog", "have log files that are past their time deleted",
       "-b 127.0.0.1:10911", CleaningPlace(),
       [](const Given& given, Session* session) {
         return TellBrokers(remoting::kDeleteExpiredCommitLog, "deleteExpiredCommitLog", given,
                            session);
       }},
  };
}

}  // namespace triad::admin
