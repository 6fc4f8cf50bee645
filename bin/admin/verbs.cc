#include "bin/admin/verbs.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "bin/admin/peers.h"
#include "remoting/json.h"

namespace triad::admin {

const std::string& Given::Text(std::string_view name) const {
  const auto found = values_.find(name);
  CHECK(found != values_.end()) << "the verb has no option --" << name;
  return found->second;
}

std::int64_t Given::Number(std::string_view name) const {
  return std::strtoll(Text(name).c_str(), nullptr, 10);  // parse.cc lets nothing else through
}

int Given::Int(std::string_view name) const {
  constexpr std::int64_t kMin = std::numeric_limits<int>::min();
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  return static_cast<int>(std::clamp(Number(name), kMin, kMax));
}

std::vector<Option> WithPlace(std::vector<Option> options) {
  options.push_back({"-c,--clusterName", "in this cluster (without -c and -b: in every one)", ""});
  options.push_back({"-b,--brokerAddr", "only at this address", ""});
  return options;
}

std::vector<Option> WithGroupChoice(std::vector<Option> options) {
  options.push_back({"-c,--clusterName", "groups of this cluster", ""});
  options.push_back({"-g,--group", "the group of this brokerName or dLegerGroup", ""});
  options.push_back({"-b,--brokerAddr", "the group of the peer at host:port", ""});
  return options;
}

GroupChoice ChoiceOf(const Given& given) {
  return {given.Text("clusterName"), given.Text("group"), given.Text("brokerAddr")};
}

void Print(const Table& table, const Given& given) {
  if (given.json()) {
    std::printf("%s\n", table.Json().c_str());
  } else {
    table.Print();
  }
}

void Print(const std::vector<std::pair<const char*, Table>>& tables, const Given& given) {
  if (given.json()) {
    remoting::JsonWriter writer;
    writer.BeginObject();
    for (const auto& [name, table] : tables) writer.Key(name).Raw(table.Json());
    writer.EndObject();
    std::printf("%s\n", writer.text().c_str());
    return;
  }
  const char* between = "";
  for (const auto& [name, table] : tables) {
    std::printf("%s", between);
    table.Print();
    between = "\n";
  }
}

void Print(const std::vector<Record>& records, const Given& given) {
  if (given.json()) {
    remoting::JsonWriter writer;
    writer.BeginArray();
    for (const Record& record : records) {
      writer.BeginObject();
      for (const auto& [name, value] : record) writer.Key(name).String(value);
      writer.EndObject();
    }
    writer.EndArray();
    std::printf("%s\n", writer.text().c_str());
    return;
  }
  const char* between = "";
  for (const Record& record : records) {
    std::printf("%s", between);
    for (const auto& [name, value] : record) {
      std::printf("%-36s: %s\n", name.c_str(), value.c_str());
    }
    between = "\n";
  }
}

int Done(const std::string& sentence, const Given& given) {
  if (given.json()) {
    remoting::JsonWriter writer;
    writer.BeginObject();
    writer.Key("done").String(sentence);
    writer.EndObject();
    std::printf("%s\n", writer.text().c_str());
  } else {
    std::printf("%s\n", sentence.c_str());
  }
  return kDone;
}

void Note(const std::string& line, const Given& given) {
  if (!given.json()) std::printf("%s\n", line.c_str());
}

std::vector<Verb> AllVerbs() {
  std::vector<Verb> all;
  for (const auto family : {ClusterVerbs, TopicVerbs, TopicSettingVerbs, GroupVerbs, ProgressVerbs,
                            ClientVerbs, MessageVerbs, QueryVerbs, ConfigVerbs, ExportVerbs,
                            ReplicationVerbs, VerifyVerbs, WatchVerbs, DlqVerbs}) {
    std::vector<Verb> verbs = family();
    all.insert(all.end(), std::make_move_iterator(verbs.begin()),
               std::make_move_iterator(verbs.end()));
  }
  return all;
}

}  // namespace triad::admin
