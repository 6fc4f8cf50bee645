#include "nameserver/kv_config.h"

#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include "remoting/json.h"

namespace triad::nameserver {
namespace {

std::string Encode(const std::map<std::string, KvTable>& tables) {
  remoting::JsonWriter json;
  json.BeginObject().Key("configTable").BeginObject();
  for (const auto& [name_space, table] : tables) {
    json.Key(name_space).BeginObject();
    for (const auto& [key, value] : table) json.Key(key).String(value);
    json.EndObject();
  }
  json.EndObject().EndObject();
  return json.Take();
}

std::size_t BytesOf(const std::map<std::string, KvTable>& tables) {
  std::size_t bytes = 0;
  for (const auto& [name_space, table] : tables) {
    bytes += name_space.size();
    for (const auto& [key, value] : table) bytes += key.size() + value.size();
  }
  return bytes;
}

bool IsQueueCount(std::string_view text) {
  std::int32_t count = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && stop == text.data() + text.size() && count > 0;
}

}  // namespace

bool IsOrderTopicValue(const std::string& value) {
  std::string_view rest = value;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(';'));
    const auto colon = item.find(':');
    if (colon == std::string_view::npos || colon == 0) return false;
    if (!IsQueueCount(item.substr(colon + 1))) return false;
    if (item.size() == rest.size()) return true;
    rest.remove_prefix(item.size() + 1);
    if (rest.empty()) return false;  // clients read an empty item as a broken one
  }
  return false;
}

KvConfig::KvConfig(FileSystem& file_system, std::string path)
    : file_system_(file_system), path_(std::move(path)) {}

Status KvConfig::Load() {
  const Result<std::string> text = ReadFile(file_system_, path_);
  if (text.status().code() == StatusCode::kNotFound) return Status::Ok();
  if (!text.ok()) return text.status();
  const Result<remoting::Json> json = remoting::Json::Parse(*text);
  if (!json.ok() || !(*json)["configTable"].is_object()) {
    return Status::Corruption(path_ + " is not a KV configuration (JSON with configTable)");
  }
  Tables tables;
  for (const auto& name_space : (*json)["configTable"].members()) {
    KvTable& table = tables[name_space.key];
    for (const auto& item : name_space.value.members()) table[item.key] = item.value.AsString();
  }
  const std::lock_guard hold(mutex_);
  tables_ = std::move(tables);
  return Status::Ok();
}

Status KvConfig::Put(const std::string& name_space, const std::string& key,
                     const std::string& value) {
  if (name_space.empty() || key.empty()) {
    return Status::InvalidArgument("namespace or key is null");
  }
  if (name_space == kOrderTopicNamespace && !IsOrderTopicValue(value)) {
    return Status::InvalidArgument("the order configuration of " + key + " is \"" + value +
                                   "\"; expected brokerName:queues;brokerName:queues");
  }
  Tables tables = [this] {
    const std::lock_guard hold(mutex_);
    return tables_;
  }();
  tables[name_space][key] = value;
  if (BytesOf(tables) > kMaxKvBytes) return Status::Busy("the KV configuration is full");
  return Replace(std::move(tables));
}

Status KvConfig::Delete(const std::string& name_space, const std::string& key) {
  Tables tables = [this] {
    const std::lock_guard hold(mutex_);
    return tables_;
  }();
  const auto table = tables.find(name_space);
  if (table == tables.end() || table->second.erase(key) == 0) return Status::Ok();
  return Replace(std::move(tables));
}

Status KvConfig::Replace(Tables tables) {
  const auto slash = path_.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    TRIAD_RETURN_IF_ERROR(file_system_.CreateDirs(path_.substr(0, slash)));
  }
  TRIAD_RETURN_IF_ERROR(WriteFileAtomically(file_system_, path_, Encode(tables)));
  const std::lock_guard hold(mutex_);
  tables_ = std::move(tables);
  return Status::Ok();
}

std::optional<std::string> KvConfig::Get(const std::string& name_space,
                                         const std::string& key) const {
  const std::lock_guard hold(mutex_);
  const auto table = tables_.find(name_space);
  if (table == tables_.end()) return std::nullopt;
  const auto found = table->second.find(key);
  if (found == table->second.end()) return std::nullopt;
  return found->second;
}

std::optional<KvTable> KvConfig::List(const std::string& name_space) const {
  const std::lock_guard hold(mutex_);
  const auto table = tables_.find(name_space);
  if (table == tables_.end()) return std::nullopt;
  return table->second;
}

}  // namespace triad::nameserver
