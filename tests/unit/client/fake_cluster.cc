#include "tests/unit/client/fake_cluster.h"

#include <algorithm>
#include <future>
#include <tuple>

#include "client/message_codec.h"
#include "common/byte_order.h"
#include "common/java_crc32.h"
#include "remoting/codes.h"

namespace triad::client {

using remoting::Command;

std::string EncodeRecord(const StoredMessage& m) {
  std::string out;
  const auto u32 = [&out](std::int64_t value) {
    AppendBe32(&out, static_cast<std::uint32_t>(value));
  };
  const auto u64 = [&out](std::int64_t value) {
    AppendBe64(&out, static_cast<std::uint64_t>(value));
  };
  u32(static_cast<std::int64_t>(91 + m.body.size() + m.topic.size() + m.properties.size()));
  u32(0xDAA320A7);
  u32(JavaCrc32(m.body) & 0x7FFFFFFF);
  u32(m.queue_id);
  u32(m.flag);
  u64(m.queue_offset);
  u64(m.physical_offset);
  u32(m.sys_flag);
  u64(1700000000000);
  u32(0x0A000009);  // 10.0.0.9
  u32(50000);
  u64(1700000000005);
  u32(0x0A000001);  // 10.0.0.1
  u32(10911);
  u32(m.reconsume_times);
  u64(0);
  u32(static_cast<std::int64_t>(m.body.size()));
  out += m.body;
  out.push_back(static_cast<char>(m.topic.size()));
  out += m.topic;
  AppendBe16(&out, static_cast<std::uint16_t>(m.properties.size()));
  out += m.properties;
  return out;
}

FakeCluster::FakeCluster(int peers) {
  remoting::ServerOptions options;
  options.ports = {0};
  options.threads = 1;
  remoting::ServerHandler handler;
  handler.on_request = [this](const remoting::ConnectionPtr& connection, Command request) {
    connection->Send(OnNameServer(request));
  };
  name_server_ = remoting::CreateServer(options, handler);
  CHECK(name_server_->Start().ok());
  peers_.resize(static_cast<std::size_t>(peers));
  ports_.resize(static_cast<std::size_t>(peers));
  for (int i = 0; i < peers; ++i) StartPeer(i);
  CreateTopic("TBW102", 8, 7);
}

FakeCluster::~FakeCluster() {
  for (auto& peer : peers_) {
    if (peer) peer->Stop(std::chrono::milliseconds(0));
  }
  name_server_->Stop(std::chrono::milliseconds(0));
}

ClientOptions FakeCluster::client_options(const std::string& instance_name) const {
  ClientOptions options;
  options.namesrv_address = "127.0.0.1:" + std::to_string(name_server_->ports().at(0));
  options.instance_name = instance_name;
  return options;
}

std::string FakeCluster::peer_address(int peer) const {
  return "127.0.0.1:" + std::to_string(ports_.at(static_cast<std::size_t>(peer)));
}

void FakeCluster::CreateTopic(const std::string& topic, int queues, int perm) {
  Note([&] {
    topics_[topic].queues.resize(static_cast<std::size_t>(queues));
    topics_[topic].perm = perm;
  });
}

void FakeCluster::SetLeader(int peer) {
  Note([&] { leader_ = peer; });
}

void FakeCluster::StopPeer(int peer) {
  peers_.at(static_cast<std::size_t>(peer))->Stop(std::chrono::milliseconds(0));
}

void FakeCluster::StartPeer(int peer) {
  const auto index = static_cast<std::size_t>(peer);
  remoting::ServerOptions options;
  options.ports = {ports_[index]};
  options.threads = 1;
  remoting::ServerHandler handler;
  handler.on_request = [this, peer](const remoting::ConnectionPtr& connection, Command request) {
    OnRequest(peer, connection, request);
  };
  handler.on_closed = [this](const remoting::ConnectionPtr& connection) {
    Note([&] { connections_.erase(connection->id()); });
  };
  peers_[index] = remoting::CreateServer(options, handler);
  const Status started = peers_[index]->Start();
  CHECK(started.ok()) << started;
  ports_[index] = peers_[index]->ports().at(0);
}

FakeCluster::HookGuard FakeCluster::SetHook(Hook hook) {
  Note([&] { hook_ = std::move(hook); });
  return HookGuard(this);
}

std::vector<StoredMessage> FakeCluster::Stored(const std::string& topic) {
  std::lock_guard hold(mutex_);
  std::vector<StoredMessage> all;
  for (const auto& queue : topics_[topic].queues) all.insert(all.end(), queue.begin(), queue.end());
  return all;
}

std::optional<std::int64_t> FakeCluster::Offset(const std::string& group, const std::string& topic,
                                                int queue) {
  std::lock_guard hold(mutex_);
  const auto found = offsets_.find({group, topic, queue});
  if (found == offsets_.end()) return std::nullopt;
  return found->second;
}

void FakeCluster::SetOffset(const std::string& group, const std::string& topic, int queue,
                            std::int64_t offset) {
  Note([&] { offsets_[{group, topic, queue}] = offset; });
}

int FakeCluster::Count(std::int32_t code) {
  std::lock_guard hold(mutex_);
  return counts_[code];
}

std::string FakeCluster::LockHolder(const std::string& topic, int queue) {
  std::lock_guard hold(mutex_);
  const auto found = locks_.find({topic, queue});
  return found == locks_.end() ? std::string() : found->second.first;
}

void FakeCluster::SetLockHolder(const std::string& topic, int queue, const std::string& client_id) {
  Note([&] {
    if (client_id.empty()) {
      locks_.erase({topic, queue});
    } else {
      locks_[{topic, queue}] = {client_id, next_token_++};
    }
  });
}

void FakeCluster::SetMembers(std::vector<std::string> ids) {
  Note([&] { fixed_members_ = std::move(ids); });
}

void FakeCluster::Notify(const std::string& group) {
  std::lock_guard hold(mutex_);
  for (const auto& [id, connection] : connections_) {
    Command notice = Command::Request(remoting::kNotifyConsumerIdsChanged);
    notice.ext.Set("consumerGroup", group);
    connection->Send(std::move(notice));
  }
}

void FakeCluster::ResetOffset(const std::string& group, const std::string& topic, int queue,
                              std::int64_t offset) {
  std::lock_guard hold(mutex_);
  remoting::ResetOffsetBody body;
  body.offset_table[remoting::MessageQueue{topic, kBroker, queue}] = offset;
  for (const auto& [id, connection] : connections_) {
    Command notice = Command::Request(remoting::kResetConsumerClientOffset);
    notice.ext.Set("group", group);
    notice.ext.Set("topic", topic);
    notice.body = body.Encode();
    connection->Send(std::move(notice));
  }
}

std::vector<Result<Command>> FakeCluster::AskClients(const Command& request) {
  std::vector<remoting::ConnectionPtr> connections;
  {
    std::lock_guard hold(mutex_);
    for (const auto& [id, connection] : connections_) connections.push_back(connection);
  }
  std::vector<Result<Command>> answers;
  for (const auto& connection : connections) {
    std::promise<Result<Command>> promise;
    connection->Call(request, kLong,
                     [&](Result<Command> answer) { promise.set_value(std::move(answer)); });
    answers.push_back(promise.get_future().get());
  }
  return answers;
}

bool FakeCluster::Wait(const std::function<bool()>& predicate) {
  std::unique_lock hold(mutex_);
  return changed_.wait_for(hold, kLong, predicate);
}

void FakeCluster::Note(const std::function<void()>& change) {
  std::lock_guard hold(mutex_);
  change();
  changed_.notify_all();
}

// ---- the name server ----------------------------------------------------------------------------

remoting::TopicRouteData FakeCluster::RouteLocked(const std::string& topic) {
  remoting::TopicRouteData route;
  remoting::BrokerData broker;
  broker.broker_name = kBroker;
  broker.cluster = "DefaultCluster";
  for (int i = 0; i < static_cast<int>(ports_.size()); ++i) {
    broker.broker_addrs[i == leader_ ? 0 : i + 1] = peer_address(i);
  }
  remoting::QueueData queues;
  queues.broker_name = kBroker;
  queues.read_queue_nums = static_cast<std::int32_t>(topics_[topic].queues.size());
  queues.write_queue_nums = queues.read_queue_nums;
  queues.perm = topics_[topic].perm;
  route.broker_datas = {broker};
  route.queue_datas = {queues};
  return route;
}

Command FakeCluster::OnNameServer(const Command& request) {
  std::lock_guard hold(mutex_);
  ++counts_[request.code];
  changed_.notify_all();
  if (request.code == remoting::kGetBrokerClusterInfo) {
    remoting::ClusterInfo info;
    info.broker_addr_table[kBroker] = RouteLocked("TBW102").broker_datas.front();
    info.cluster_addr_table["DefaultCluster"] = {kBroker};
    Command response = Command::ResponseTo(request, 0);
    response.body = info.Encode();
    return response;
  }
  if (request.code == remoting::kDeleteTopicInNamesrv) return Command::ResponseTo(request, 0);
  if (request.code != remoting::kGetRouteInfoByTopic) return Command::ResponseTo(request, 3, "no");
  const std::string topic = request.ext.StringOr("topic", "");
  if (!topics_.contains(topic)) return Command::ResponseTo(request, 17, "no route");
  Command response = Command::ResponseTo(request, 0);
  response.body = RouteLocked(topic).Encode();
  return response;
}

// ---- the broker ---------------------------------------------------------------------------------

void FakeCluster::OnRequest(int peer, const remoting::ConnectionPtr& connection,
                            const Command& request) {
  std::lock_guard hold(mutex_);
  ++counts_[request.code];
  connections_[connection->id()] = connection;
  changed_.notify_all();
  if (hook_) {
    Script script = Script::kGoOn;
    std::optional<Command> scripted = hook_(peer, request, &script);
    if (script == Script::kDrop) return;
    if (script == Script::kLoseAnswer) {
      Answer(connection, request);
      changed_.notify_all();
      connection->Close();
      return;
    }
    if (scripted) {
      if (!request.is_oneway()) connection->Send(std::move(*scripted));
      return;
    }
  }
  if (request.code == remoting::kPullMessage) {
    std::optional<Command> response = OnPull(request, true);
    if (response) {
      connection->Send(std::move(*response));
    } else {
      held_.push_back(Held{connection, request});
    }
    return;
  }
  Command response = Answer(connection, request);
  if (!request.is_oneway()) connection->Send(std::move(response));
  AnswerHeldLocked(false);
  changed_.notify_all();
}

Command FakeCluster::Answer(const remoting::ConnectionPtr& /*connection*/, const Command& request) {
  switch (request.code) {
    case remoting::kSendMessageV2:
    case remoting::kSendBatchMessage: return OnSend(request);
    case remoting::kConsumerSendMsgBack: return OnSendBack(request);
    case remoting::kHeartBeat: {
      const auto body = remoting::HeartbeatData::Decode(request.body);
      for (const auto& consumer : body->consumers) {
        members_[consumer.group_name].insert(body->client_id);
        Topic& retry = topics_["%RETRY%" + consumer.group_name];
        if (retry.queues.empty()) retry.queues.resize(1);
      }
      return Command::ResponseTo(request, 0);
    }
    case remoting::kUnregisterClient:
      members_[request.ext.StringOr("consumerGroup", "")].erase(
          request.ext.StringOr("clientID", ""));
      return Command::ResponseTo(request, 0);
    case remoting::kGetConsumerListByGroup: {
      remoting::ConsumerIdList list;
      const auto& members = members_[request.ext.StringOr("consumerGroup", "")];
      list.ids.assign(members.begin(), members.end());
      list.ids.insert(list.ids.end(), fixed_members_.begin(), fixed_members_.end());
      Command response = Command::ResponseTo(request, 0);
      response.body = list.Encode();
      return response;
    }
    case remoting::kLockBatchMq:
    case remoting::kUnlockBatchMq: return OnLock(request);
    case remoting::kQueryConsumerOffset:
    case remoting::kUpdateConsumerOffset:
    case remoting::kGetMaxOffset:
    case remoting::kGetMinOffset:
    case remoting::kSearchOffsetByTimestamp: return OnOffsets(request);
    default: return Command::ResponseTo(request, 3, "unknown to the fake");
  }
}

std::string FakeCluster::StoreLocked(StoredMessage message) {
  auto& queue = topics_[message.topic].queues.at(static_cast<std::size_t>(message.queue_id));
  message.queue_offset = static_cast<std::int64_t>(queue.size());
  message.physical_offset = next_physical_;
  next_physical_ += static_cast<std::int64_t>(EncodeRecord(message).size());
  const std::string id =
      OffsetMessageId(std::string("\x0A\0\0\x01", 4), 10911, message.physical_offset);
  queue.push_back(std::move(message));
  return id;
}

void FakeCluster::Put(const std::string& topic, int queue, const std::string& body,
                      const std::string& properties, std::int32_t sys_flag) {
  Note([&] {
    StoredMessage message;
    message.topic = topic;
    message.queue_id = queue;
    message.body = body;
    message.properties = properties;
    message.sys_flag = sys_flag;
    StoreLocked(std::move(message));
    AnswerHeldLocked(false);
  });
}

Command FakeCluster::OnSend(const Command& request) {
  const auto header = remoting::SendMessageRequest::Decode(request.code, request.ext);
  if (!header.ok()) return Command::ResponseTo(request, 1, header.status().ToString());
  Topic& topic = topics_[header->topic];
  if (topic.queues.empty()) {
    topic.queues.resize(static_cast<std::size_t>(header->default_topic_queue_nums));
  }
  StoredMessage message;
  message.topic = header->topic;
  const bool retry = header->topic.starts_with("%RETRY%");
  message.queue_id = retry ? 0 : header->queue_id;
  message.flag = header->flag;
  message.sys_flag = header->sys_flag;
  message.reconsume_times = header->reconsume_times;
  message.properties = header->properties;
  message.body = request.body;
  const std::int64_t first_offset =
      static_cast<std::int64_t>(topic.queues.at(static_cast<std::size_t>(message.queue_id)).size());
  std::string ids;
  if (header->batch) {
    for (std::size_t at = 0; at + 20 < request.body.size();) {
      const char* item = request.body.data() + at;
      const std::uint32_t total = LoadBe32(item);
      const std::uint32_t body_bytes = LoadBe32(item + 16);
      message.body.assign(item + 20, body_bytes);
      message.properties.assign(item + 22 + body_bytes, LoadBe16(item + 20 + body_bytes));
      ids += (ids.empty() ? "" : ",") + StoreLocked(message);
      at += total;
    }
  } else if (retry && header->reconsume_times > header->max_reconsume_times.value_or(16)) {
    message.topic = "%DLQ%" + header->topic.substr(7);
    topics_[message.topic].queues.resize(1);
    ids = StoreLocked(message);
  } else {
    ids = StoreLocked(message);
  }
  remoting::SendMessageResponse response_header;
  response_header.msg_id = ids;
  response_header.queue_id = message.queue_id;
  response_header.queue_offset = first_offset;
  Command response = Command::ResponseTo(request, 0);
  response_header.Encode(&response.ext);
  return response;
}

Command FakeCluster::OnSendBack(const Command& request) {
  const auto header = remoting::SendBackRequest::Decode(request.ext);
  if (!header.ok()) return Command::ResponseTo(request, 1, header.status().ToString());
  if (sent_back_.contains({header->group, header->offset})) return Command::ResponseTo(request, 0);
  for (auto& [name, topic] : topics_) {
    for (auto& queue : topic.queues) {
      for (const StoredMessage& stored : queue) {
        if (stored.physical_offset != header->offset) continue;
        sent_back_.insert({header->group, header->offset});
        StoredMessage again = stored;
        Properties properties = ParseProperties(stored.properties);
        properties.try_emplace("RETRY_TOPIC", stored.topic);
        again.properties = JoinProperties(properties);
        again.reconsume_times = stored.reconsume_times + 1;
        const bool dead = header->delay_level < 0 ||
                          stored.reconsume_times >= header->max_reconsume_times.value_or(16);
        again.topic = (dead ? "%DLQ%" : "%RETRY%") + header->group;
        again.queue_id = 0;
        Topic& target = topics_[again.topic];
        if (target.queues.empty()) target.queues.resize(1);
        StoreLocked(std::move(again));
        return Command::ResponseTo(request, 0);
      }
    }
  }
  return Command::ResponseTo(request, 1, "look message by offset failed");
}

std::optional<Command> FakeCluster::OnPull(const Command& request, bool may_hold) {
  const auto header = remoting::PullMessageRequest::Decode(request.ext);
  if (!header.ok()) return Command::ResponseTo(request, 1, header.status().ToString());
  const auto found = topics_.find(header->topic);
  if (found == topics_.end() ||
      header->queue_id >= static_cast<std::int32_t>(found->second.queues.size())) {
    return Command::ResponseTo(request, 17, "no such queue");
  }
  const auto& queue = found->second.queues[static_cast<std::size_t>(header->queue_id)];
  const auto max = static_cast<std::int64_t>(queue.size());
  if (header->queue_offset == max && may_hold && header->suspend_timeout_ms > 0) {
    return std::nullopt;
  }
  remoting::PullMessageResponse answer;
  answer.max_offset = max;
  answer.next_begin_offset = std::min(header->queue_offset, max);
  Command response = Command::ResponseTo(request, remoting::kPullNotFound);
  if (header->queue_offset > max) response.code = remoting::kPullOffsetMoved;
  for (std::int64_t at = header->queue_offset;
       at < max && at < header->queue_offset + header->max_msg_nums; ++at) {
    response.code = 0;
    response.body += EncodeRecord(queue[static_cast<std::size_t>(at)]);
    answer.next_begin_offset = at + 1;
  }
  answer.Encode(&response.ext);
  return response;
}

void FakeCluster::AnswerHeldLocked(bool all) {
  std::vector<Held> keep;
  for (Held& held : held_) {
    if (held.connection->closed()) continue;
    std::optional<Command> response = OnPull(held.request, !all);
    if (response) {
      held.connection->Send(std::move(*response));
    } else {
      keep.push_back(std::move(held));
    }
  }
  held_.swap(keep);
}

Command FakeCluster::OnOffsets(const Command& request) {
  const std::string group = request.ext.StringOr("consumerGroup", "");
  const std::string topic = request.ext.StringOr("topic", "");
  const int queue = *request.ext.GetInt32("queueId");
  Command response = Command::ResponseTo(request, 0);
  if (request.code == remoting::kUpdateConsumerOffset) {
    offsets_[{group, topic, queue}] = *request.ext.GetInt64("commitOffset");
    return response;
  }
  std::int64_t offset = 0;
  if (request.code == remoting::kQueryConsumerOffset) {
    const auto found = offsets_.find({group, topic, queue});
    if (found == offsets_.end()) return Command::ResponseTo(request, 22, "nothing stored");
    offset = found->second;
  } else if (request.code != remoting::kGetMinOffset) {
    offset =
        static_cast<std::int64_t>(topics_[topic].queues.at(static_cast<std::size_t>(queue)).size());
  }
  response.ext.Set("offset", offset);
  return response;
}

Command FakeCluster::OnLock(const Command& request) {
  const auto body = remoting::LockBatchRequest::Decode(request.body);
  remoting::LockBatchResponse granted;
  remoting::JsonWriter writer;
  writer.BeginObject().Key("fenceTokens").BeginObject();
  for (const remoting::MessageQueue& queue : body->queues) {
    const std::pair<std::string, int> key(queue.topic, queue.queue_id);
    const auto holder = locks_.find(key);
    const bool mine = holder != locks_.end() && holder->second.first == body->client_id;
    if (request.code == remoting::kUnlockBatchMq) {
      if (mine) locks_.erase(holder);
      continue;
    }
    if (holder != locks_.end() && !mine) continue;
    if (!mine) locks_[key] = {body->client_id, next_token_++};
    granted.locked.push_back(queue);
    writer.Key(queue.topic + "@" + std::to_string(queue.queue_id)).Int(locks_[key].second);
  }
  writer.EndObject().Key("lockOKMQSet").BeginArray();
  for (const remoting::MessageQueue& queue : granted.locked) queue.WriteTo(&writer);
  writer.EndArray().EndObject();
  Command response = Command::ResponseTo(request, 0);
  if (request.code == remoting::kLockBatchMq) response.body = writer.Take();
  return response;
}

}  // namespace triad::client
