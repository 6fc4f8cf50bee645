// BodyCodec: what the body families share: lenient reading of small values and containers.
//
// Pure; private to the *_bodies.cc files.

#pragma once

#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "remoting/client_bodies.h"
#include "remoting/json.h"

namespace triad::remoting {

// A body must be a JSON object. Errors: kInvalidArgument naming the body.
inline Result<Json> ParseBody(std::string_view name, std::string_view text) {
  Result<Json> json = Json::Parse(text);
  if (json.ok() && json->is_object()) return json;
  std::string message(name);
  message += ": ";
  message += json.ok() ? "the body is no JSON object" : json.status().message();
  return Status::InvalidArgument(std::move(message));
}

inline std::int32_t AsInt32(const Json& json, std::int32_t fallback = 0) {
  const std::int64_t value = json.AsInt64(fallback);
  const bool fits = value >= std::numeric_limits<std::int32_t>::min() &&
                    value <= std::numeric_limits<std::int32_t>::max();
  return fits ? static_cast<std::int32_t>(value) : fallback;
}

// What a member is, when it is there and not null: other values would be read as if nobody had
// given them. Errors: kInvalidArgument naming the member and what is expected.
enum class MemberKind { kInt32, kInt64, kFlag, kList };
struct MemberRule {
  std::string_view key;
  MemberKind kind;
  bool is_needed = false;
};
inline Status CheckMembers(std::string_view name, const Json& json,
                           std::initializer_list<MemberRule> rules) {
  for (const auto& [key, kind, is_needed] : rules) {
    const Json& value = json[key];
    if (value.is_null() && !is_needed) continue;
    const char* expected = nullptr;
    switch (kind) {
      case MemberKind::kInt32:
        if (AsInt32(value, 0) != AsInt32(value, 1)) expected = "a whole number of 32 bits";
        break;
      case MemberKind::kInt64:
        if (value.AsInt64(0) != value.AsInt64(1)) expected = "a whole number";
        break;
      case MemberKind::kFlag:
        if (value.AsBool(false) != value.AsBool(true)) expected = "true or false";
        break;
      case MemberKind::kList:
        if (!value.is_array()) expected = "a list";
        break;
    }
    if (expected == nullptr) continue;
    return Status::InvalidArgument(std::string(name) + ": " + std::string(key) + " is not " +
                                   expected);
  }
  return Status::Ok();
}

// A list that must be there, and of objects alone. Errors: kInvalidArgument naming it.
inline Status CheckObjects(std::string_view name, const Json& json, std::string_view key) {
  TRIAD_RETURN_IF_ERROR(CheckMembers(name, json, {{key, MemberKind::kList, true}}));
  for (const Json& item : json[key].items()) {
    if (item.is_object()) continue;
    return Status::InvalidArgument(std::string(name) + ": " + std::string(key) +
                                   " is not a list of objects");
  }
  return Status::Ok();
}

// Body::From on a body of its own.
template <typename Body>
Result<Body> DecodeBody(std::string_view name, std::string_view text) {
  Result<Json> json = ParseBody(name, text);
  if (!json.ok()) return json.status();
  return Body::From(*json);
}

template <typename Body>
std::string EncodeBody(const Body& body) {
  JsonWriter writer;
  body.WriteTo(&writer);
  return writer.Take();
}

template <typename T>
std::vector<T> AsList(const Json& json) {
  std::vector<T> list;
  list.reserve(json.items().size());
  for (const Json& item : json.items()) list.push_back(T::From(item));
  return list;
}

template <typename T>
void WriteList(std::string_view key, const std::vector<T>& list, JsonWriter* writer) {
  writer->Key(key).BeginArray();
  for (const T& item : list) item.WriteTo(writer);
  writer->EndArray();
}

inline std::vector<std::string> AsStrings(const Json& json) {
  std::vector<std::string> list;
  list.reserve(json.items().size());
  for (const Json& item : json.items()) list.push_back(item.AsString());
  return list;
}

inline void WriteStrings(std::string_view key, const std::vector<std::string>& list,
                         JsonWriter* writer) {
  writer->Key(key).BeginArray();
  for (const std::string& item : list) writer->String(item);
  writer->EndArray();
}

inline std::map<std::string, std::string> AsStringMap(const Json& json) {
  std::map<std::string, std::string> map;
  for (const Json::Member& member : json.members()) {
    if (!member.value.is_null()) map[member.key] = member.value.AsString();
  }
  return map;
}

inline void WriteStringMap(std::string_view key, const std::map<std::string, std::string>& map,
                           JsonWriter* writer) {
  writer->Key(key).BeginObject();
  for (const auto& [name, value] : map) writer->Key(name).String(value);
  writer->EndObject();
}

// An object whose keys are integers, quoted or bare. A key that is none is left out.
template <typename Int, typename T, typename Read>
std::map<Int, T> AsIntMap(const Json& json, const Read& read) {
  std::map<Int, T> map;
  for (const Json::Member& member : json.members()) {
    Int key{};
    const char* end = member.key.data() + member.key.size();
    const auto [ptr, error] = std::from_chars(member.key.data(), end, key);
    if (error == std::errc() && ptr == end && !member.key.empty()) map[key] = read(member.value);
  }
  return map;
}

// {{"brokerName":..,"queueId":..,"topic":..}:value,..}: admin.md §1.1 R4.
template <typename T, typename Write>
void WriteQueueMap(std::string_view key, const std::map<MessageQueue, T>& map, JsonWriter* writer,
                   const Write& write) {
  writer->Key(key).BeginObject();
  for (const auto& [queue, value] : map) {
    writer->RawKey(EncodeBody(queue));
    write(value, writer);
  }
  writer->EndObject();
}

// The same back. A queue that stands in a text key is read too.
template <typename T, typename Read>
std::map<MessageQueue, T> AsQueueMap(const Json& json, const Read& read) {
  std::map<MessageQueue, T> map;
  for (const Json::Member& member : json.members()) {
    if (member.key_object.is_object()) {
      map[MessageQueue::From(member.key_object)] = read(member.value);
      continue;
    }
    const Result<Json> key = Json::Parse(member.key);
    if (key.ok() && key->is_object()) map[MessageQueue::From(*key)] = read(member.value);
  }
  return map;
}

}  // namespace triad::remoting
