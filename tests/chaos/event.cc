#include "tests/chaos/event.h"

#include <array>
#include <tuple>
#include <utility>

#include "remoting/json.h"

namespace triad::chaos {
namespace {

using remoting::Json;

constexpr std::array<std::pair<std::string_view, Op>, 15> kOps{{{"send", Op::kSend},
                                                                {"append", Op::kAppend},
                                                                {"read", Op::kRead},
                                                                {"drained", Op::kDrained},
                                                                {"group", Op::kGroup},
                                                                {"deliver", Op::kDeliver},
                                                                {"max", Op::kMax},
                                                                {"commit", Op::kCommit},
                                                                {"fetch", Op::kFetch},
                                                                {"lock", Op::kLock},
                                                                {"unlock", Op::kUnlock},
                                                                {"puttopic", Op::kPutTopic},
                                                                {"droptopic", Op::kDropTopic},
                                                                {"gettopic", Op::kGetTopic},
                                                                {"fault", Op::kFault}}};

Status SetOp(std::string_view name, Op* op) {
  for (const auto& [known, value] : kOps) {
    if (known != name) continue;
    *op = value;
    return Status::Ok();
  }
  return Status::InvalidArgument("unknown op '" + std::string(name) + "'");
}

Status SetOutcome(std::string_view name, Outcome* outcome) {
  if (name == "ok") {
    *outcome = Outcome::kOk;
  } else if (name == "fail") {
    *outcome = Outcome::kFail;
  } else if (name == "info") {
    *outcome = Outcome::kInfo;
  } else {
    return Status::InvalidArgument("unknown outcome '" + std::string(name) + "'");
  }
  return Status::Ok();
}

Status SetMember(const Json::Member& member, Event* event) {
  const std::string& key = member.key;
  const Json& value = member.value;
  const std::pair<std::string_view, std::string*> texts[] = {
      {"client", &event->client}, {"key", &event->key},     {"value", &event->value},
      {"node", &event->node},     {"group", &event->group}, {"order", &event->order}};
  for (const auto& [name, target] : texts) {
    if (key == name) *target = value.AsString();
  }
  const std::pair<std::string_view, std::int64_t*> numbers[] = {
      {"id", &event->id},       {"t_inv_ns", &event->invoked_ns},
      {"min", &event->min},     {"t_ret_ns", &event->returned_ns},
      {"hash", &event->hash},   {"offset", &event->offset},
      {"token", &event->token}, {"attempts", &event->attempts},
      {"times", &event->times}, {"born", &event->born}};
  for (const auto& [name, target] : numbers) {
    if (key != name) continue;
    if (value.type() != Json::Type::kNumber) {
      return Status::InvalidArgument("'" + key + "' is not a number");
    }
    *target = value.AsInt64();
  }
  if (key == "leader") event->leader = value.AsBool();
  if (key == "delayed") event->delayed = value.AsBool();
  if (key == "op") {
    event->invokes = true;
    return SetOp(value.AsString(), &event->op);
  }
  if (key == "outcome") {
    event->completes = true;
    return SetOutcome(value.AsString(), &event->outcome);
  }
  return Status::Ok();
}

}  // namespace

Result<Event> ParseEvent(std::string_view line) {
  const Result<Json> json = Json::Parse(line);
  if (!json.ok()) return json.status();
  if (!json->is_object()) return Status::InvalidArgument("a JSON object was expected");
  Event event;
  for (const Json::Member& member : json->members()) {
    TRIAD_RETURN_IF_ERROR(SetMember(member, &event));
  }
  if (!event.invokes && !event.completes) {
    return Status::InvalidArgument("neither 'op' nor 'outcome'");
  }
  if (!event.invokes && event.id < 0) return Status::InvalidArgument("an end without 'id'");
  return event;
}

std::string FormatEvent(const Event& event) {
  remoting::JsonWriter json;
  json.BeginObject();
  if (event.id >= 0) json.Key("id").Int(event.id);
  if (event.invokes) {
    for (const auto& [name, op] : kOps) {
      if (op == event.op) json.Key("op").String(name);
    }
    json.Key("t_inv_ns").Int(event.invoked_ns);
  }
  if (event.completes) {
    const bool ok = event.outcome == Outcome::kOk;
    json.Key("outcome").String(ok ? "ok" : event.outcome == Outcome::kFail ? "fail" : "info");
    json.Key("t_ret_ns").Int(event.returned_ns);
  }
  const std::pair<std::string_view, const std::string*> texts[] = {
      {"client", &event.client}, {"key", &event.key},     {"value", &event.value},
      {"node", &event.node},     {"group", &event.group}, {"order", &event.order}};
  for (const auto& [name, text] : texts) {
    if (!text->empty()) json.Key(name).String(*text);
  }
  const Event nothing;
  const std::tuple<std::string_view, std::int64_t, std::int64_t> numbers[] = {
      {"offset", event.offset, nothing.offset},
      {"min", event.min, nothing.min},
      {"hash", event.hash, nothing.hash},
      {"token", event.token, nothing.token},
      {"attempts", event.attempts, nothing.attempts},
      {"times", event.times, nothing.times},
      {"born", event.born, nothing.born}};
  for (const auto& [name, value, usual] : numbers) {
    if (value != usual) json.Key(name).Int(value);
  }
  if (event.leader) json.Key("leader").Bool(true);
  if (event.delayed) json.Key("delayed").Bool(true);
  json.EndObject();
  return json.Take();
}

}  // namespace triad::chaos
