#include "tests/unit/broker/message_harness.h"

#include <gtest/gtest.h>

#include <utility>

#include "broker/processor/system_state.h"
#include "remoting/codes.h"

namespace triad::broker {
namespace {

MessageStoreOptions StoreOptions(const BrokerConfig& config, const HostPort& store_host) {
  MessageStoreOptions options;
  options.root_dir = config.store_root;
  options.delay_levels = config.delay_levels;
  options.appender.store_host = store_host;
  options.node.group = "test";
  options.node.self = PeerId("n0");
  options.node.peers = {{PeerId("n0"), "127.0.0.1", 0}};
  options.node.client_address = config.FullClientAddress();
  options.node.segment_bytes = 64u << 20;
  options.node.prepare_bytes = 1u << 20;
  options.node.sync_flush = config.flush == FlushDiskType::kSyncFlush;
  return options;
}

}  // namespace

MessageHarness::MessageHarness(const std::function<void(BrokerConfig*)>& adjust, FileSystem& fs)
    : fs_(fs) {
  config_.broker_name = "broker-a";
  config_.broker_ip1 = "127.0.0.1";
  config_.listen_port = 10911;
  config_.store_root = dir_.path();
  config_.disk_warning_percent = 100;
  config_.disk_free_floor_bytes = 0;
  config_.flush = FlushDiskType::kAsyncFlush;  // most tests are not about the disk
  if (adjust) adjust(&config_);
  Start();
}

MessageHarness::~MessageHarness() {
  Stop();
}

void MessageHarness::Start(const std::function<void()>& opened_hook,
                           const std::function<void()>& started_hook) {
  const Clock& clock = SystemClock();
  timers_ = std::make_unique<TimerQueue>();
  client_ = remoting::CreateClient({}, {});
  ForwardingGate::Options gate_options;
  gate_options.self = PeerId("n0");
  gate_ = std::make_unique<ForwardingGate>(gate_options, clock, *timers_, *client_);
  MessageStore::Listener listener;
  listener.on_arrival = [this](const TopicQueue& queue, QueueOffset max) {
    {
      const std::lock_guard lock(mutex_);
      if (!wired_) return;
    }
    long_polling_->OnArrival(queue, max);
    delays_->OnArrival(queue);
    changed_.notify_all();
  };
  listener.on_leader_change = [this](const dledger::LeaderInfo& info) {
    locks_->OnLeaderTerm(info.ready ? info.term : Term{});
    delays_->OnLeaderTerm(info.ready ? info.term : Term{});
    gate_->OnLeaderChange(info);
    const std::lock_guard lock(mutex_);
    ready_ = info.ready;
    changed_.notify_all();
  };
  const HostPort store_host = ParseHostPort(config_.FullClientAddress()).value();
  auto opened = MessageStore::Open(fs_, clock, StoreOptions(config_, store_host), listener);
  CHECK(opened.ok()) << opened.status();
  store_ = std::move(opened.value());
  reads_ = std::make_unique<LeaderReads>(store_->node());
  offsets_ = std::make_unique<OffsetService>(OffsetService::Options(), clock, *timers_,
                                             store_->appender(), store_->state(), *reads_);
  locks_ =
      std::make_unique<LockService>(clock, store_->appender(), store_->state(), *reads_, *offsets_);
  registration_ =
      std::make_unique<Registration>(config_, clock, *timers_, *client_, store_->state(), *reads_);
  disk_ = std::make_unique<DiskGuard>(fs_, config_.store_root, config_.disk_warning_percent,
                                      static_cast<std::uint64_t>(config_.disk_free_floor_bytes));
  disk_->Refresh();
  consumers_ =
      std::make_unique<ConsumerRegistry>(1000, [](const GroupName&, const std::vector<Member>&) {});
  producers_ = std::make_unique<ProducerRegistry>(1000);
  long_polling_ = std::make_unique<LongPolling>(*timers_);
  delays_ = std::make_unique<DelayService>(clock, *timers_, *store_);
  context_ = std::make_unique<BrokerContext>(BrokerContext{
      config_, clock, *store_, *timers_, *gate_, *consumers_, *producers_, *reads_, *offsets_,
      *locks_, *registration_, *disk_, counters_, long_polling_.get(), store_host, store_host});
  dispatcher_ = std::make_unique<Dispatcher>(clock, *gate_);
  send_ = std::make_unique<SendProcessor>(*context_);
  send_->Register(dispatcher_.get());
  pull_ = std::make_unique<PullProcessor>(*context_);
  pull_->Register(dispatcher_.get());
  send_back_ = std::make_unique<SendBackProcessor>(*context_);
  send_back_->Register(dispatcher_.get());
  query_ = std::make_unique<QueryProcessor>(*context_);
  query_->Register(dispatcher_.get());
  dlq_ = std::make_unique<DlqProcessor>(*context_);
  dlq_->Register(dispatcher_.get());
  plain_ = std::make_unique<PlainSends>(*context_, *dispatcher_);
  connection_ = std::make_shared<TestConnection>(1, *timers_);
  {
    const std::lock_guard lock(mutex_);
    wired_ = true;
  }
  if (opened_hook) opened_hook();
  const Status started = store_->Start();
  CHECK(started.ok()) << started;
  if (started_hook) started_hook();
  {
    std::unique_lock lock(mutex_);
    CHECK(changed_.wait_for(lock, kPatience, [this] { return ready_; })) << "no leader";
  }
  StateCommand missing = MissingSystemState(config_, store_->state());
  if (!missing.put_topics.empty()) Propose(std::move(missing));
}

void MessageHarness::Stop() {
  gate_->Stop();
  store_->Stop();
  delays_->Stop();
  timers_->Stop();
  client_->Stop();
  kept_.clear();
  dlq_.reset();
  query_.reset();
  send_back_.reset();
  pull_.reset();
  plain_.reset();
  send_.reset();
  dispatcher_.reset();
  context_.reset();
  delays_.reset();
  long_polling_.reset();
  registration_.reset();
  locks_.reset();
  offsets_.reset();
  reads_.reset();
  store_.reset();
  gate_.reset();
  client_.reset();
  const std::lock_guard lock(mutex_);
  ready_ = false;
  wired_ = false;
}

void MessageHarness::Restart(const std::function<void()>& opened,
                             const std::function<void()>& started) {
  Stop();
  Start(opened, started);
}

MessageHarness::Answer MessageHarness::Ask(remoting::Command command,
                                           remoting::ConnectionPtr connection) {
  if (Answer taken; plain_sends && connection == connection_ && TakenAsPlain(command, &taken)) {
    return taken;
  }
  auto answer = std::make_shared<std::promise<remoting::Command>>();
  Answer future = answer->get_future();
  Dispatch(
      std::move(command),
      [answer](remoting::Command response) { answer->set_value(std::move(response)); },
      std::move(connection));
  return future;
}

void MessageHarness::Dispatch(remoting::Command command, Reply reply,
                              remoting::ConnectionPtr connection) {
  auto request = std::make_shared<Request>();
  request->command = std::move(command);
  request->client_address = connection->remote_address();
  request->connection = std::move(connection);
  request->arrived = SystemClock().MonoNow();
  dispatcher_->Dispatch(std::move(request), std::move(reply));
}

bool MessageHarness::TakenAsPlain(const remoting::Command& request, Answer* answer) {
  static std::atomic<std::uint64_t> next_id{1000};
  const auto frame = remoting::EncodeFrame(request);
  CHECK(frame.ok()) << frame.status();
  const auto connection = std::make_shared<AnswerConnection>(
      next_id.fetch_add(1), connection_->remote_address(), *timers_);
  *answer = connection->answer();
  const bool taken = plain_->Take(connection, *frame);
  plain_->Flush();
  return taken;
}

remoting::Command MessageHarness::Call(remoting::Command request) {
  Answer answer = Ask(std::move(request));
  CHECK(answer.wait_for(kPatience) == std::future_status::ready) << "no answer";
  return answer.get();
}

remoting::SendMessageRequest MessageHarness::SendHeader(const std::string& topic) {
  remoting::SendMessageRequest header;
  header.producer_group = "pg";
  header.topic = topic;
  header.default_topic = "TBW102";
  header.default_topic_queue_nums = 4;
  header.born_timestamp_ms = 1700000000000;
  header.properties = "UNIQ_KEY\x01key\x02";
  return header;
}

remoting::Command MessageHarness::SendCommand(const remoting::SendMessageRequest& header,
                                              std::string body) const {
  remoting::Command command = remoting::Command::Request(header.batch ? remoting::kSendBatchMessage
                                                                      : remoting::kSendMessageV2);
  header.EncodeV2(&command.ext);
  command.body = std::move(body);
  return command;
}

remoting::PullMessageRequest MessageHarness::PullHeader(const std::string& topic,
                                                        std::int32_t queue, std::int64_t offset) {
  remoting::PullMessageRequest header;
  header.consumer_group = "g";
  header.topic = topic;
  header.queue_id = queue;
  header.queue_offset = offset;
  header.max_msg_nums = 32;
  header.sys_flag = 0x4;
  header.subscription = "*";
  return header;
}

remoting::Command MessageHarness::PullCommand(const remoting::PullMessageRequest& header) {
  remoting::Command command = remoting::Command::Request(remoting::kPullMessage);
  header.Encode(&command.ext);
  return command;
}

void MessageHarness::Propose(StateCommand command) {
  auto done = std::make_shared<std::promise<Status>>();
  Proposal proposal;
  proposal.command = std::move(command);
  proposal.deadline = SystemClock().MonoNow() + kPatience;
  proposal.done = [done](const AppendOutcome& outcome) { done->set_value(outcome.status); };
  store_->appender().Submit(std::move(proposal));
  const Status status = done->get_future().get();
  CHECK(status.ok()) << status;
}

void MessageHarness::CreateTopic(const std::string& name, std::int32_t queues, std::int32_t perm) {
  TopicConfig topic;
  topic.name = Topic(name);
  topic.read_queues = queues;
  topic.write_queues = queues;
  topic.perm = perm;
  StateCommand command;
  command.put_topics.push_back(std::move(topic));
  Propose(std::move(command));
}

void MessageHarness::CreateGroup(GroupConfig group) {
  StateCommand command;
  command.put_groups.push_back(std::move(group));
  Propose(std::move(command));
}

std::vector<MessageView> MessageHarness::Messages(const std::string& topic, std::int32_t queue) {
  const TopicQueue key{Topic(topic), QueueId(queue)};
  const QueueRange range = store_->RangeOf(key);
  std::vector<MessageView> messages;
  for (QueueOffset next = range.min; next < range.max;) {
    const auto units = store_->queues().Read(key, next, 1000);
    CHECK(units.ok() && !units->empty()) << units.status();
    for (const QueueUnit& unit : *units) {
      auto loaded = store_->ReadMessage(unit);
      CHECK(loaded.ok()) << loaded.status();
      kept_.push_back(std::move(loaded).value());
      messages.push_back(ParseMessage(kept_.back().record, true).value());
      CHECK_EQ(messages.back().queue_offset, next);
      ++next;
    }
  }
  return messages;
}

bool MessageHarness::Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::unique_lock lock(mutex_);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    changed_.wait_for(lock, std::chrono::milliseconds(10));
  }
  return true;
}

bool MessageHarness::WaitForMessages(const std::string& topic, std::int32_t queue,
                                     std::int64_t count) {
  const TopicQueue key{Topic(topic), QueueId(queue)};
  return Eventually([&] { return store_->RangeOf(key).max.value() >= count; });
}

}  // namespace triad::broker
