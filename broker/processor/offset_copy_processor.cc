#include "broker/processor/offset_copy_processor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "broker/processor/response.h"
#include "remoting/json.h"

namespace triad::broker {
namespace {

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

remoting::Command NoGroup(const remoting::Command& request, const GroupName& group) {
  return remoting::Command::ResponseTo(request, remoting::kSubscriptionGroupNotExist,
                                       "Group " + group.value() + " does not exist");
}

}  // namespace

void OffsetCopyProcessor::Register(Dispatcher* dispatcher) {
  auto policy = LeaderGate::For(kBudget, remoting::kServiceNotAvailable);
  policy.repeatable = true;
  dispatcher->RegisterForLeader(
      remoting::kQueryCorrectionOffset, policy,
      [this](const RequestPtr& request, const Reply& reply) { OnCorrection(request, reply); });
  dispatcher->RegisterForLeader(
      remoting::kCloneGroupOffset, policy,
      [this](const RequestPtr& request, const Reply& reply) { OnClone(request, reply); });
}

std::map<QueueId, QueueOffset> OffsetCopyProcessor::Smallest(
    const Topic& topic, const std::vector<std::string>& left_out) const {
  std::map<QueueId, QueueOffset> smallest;
  for (const GroupName& group : context_.store.state().GroupsWithOffsets(topic)) {
    if (std::find(left_out.begin(), left_out.end(), group.value()) != left_out.end()) continue;
    for (const auto& [queue, offset] : context_.store.state().OffsetsOf(group)) {
      if (queue.topic != topic || offset < context_.store.RangeOf(queue).min) continue;
      const auto [at, is_new] = smallest.emplace(queue.queue_id, offset);
      if (!is_new) at->second = std::min(at->second, offset);
    }
  }
  return smallest;
}

// As the original: queues where `compareGroup` is further back than every group get the largest
// number there is.
void OffsetCopyProcessor::OnCorrection(const RequestPtr& request, const Reply& reply) {
  const remoting::ExtFields& fields = request->command.ext;
  const auto topic = fields.GetString("topic");
  const auto group = fields.GetString("compareGroup");
  if (!topic.ok() || !group.ok()) {
    reply(BadRequest(request->command, topic.ok() ? group.status() : topic.status()));
    return;
  }
  std::map<QueueId, QueueOffset> corrections =
      Smallest(Topic(*topic), SplitCommas(fields.StringOr("filterGroups", "")));
  for (const auto& [queue, offset] : context_.store.state().OffsetsOf(GroupName(*group))) {
    const auto found = corrections.find(queue.queue_id);
    if (queue.topic.value() != *topic || found == corrections.end()) continue;
    if (found->second > offset) {
      found->second = QueueOffset(std::numeric_limits<std::int64_t>::max());
    }
  }
  remoting::JsonWriter writer;
  writer.BeginObject().Key("correctionOffsets").BeginObject();
  for (const auto& [queue, offset] : corrections) {
    writer.Key(std::to_string(queue.value())).Int(offset.value());
  }
  writer.EndObject().EndObject();
  reply(SuccessWith(request->command, writer.Take()));
}

void OffsetCopyProcessor::OnClone(const RequestPtr& request, const Reply& reply) {
  const remoting::ExtFields& fields = request->command.ext;
  const auto from = fields.GetString("srcGroup");
  const auto to = fields.GetString("destGroup");
  if (!from.ok() || !to.ok()) {
    reply(BadRequest(request->command, from.ok() ? to.status() : from.status()));
    return;
  }
  for (const std::string& name : {*from, *to}) {
    if (context_.store.state().FindGroup(GroupName(name))) continue;
    reply(NoGroup(request->command, GroupName(name)));
    return;
  }
  // First what the group has committed and is still on its way.
  context_.offsets.Flush(GroupName(*from), request->arrived + kBudget,
                         [this, request, reply, from = GroupName(*from), to = GroupName(*to),
                          topic = fields.StringOr("topic", "")](const Status& flushed) {
                           if (flushed.code() == StatusCode::kNotLeader) {
                             reply(NotLeaderResponse(request->command));
                           } else {
                             Clone(request, reply, from, to, topic);
                           }
                         });
}

void OffsetCopyProcessor::Clone(const RequestPtr& request, const Reply& reply,
                                const GroupName& from, const GroupName& to,
                                const std::string& topic) {
  std::vector<OffsetCommit> commits;
  for (const auto& [queue, offset] : context_.store.state().OffsetsOf(from)) {
    if (!topic.empty() && queue.topic.value() != topic) continue;
    if (!context_.store.state().FindTopic(queue.topic)) continue;
    commits.push_back({{to, queue}, offset, 0});
  }
  if (commits.empty()) {
    reply(Success(request->command));
    return;
  }
  context_.offsets.CommitNow(
      std::move(commits), request->arrived + kBudget,
      [request, reply](const Status& status) { reply(ResponseOf(request->command, status)); });
}

}  // namespace triad::broker
