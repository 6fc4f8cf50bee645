#include "broker/service/dynamic_config.h"

#include <glog/logging.h>

#include <array>
#include <map>
#include <utility>

namespace triad::broker {
namespace {

constexpr std::string_view kNameServers = "namesrvAddr";
constexpr std::string_view kPermission = "brokerPermission";

// The original's black list, and what makes this peer this peer.
constexpr std::array<std::string_view, 8> kFixed = {
    "brokerConfigPath", "rocketmqHome", "configBlackList",       "storePathRootDir",
    "dLegerSelfId",     "dLegerPeers",  "enableDLegerCommitLog", "dLegerGroup"};

// No keys of ours, but scripts and tools read these names (admin.md §11.1): what is true here.
constexpr std::array<std::pair<const char*, const char*>, 8> kFacts = {{
    {"enablePropertyFilter", "false"},
    {"filterServerNums", "0"},
    {"rejectTransactionMessage", "true"},
    {"slaveReadEnable", "true"},
    {"transactionCheckInterval", "30000"},
    {"transactionCheckMax", "15"},
    {"transactionTimeOut", "6000"},
    {"useTLS", "false"},
}};

void AddList(const char* what, const std::vector<std::string>& keys, std::string* out) {
  if (keys.empty()) return;
  *out += out->empty() ? "" : "; ";
  *out += what;
  for (std::size_t i = 0; i < keys.size(); ++i) *out += (i == 0 ? ": " : ", ") + keys[i];
}

std::map<std::string, std::string> ValuesOf(const Properties& properties) {
  std::map<std::string, std::string> values;
  for (const auto& [key, entry] : properties.entries()) values[key] = entry.value;
  return values;
}

}  // namespace

std::string DynamicConfig::Outcome::ToString() const {
  std::string text;
  AddList("in force", now, &text);
  AddList("in force at the next start", at_restart, &text);
  AddList("without effect here", no_effect, &text);
  if (!kept) text += "; not kept: the broker was started without a file";
  return text;
}

DynamicConfig::DynamicConfig(BrokerConfig* config, FileSystem& fs, Effects effects)
    : config_(config), fs_(fs), effects_(std::move(effects)), namesrv_addr_(config->namesrv_addr) {}

Status DynamicConfig::Check(const Properties& wanted) const {
  const auto& table = BrokerConfigTable();
  std::string faults;
  for (const std::string_view fixed : kFixed) {
    const std::string spelling = table.SpellingIn(wanted, std::string(fixed));
    if (wanted.Find(spelling) == nullptr) continue;
    return Status::PermissionDenied("Can not update config in black list. " + spelling +
                                    " is changed in the file, with the broker stopped");
  }
  for (const auto& [key, entry] : wanted.entries()) {
    if (table.IsKnown(key)) continue;
    const std::string nearest = table.Nearest(key);
    faults += (faults.empty() ? "" : "; ") + ("unknown key " + key) +
              (nearest.empty() ? "" : ", did you mean " + nearest + "?");
  }
  BrokerConfig tried = *config_;
  for (const ConfigFault& fault : table.Apply(wanted, "request", &tried).faults) {
    faults += (faults.empty() ? "" : "; ") + fault.ToString();
  }
  if (faults.empty()) return Status::Ok();
  return Status::InvalidArgument(faults + ". Nothing was changed");
}

Status DynamicConfig::WriteFile(const Properties& wanted) const {
  const auto text = ReadFile(fs_, config_->config_file);
  if (!text.ok()) return text.status();
  auto changed = SetInPropertiesText(*text, ValuesOf(wanted));
  if (!changed.ok()) return changed.status();
  // What no single value's check sees: the file must still start a broker.
  BrokerConfigSource source;
  source.file = config_->config_file;
  source.text = *changed;
  source.namesrv_addr = config_->namesrv_addr;
  source.host_name = config_->broker_name;
  source.home = config_->store_root;
  const LoadedBrokerConfig loaded = LoadBrokerConfig(source);
  if (!loaded.faults.empty()) {
    return Status::InvalidArgument(loaded.faults.front() + ". Nothing was changed");
  }
  return WriteFileAtomically(fs_, config_->config_file, *changed);
}

void DynamicConfig::Take(const Properties& wanted, const std::string& client, Outcome* outcome) {
  const auto& table = BrokerConfigTable();
  Properties live;
  const auto before = table.Values(*config_);
  for (const auto& [key, entry] : wanted.entries()) {
    const KeyOptions* const options = table.FindOptions(key);
    if (options == nullptr) {
      outcome->no_effect.push_back(key);
    } else if (!options->dynamic) {
      outcome->at_restart.push_back(key);
    } else {
      outcome->now.push_back(key);
      if (key == kNameServers) {
        namesrv_addr_ = entry.value;
      } else {
        live.Set(key, entry.value);
      }
    }
    const auto old = before.find(key);
    LOG(INFO) << "configuration: " << client << " changes " << key << " from '"
              << (old == before.end() ? "" : old->second) << "' to '" << entry.value << "'"
              << (options != nullptr && options->dynamic ? "" : " (not in force before a restart)");
  }
  CHECK(table.Apply(live, "request", config_).ok()) << "it was checked";
  ++version_;
}

Result<DynamicConfig::Outcome> DynamicConfig::Update(const Properties& wanted,
                                                     const std::string& client) {
  Outcome outcome;
  {
    const std::lock_guard hold(mutex_);
    TRIAD_RETURN_IF_ERROR(Check(wanted));
    outcome.kept = !config_->config_file.empty();
    if (outcome.kept && !wanted.entries().empty()) TRIAD_RETURN_IF_ERROR(WriteFile(wanted));
    Take(wanted, client, &outcome);
  }
  if (wanted.Find(std::string(kPermission)) != nullptr) effects_.on_permission();
  if (const auto* servers = wanted.Find(std::string(kNameServers))) {
    effects_.on_name_servers(servers->value);
  }
  return outcome;
}

std::string DynamicConfig::Print() const {
  const std::lock_guard hold(mutex_);
  auto values = BrokerConfigTable().Values(*config_);
  values[std::string(kNameServers)] = namesrv_addr_;
  for (const auto& [key, value] : kFacts) values.emplace(key, value);
  values["storePathCommitLog"] = config_->store_root + "/dledger-" + config_->self.value();
  std::string text;
  for (const auto& [key, value] : values) text += key + "=" + value + "\n";
  return text;
}

std::int64_t DynamicConfig::version() const {
  const std::lock_guard hold(mutex_);
  return version_;
}

}  // namespace triad::broker
