#include "client/client_instance.h"

#include <glog/logging.h>
#include <unistd.h>

#include <condition_variable>
#include <utility>

#include "client/local_address.h"
#include "common/log_rate_limiter.h"
#include "remoting/bodies.h"
#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::client {

namespace {

constexpr std::chrono::milliseconds kTick{1000};
constexpr std::chrono::milliseconds kHeartbeatTimeout{3000};
constexpr std::chrono::milliseconds kFarewell{1000};
constexpr std::chrono::milliseconds kConnectTimeout{1500};  // then another peer is asked
constexpr std::chrono::milliseconds kRefreshAfterLoss[] = {
    std::chrono::milliseconds(0), std::chrono::milliseconds(500), std::chrono::milliseconds(2000)};
constexpr std::string_view kInnerProducerGroup = "CLIENT_INNER_PRODUCER";

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<ClientInstance>> instances;
};
Registry& TheRegistry() {
  static auto* registry = new Registry;  // lives for ever
  return *registry;
}

std::string NewClientId(const std::string& instance_name) {
  const auto nanos = SystemClock().MonoNow().time_since_epoch().count();
  std::string id = LocalAddress() + "@" + std::to_string(getpid()) + "#" + std::to_string(nanos);
  if (!instance_name.empty()) id += "#" + instance_name;
  return id;
}

}  // namespace

// Counts what was asked and not answered yet.
class ClientInstance::PendingAnswers {
 public:
  void Add() {
    std::lock_guard hold(mutex_);
    ++open_;
  }
  void Remove() {
    std::lock_guard hold(mutex_);
    --open_;
    changed_.notify_all();
  }
  void Wait(std::chrono::milliseconds limit) {
    std::unique_lock hold(mutex_);
    changed_.wait_for(hold, limit, [this] { return open_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int open_ = 0;
};

Result<std::shared_ptr<ClientInstance>> ClientInstance::Attach(const ClientOptions& options) {
  if (SplitAddresses(options.namesrv_address).empty()) {
    return Status::InvalidArgument(
        "no name server address: set namesrv_address to \"host:port;host:port\"");
  }
  std::shared_ptr<ClientInstance> instance = FindOrStart(options);
  const Status reachable = instance->CheckNameServers();
  if (reachable.ok()) return instance;
  instance->Detach();
  return reachable;
}

// Counts the caller as a user.
std::shared_ptr<ClientInstance> ClientInstance::FindOrStart(const ClientOptions& options) {
  const std::string key = options.namesrv_address + "\n" + options.instance_name;
  Registry& registry = TheRegistry();
  std::lock_guard hold(registry.mutex);
  std::shared_ptr<ClientInstance>& instance = registry.instances[key];
  if (instance == nullptr) {
    instance.reset(new ClientInstance(options, key));
    instance->Start();
  }
  ++instance->users_;
  return instance;
}

void ClientInstance::Detach() {
  Registry& registry = TheRegistry();
  {
    std::lock_guard hold(registry.mutex);
    CHECK_GT(users_, 0);
    if (--users_ > 0) return;
    registry.instances.erase(key_);
  }
  Stop();
}

ClientInstance::ClientInstance(const ClientOptions& options, std::string key)
    : options_(options), key_(std::move(key)), client_id_(NewClientId(options.instance_name)) {}

ClientInstance::~ClientInstance() {
  CHECK_EQ(users_, 0) << "Detach first";
}

void ClientInstance::Start() {
  scheduler_ = std::make_unique<Scheduler>();
  remoting::ClientOptions remoting_options;
  remoting_options.serialize_type = remoting::SerializeType::kRocketmq;
  remoting_options.connect_timeout = kConnectTimeout;
  remoting::ClientHandler handler;
  handler.on_request = [this](const remoting::ConnectionPtr& connection,
                              const remoting::Command& request) { OnRequest(connection, request); };
  handler.on_disconnect = [this](const std::string& address) { OnDisconnect(address); };
  remoting_ = remoting::CreateClient(remoting_options, std::move(handler));
  name_servers_ =
      std::make_unique<NameServers>(remoting_.get(), SplitAddresses(options_.namesrv_address));
  routes_ = std::make_unique<RouteCache>(
      name_servers_.get(), &book_,
      [this](const std::string&, bool new_address) { OnRouteChange(new_address); });
  routes_polled_at_ = SystemClock().MonoNow();
  scheduler_->After(kTick, [this] { Tick(); });
}

void ClientInstance::Stop() {
  scheduler_->Stop();
  remoting_->Stop();
}

Status ClientInstance::CheckNameServers() {
  const remoting::Command request = remoting::Command::Request(remoting::kGetBrokerClusterInfo);
  return name_servers_->CallSync(request, std::chrono::milliseconds(3000)).status();
}

// ---- groups -------------------------------------------------------------------------------------

Status ClientInstance::Join(const std::string& group, std::weak_ptr<GroupMember> member) {
  std::lock_guard hold(mutex_);
  if (!consumers_.emplace(group, std::move(member)).second) {
    return Status::AlreadyExists("this process has a consumer of group '" + group +
                                 "' already; give one of them another instance_name");
  }
  return Status::Ok();
}

void ClientInstance::Leave(const std::string& group) {
  {
    std::lock_guard hold(mutex_);
    if (consumers_.erase(group) == 0) return;
  }
  Unregister({}, group);
}

void ClientInstance::AddProducer(const std::string& group) {
  std::lock_guard hold(mutex_);
  ++producers_[group];
}

void ClientInstance::RemoveProducer(const std::string& group) {
  {
    std::lock_guard hold(mutex_);
    const auto found = producers_.find(group);
    if (found == producers_.end() || --found->second > 0) return;
    producers_.erase(found);
  }
  Unregister(group, {});
}

void ClientInstance::Unregister(const std::string& producer_group,
                                const std::string& consumer_group) {
  remoting::UnregisterClientRequest header;
  header.client_id = client_id_;
  header.producer_group = producer_group;
  header.consumer_group = consumer_group;
  remoting::Command request = remoting::Command::Request(remoting::kUnregisterClient);
  header.Encode(&request.ext);
  std::vector<std::string> addresses;
  {
    std::lock_guard hold(mutex_);
    for (const auto& [address, contact] : contacts_) {
      if (contact.confirmed) addresses.push_back(address);
    }
  }
  auto pending = std::make_shared<PendingAnswers>();
  for (const std::string& address : addresses) {
    pending->Add();
    remoting_->Call(address, request, kFarewell,
                    [pending](const Result<remoting::Command>&) { pending->Remove(); });
  }
  pending->Wait(kFarewell);
}

std::vector<std::shared_ptr<GroupMember>> ClientInstance::Members() {
  std::lock_guard hold(mutex_);
  std::vector<std::shared_ptr<GroupMember>> members;
  for (const auto& [group, weak] : consumers_) {
    if (auto member = weak.lock()) members.push_back(std::move(member));
  }
  return members;
}

// ---- heartbeats ---------------------------------------------------------------------------------

remoting::HeartbeatData ClientInstance::HeartbeatBody() {
  remoting::HeartbeatData body;
  body.client_id = client_id_;
  for (const auto& member : Members()) body.consumers.push_back(member->Describe());
  std::lock_guard hold(mutex_);
  for (const auto& [group, users] : producers_) body.producer_groups.push_back(group);
  if (!body.consumers.empty()) body.producer_groups.emplace_back(kInnerProducerGroup);
  return body;
}

std::vector<std::string> ClientInstance::HeartbeatTargets() {
  bool consumers = false;
  {
    std::lock_guard hold(mutex_);
    if (consumers_.empty() && producers_.empty()) return {};
    consumers = !consumers_.empty();
  }
  return consumers ? book_.All() : book_.Leaders();
}

void ClientInstance::Tick() {
  const TimePoint now = SystemClock().MonoNow();
  if (now - routes_polled_at_ >= options_.route_poll_interval) {
    routes_polled_at_ = now;
    routes_->RefreshAll();
  }
  SendHeartbeats(false, nullptr);
  scheduler_->After(kTick, [this] { Tick(); });
}

void ClientInstance::HeartbeatSoon() {
  SendHeartbeats(true, nullptr);
}

void ClientInstance::Heartbeat(std::chrono::milliseconds limit) {
  auto pending = std::make_shared<PendingAnswers>();
  SendHeartbeats(true, pending);
  pending->Wait(limit);
}

void ClientInstance::SendHeartbeats(bool all, const std::shared_ptr<PendingAnswers>& pending) {
  const std::vector<std::string> targets = HeartbeatTargets();
  const TimePoint now = SystemClock().MonoNow();
  std::vector<std::string> due;
  {
    std::lock_guard hold(mutex_);
    std::erase_if(contacts_, [this](const auto& item) { return !book_.Contains(item.first); });
    for (const std::string& address : targets) {
      Contact& contact = contacts_[address];
      if (contact.asking && !all) continue;
      if (!all && contact.confirmed && now - contact.last < options_.heartbeat_interval) continue;
      contact.asking = true;
      contact.last = now;
      due.push_back(address);
    }
  }
  if (due.empty()) return;
  const std::string body = HeartbeatBody().Encode();
  for (const std::string& address : due) SendHeartbeat(address, body, pending);
}

void ClientInstance::SendHeartbeat(const std::string& address, const std::string& body,
                                   const std::shared_ptr<PendingAnswers>& pending) {
  static LogRateLimiter lines(std::chrono::seconds(10));
  remoting::Command request = remoting::Command::Request(remoting::kHeartBeat);
  request.body = body;
  if (pending) pending->Add();
  remoting_->Call(address, std::move(request), kHeartbeatTimeout,
                  [this, address, pending](const Result<remoting::Command>& answer) {
                    const bool good = answer.ok() && answer->code == remoting::kSuccess;
                    {
                      std::lock_guard hold(mutex_);
                      const auto contact = contacts_.find(address);
                      if (contact != contacts_.end()) {
                        contact->second.asking = false;
                        contact->second.confirmed = good;
                      }
                    }
                    if (answer.ok() && !good) {
                      if (auto suppressed = lines.Allow(SystemClock().MonoNow())) {
                        LOG(WARNING)
                            << "broker " << address << " refuses our heartbeat: " << answer->remark
                            << SuppressedNote(*suppressed);
                      }
                    }
                    if (pending) pending->Remove();
                  });
}

// ---- what others tell us ------------------------------------------------------------------------

void ClientInstance::OnRouteChange(bool new_address) {
  if (new_address)
    scheduler_->After(std::chrono::milliseconds(0), [this] { SendHeartbeats(false, nullptr); });
  for (const auto& member : Members()) member->OnRouteChanged();
}

void ClientInstance::OnDisconnect(const std::string& address) {
  bool was_contact = false;
  {
    std::lock_guard hold(mutex_);
    const auto contact = contacts_.find(address);
    if (contact != contacts_.end()) {
      was_contact = contact->second.confirmed;
      contact->second.confirmed = false;  // the broker forgot us with the connection
    }
  }
  book_.NoteFailure(address, SystemClock().MonoNow());
  if (!was_contact) return;
  // The group may have a new leader, or will have one in a moment.
  for (const std::chrono::milliseconds delay : kRefreshAfterLoss) {
    scheduler_->After(delay, [this] { routes_->RefreshAll(); });
  }
  scheduler_->After(std::chrono::milliseconds(100), [this] { SendHeartbeats(false, nullptr); });
}

std::shared_ptr<GroupMember> ClientInstance::FindMember(const std::string& group) {
  std::lock_guard hold(mutex_);
  const auto found = consumers_.find(group);
  return found == consumers_.end() ? nullptr : found->second.lock();
}

bool ClientInstance::IsDirected(std::int32_t code) {
  return code == remoting::kGetConsumerRunningInfo || code == remoting::kConsumeMessageDirectly ||
         code == remoting::kGetConsumerStatusFromClient;
}

void ClientInstance::OnDirected(const remoting::ConnectionPtr& connection,
                                const remoting::Command& request) {
  const bool status = request.code == remoting::kGetConsumerStatusFromClient;
  const std::string group = request.ext.StringOr(status ? "group" : "consumerGroup", "");
  const std::shared_ptr<GroupMember> member = FindMember(group);
  if (member == nullptr) {
    connection->Send(remoting::Command::ResponseTo(
        request, remoting::kSystemError,
        "The Consumer Group <" + group + "> not exist in this consumer"));
    return;
  }
  member->OnDirected(
      request, [connection](remoting::Command answer) { connection->Send(std::move(answer)); });
}

void ClientInstance::OnRequest(const remoting::ConnectionPtr& connection,
                               const remoting::Command& request) {
  if (IsDirected(request.code) && !request.is_oneway()) {
    OnDirected(connection, request);
    return;
  }
  const bool reset = request.code == remoting::kResetConsumerClientOffset;
  if (request.code != remoting::kNotifyConsumerIdsChanged && !reset) {
    if (request.is_oneway()) return;
    connection->Send(remoting::Command::ResponseTo(
        request, remoting::kRequestCodeNotSupported,
        "this client does not know request code " + std::to_string(request.code)));
    return;
  }
  const std::string group = request.ext.StringOr(reset ? "group" : "consumerGroup", "");
  const std::shared_ptr<GroupMember> member = FindMember(group);
  if (member != nullptr && reset) {
    std::map<MessageQueue, std::int64_t> offsets;
    const auto body = remoting::ResetOffsetBody::Decode(request.body);
    if (body.ok()) {
      for (const auto& [queue, offset] : body->offset_table) {
        offsets[MessageQueue{queue.topic, queue.broker_name, queue.queue_id}] = offset;
      }
    }
    member->OnOffsetReset(std::move(offsets));
  } else if (member != nullptr) {
    member->OnGroupChanged();
  }
  if (!request.is_oneway()) {
    connection->Send(remoting::Command::ResponseTo(request, remoting::kSuccess));
  }
}

}  // namespace triad::client
