#include "broker/processor/plain_sends.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "broker/processor/names.h"
#include "broker/processor/response.h"
#include "broker/processor/send_checks.h"
#include "remoting/frame.h"
#include "remoting/plain_send.h"

namespace triad::broker {
namespace {

constexpr std::size_t kTopicsMax = 4096;
constexpr std::size_t kAnswerBytes = 384;  // a guess; more costs an allocation

std::atomic<std::uint64_t> next_number{1};

}  // namespace

// What a send to the topic has to know of it.
struct PlainSends::TopicFacts {
  bool is_plain = false;
  bool is_user = false;  // no system topic
  std::int32_t queues = 0;
  std::int32_t sys_flag = 0;  // added to each message's
};

// The sends that one read of one connection brought.
struct PlainSends::Batch {
  struct Item {
    remoting::SerializeType serialize_type = remoting::SerializeType::kJson;
    std::int32_t opaque = 0;
    QueueId queue_id;
    std::int64_t body_bytes = 0;
    std::size_t head_end = 0;  // in `heads`
    std::size_t key_end = 0;   // in `keys`
  };
  remoting::ConnectionPtr connection;
  TimePoint arrived;
  std::vector<Item> items;
  std::int64_t user_messages = 0;  // of `items`, not to system topics
  std::string heads;  // the frames without their bodies: for those that have to be sent again
  std::string keys;   // UNIQ_KEY of each
};

struct PlainSends::ThreadState {
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  std::uint64_t owner = 0;  // number_
  std::uint64_t topics_version = 0;
  std::unordered_map<std::string, TopicFacts, TextHash, std::equal_to<>> topics;
  std::uint64_t connection_id = 0;  // whose address `born_host` is
  std::optional<HostPort> born_host;
  std::string scratch;
  std::string added_properties;  // behind every message's own, with a separator in front
  bool added_trace_on = false;   // what they say

  std::shared_ptr<Batch> batch;  // null: nothing is gathered
  RecordBatch records;           // of `batch`
};

PlainSends::PlainSends(BrokerContext& context, const Dispatcher& dispatcher)
    : context_(context), dispatcher_(dispatcher), number_(next_number.fetch_add(1)) {}

PlainSends::~PlainSends() = default;

PlainSends::ThreadState& PlainSends::State() const {
  thread_local ThreadState state;
  if (state.owner != number_) {
    CHECK(state.batch == nullptr) << "two brokers gather on one thread";
    state = ThreadState();
    state.owner = number_;
  }
  return state;
}

bool PlainSends::Take(const remoting::ConnectionPtr& connection, std::string_view frame) {
  ThreadState& state = State();
  if (Add(connection, frame, &state)) return true;
  Submit(&state);
  return false;
}

void PlainSends::Flush() {
  Submit(&State());
}

const PlainSends::TopicFacts& PlainSends::FactsOf(std::string_view topic,
                                                  ThreadState* state) const {
  const ReplicatedState& replicated = context_.store.state();
  const std::uint64_t version = replicated.topics_version();
  if (version != state->topics_version || state->topics.size() > kTopicsMax) {
    state->topics.clear();
    state->topics_version = version;
  }
  const auto known = state->topics.find(topic);
  if (known != state->topics.end()) return known->second;
  TopicFacts facts;
  const bool is_ordinary = CheckTopicName(topic, context_.config.max_topic_bytes).ok() &&
                           !topic.starts_with('%') && !IsSendForbidden(topic);
  const auto config = is_ordinary ? replicated.FindTopic(Topic(std::string(topic))) : std::nullopt;
  if (config) {
    facts.is_plain = (config->perm & kPermWrite) != 0 && config->write_queues > 0 &&
                     DedupRuleOf(config->attributes).mode == DedupMode::kNone;
    facts.is_user = !IsSystemTopic(context_.config, topic);
    facts.queues = std::max(config->write_queues, config->read_queues);
    facts.sys_flag = config->multi_tag ? kSysFlagMultiTags : 0;
  }
  return state->topics.emplace(topic, facts).first->second;
}

// False: the ordinary way takes it, and nothing happened here.
bool PlainSends::Add(const remoting::ConnectionPtr& connection, std::string_view frame,
                     ThreadState* state) {
  remoting::PlainSend send;
  if (!context_.gate.leads() || !remoting::ReadPlainSend(frame, &state->scratch, &send)) {
    return false;
  }
  const BrokerConfig& config = context_.config;
  const TopicFacts& facts = FactsOf(send.topic, state);
  if (!facts.is_plain || send.queue_id < 0 || send.queue_id >= facts.queues) return false;
  if ((config.broker_permission & kPermWrite) == 0 || !context_.disk.Writable().ok()) return false;
  const KnownProperties known = ScanProperties(send.properties);
  if (known.unique_key.empty() || !known.delay.empty() || known.broker_own) return false;
  if (CheckMessageType(send.sys_flag, known)) return false;
  if (state->connection_id != connection->id()) {
    state->connection_id = connection->id();
    auto host = ParseHostPort(connection->remote_address());
    state->born_host.reset();
    if (host.ok()) state->born_host = std::move(host).value();
  }
  if (!state->born_host) return false;

  const bool trace_on = config.trace_on;
  if (state->added_properties.empty() || state->added_trace_on != trace_on) {
    state->added_properties = '\x02';
    AddBrokerProperties(config, known, &state->added_properties);
    state->added_trace_on = trace_on;
  }
  std::string_view added = state->added_properties;
  if (send.properties.ends_with('\x02')) added.remove_prefix(1);
  const RecordParts parts{
      .topic = send.topic,
      .queue_id = send.queue_id,
      .flag = send.flag,
      .sys_flag = send.sys_flag | facts.sys_flag,
      .born_time_ms = send.born_timestamp_ms,
      .born_host = &*state->born_host,
      .reconsume_times = std::clamp(send.reconsume_times, 0, kReconsumeTimesMax),
      .prepared_transaction_offset = 0,
      .properties = send.properties,
      .more_properties = added,
      .body = send.body};
  const std::size_t properties_bytes = parts.properties.size() + parts.more_properties.size();
  if (CheckSizes(config, parts.body, properties_bytes)) return false;

  const StoredPlace open_place{.queue_offset = {},
                               .physical_offset = {},
                               .store_time_ms = 0,
                               .store_host = context_.store_host};
  const std::size_t bytes = RecordBytes(parts, open_place.store_host);
  const std::size_t gathered = state->records.records.size();
  if (gathered > 0 &&
      (gathered + bytes > kPlainBatchBytesMax || state->records.slots.size() >= kPlainBatchMax)) {
    Submit(state);
  }
  if (state->batch == nullptr) {
    state->batch = std::make_shared<Batch>();
    state->batch->connection = connection;
    state->batch->arrived = context_.clock.MonoNow();
    state->records.deadline = state->batch->arrived + kSendBudget;
  }
  Batch& batch = *state->batch;
  CHECK_EQ(batch.connection->id(), connection->id()) << "Flush belongs behind each read";
  AppendRecord(parts, open_place, &state->records.records);
  state->records.slots.push_back({static_cast<std::uint32_t>(bytes), QueueId(send.queue_id)});
  batch.heads.append(send.head);
  batch.keys.append(known.unique_key);
  if (facts.is_user) ++batch.user_messages;
  batch.items.push_back({.serialize_type = send.serialize_type,
                         .opaque = send.opaque,
                         .queue_id = QueueId(send.queue_id),
                         .body_bytes = static_cast<std::int64_t>(send.body.size()),
                         .head_end = batch.heads.size(),
                         .key_end = batch.keys.size()});
  return true;
}

void PlainSends::Submit(ThreadState* state) {
  if (state->batch == nullptr) return;
  RecordBatch records = std::exchange(state->records, RecordBatch());
  records.done = [this, batch = std::exchange(state->batch, nullptr)](
                     const AppendOutcome& outcome) { Answer(*batch, outcome); };
  context_.store.appender().Submit(std::move(records));
}

void PlainSends::Answer(const Batch& batch, const AppendOutcome& outcome) const {
  if (outcome.status.ok()) return AnswerStored(batch, outcome);
  if (outcome.status.code() == StatusCode::kNotLeader ||
      outcome.status.code() == StatusCode::kNotFound) {
    // Surely not in the log: the ordinary way holds each until somebody leads, or judges its topic
    // alone. On the connection's thread: this one has other things to do.
    auto again = std::make_shared<std::pair<Batch, std::string>>(batch, outcome.records);
    batch.connection->Post([this, again] { SendAgain(again->first, again->second); });
    return;
  }
  context_.counters.put_failed.fetch_add(static_cast<std::int64_t>(batch.items.size()),
                                         std::memory_order_relaxed);
  for (const Batch::Item& item : batch.items) {
    remoting::Command request;
    request.opaque = item.opaque;
    request.serialize_type = item.serialize_type;
    batch.connection->Send(SendFailure(request, outcome.status));
  }
}

void PlainSends::AnswerStored(const Batch& batch, const AppendOutcome& outcome) const {
  CHECK_EQ(outcome.messages.size(), batch.items.size());
  const auto count = static_cast<std::int64_t>(batch.items.size());
  context_.counters.put_messages.fetch_add(count, std::memory_order_relaxed);
  context_.counters.put_user_messages.fetch_add(batch.user_messages, std::memory_order_relaxed);
  const TimePoint now = context_.clock.MonoNow();
  context_.counters.NotePut(now, now - batch.arrived, batch.items.size());
  std::string frames;
  frames.reserve(batch.items.size() * kAnswerBytes);
  OffsetMessageIds ids(context_.store_host);
  remoting::PlainSendAnswer answer;
  answer.msg_region = context_.config.region_id;
  answer.trace_on = context_.config.trace_on;
  std::size_t key_begin = 0;
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    const Batch::Item& item = batch.items[i];
    context_.counters.put_sizes.Record(item.body_bytes);
    answer.serialize_type = item.serialize_type;
    answer.opaque = item.opaque;
    answer.msg_id = ids.Of(outcome.messages[i].physical_offset);
    answer.queue_id = item.queue_id.value();
    answer.queue_offset = outcome.messages[i].queue_offset.value();
    answer.transaction_id =
        std::string_view(batch.keys).substr(key_begin, item.key_end - key_begin);
    key_begin = item.key_end;
    remoting::AppendPlainSendAnswer(answer, &frames);
  }
  batch.connection->SendFrames(std::move(frames), batch.items.size());
}

void PlainSends::SendAgain(const Batch& batch, std::string_view records) const {
  std::size_t head_begin = 0;
  TimePoint arrived = batch.arrived;  // a nanosecond apart: the gate keeps their order
  for (const Batch::Item& item : batch.items) {
    const auto message = ParseMessage(records, false);
    CHECK(message.ok()) << message.status();  // it was encoded here
    std::string frame = batch.heads.substr(head_begin, item.head_end - head_begin);
    head_begin = item.head_end;
    frame.append(message->body);
    records.remove_prefix(message->record.size());
    auto command = remoting::DecodeFrame(frame);
    CHECK(command.ok()) << command.status();  // it was read here
    dispatcher_.OnRequestFrom(batch.connection, std::move(*command), arrived);
    arrived += std::chrono::nanoseconds(1);
  }
}

}  // namespace triad::broker
