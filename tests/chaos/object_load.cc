#include "tests/chaos/object_load.h"

#include <utility>

#include "remoting/bodies.h"
#include "remoting/client_bodies.h"
#include "remoting/codes.h"
#include "remoting/headers.h"
#include "remoting/json.h"

namespace triad::chaos {

using std::chrono::milliseconds;

namespace {

constexpr int kOperationsPerObject = 120;
constexpr int kUnknownPerObject = 4;
constexpr milliseconds kTimeout{3000};
constexpr milliseconds kBetween{15};
constexpr milliseconds kObjectPause{50};
constexpr milliseconds kBetweenTopics{60};  // each change goes to the NameServer too
constexpr int kTopicQueuesMax = 200;

}  // namespace

int ObjectLoad::Turn::Take() {
  if (++operations > kOperationsPerObject || unknown >= kUnknownPerObject) {
    operations = 0;
    unknown = 0;
    ++number;
  }
  return number;
}

// One client's connection: one attempt per call, another peer after a failure.
class ObjectLoad::Caller {
 public:
  Caller(ObjectLoad* load, std::size_t first)
      : load_(load), at_(first), client_(remoting::CreateClient({}, {})) {}
  ~Caller() { client_->Stop(); }

  // Writes the begin, asks, and returns what came; `id` is for Finish.
  Result<remoting::Command> Ask(const Event& begin, remoting::Command request, std::int64_t* id) {
    const std::string address = load_->Address(at_);
    *id = load_->history_->Begin(begin);
    Result<remoting::Command> answer = client_->CallSync(address, std::move(request), kTimeout);
    if (!answer.ok()) ++at_;
    return answer;
  }

  // Writes the end. False: the outcome is not known. `nothing`: the code that says "there is none".
  bool Finish(std::int64_t id, const Result<remoting::Command>& answer, Event end,
              std::int32_t nothing = remoting::kQueryNotFound) {
    end.outcome = Outcome::kInfo;
    if (!answer.ok() && remoting::NeverSent(answer.status())) end.outcome = Outcome::kFail;
    if (answer.ok() && (answer->code == remoting::kSuccess || answer->code == nothing)) {
      end.outcome = Outcome::kOk;
    }
    if (end.outcome != Outcome::kOk) {
      end.value = answer.ok() ? std::to_string(answer->code) + " " + answer->remark
                              : answer.status().ToString();
      if (answer.ok()) ++at_;
    }
    load_->history_->End(id, end);
    return end.outcome != Outcome::kInfo;
  }

 private:
  ObjectLoad* const load_;
  std::size_t at_;
  std::unique_ptr<remoting::Client> client_;
};

ObjectLoad::ObjectLoad(std::string namesrv_address, std::string broker_name,
                       std::vector<std::string> addresses, HistoryWriter* history,
                       std::uint64_t seed)
    : namesrv_address_(std::move(namesrv_address)),
      broker_name_(std::move(broker_name)),
      addresses_(std::move(addresses)),
      history_(history),
      seed_(seed) {}

ObjectLoad::~ObjectLoad() {
  Stop();
}

void ObjectLoad::Start() {
  for (int i = 0; i < 2; ++i) threads_.emplace_back([this, i] { Registers(i); });
  for (int i = 0; i < 3; ++i) threads_.emplace_back([this, i] { Locks(i); });
  for (int i = 0; i < 2; ++i) threads_.emplace_back([this, i] { Maximum(i); });
  for (int i = 0; i < 2; ++i) threads_.emplace_back([this, i] { Topics(i); });
}

void ObjectLoad::Stop() {
  stopper_.Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ObjectLoad::UseAddresses(std::vector<std::string> addresses) {
  std::lock_guard hold(mutex_);
  addresses_ = std::move(addresses);
}

std::string ObjectLoad::Address(std::size_t at) {
  std::lock_guard hold(mutex_);
  return addresses_[at % addresses_.size()];
}

std::string ObjectLoad::GroupOf(const char* prefix, int object) {
  return prefix + std::to_string(object / kObjectQueues);
}

void ObjectLoad::Registers(int number) {
  Caller caller(this, static_cast<std::size_t>(number));
  sim::Random random(seed_ + 2000 + static_cast<std::uint64_t>(number));
  for (std::int64_t n = 1; !stopper_.Wait(kBetween); ++n) {
    const int object = registers_.Take();
    const std::string group = GroupOf("G-reg", object);
    Event event;
    event.client = "r" + std::to_string(number);
    event.key = group + "|" + kObjectTopic + "/" + std::to_string(QueueOf(object));
    remoting::Command request;
    if (random.OneIn(2)) {
      event.op = Op::kCommit;
      event.offset = n * 2 + number;  // every value once
      remoting::UpdateConsumerOffsetRequest header;
      header.consumer_group = group;
      header.topic = kObjectTopic;
      header.queue_id = QueueOf(object);
      header.commit_offset = event.offset;
      request = remoting::Command::Request(remoting::kUpdateConsumerOffset);
      header.Encode(&request.ext);
    } else {
      event.op = Op::kFetch;
      remoting::QueryConsumerOffsetRequest header;
      header.consumer_group = group;
      header.topic = kObjectTopic;
      header.queue_id = QueueOf(object);
      request = remoting::Command::Request(remoting::kQueryConsumerOffset);
      header.Encode(&request.ext);
    }
    std::int64_t id = 0;
    const Result<remoting::Command> answer = caller.Ask(event, std::move(request), &id);
    Event end;
    if (event.op == Op::kFetch && answer.ok() && answer->code == remoting::kSuccess) {
      const Result<std::int64_t> offset = answer->ext.GetInt64("offset");
      end.offset = offset.ok() ? *offset : -2;
    }
    if (caller.Finish(id, answer, end)) continue;
    if (event.op == Op::kCommit) ++registers_.unknown;
    if (stopper_.Wait(kObjectPause)) return;
  }
}

void ObjectLoad::Locks(int number) {
  Caller caller(this, static_cast<std::size_t>(number));
  sim::Random random(seed_ + 3000 + static_cast<std::uint64_t>(number));
  int held = -1;  // the object that this client believes to hold
  while (!stopper_.Wait(kBetween)) {
    const int object = locks_.Take();
    const std::string group = GroupOf("G-lock", object);
    const bool releases = held == object && !random.OneIn(3);
    Event event;
    event.op = releases ? Op::kUnlock : Op::kLock;
    event.client = "l" + std::to_string(number);
    event.key = group + "|" + kObjectTopic + "/" + std::to_string(QueueOf(object));
    remoting::LockBatchRequest body;
    body.client_id = event.client;
    body.consumer_group = group;
    remoting::MessageQueue queue;
    queue.topic = kObjectTopic;
    queue.broker_name = broker_name_;
    queue.queue_id = QueueOf(object);
    body.queues.push_back(queue);
    remoting::Command request =
        remoting::Command::Request(releases ? remoting::kUnlockBatchMq : remoting::kLockBatchMq);
    request.body = body.Encode();
    std::int64_t id = 0;
    const Result<remoting::Command> answer = caller.Ask(event, std::move(request), &id);
    Event end;
    if (!releases && answer.ok() && answer->code == remoting::kSuccess) {
      const Result<remoting::Json> json = remoting::Json::Parse(answer->body);
      const std::string key = std::string(kObjectTopic) + "@" + std::to_string(queue.queue_id);
      if (json.ok()) end.token = (*json)["fenceTokens"][key].AsInt64(0);
    }
    if (releases) held = -1;
    if (end.token != 0) held = object;
    if (caller.Finish(id, answer, end)) continue;
    ++locks_.unknown;
    if (stopper_.Wait(kObjectPause)) return;
  }
}

void ObjectLoad::Maximum(int number) {
  Caller caller(this, static_cast<std::size_t>(number));
  const std::string client = "m" + std::to_string(number);
  client::ProducerOptions options;
  options.client.namesrv_address = namesrv_address_;
  options.client.instance_name = client;
  options.group = "P-objects";
  options.send_timeout = kTimeout;
  options.retries = 0;
  client::Producer producer(options);
  while (!producer.Start().ok()) {
    if (stopper_.Wait(milliseconds(200))) return;
  }
  sim::Random random(seed_ + 4000 + static_cast<std::uint64_t>(number));
  std::int64_t sent = 0;
  while (!stopper_.Wait(kBetween)) {
    const int object = maxima_.Take();
    if (object >= kObjectQueues) break;  // every queue had its turn
    Event event;
    event.client = client;
    event.key = std::string(kObjectTopic) + "/" + std::to_string(object);
    if (random.OneIn(2)) {
      event.op = Op::kMax;
      remoting::GetMaxOffsetRequest header;
      header.topic = kObjectTopic;
      header.queue_id = object;
      remoting::Command request = remoting::Command::Request(remoting::kGetMaxOffset);
      header.Encode(&request.ext);
      std::int64_t id = 0;
      const Result<remoting::Command> answer = caller.Ask(event, std::move(request), &id);
      Event end;
      if (answer.ok() && answer->code == remoting::kSuccess) {
        const Result<std::int64_t> offset = answer->ext.GetInt64("offset");
        end.offset = offset.ok() ? *offset : -2;
      }
      if (!caller.Finish(id, answer, end) && stopper_.Wait(kObjectPause)) break;
      continue;
    }
    event.op = Op::kAppend;
    event.value = client + "-" + std::to_string(++sent);
    client::Message message;
    message.topic = kObjectTopic;
    message.body = BodyOf(event.value, 10);
    event.hash = HashOf(message.body);
    const std::int64_t id = history_->Begin(event);
    const Result<client::SendResult> result =
        producer.Send(std::move(message), client::MessageQueue{kObjectTopic, broker_name_, object});
    Event end;
    end.outcome = OutcomeOf(result.status());
    if (result.ok()) end.offset = result->queue_offset;
    if (!result.ok()) end.value = result.status().ToString();
    history_->End(id, end);
    if (end.outcome == Outcome::kInfo) ++maxima_.unknown;
    if (!result.ok() && stopper_.Wait(kObjectPause)) break;
  }
  producer.Shutdown();
}

// What a topic's configuration says is its number of queues: another one with every change.
void ObjectLoad::Topics(int number) {
  Caller caller(this, static_cast<std::size_t>(number));
  sim::Random random(seed_ + 5000 + static_cast<std::uint64_t>(number));
  for (std::int64_t n = 1; !stopper_.Wait(kBetweenTopics); ++n) {
    Event event;
    event.client = "t" + std::to_string(number);
    event.key = "ChaosConfig" + std::to_string(topics_.Take());
    remoting::Command request;
    const std::uint64_t dice = random.Below(8);
    if (dice < 3) {
      event.op = Op::kPutTopic;
      event.offset = 1 + (n * 2 + number) % kTopicQueuesMax;
      remoting::CreateTopicRequest header;
      header.topic = event.key;
      header.read_queue_nums = header.write_queue_nums = static_cast<std::int32_t>(event.offset);
      header.perm = 6;
      header.topic_filter_type = "SINGLE_TAG";
      request = remoting::Command::Request(remoting::kUpdateAndCreateTopic);
      header.Encode(&request.ext);
    } else {
      event.op = dice == 3 ? Op::kDropTopic : Op::kGetTopic;
      remoting::TopicRequest header;
      header.topic = event.key;
      request = remoting::Command::Request(dice == 3 ? remoting::kDeleteTopicInBroker
                                                     : remoting::kGetTopicConfig);
      header.Encode(&request.ext);
    }
    const bool asks = event.op == Op::kGetTopic;
    std::int64_t id = 0;
    const Result<remoting::Command> answer = caller.Ask(event, std::move(request), &id);
    Event end;
    if (asks && answer.ok() && answer->code == remoting::kSuccess) {
      const auto topic = remoting::TopicConfigBody::Decode(answer->body);
      const bool whole = topic.ok() && topic->read_queue_nums == topic->write_queue_nums;
      end.offset = whole ? topic->write_queue_nums : -2;
    }
    if (caller.Finish(id, answer, end, asks ? remoting::kTopicNotExist : remoting::kSuccess)) {
      continue;
    }
    if (!asks) ++topics_.unknown;
    if (stopper_.Wait(kObjectPause)) return;
  }
}

}  // namespace triad::chaos
