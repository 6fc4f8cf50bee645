#include "broker/processor/query_processor.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "broker/processor/confirmed.h"
#include "broker/processor/method_table.h"
#include "broker/processor/response.h"
#include "broker/store/message.h"
#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::broker {
namespace {

constexpr std::int32_t kUniqueQueryMessages = 32;  // defaultQueryMaxNum

remoting::Command OffsetAnswer(const remoting::Command& request, QueueOffset offset) {
  remoting::Command response = Success(request);
  remoting::OffsetResponse header;
  header.offset = offset.value();
  header.Encode(&response.ext);
  return response;
}

bool IsUpper(std::string_view boundary) {
  static constexpr std::string_view kUpper = "upper";
  return std::ranges::equal(boundary, kUpper, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

template <typename Header>
TopicQueue QueueOf(const Header& header) {
  return {Topic(header.topic), QueueId(header.queue_id)};
}

}  // namespace

void QueryProcessor::Register(Dispatcher* dispatcher) {
  const MethodTable methods(dispatcher, this, kBudget);
  methods.ForAll(remoting::kViewMessageById, &QueryProcessor::OnViewMessage);
  methods.ForAll(remoting::kQueryMessage, &QueryProcessor::OnQueryMessage);
  methods.ForLeader(remoting::kGetMaxOffset, &QueryProcessor::OnMaxOffset);
  methods.ForLeader(remoting::kGetMinOffset, &QueryProcessor::OnMinOffset);
  methods.ForLeader(remoting::kSearchOffsetByTimestamp, &QueryProcessor::OnSearchOffset);
  methods.ForLeader(remoting::kGetEarliestMsgStoreTime, &QueryProcessor::OnEarliestTime);
}

void QueryProcessor::OnReader(const RequestPtr& request, const Reply& reply,
                              std::function<void()> task) {
  if (context_.store.node().PostReader(std::move(task))) return;
  reply(ResponseOf(request->command, Status::Busy("too many reads from files are waiting")));
}

void QueryProcessor::OnQueryMessage(const RequestPtr& request, const Reply& reply) {
  const auto header = remoting::QueryMessageRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  KeyQuery query;
  query.topic = Topic(header->topic);
  query.key = header->key;
  query.unique_only = header->unique_key_query;
  query.times = {header->begin_timestamp_ms, header->end_timestamp_ms};
  const std::int32_t wanted = header->unique_key_query ? kUniqueQueryMessages : header->max_num;
  query.messages_max = static_cast<std::size_t>(std::max(wanted, 0));
  OnReader(request, reply,
           [this, request, reply, query = std::move(query)] { ReadByKey(request, reply, query); });
}

void QueryProcessor::ReadByKey(const RequestPtr& request, const Reply& reply,
                               const KeyQuery& query) {
  const auto found = context_.store.FindMessages(query);
  const bool none = found.ok() ? found->empty() : found.status().code() == StatusCode::kNotFound;
  if (none) {
    reply(remoting::Command::ResponseTo(request->command, remoting::kQueryNotFound,
                                        "can not find message, maybe time range not correct"));
    return;
  }
  if (!found.ok()) {
    reply(ResponseOf(request->command, found.status()));
    return;
  }
  std::string body;
  for (const LoadedMessage& message : *found) body += message.record;
  remoting::Command response = SuccessWith(request->command, std::move(body));
  const KeyIndex::Newest newest = context_.store.NewestKey();
  remoting::QueryMessageResponse header;
  header.index_last_update_timestamp_ms = newest.time_ms;
  header.index_last_update_phyoffset = newest.position.value();
  header.Encode(&response.ext);
  reply(std::move(response));
}

void QueryProcessor::OnViewMessage(const RequestPtr& request, const Reply& reply) {
  const auto header = remoting::ViewMessageRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  OnReader(request, reply, [this, request, reply, offset = header->offset] {
    const auto loaded = context_.store.ReadMessageAt(PhysicalOffset(offset));
    if (loaded.ok()) {
      reply(SuccessWith(request->command, std::string(loaded->record)));
      return;
    }
    reply(remoting::Command::ResponseTo(request->command, remoting::kSystemError,
                                        "can not find message by the offset, " +
                                            std::to_string(offset) + ": " +
                                            std::string(loaded.status().message())));
  });
}

void QueryProcessor::OnMaxOffset(const RequestPtr& request, const Reply& reply) {
  const auto header = remoting::GetMaxOffsetRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  WhenConfirmed(context_, request, reply, [this, request, reply, queue = QueueOf(*header)] {
    reply(OffsetAnswer(request->command, context_.store.RangeOf(queue).max));
  });
}

void QueryProcessor::OnMinOffset(const RequestPtr& request, const Reply& reply) {
  const auto header = remoting::GetMinOffsetRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  reply(OffsetAnswer(request->command, context_.store.RangeOf(QueueOf(*header)).min));
}

void QueryProcessor::OnSearchOffset(const RequestPtr& request, const Reply& reply) {
  const auto header = remoting::SearchOffsetRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  const bool upper = IsUpper(header->boundary_type);
  const TopicQueue queue = QueueOf(*header);
  WhenConfirmed(context_, request, reply, [=, this, time_ms = header->timestamp_ms] {
    OnReader(request, reply, [=, this] {
      const auto offset = context_.store.OffsetByTime(queue, time_ms, upper);
      reply(offset.ok() ? OffsetAnswer(request->command, *offset)
                        : ResponseOf(request->command, offset.status()));
    });
  });
}

void QueryProcessor::OnEarliestTime(const RequestPtr& request, const Reply& reply) {
  const auto header = remoting::GetMinOffsetRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  OnReader(request, reply, [this, request, reply, queue = QueueOf(*header)] {
    std::int64_t time_ms = -1;
    const QueueRange range = context_.store.RangeOf(queue);
    if (range.min < range.max) {
      const auto units = context_.store.queues().Read(queue, range.min, 1);
      if (units.ok() && !units->empty()) {
        const auto loaded = context_.store.ReadMessage(units->front());
        if (loaded.ok()) {
          const auto message = ParseMessage(loaded->record, false);
          if (message.ok()) time_ms = message->store_time_ms;
        }
      }
    }
    remoting::Command response = Success(request->command);
    remoting::TimestampResponse answer;
    answer.timestamp_ms = time_ms;
    answer.Encode(&response.ext);
    reply(std::move(response));
  });
}

}  // namespace triad::broker
