// KV settings and the configuration at run time: wire.md §3.5, admin.md §2.4, dledger.md §2.3.

#include <glog/logging.h>

#include <array>
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
  for (std::string& key : ListedItems(config.config_black_list)) keys.insert(std::move(key));
  return keys;
}

// What a request changes. Unknown keys are dropped, as the original does; the answer says which.
struct Changes {
  std::map<std::string, std::string> known;
  Properties now;      // of them, what is in force at once
  std::string remark;  // "in force: A, B; in force at the next start: C; unknown and ignored: D"
};

void AddKey(const char* what, const std::string& key, std::string* list) {
  *list += (list->empty() ? what : ", ") + key;
}

Changes ChangesOf(const Properties& properties) {
  Changes changes;
  std::array<std::string, 3> lists;
  for (const auto& [key, entry] : properties.entries()) {
    const KeyOptions* const options = NameServerConfigTable().FindOptions(key);
    if (options == nullptr) {
      AddKey("unknown and ignored: ", key, &lists[2]);
      continue;
    }
    const std::string value(TrimBlanks(entry.value));
    changes.known[key] = value;
    if (options->dynamic) changes.now.Set(key, value);
    AddKey(options->dynamic ? "in force: " : "in force at the next start: ", key,
           &lists[options->dynamic ? 0 : 1]);
  }
  for (const std::string& list : lists) {
    if (!list.empty()) changes.remark += (changes.remark.empty() ? "" : "; ") + list;
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
  const Changes changes = ChangesOf(*properties);
  if (!changes.known.empty()) {
    const Status status = WriteChanges(file_system_, changed.config_store_path, changes.known);
    if (!status.ok()) return Failure(request, status);
  }
  LOG(INFO) << "configuration: " << changes.remark;
  for (const auto& [key, value] : changes.known) LOG(INFO) << "  " << key << " = " << value;
  const std::lock_guard hold(mutex_);
  CHECK(NameServerConfigTable().Apply(changes.now, "request", &config_).ok()) << "it was checked";
  return Command::ResponseTo(request, remoting::kSuccess, changes.remark);
}

Command RequestProcessor::GetConfig(const Command& request) {
  Command response = Command::ResponseTo(request, remoting::kSuccess);
  for (const auto& [key, value] : NameServerConfigTable().Values(config())) {
    response.body += key + "=" + value + "\n";
  }
  return response;
}

}  // namespace triad::nameserver
