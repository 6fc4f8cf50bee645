#include "tests/chaos/object_checker.h"

#include <algorithm>
#include <utility>

namespace triad::chaos {
namespace {

// How long clients trust a lock after they asked for it (wire.md §7.6).
constexpr std::int64_t kValidityNs = 30'000'000'000;

Op KindOf(Op op) {
  if (op == Op::kCommit || op == Op::kFetch) return Op::kFetch;
  if (op == Op::kLock || op == Op::kUnlock) return Op::kLock;
  if (op == Op::kPutTopic || op == Op::kDropTopic || op == Op::kGetTopic) return Op::kGetTopic;
  return Op::kMax;
}

const char* NameOf(Op kind) {
  switch (kind) {
    case Op::kFetch: return "offset";
    case Op::kLock: return "lock";
    case Op::kGetTopic: return "topic";
    default: return "max";
  }
}

const char* WordOf(Linearizable result) {
  return result == Linearizable::kYes ? "ok" : result == Linearizable::kNo ? "bad" : "unknown";
}

ObjectModel ModelOf(Op kind) {
  switch (kind) {
    case Op::kFetch: return OffsetRegister();
    case Op::kLock: return QueueLock();
    case Op::kGetTopic: return TopicConfig();
    default: return MaxOffset();
  }
}

}  // namespace

int ObjectChecker::ClientOf(const std::string& name) {
  return clients_.try_emplace(name, static_cast<int>(clients_.size())).first->second;
}

void ObjectChecker::OnOperation(const Event& begun, const Event& end, std::uint64_t line) {
  if (end.outcome == Outcome::kFail) return;  // certainly without effect
  const Op kind = KindOf(begun.op);
  Object& object = objects_[NameOf(kind) + (" " + begun.key)];
  object.kind = kind;
  ObjectOp op;
  op.op = begun.op;
  op.client = ClientOf(begun.client);
  op.known = end.outcome == Outcome::kOk;
  op.invoked_ns = begun.invoked_ns;
  op.returned_ns = end.returned_ns;
  if (begun.op == Op::kCommit || begun.op == Op::kPutTopic) op.argument = begun.offset;
  op.answer = begun.op == Op::kLock ? end.token : end.offset;
  const bool only_asks = begun.op == kind && kind != Op::kLock;
  if (op.known || !only_asks) object.ops.push_back(op);
  if (kind == Op::kLock) TrackBelief(begun, end, &object, line);
}

void ObjectChecker::OnUnlockBegins(const Event& begun) {
  Belief& belief = objects_["lock " + begun.key].belief;
  if (belief.client == begun.client) belief.until_ns = begun.invoked_ns;
}

void ObjectChecker::TrackBelief(const Event& begun, const Event& end, Object* object,
                                std::uint64_t line) {
  Belief& belief = object->belief;
  const bool mine = belief.client == begun.client;
  if (begun.op == Op::kUnlock || end.outcome != Outcome::kOk) return;
  if (end.token == 0) {
    if (mine) belief.until_ns = std::min(belief.until_ns, end.returned_ns);
    return;
  }
  if (!mine && end.returned_ns < belief.until_ns) {
    ++verdict_.lock_overlaps;
    AddExample(&verdict_, "line " + std::to_string(line) + ": lock " + begun.key +
                              " was given to " + begun.client + " while " + belief.client +
                              " may rely on it");
  }
  belief = {begun.client, std::max(mine ? belief.until_ns : 0, begun.invoked_ns + kValidityNs)};
}

void ObjectChecker::Finish() {
  for (auto& [name, object] : objects_) {
    const auto started = std::chrono::steady_clock::now();
    const std::size_t count = object.ops.size();
    const Linearizable result = Check(
        ModelOf(object.kind), std::move(object.ops),
        [started, limit = limit_] { return std::chrono::steady_clock::now() - started > limit; });
    verdict_.objects[name] = WordOf(result);
    if (result == Linearizable::kYes) {
      ++verdict_.keys_ok;
      continue;
    }
    ++(result == Linearizable::kNo ? verdict_.keys_bad : verdict_.keys_unknown);
    AddExample(&verdict_, "at the end: " + name + ": " + std::to_string(count) + " operations " +
                              (result == Linearizable::kNo ? "fit no order of events"
                                                           : "could not be decided in time"));
  }
}

}  // namespace triad::chaos
