// getBrokerConfig, updateBrokerConfig, getNamesrvConfig, updateNamesrvConfig, updateKvConfig,
// deleteKvConfig, wipeWritePerm, addWritePerm.

#include <algorithm>
#include <string>
#include <vector>

#include "bin/admin/ask.h"
#include "bin/admin/file_text.h"
#include "bin/admin/verbs.h"
#include "remoting/codes.h"

namespace triad::admin {
namespace {

// What each address says its configuration is.
int ShowConfig(const std::vector<std::string>& addresses, int code, const Given& given,
               Session* session) {
  std::vector<Record> records;
  for (const std::string& address : addresses) {
    const auto answer = AskOk(address, code, {}, "", session);
    if (!answer.ok()) return Fail(answer.status());
    Record record;
    if (addresses.size() > 1) record.emplace_back("address", address);
    const Record lines = ConfigLines(answer->body);
    record.insert(record.end(), lines.begin(), lines.end());
    records.push_back(std::move(record));
  }
  Print(records, given);
  return kDone;
}

int GetBrokerConfig(const Given& given, Session* session) {
  const auto addresses = AddressesOf(given, session);
  if (!addresses.ok()) return Fail(addresses.status());
  return ShowConfig(*addresses, remoting::kGetBrokerConfig, given, session);
}

int GetNamesrvConfig(const Given& given, Session* session) {
  return ShowConfig(NameServersOf(session), remoting::kGetNamesrvConfig, given, session);
}

using Answer = client::Admin::Answer;

// Name servers answer 0 also to what changes nothing.
struct Doubt {
  bool (*changed)(const Answer&);
  std::string unchanged;  // what is said when it changed nothing anywhere
};

// A key that they do not have is ignored.
bool HasKey(const Answer& answer) {
  return !answer.remark.starts_with("unknown and ignored");
}

// A broker has some topics always: one without is not known to them.
bool HasTopics(const Answer& answer) {
  return std::ranges::none_of(answer.fields, [](const auto& field) { return field.second == "0"; });
}

// The same change at every address; all must take it.
int Tell(const std::vector<std::string>& addresses, int code, const Fields& fields,
         const std::string& body, const char* what, const Given& given, Session* session,
         const Doubt& doubt = {[](const Answer&) { return true; }, ""}) {
  Table table({"#Address", "#Result"});
  for (const std::string& address : addresses) {
    const auto answer = AskOk(address, code, fields, body, session);
    if (!answer.ok()) return Fail(answer.status());
    if (!doubt.changed(*answer)) continue;
    std::string result = std::string(what) + " success";
    for (const auto& [key, value] : answer->fields) result += ", " + key + "=" + value;
    if (!answer->remark.empty()) result += ", " + answer->remark;
    table.Add({address, std::move(result)});
  }
  if (table.rows() == 0) return Fail(Status::NotFound(doubt.unchanged));
  Print(table, given);
  return kDone;
}

std::string NewLine(const Given& given) {
  return given.Text("key") + "=" + given.Text("value") + "\n";
}

int UpdateBrokerConfig(const Given& given, Session* session) {
  const bool all = given.Is("updateAllBroker");
  const auto addresses = all ? AddressesOf(given, session) : LeadersAt(given, session);
  if (!addresses.ok()) return Fail(addresses.status());
  return Tell(*addresses, remoting::kUpdateBrokerConfig, {}, NewLine(given), "update broker config",
              given, session);
}

int UpdateNamesrvConfig(const Given& given, Session* session) {
  return Tell(NameServersOf(session), remoting::kUpdateNamesrvConfig, {}, NewLine(given),
              "update name server config", given, session,
              {HasKey, "no name server has a key " + given.Text("key")});
}

int UpdateKvConfig(const Given& given, Session* session) {
  return Tell(NameServersOf(session), remoting::kPutKvConfig,
              {{"namespace", given.Text("namespace")},
               {"key", given.Text("key")},
               {"value", given.Text("value")}},
              "", "create or update kv config to namespace", given, session);
}

int DeleteKvConfig(const Given& given, Session* session) {
  return Tell(NameServersOf(session), remoting::kDeleteKvConfig,
              {{"namespace", given.Text("namespace")}, {"key", given.Text("key")}}, "",
              "delete kv config from namespace", given, session);
}

int WipeWritePerm(const Given& given, Session* session) {
  return Tell(NameServersOf(session), remoting::kWipeWritePermOfBroker,
              {{"brokerName", given.Text("brokerName")}}, "", "wipe write perm of broker", given,
              session, {HasTopics, "no name server knows a broker " + given.Text("brokerName")});
}

int AddWritePerm(const Given& given, Session* session) {
  return Tell(NameServersOf(session), remoting::kAddWritePermOfBroker,
              {{"brokerName", given.Text("brokerName")}}, "", "add write perm of broker", given,
              session, {HasTopics, "no name server knows a broker " + given.Text("brokerName")});
}

}  // namespace

std::vector<Verb> ConfigVerbs() {
  return {
      {"getBrokerConfig", "show the configuration in force", "-b 127.0.0.1:10911", WithPlace({}),
       GetBrokerConfig},
      {"updateBrokerConfig", "change one key of the configuration",
       "-b 127.0.0.1:10911 -k brokerPermission -v 6",
       WithPlace({{"-k,--key", "key"},
                  {"-v,--value", "value"},
                  {"-a,--updateAllBroker", "at every peer, not at the leaders only", "true", kText,
                   kYesNo}}),
       UpdateBrokerConfig},
      {"getNamesrvConfig", "show the configuration of every name server", "", {}, GetNamesrvConfig},
      {"updateNamesrvConfig",
       "change one key at every name server",
       "-k orderMessageEnable -v true",
       {{"-k,--key", "key"}, {"-v,--value", "value"}},
       UpdateNamesrvConfig},
      {"updateKvConfig",
       "set a key-value of the name servers",
       "-s my_space -k colour -v blue",
       {{"-s,--namespace", "namespace"}, {"-k,--key", "key"}, {"-v,--value", "value"}},
       UpdateKvConfig},
      {"deleteKvConfig",
       "remove a key-value of the name servers",
       "-s my_space -k colour",
       {{"-s,--namespace", "namespace"}, {"-k,--key", "key"}},
       DeleteKvConfig},
      {"wipeWritePerm",
       "have producers leave a group: its topics are routed for reading only",
       "-b RaftNode00",
       {{"-b,--brokerName", "broker name"}},
       WipeWritePerm},
      {"addWritePerm",
       "have producers come back to a group",
       "-b RaftNode00",
       {{"-b,--brokerName", "broker name"}},
       AddWritePerm},
  };
}

}  // namespace triad::admin
