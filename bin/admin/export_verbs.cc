// exportMetadata, exportConfigs, exportMetrics: topics and groups, configurations, or the load of a
// cluster as one JSON file.

#include <string>
#include <vector>

#include "bin/admin/ask.h"
#include "bin/admin/file_text.h"
#include "bin/admin/metrics.h"
#include "bin/admin/user_state.h"
#include "bin/admin/verbs.h"
#include "remoting/codes.h"
#include "remoting/json.h"

namespace triad::admin {
namespace {

// What users made at all brokers, by name, as one object.
template <typename Read>
Result<std::string> Merged(const std::vector<std::string>& addresses, const Read& read) {
  Descriptions members;
  for (const std::string& address : addresses) {
    const auto some = read(address);
    if (!some.ok()) return some.status();
    for (const auto& [name, value] : *some) members.insert_or_assign(name, value);
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
  const auto topics = Merged(*addresses, [special, session](const std::string& address) {
    return UserTopics(address, special, session);
  });
  if (!topics.ok()) return Fail(topics.status());
  const auto groups = Merged(
      *addresses, [session](const std::string& address) { return UserGroups(address, session); });
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

int ExportMetrics(const Given& given, Session* session) {
  const auto metrics = MetricsJson(given, session);
  if (!metrics.ok()) return Fail(metrics.status());
  return Write("metrics.json", *metrics, given);
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
      {"exportMetrics",
       "write load, sizes and client versions of every broker into metrics.json",
       "-c DefaultCluster -f out",
       {{"-c,--clusterName", "brokers of this cluster (without it: all)", ""}, folder},
       ExportMetrics},
  };
}

}  // namespace triad::admin
