// KV settings and the configuration at run time: wire.md §3.5, admin.md §2.4, dledger.md §2.3.

#include <glog/logging.h>

#include <set>
#include <utility>

#include "common/properties.h"
#include "nameserver/request_processor.h"
#include "remoting/codes.h"
#include "remoting/headers.h"
#include "remoting/route_bodies.h"

namespace triad::nameserver {

using remoting::Command;

namespace {

std::set<std::string> BlackList(const NameServerConfig& config) {
  std::set<std::string> keys = {"configBlackList", "configStorePath", "kvConfigPath",
                                "rocketmqHome"};
  std::string_view rest = config.config_black_list;
  while (!rest.empty()) {
    const std::string_view key = rest.substr(0, rest.find(';'));
    keys.insert(std::string(TrimBlanks(key)));
    rest.remove_prefix(std::min(rest.size(), key.size() + 1));
  }
  return keys;
}

// What would change, known keys only; unknown ones are dropped with a warning, as the original
// does.
std::map<std::string, std::string> KnownChanges(const Properties& properties) {
  std::map<std::string, std::string> changes;
  for (const auto& [key, entry] : properties.entries()) {
    if (NameServerConfigTable().FindOptions(key) == nullptr) {
      LOG(WARNING) << "configuration change: unknown key " << key << " was ignored";
      continue;
    }
    changes[key] = std::string(TrimBlanks(entry.value));
  }
  return changes;
}

Status WriteChanges(FileSystem& fs, const std::string& path,
                    const std::map<std::string, std::string>& changes) {
  Result<std::string> old_text = ReadFile(fs, path);
  if (!old_text.ok() && old_text.status().code() != StatusCode::kNotFound) {
    return old_text.status();
  }
  const auto slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    TRIAD_RETURN_IF_ERROR(fs.CreateDirs(path.substr(0, slash)));
  }
  const Result<std::string> text =
      SetInPropertiesText(old_text.ok() ? *old_text : std::string(), changes);
  if (!text.ok()) return text.status();
  return WriteFileAtomically(fs, path, *text);
}

}  // namespace

Command RequestProcessor::PutKv(const Command& request) {
  const auto header = remoting::PutKvConfigRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());
  const Status status = kv_.Put(header->name_space, header->key, header->value);
  if (!status.ok()) return Failure(request, status);
  LOG(INFO) << "KV: " << header->name_space << "/" << header->key << " = " << header->value;
  return Command::ResponseTo(request, remoting::kSuccess);
}

Command RequestProcessor::GetKv(const Command& request) {
  const auto header = remoting::KvConfigRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());
  std::optional<std::string> value = kv_.Get(header->name_space, header->key);
  if (!value) {
    return Command::ResponseTo(
        request, remoting::kQueryNotFound,
        "No config item, Namespace: " + header->name_space + " Key: " + header->key);
  }
  Command response = Command::ResponseTo(request, remoting::kSuccess);
  response.ext.Set("value", std::move(*value));
  return response;
}

Command RequestProcessor::DeleteKv(const Command& request) {
  const auto header = remoting::KvConfigRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());
  const Status status = kv_.Delete(header->name_space, header->key);
  if (!status.ok()) return Failure(request, status);
  LOG(INFO) << "KV: " << header->name_space << "/" << header->key << " was deleted";
  return Command::ResponseTo(request, remoting::kSuccess);
}

Command RequestProcessor::ListKv(const Command& request) {
  const auto header = remoting::GetKvListRequest::Decode(request.ext);
  if (!header.ok()) return Failure(request, header.status());
  std::optional<KvTable> table = kv_.List(header->name_space);
  if (!table) {
    return Command::ResponseTo(request, remoting::kQueryNotFound,
                               "No config item, Namespace: " + header->name_space);
  }
  Command response = Command::ResponseTo(request, remoting::kSuccess);
  remoting::KVTable body;
  body.table = std::move(*table);
  response.body = body.Encode();
  return response;
}

Command RequestProcessor::UpdateConfig(const Command& request) {
  const Result<Properties> properties = Properties::Parse(request.body);
  if (!properties.ok()) {
    return Command::ResponseTo(
        request, remoting::kSystemError,
        "string2Properties error: " + std::string(properties.status().message()));
  }
  NameServerConfig changed = config();
  for (const std::string& key : BlackList(changed)) {
    if (properties->Find(key) == nullptr) continue;
    return Command::ResponseTo(request, remoting::kNoPermission,
                               "Can not update config in black list.");
  }
  const ConfigReport report = NameServerConfigTable().Apply(*properties, "request", &changed);
  if (!report.ok()) {
    std::string faults;
    for (const ConfigFault& fault : report.faults) {
      faults += (faults.empty() ? "" : "; ") + fault.ToString();
    }
    return Command::ResponseTo(request, remoting::kSystemError, std::move(faults));
  }
  const std::map<std::string, std::string> changes = KnownChanges(*properties);
  if (!changes.empty()) {
    const Status status = WriteChanges(file_system_, changed.config_store_path, changes);
    if (!status.ok()) return Failure(request, status);
  }
  for (const auto& [key, value] : changes) {
    const bool now = NameServerConfigTable().FindOptions(key)->dynamic;
    LOG(INFO) << "configuration: " << key << " = " << value
              << (now ? "" : " (takes effect at the next start)");
  }
  const std::lock_guard hold(mutex_);
  config_ = std::move(changed);
  return Command::ResponseTo(request, remoting::kSuccess);
}

Command RequestProcessor::GetConfig(const Command& request) {
  Command response = Command::ResponseTo(request, remoting::kSuccess);
  for (const auto& [key, value] : NameServerConfigTable().Values(config())) {
    response.body += key + "=" + value + "\n";
  }
  return response;
}

}  // namespace triad::nameserver
