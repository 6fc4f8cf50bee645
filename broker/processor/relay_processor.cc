#include "broker/processor/relay_processor.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "broker/processor/response.h"
#include "remoting/json.h"

namespace triad::broker {
namespace {

constexpr std::int32_t kOldestVersion = 62;  // V3_1_8_SNAPSHOT

// A request of ours that carries what the tool's carried.
remoting::Command Relayed(const remoting::Command& request, const Member& member) {
  remoting::Command relayed = remoting::Command::Request(request.code);
  relayed.serialize_type = member.connection->last_serialize_type();
  relayed.ext = request.ext;
  return relayed;
}

remoting::Command AnswerOf(const remoting::Command& request, const std::string& client,
                           Result<remoting::Command> answer) {
  if (answer.ok()) {
    remoting::Command response =
        remoting::Command::ResponseTo(request, answer->code, std::move(answer->remark));
    response.body = std::move(answer->body);
    return response;
  }
  const bool late = answer.status().code() == StatusCode::kTimedOut;
  return remoting::Command::ResponseTo(
      request, late ? remoting::kConsumeMsgTimeout : remoting::kSystemError,
      "consumer " + client + (late ? " Timeout: " : " cannot be asked: ") +
          std::string(answer.status().message()));
}

// Answers of several clients; the last one replies.
struct Statuses {
  std::mutex mutex;
  std::size_t open = 0;
  std::map<std::string, std::string> tables;  // client id to its messageQueueTable
};

std::string EncodeStatuses(const std::map<std::string, std::string>& tables) {
  remoting::JsonWriter writer;
  writer.BeginObject();
  writer.Key("consumerTable").BeginObject();
  for (const auto& [client, table] : tables) writer.Key(client).Raw(table);
  writer.EndObject();
  writer.Key("messageQueueTable").BeginObject().EndObject();
  writer.EndObject();
  return writer.Take();
}

std::string QueueTableOf(const remoting::Command& answer) {
  const auto json = remoting::Json::Parse(answer.body);
  if (!json.ok() || !(*json)["messageQueueTable"].is_object()) return "{}";
  remoting::JsonWriter writer;
  (*json)["messageQueueTable"].WriteTo(&writer);
  return writer.Take();
}

}  // namespace

void RelayProcessor::Register(Dispatcher* dispatcher) {
  dispatcher->Register(remoting::kGetConsumerRunningInfo,
                       [this](RequestPtr request, Reply reply) { OnRunningInfo(request, reply); });
  dispatcher->Register(remoting::kConsumeMessageDirectly, [this](RequestPtr request, Reply reply) {
    OnConsumeDirectly(request, reply);
  });
  dispatcher->Register(
      remoting::kInvokeBrokerToGetConsumerStatus,
      [this](RequestPtr request, Reply reply) { OnConsumerStatus(request, reply); });
}

void RelayProcessor::Relay(const RequestPtr& request, const Reply& reply,
                           const remoting::ClientDirectedRequest& header,
                           remoting::Command relayed) {
  const std::string client = "<" + header.consumer_group + "> <" + header.client_id + ">";
  const auto group = context_.consumers.Find(GroupName(header.consumer_group));
  const Member* member = nullptr;
  if (group) {
    const auto found =
        std::find_if(group->members.begin(), group->members.end(),
                     [&](const Member& one) { return one.client.id.value() == header.client_id; });
    if (found != group->members.end()) member = &*found;
  }
  if (member == nullptr) {
    reply(SystemError(request->command, "The Consumer " + client + " not online"));
    return;
  }
  if (member->client.version < kOldestVersion) {
    reply(SystemError(request->command,
                      "The Consumer <" + header.client_id + "> Version <" +
                          std::to_string(member->client.version) +
                          "> too low to finish, please upgrade it to V3_1_8_SNAPSHOT"));
    return;
  }
  relayed.serialize_type = member->connection->last_serialize_type();
  member->connection->Call(std::move(relayed), kRelayTimeout,
                           [request, reply, client](Result<remoting::Command> answer) {
                             reply(AnswerOf(request->command, client, std::move(answer)));
                           });
}

void RelayProcessor::OnRunningInfo(const RequestPtr& request, const Reply& reply) {
  const auto header = remoting::ClientDirectedRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  remoting::Command relayed = remoting::Command::Request(request->command.code);
  relayed.ext = request->command.ext;
  Relay(request, reply, header.value(), std::move(relayed));
}

void RelayProcessor::OnConsumeDirectly(const RequestPtr& request, const Reply& reply) {
  const auto header = remoting::ClientDirectedRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  const auto id = ParseOffsetMessageId(header->msg_id);
  if (!id.ok()) {
    reply(ResponseOf(request->command,
                     Status::InvalidArgument("msgId: " + std::string(id.status().message()))));
    return;
  }
  const bool posted = context_.store.node().PostReader(
      [this, request, reply, header = *header, offset = id->second] {
        const auto loaded = context_.store.ReadMessageAt(offset);
        if (!loaded.ok()) {
          reply(SystemError(request->command, "can not find message by the offset, " +
                                                  std::to_string(offset.value()) + ": " +
                                                  std::string(loaded.status().message())));
          return;
        }
        remoting::Command relayed = remoting::Command::Request(request->command.code);
        relayed.ext = request->command.ext;
        relayed.ext.Set("brokerName", context_.config.broker_name);
        const auto topic = context_.store.state().FindTopic(Topic(header.topic));
        if (topic) relayed.ext.Set("topicSysFlag", std::int64_t{topic->sys_flag});
        const auto group = context_.store.state().FindGroup(GroupName(header.consumer_group));
        if (group) relayed.ext.Set("groupSysFlag", std::int64_t{group->group_sys_flag});
        relayed.body = std::string(loaded->record);
        Relay(request, reply, header, std::move(relayed));
      });
  if (!posted) reply(ResponseOf(request->command, Status::Busy("too many reads wait")));
}

void RelayProcessor::OnConsumerStatus(const RequestPtr& request, const Reply& reply) {
  const auto header = remoting::GetConsumerStatusRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  std::vector<Member> asked;
  if (const auto group = context_.consumers.Find(GroupName(header->group))) {
    for (const Member& member : group->members) {
      const bool wanted =
          header->client_addr.empty() || header->client_addr == member.client.id.value();
      if (wanted) asked.push_back(member);
    }
  }
  if (asked.empty()) {
    reply(SystemError(request->command,
                      "No Any Consumer online in the consumer group: [" + header->group + "]"));
    return;
  }
  auto statuses = std::make_shared<Statuses>();
  statuses->open = asked.size();
  for (const Member& member : asked) {
    remoting::Command relayed = Relayed(request->command, member);
    relayed.code = remoting::kGetConsumerStatusFromClient;
    member.connection->Call(
        std::move(relayed), kStatusTimeout,
        [request, reply, statuses, id = member.client.id](const Result<remoting::Command>& answer) {
          std::unique_lock hold(statuses->mutex);
          if (answer.ok() && answer->code == remoting::kSuccess) {
            statuses->tables[id.value()] = QueueTableOf(*answer);
          }
          if (--statuses->open > 0) return;
          const std::string body = EncodeStatuses(statuses->tables);
          hold.unlock();
          reply(SuccessWith(request->command, body));
        });
  }
}

}  // namespace triad::broker
