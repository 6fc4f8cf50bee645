#include "bin/admin/monitor.h"

#include <algorithm>
#include <utility>

#include "bin/admin/ask.h"
#include "bin/admin/troubles.h"
#include "common/clock.h"
#include "remoting/codes.h"

namespace triad::admin {
namespace {

using client::MessageQueue;

constexpr const char* kEventTopic = "OFFSET_MOVED_EVENT";
constexpr int kPullBatch = 32;
constexpr std::int32_t kKnowsRunningInfo = 62;  // the first version that answers it

}  // namespace

Monitor::Monitor(Session* session)
    : session_(session),
      consumer_(client::PullConsumerOptions{.client = session->client_options()}) {}

Status Monitor::Start() {
  TRIAD_RETURN_IF_ERROR(consumer_.Start());
  MonitorRound none;
  LookForDeleted(&none);  // from now on; what was told before is not news
  return Status::Ok();
}

MonitorRound Monitor::Look(const std::function<bool()>& stopped) {
  MonitorRound round;
  const auto topics = session_->admin().TopicList();
  if (!topics.ok()) {
    round.errors.push_back(topics.status());
    return round;
  }
  const std::string prefix = RetryTopic("");
  for (const std::string& topic : *topics) {
    if (!topic.starts_with(prefix)) continue;
    if (stopped()) return round;
    const std::string group = topic.substr(prefix.size());
    LookForUndone(group, &round);
    LookAtMembers(group, &round);
  }
  LookForDeleted(&round);
  return round;
}

std::int64_t Monitor::DelayOf(const MessageQueue& queue, std::int64_t consumed_ms) {
  const auto end = consumer_.MaxOffset(queue);
  if (!end.ok() || *end <= 0) return 0;
  const auto newest = consumer_.Pull(queue, "*", *end - 1, 1);
  if (!newest.ok() || newest->messages.empty()) return 0;
  return newest->messages.front().store_time_ms - consumed_ms;
}

void Monitor::LookForUndone(const std::string& group, MonitorRound* round) {
  const auto progress = session_->admin().ConsumerProgress(group);
  if (!progress.ok()) {  // a group without offsets is none that could be behind
    if (progress.status().code() != StatusCode::kNotFound) {
      round->errors.push_back(progress.status());
    }
    return;
  }
  std::map<std::string, UndoneMessages> topics;
  for (const auto& [queue, at] : *progress) {
    UndoneMessages& undone = topics[queue.topic];
    undone.group = group;
    undone.topic = queue.topic;
    const std::int64_t diff = at.broker_offset - at.consumer_offset;
    if (diff <= 0) continue;
    undone.total += diff;
    undone.single_queue = std::max(undone.single_queue, diff);
    if (at.last_time_ms <= 0) continue;
    undone.delay_ms = std::max(undone.delay_ms, DelayOf(queue, at.last_time_ms));
  }
  for (auto& [topic, undone] : topics) round->undone.push_back(std::move(undone));
}

void Monitor::LookAtMembers(const std::string& group, MonitorRound* round) {
  const auto leaders = LeadersOf(RetryTopic(group), session_);
  const auto members = session_->admin().ConsumerConnections(group);
  if (!leaders.ok() || !members.ok()) return;  // nobody is online, or LookForUndone said why
  std::map<std::string, remoting::Json> infos;
  for (const client::ClientConnection& member : *members) {
    if (member.version < kKnowsRunningInfo) continue;
    const auto answer =
        AskOk(leaders->front().address, remoting::kGetConsumerRunningInfo,
              {{"consumerGroup", group}, {"clientId", member.client_id}, {"jstackEnable", "false"}},
              "", session_);
    if (!answer.ok()) continue;  // it may just have left
    auto info = remoting::Json::Parse(answer->body);
    if (info.ok()) infos.emplace(member.client_id, std::move(*info));
  }
  const std::int64_t now_ms = WallNowMs();
  if (!SameSubscriptions(infos, now_ms)) {
    round->notices.push_back({group, "", "Subscription different"});
  }
  for (const auto& [client_id, info] : infos) {
    for (std::string& trouble : Troubles(client_id, info, now_ms)) {
      round->notices.push_back({group, client_id, std::move(trouble)});
    }
  }
}

void Monitor::LookForDeleted(MonitorRound* round) {
  const auto queues = consumer_.Queues(kEventTopic);
  if (!queues.ok()) return;  // there is none before a broker's first start
  for (const MessageQueue& queue : *queues) {
    if (!next_event_.contains(queue)) {
      const auto end = consumer_.MaxOffset(queue);
      if (end.ok()) next_event_[queue] = *end;
      continue;
    }
    std::int64_t& next = next_event_[queue];
    for (int seen = 0; seen < kEventsMax;) {
      const auto pulled = consumer_.Pull(queue, "*", next, kPullBatch);
      if (!pulled.ok()) {
        round->errors.push_back(pulled.status());
        break;
      }
      for (const client::ReceivedMessage& message : pulled->messages) {
        const auto event = remoting::Json::Parse(message.body);
        if (!event.ok()) continue;
        const remoting::Json& of = (*event)["messageQueue"];
        round->deleted.push_back({(*event)["consumerGroup"].AsString(),
                                  {of["topic"].AsString(), of["brokerName"].AsString(),
                                   static_cast<std::int32_t>(of["queueId"].AsInt64())},
                                  (*event)["offsetRequest"].AsInt64(),
                                  (*event)["offsetNew"].AsInt64(),
                                  message.store_time_ms});
      }
      seen += static_cast<int>(pulled->messages.size());
      if (pulled->next_begin_offset <= next) break;
      next = pulled->next_begin_offset;
    }
  }
}

}  // namespace triad::admin
