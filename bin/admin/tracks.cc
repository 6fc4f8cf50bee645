#include "bin/admin/tracks.h"

#include <cstdio>
#include <utility>

#include "bin/admin/ask.h"
#include "bin/admin/messages.h"
#include "bin/admin/track_type.h"
#include "remoting/codes.h"
#include "remoting/json.h"

namespace triad::admin {
namespace {

using client::ReceivedMessage;

Result<std::string> BrokerNameOf(const ReceivedMessage& message, Session* session) {
  if (!message.queue.broker_name.empty()) return message.queue.broker_name;
  const auto groups = session->admin().ClusterList();
  if (!groups.ok()) return groups.status();
  return BrokerNameAt(message.store_host, *groups);
}

// Whether there is a body to read; if not, the track says why.
bool Usable(const Result<client::Admin::Answer>& answer, MessageTrack* track) {
  if (!answer.ok()) {
    track->reason = answer.status().message();
    return false;
  }
  if (answer->code == remoting::kSuccess) return true;
  if (answer->code == remoting::kConsumerNotOnline) track->type = "NOT_ONLINE";
  track->reason = "CODE:" + std::to_string(answer->code) + " DESC:" + answer->remark;
  return false;
}

// The group's progress in all topics, at all brokers. False: the track says why there is none.
bool AddProgress(const std::vector<Leader>& leaders, const std::string& group,
                 remoting::ConsumeStats* progress, MessageTrack* track, Session* session) {
  for (const Leader& leader : leaders) {
    const auto answer = session->admin().Ask(leader.address, remoting::kGetConsumeStats,
                                             {{"consumerGroup", group}});
    if (!Usable(answer, track)) return false;
    const auto stats = remoting::ConsumeStats::Decode(answer->body);
    if (!stats.ok()) {
      track->reason = stats.status().message();
      return false;
    }
    progress->offset_table.insert(stats->offset_table.begin(), stats->offset_table.end());
  }
  return true;
}

MessageTrack TrackOf(const std::string& group, const Tracked& message, Session* session) {
  MessageTrack track{group, "UNKNOWN", ""};
  const auto leaders = LeadersOf(RetryTopic(group), session);
  if (!leaders.ok()) {
    track.reason = leaders.status().message();
    return track;
  }
  const auto answer = session->admin().Ask(
      leaders->front().address, remoting::kGetConsumerConnectionList, {{"consumerGroup", group}});
  if (!Usable(answer, &track)) return track;
  const auto members = remoting::ConsumerConnection::Decode(answer->body);
  if (!members.ok()) {
    track.reason = members.status().message();
    return track;
  }
  remoting::ConsumeStats progress;
  if (members->consume_type == remoting::ConsumeType::kPassively &&
      !AddProgress(*leaders, group, &progress, &track, session)) {
    return track;
  }
  track.type = TrackTypeOf(*members, progress, message);
  return track;
}

void PrintText(const Record& record, const std::vector<MessageTrack>& tracks, const Given& given) {
  Print({record}, given);
  std::printf("\n");
  if (tracks.empty()) std::printf("WARN: No Consumer\n");
  for (const MessageTrack& track : tracks) {
    std::printf("MessageTrack [consumerGroup=%s, trackType=%s, exceptionDesc=%s]\n",
                track.group.c_str(), track.type.c_str(),
                track.reason.empty() ? "null" : track.reason.c_str());
  }
}

void WriteJson(const Record& record, const std::vector<MessageTrack>& tracks,
               remoting::JsonWriter* writer) {
  writer->BeginObject();
  for (const auto& [name, value] : record) writer->Key(name).String(value);
  writer->Key("MessageTracks").BeginArray();
  for (const MessageTrack& track : tracks) {
    writer->BeginObject().Key("consumerGroup").String(track.group);
    writer->Key("trackType").String(track.type);
    writer->Key("exceptionDesc").String(track.reason).EndObject();
  }
  writer->EndArray().EndObject();
}

}  // namespace

Result<std::vector<MessageTrack>> TracksOf(const ReceivedMessage& message, Session* session) {
  const auto groups = GroupsOf(message.queue.topic, session);
  std::vector<MessageTrack> tracks;
  if (groups.status().code() == StatusCode::kNotFound) return tracks;  // nobody serves it any more
  if (!groups.ok()) return groups.status();
  if (groups->empty()) return tracks;
  const auto broker_name = BrokerNameOf(message, session);
  if (!broker_name.ok()) return broker_name.status();
  const Tracked tracked{{message.queue.topic, *broker_name, message.queue.queue_id},
                        message.queue_offset,
                        message.tag};
  for (const std::string& group : *groups) tracks.push_back(TrackOf(group, tracked, session));
  return tracks;
}

int PrintWithTracks(const std::vector<ReceivedMessage>& messages, const Given& given,
                    Session* session) {
  remoting::JsonWriter writer;
  writer.BeginArray();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto tracks = TracksOf(messages[i], session);
    if (!tracks.ok()) return Fail(tracks.status());
    if (given.json()) {
      WriteJson(Describe(messages[i]), *tracks, &writer);
      continue;
    }
    if (i > 0) std::printf("\n");
    PrintText(Describe(messages[i]), *tracks, given);
  }
  writer.EndArray();
  if (given.json()) std::printf("%s\n", writer.text().c_str());
  return kDone;
}

}  // namespace triad::admin
