#include "broker/processor/reply_processor.h"

#include <string>
#include <utility>

#include "broker/processor/response.h"
#include "broker/store/message.h"

namespace triad::broker {
namespace {

std::string PropertyOf(std::string_view properties, std::string_view wanted) {
  PropertyReader reader(properties);
  std::string_view name;
  std::string_view value;
  while (reader.Next(&name, &value)) {
    if (name == wanted) return std::string(value);
  }
  return "";
}

}  // namespace

void ReplyProcessor::Register(Dispatcher* dispatcher) {
  for (const std::int32_t code : {remoting::kSendReplyMessage, remoting::kSendReplyMessageV2}) {
    dispatcher->Register(
        code, [this](const RequestPtr& request, const Reply& reply) { OnReply(request, reply); });
  }
}

remoting::Command ReplyProcessor::PushOf(const Request& request,
                                         const remoting::SendMessageRequest& header) const {
  remoting::Command push = remoting::Command::Request(remoting::kPushReplyMessageToClient);
  push.ext.Set("producerGroup", header.producer_group);
  push.ext.Set("topic", header.topic);
  push.ext.Set("defaultTopic", header.default_topic);
  push.ext.Set("defaultTopicQueueNums", std::int64_t{header.default_topic_queue_nums});
  push.ext.Set("queueId", std::int64_t{header.queue_id});
  push.ext.Set("sysFlag", std::int64_t{header.sys_flag});
  push.ext.Set("bornTimestamp", header.born_timestamp_ms);
  push.ext.Set("flag", std::int64_t{header.flag});
  std::string properties = header.properties;
  if (!properties.empty() && properties.back() != '\x02') properties += '\x02';
  properties += "PUSH_REPLY_TIME\x01" + std::to_string(context_.clock.WallNowMs()) + '\x02';
  push.ext.Set("properties", properties);
  push.ext.Set("reconsumeTimes", std::int64_t{header.reconsume_times});
  push.ext.SetBool("unitMode", header.unit_mode);
  push.ext.Set("bornHost", request.client_address);
  push.ext.Set("storeHost", context_.config.FullClientAddress());
  push.ext.Set("storeTimestamp", context_.clock.WallNowMs());
  push.body = request.command.body;
  return push;
}

void ReplyProcessor::OnReply(const RequestPtr& request, const Reply& reply) {
  const bool is_long = request->command.code == remoting::kSendReplyMessage;
  const auto header = is_long ? remoting::SendMessageRequest::DecodeV1(request->command.ext)
                              : remoting::SendMessageRequest::DecodeV2(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  const std::string client = PropertyOf(header->properties, "REPLY_TO_CLIENT");
  if (client.empty()) {
    reply(SystemError(request->command, "reply message properties[REPLY_TO_CLIENT] is null"));
    return;
  }
  const remoting::ConnectionPtr requester = context_.producers.FindClient(ClientId(client));
  if (requester == nullptr) {
    reply(SystemError(request->command,
                      "push reply message fail, channel of <" + client + "> not found."));
    return;
  }
  remoting::Command push = PushOf(*request, *header);
  push.serialize_type = requester->last_serialize_type();
  requester->Call(
      std::move(push), kPushReplyTimeout,
      [request, reply, client, queue = header->queue_id](const Result<remoting::Command>& answer) {
        if (!answer.ok() || answer->code != remoting::kSuccess) {
          reply(SystemError(request->command, "push reply message to <" + client + ">fail." +
                                                  (answer.ok() ? " " + answer->remark : "")));
          return;
        }
        remoting::Command done = Success(request->command);
        done.ext.Set("msgId", "0");
        done.ext.Set("queueId", std::int64_t{queue});
        done.ext.Set("queueOffset", "0");
        reply(std::move(done));
      });
}

}  // namespace triad::broker
