// exportMetadata, exportConfigs: topics, groups and configurations of a cluster as one JSON file.

#include <map>
#include <string>
#include <vector>

#include "bin/admin/ask.h"
#include "bin/admin/file_text.h"
#include "bin/admin/verbs.h"
#include "remoting/codes.h"
#include "remoting/json.h"

namespace triad::admin {
namespace {

// The members of what every leader answers, by name; `keep` says which.
template <typename Keep>
Result<std::string> Merged(const std::vector<std::string>& addresses, int code,
                           const char* table_name, const Keep& keep, Session* session) {
  std::map<std::string, remoting::Json> members;
  for (const std::string& address : addresses) {
    const auto answer = AskOk(address, code, {}, "", session);
    if (!answer.ok()) return answer.status();
    const auto json = remoting::Json::Parse(answer->body);
    if (!json.ok()) return json.status();
    for (const auto& member : (*json)[table_name].members()) {
      if (keep(member.key)) members.insert_or_assign(member.key, member.value);
    }
  }
  remoting::JsonWriter writer;
  writer.BeginObject();
  for (const auto& [name, value] : members) {
    writer.Key(name);
    value.WriteTo(&writer);
  }
  writer.EndObject();
  return writer.Take();
}

int Write(const std::string& file, const std::string& text, const Given& given) {
  const Status written = WriteFile(given.Text("filePath"), file, text + "\n");
  if (!written.ok()) return Fail(written);
  return Done("export " + given.Text("filePath") + "/" + file + " success", given);
}

int ExportMetadata(const Given& given, Session* session) {
  const auto addresses = LeadersAt(given, session);
  if (!addresses.ok()) return Fail(addresses.status());
  const bool special = given.Is("specialTopic");
  const auto topics = Merged(
      *addresses, remoting::kGetAllTopicConfig, "topicConfigTable",
      [special](const std::string& name) {
        return special || !(name.starts_with("%RETRY%") || name.starts_with("%DLQ%"));
      },
      session);
  if (!topics.ok()) return Fail(topics.status());
  const auto groups = Merged(
      *addresses, remoting::kGetAllSubscriptionGroupConfig, "subscriptionGroupTable",
      [](const std::string&) { return true; }, session);
  if (!groups.ok()) return Fail(groups.status());
  remoting::JsonWriter writer;
  writer.BeginObject();
  if (!given.Is("topic")) writer.Key("subscriptionGroupTable").Raw(*groups);
  if (!given.Is("subscriptionGroup")) writer.Key("topicConfigTable").Raw(*topics);
  writer.EndObject();
  return Write("metadata.json", writer.text(), given);
}

int ExportConfigs(const Given& given, Session* session) {
  const auto addresses = AddressesOf(given, session);
  if (!addresses.ok()) return Fail(addresses.status());
  remoting::JsonWriter writer;
  writer.BeginObject().Key("brokerConfigs").BeginObject();
  for (const std::string& address : *addresses) {
    const auto answer = AskOk(address, remoting::kGetBrokerConfig, {}, "", session);
    if (!answer.ok()) return Fail(answer.status());
    writer.Key(address).BeginObject();
    for (const auto& [key, value] : ConfigLines(answer->body)) writer.Key(key).String(value);
    writer.EndObject();
  }
  writer.EndObject().EndObject();
  return Write("configs.json", writer.text(), given);
}

}  // namespace

std::vector<Verb> ExportVerbs() {
  const Option folder = {"-f,--filePath", "folder of the file", "/tmp/rocketmq/export"};
  return {
      {"exportMetadata", "write topics and groups into metadata.json", "-c DefaultCluster -f out",
       WithPlace({folder,
                  {"-t,--topic", "only topics", "", kSwitch},
                  {"-g,--subscriptionGroup", "only groups", "", kSwitch},
                  {"-s,--specialTopic", "also retry and dead-letter topics", "", kSwitch}}),
       ExportMetadata},
      {"exportConfigs", "write every peer's configuration into configs.json",
       "-c DefaultCluster -f out", WithPlace({folder}), ExportConfigs},
  };
}

}  // namespace triad::admin
