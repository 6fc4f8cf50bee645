#include "tests/chaos/history_checker.h"

#include <algorithm>
#include <string>
#include <utility>

namespace triad::chaos {

HistoryChecker::HistoryChecker(std::chrono::milliseconds limit_per_key)
    : messages_(&verdict_), objects_(&verdict_, limit_per_key) {}

Status HistoryChecker::Add(std::string_view line) {
  ++line_;
  if (line.empty() || line.front() == '#') return Status::Ok();
  Result<Event> event = ParseEvent(line);
  Status status = event.ok() ? Status::Ok() : event.status();
  if (status.ok() && event->time_ns() < now_ns_) {
    status = Status::InvalidArgument("the line is older than the one before it");
  }
  if (status.ok()) {
    now_ns_ = event->time_ns();
    status = event->invokes ? Begin(*event) : Status::Ok();
  }
  if (status.ok() && event->completes) {
    if (event->invokes) {
      status = End(*event, *event);
    } else if (const auto running = running_.find(event->id); running != running_.end()) {
      const Event begun = std::move(running->second.begun);
      running_.erase(running);
      status = End(begun, *event);
    } else {
      status = Status::InvalidArgument("the end of " + std::to_string(event->id) +
                                       ", which is not running");
    }
  }
  if (status.ok()) return status;
  return Status::InvalidArgument("line " + std::to_string(line_) + ": " +
                                 std::string(status.message()));
}

Status HistoryChecker::Begin(const Event& event) {
  if (event.op == Op::kSend || event.op == Op::kAppend) {
    TRIAD_RETURN_IF_ERROR(messages_.OnSendBegins(event));
  }
  if (event.op == Op::kUnlock) objects_.OnUnlockBegins(event);
  if (event.op == Op::kFault) {
    if (event.leader) {
      open_faults_ns_.push_back(event.invoked_ns);
      faults_ns_.push_back(event.invoked_ns);
    }
  }
  if (event.op == Op::kGroup) return messages_.OnGroup(event);
  if (event.completes) return Status::Ok();
  if (!running_.try_emplace(event.id, Running{event, line_}).second) {
    return Status::InvalidArgument("id " + std::to_string(event.id) + " is running already");
  }
  return Status::Ok();
}

Status HistoryChecker::End(const Event& begun, const Event& end) {
  switch (begun.op) {
    case Op::kSend:
    case Op::kAppend:
      if (begun.op == Op::kSend) TrackFailover(begun, end);
      if (begun.op == Op::kAppend) objects_.OnOperation(begun, end, line_);
      return messages_.OnSendEnds(begun, end, line_);
    case Op::kRead: return messages_.OnRead(begun, line_);
    case Op::kDrained: return messages_.OnDrained(begun, line_);
    case Op::kDeliver: return messages_.OnDeliver(begun, line_);
    case Op::kFault:
      ++(end.outcome == Outcome::kOk ? verdict_.faults : verdict_.faults_in_vain);
      verdict_.fault_ns[begun.key] += end.returned_ns - begun.invoked_ns;
      return Status::Ok();
    case Op::kGroup: return Status::Ok();
    case Op::kMax:
    case Op::kCommit:
    case Op::kFetch:
    case Op::kLock:
    case Op::kPutTopic:
    case Op::kDropTopic:
    case Op::kGetTopic:
    case Op::kUnlock: objects_.OnOperation(begun, end, line_); return Status::Ok();
  }
  return Status::Ok();
}

void HistoryChecker::TrackFailover(const Event& begun, const Event& end) {
  if (end.outcome != Outcome::kOk) return;
  std::erase_if(open_faults_ns_, [&](std::int64_t fault_ns) {
    if (begun.invoked_ns < fault_ns) return false;
    verdict_.failover_ns.push_back(end.returned_ns - fault_ns);
    return true;
  });
  std::size_t& passed = client_faults_[begun.client];
  while (passed < faults_ns_.size() && faults_ns_[passed] <= begun.invoked_ns) {
    verdict_.client_failover_ns.push_back(end.returned_ns - faults_ns_[passed++]);
  }
}

const Verdict& HistoryChecker::Finish() {
  verdict_.faults_without_ack = open_faults_ns_.size();
  for (const auto& [id, running] : running_) {  // what never ended: unknown
    Event never;
    never.outcome = Outcome::kInfo;
    never.returned_ns = now_ns_;
    const Op op = running.begun.op;
    if (op == Op::kFault) {
      ++verdict_.faults_open;
      AddExample(&verdict_, "line " + std::to_string(running.line) + ": the fault " +
                                running.begun.key + " " + running.begun.value + " never ended");
      continue;
    }
    if (op != Op::kSend && op != Op::kDrained && op != Op::kRead && op != Op::kDeliver) {
      objects_.OnOperation(running.begun, never, running.line);
    }
  }
  messages_.Finish();
  objects_.Finish();
  return verdict_;
}

Result<Verdict> CheckHistory(std::istream& history, std::chrono::milliseconds limit_per_key) {
  HistoryChecker checker(limit_per_key);
  for (std::string line; std::getline(history, line);) {
    TRIAD_RETURN_IF_ERROR(checker.Add(line));
  }
  if (history.bad()) return Status::IoError("the history cannot be read to its end");
  return checker.Finish();
}

}  // namespace triad::chaos
