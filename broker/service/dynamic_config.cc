#include "broker/service/dynamic_config.h"

#include <glog/logging.h>

#include <array>
#include <utility>

namespace triad::broker {
namespace {

constexpr std::string_view kNameServers = "namesrvAddr";
constexpr std::string_view kSendQueue = "sendThreadPoolQueueCapacity";
constexpr std::string_view kPermission = "brokerPermission";
constexpr std::array<std::string_view, 2> kRetention = {"fileReservedTime", "deleteWhen"};
constexpr std::string_view kDelayLevels = "messageDelayLevel";

// The original's black list, and what makes this peer this peer.
constexpr std::array<std::string_view, 8> kFixed = {
    "brokerConfigPath", "rocketmqHome", "configBlackList",       "storePathRootDir",
    "dLegerSelfId",     "dLegerPeers",  "enableDLegerCommitLog", "dLegerGroup"};

// No keys of ours, but scripts and tools read these names (admin.md §11.1): what is true here.
constexpr std::array<std::pair<const char*, const char*>, 7> kFacts = {{
    {"enablePropertyFilter", "false"},
    {"filterServerNums", "0"},
    {"rejectTransactionMessage", "true"},
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

Settings ValuesOf(const Properties& properties) {
  Settings values;
  for (const auto& [key, entry] : properties.entries()) values[key] = entry.value;
  return values;
}

bool IsOfGroup(const std::string& key) {
  const KeyOptions* const options = BrokerConfigTable().FindOptions(key);
  return options != nullptr && options->group;
}

Status CheckFixed(const Properties& wanted, const std::string& black_list) {
  constexpr const char* kRefused = "Can not update config in black list. ";
  std::vector<std::string> refused = ListedItems(black_list);
  refused.insert(refused.end(), kFixed.begin(), kFixed.end());
  for (const std::string& key : refused) {
    const std::string spelling = BrokerConfigTable().SpellingIn(wanted, key);
    if (wanted.Find(spelling) == nullptr) continue;
    return Status::PermissionDenied(kRefused + spelling +
                                    " is changed in the file, with the broker stopped");
  }
  if (wanted.Find(std::string(kDelayLevels)) == nullptr) return Status::Ok();
  return Status::PermissionDenied(kRefused + std::string(kDelayLevels) +
                                  ": a group keeps the table that it was founded with");
}

}  // namespace

std::string DynamicConfig::Outcome::ToString() const {
  std::string text;
  AddList("in force here", now, &text);
  AddList("in force here at the next start", at_restart, &text);
  AddList("without effect here", no_effect, &text);
  if (!text.empty() && !kept) text += "; not kept: the broker was started without a file";
  return text;
}

DynamicConfig::DynamicConfig(BrokerConfig* config, FileSystem& fs, Effects effects)
    : config_(config), fs_(fs), effects_(std::move(effects)), namesrv_addr_(config->namesrv_addr) {}

BrokerConfig DynamicConfig::Copy() const {
  const std::lock_guard hold(mutex_);
  return *config_;
}

// ---- of the group -------------------------------------------------------------------------------

void DynamicConfig::StartWith(const Settings& settings) {
  Properties in_file;
  if (has_file()) {
    const auto text = ReadFile(fs_, config_->config_file);
    auto parsed = text.ok() ? Properties::Parse(*text) : Result<Properties>(text.status());
    if (parsed.ok()) in_file = std::move(*parsed);
  }
  std::set<std::string> changed;
  for (const auto& [key, value] : settings) {
    const std::string own = BrokerConfigTable().Values(Copy())[key];
    {
      const std::lock_guard hold(mutex_);
      if (!TakeOfGroup(key, value)) continue;
    }
    changed.insert(key);
    const Properties::Entry* const entry = in_file.Find(key);
    if (entry == nullptr) continue;
    LOG(WARNING) << config_->config_file << ":" << entry->line << ": " << key << "=" << own
                 << " here, but the group was told " << key << "=" << value
                 << ", which is in force. To change it: mqadmin updateBrokerConfig -n NAMESRV -c "
                 << config_->cluster_name << " -k " << key << " -v " << own
                 << "; to keep it: correct this line";
  }
  TellEffects(changed);
}

bool DynamicConfig::TakeOfGroup(const std::string& key, const std::string& value) {
  const auto& table = BrokerConfigTable();
  if (!IsOfGroup(key)) {
    LOG(WARNING) << "the group was told " << key << "=" << value
                 << ", which this version does not know as a setting of the group";
    return false;
  }
  const std::string before = table.Values(*config_)[key];
  if (before == value) return false;
  Properties one;
  one.Set(key, value);
  const ConfigReport report = table.Apply(one, "the group", config_);
  if (!report.ok()) {
    LOG(ERROR) << report.faults.front().ToString() << "; '" << before << "' stays in force here";
    return false;
  }
  LOG(INFO) << "configuration: the group changes " << key << " from '" << before << "' to '"
            << value << "'";
  ++version_;
  return true;
}

void DynamicConfig::Follow(const Settings& put) {
  std::set<std::string> changed;
  {
    const std::lock_guard hold(mutex_);
    for (const auto& [key, value] : put) {
      if (TakeOfGroup(key, value)) changed.insert(key);
      const bool is_in_force = IsOfGroup(key) && BrokerConfigTable().Values(*config_)[key] == value;
      if (has_file() && is_in_force) unwritten_.insert(key);
    }
  }
  TellEffects(changed);
}

void DynamicConfig::TellEffects(const std::set<std::string>& changed) const {
  if (changed.contains(std::string(kPermission))) effects_.on_permission();
  for (const std::string_view key : kRetention) {
    if (!changed.contains(std::string(key))) continue;
    effects_.on_retention(Copy());
    return;
  }
}

bool DynamicConfig::Has(const Settings& settings) const {
  const auto values = BrokerConfigTable().Values(Copy());
  for (const auto& [key, value] : settings) {
    const auto found = values.find(key);
    if (found == values.end() || found->second != value) return false;
  }
  return true;
}

bool DynamicConfig::has_unwritten() const {
  const std::lock_guard hold(mutex_);
  return !unwritten_.empty();
}

Status DynamicConfig::WriteGroup() {
  const std::lock_guard one_writer(file_mutex_);
  Settings changes;
  {
    const std::lock_guard hold(mutex_);
    if (unwritten_.empty()) return Status::Ok();
    const auto values = BrokerConfigTable().Values(*config_);
    for (const std::string& key : unwritten_) changes[key] = values.at(key);
    unwritten_.clear();
  }
  const auto text = TextWith(changes);
  const Status written =
      text.ok() ? WriteFileAtomically(fs_, config_->config_file, *text) : text.status();
  LOG_IF(WARNING, !written.ok()) << "configuration: " << config_->config_file
                                 << " does not get what the group was told, which is in force all "
                                    "the same: "
                                 << written;
  return written;
}

// ---- requests -----------------------------------------------------------------------------------

Result<DynamicConfig::Change> DynamicConfig::Check(const Properties& wanted) const {
  const auto& table = BrokerConfigTable();
  TRIAD_RETURN_IF_ERROR(CheckFixed(wanted, Copy().config_black_list));
  std::string faults;
  for (const auto& [key, entry] : wanted.entries()) {
    if (table.IsKnown(key)) continue;
    const std::string nearest = table.Nearest(key);
    faults += (faults.empty() ? "" : "; ") + ("unknown key " + key) +
              (nearest.empty() ? "" : ", did you mean " + nearest + "?");
  }
  BrokerConfig tried = Copy();
  for (const ConfigFault& fault : table.Apply(wanted, "request", &tried).faults) {
    faults += (faults.empty() ? "" : "; ") + fault.ToString();
  }
  if (!faults.empty()) return Status::InvalidArgument(faults + ". Nothing was changed");
  const auto values = table.Values(tried);
  Change change;
  for (const auto& [key, entry] : wanted.entries()) {
    if (IsOfGroup(key)) {
      change.group[key] = values.at(key);
    } else {
      change.local.Set(key, entry.value);
    }
  }
  if (change.local.entries().empty() || !has_file()) return change;
  const auto text = TextWith(ValuesOf(change.local));
  if (!text.ok()) return text.status();
  TRIAD_RETURN_IF_ERROR(CheckText(*text));
  return change;
}

Result<std::string> DynamicConfig::TextWith(const Settings& changes) const {
  const auto text = ReadFile(fs_, config_->config_file);
  if (!text.ok()) return text.status();
  return SetInPropertiesText(*text, changes);
}

// What no single value's check sees: the file must still start a broker.
Status DynamicConfig::CheckText(const std::string& text) const {
  BrokerConfigSource source;
  source.file = config_->config_file;
  source.text = text;
  source.namesrv_addr = config_->namesrv_addr;
  source.host_name = config_->broker_name;
  source.home = config_->store_root;
  const LoadedBrokerConfig loaded = LoadBrokerConfig(source);
  if (loaded.faults.empty()) return Status::Ok();
  return Status::InvalidArgument(loaded.faults.front() + ". Nothing was changed");
}

void DynamicConfig::TakeLocal(const Properties& local, const std::string& client,
                              Outcome* outcome) {
  const auto& table = BrokerConfigTable();
  const auto before = table.Values(*config_);
  for (const auto& [key, entry] : local.entries()) {
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
        CHECK_EQ(key, kSendQueue) << "every other one is the group's";
        Properties one;
        one.Set(key, entry.value);
        CHECK(table.Apply(one, "request", config_).ok()) << "it was checked";
      }
    }
    const auto old = before.find(key);
    LOG(INFO) << "configuration: " << client << " changes " << key << " of this peer from '"
              << (old == before.end() ? "" : old->second) << "' to '" << entry.value << "'"
              << (options != nullptr && options->dynamic ? "" : " (not in force before a restart)");
  }
  ++version_;
}

Result<DynamicConfig::Outcome> DynamicConfig::UpdateLocal(const Properties& local,
                                                          const std::string& client) {
  Outcome outcome;
  outcome.kept = has_file();
  if (local.entries().empty()) return outcome;
  {
    const std::lock_guard one_writer(file_mutex_);
    if (outcome.kept) {
      const auto text = TextWith(ValuesOf(local));
      if (!text.ok()) return text.status();
      TRIAD_RETURN_IF_ERROR(CheckText(*text));
      TRIAD_RETURN_IF_ERROR(WriteFileAtomically(fs_, config_->config_file, *text));
    }
    const std::lock_guard hold(mutex_);
    TakeLocal(local, client, &outcome);
  }
  if (const auto* servers = local.Find(std::string(kNameServers))) {
    effects_.on_name_servers(servers->value);
  }
  if (local.Find(std::string(kSendQueue)) != nullptr) {
    effects_.on_send_queue(config_->send_queue_capacity);
  }
  return outcome;
}

std::string DynamicConfig::Print(bool leads) const {
  const std::lock_guard hold(mutex_);
  auto values = BrokerConfigTable().Values(*config_);
  values[std::string(kNameServers)] = namesrv_addr_;
  for (const auto& [key, value] : kFacts) values.emplace(key, value);
  values["storePathCommitLog"] = config_->store_root + "/dledger-" + config_->self.value();
  if (config_->enable_dledger) {
    values["brokerId"] = std::to_string(leads ? 0 : config_->follower_id);
    values["brokerRole"] = leads ? "SYNC_MASTER" : "SLAVE";
  }
  std::string text;
  for (const auto& [key, value] : values) text += key + "=" + value + "\n";
  return text;
}

std::int64_t DynamicConfig::version() const {
  const std::lock_guard hold(mutex_);
  return version_;
}

}  // namespace triad::broker
