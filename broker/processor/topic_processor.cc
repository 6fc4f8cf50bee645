#include "broker/processor/topic_processor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "broker/processor/confirmed.h"
#include "broker/processor/method_table.h"
#include "broker/processor/names.h"
#include "broker/processor/response.h"
#include "broker/service/config_bodies.h"
#include "broker/service/store_times.h"
#include "broker/service/strict_topics.h"
#include "broker/state/replicated_state.h"
#include "remoting/bodies.h"

namespace triad::broker {
namespace {

constexpr std::int32_t kQueuesMax = 65536;
constexpr std::size_t kUpdatesMax = 256;

constexpr std::array<std::string_view, 7> kAttributes = {
    "queue.type",    "cleanup.policy",      "message.type", "reserve.time",
    kDedupAttribute, kDedupWindowAttribute, kOrderAttribute};

bool Strict(const TopicConfig& topic) {
  return IsStrict(topic.attributes);
}

// Whether the change may spread a key's messages over two groups: the queues of this one become
// part of the topic, or its order becomes strict.
bool ConcernsOtherGroups(const std::optional<TopicConfig>& known, const TopicConfig& next) {
  if (!TakesSends(next)) return false;
  return !known || !TakesSends(*known) || (Strict(next) && !Strict(*known));
}

// The original's attributes, what each may be, and whether it stays as it was made. Source:
// admin.md §2.5.
struct OriginalAttribute {
  std::string_view key;
  std::vector<std::string_view> values;  // none: a number from -1 on
  bool is_fixed = false;
};
const std::array<OriginalAttribute, 4> kOriginalAttributes = {
    {{"queue.type", {"BatchCQ", "SimpleCQ"}, true},
     {"cleanup.policy", {"DELETE", "COMPACTION"}, true},
     {"message.type", {"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"}},
     {"reserve.time", {}}}};

// `value`: empty pointer where the attribute is taken away.
Status CheckOriginalAttribute(const std::string& key, const std::string* value, bool is_new_topic,
                              const std::map<std::string, std::string>& current) {
  const auto rule = std::ranges::find(kOriginalAttributes, key, &OriginalAttribute::key);
  if (rule == kOriginalAttributes.end()) return Status::Ok();
  const auto known = current.find(key);
  const bool is_same = value != nullptr && known != current.end() && known->second == *value;
  if (rule->is_fixed && !is_new_topic && !is_same) {
    return Status::Internal("attempt to update an unchangeable attribute. key: " + key);
  }
  if (value == nullptr) return Status::Ok();
  if (rule->values.empty()) {
    std::int64_t number = 0;
    const char* end = value->data() + value->size();
    const auto read = std::from_chars(value->data(), end, number);
    if (read.ec == std::errc() && read.ptr == end && number >= -1) return Status::Ok();
    return Status::Internal("attribute " + key + " is '" + *value +
                            "', expected -1 or a whole number from 0 on");
  }
  if (std::ranges::find(rule->values, *value) == rule->values.end()) {
    std::string set;
    for (const std::string_view one : rule->values) {
      set += (set.empty() ? "" : ", ") + std::string(one);
    }
    return Status::Internal("attribute " + key + " is '" + *value + "': value is not in set: [" +
                            set + "]");
  }
  if (*value == "MIXED") return Status::InvalidArgument("MIXED message type is not supported.");
  return Status::Ok();
}

}  // namespace

std::map<std::string, std::string> ParseAttributeChanges(const std::string& text) {
  std::map<std::string, std::string> changes;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    const std::string item(TrimBlanks(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
    if (item.empty()) continue;
    const auto equals = item.find('=');
    changes[item.substr(0, equals)] = equals == std::string::npos ? "" : item.substr(equals + 1);
  }
  return changes;
}

Status ApplyAttributeChanges(const std::map<std::string, std::string>& changes, bool is_new_topic,
                             std::map<std::string, std::string>* current) {
  for (const auto& [signed_key, value] : changes) {
    const char sign = signed_key.empty() ? ' ' : signed_key.front();
    if (sign != '+' && sign != '-') {
      return Status::Internal("kv string is invalid: " + signed_key +
                              " begins with neither + nor -");
    }
    const std::string key = signed_key.substr(1);
    if (std::find(kAttributes.begin(), kAttributes.end(), key) == kAttributes.end()) {
      return Status::Internal("unsupported key: " + key);
    }
    if (sign == '-') {
      if (is_new_topic) {
        return Status::Internal("only add attribute is supported while creating topic. key: " +
                                key);
      }
      TRIAD_RETURN_IF_ERROR(CheckOriginalAttribute(key, nullptr, is_new_topic, *current));
      current->erase(key);
    } else {
      TRIAD_RETURN_IF_ERROR(CheckOriginalAttribute(key, &value, is_new_topic, *current));
      if (const Status valid = CheckDedupAttribute(key, value); !valid.ok()) {
        return Status::Internal(std::string(valid.message()));
      }
      if (key == kOrderAttribute && value != kStrict && value != "none") {
        return Status::Internal("attribute order is '" + value + "', expected strict or none");
      }
      (*current)[key] = value;
    }
  }
  return Status::Ok();
}

void TopicProcessor::Register(Dispatcher* dispatcher) {
  const MethodTable methods(dispatcher, this, kBudget);
  methods.ForLeaderOnce(remoting::kUpdateAndCreateTopic, &TopicProcessor::OnUpdate);
  methods.ForLeaderOnce(remoting::kUpdateAndCreateTopicList, &TopicProcessor::OnUpdateList);
  methods.ForLeaderOnce(remoting::kDeleteTopicInBroker, &TopicProcessor::OnDelete);
  methods.ForLeader(remoting::kGetTopicStatsInfo, &TopicProcessor::OnStats);
  methods.ForAll(remoting::kGetAllTopicConfig, &TopicProcessor::OnGetAll);
  methods.ForLeader(remoting::kGetTopicConfig, &TopicProcessor::OnGet);
  methods.ForAll(remoting::kGetSystemTopicListFromBroker, &TopicProcessor::OnSystemList);
}

Status TopicProcessor::CheckChange(const TopicConfig& topic) const {
  const std::string& name = topic.name.value();
  TRIAD_RETURN_IF_ERROR(CheckTopicName(name, context_.config.max_topic_bytes));
  if (IsSystemTopic(context_.config, name)) {
    return Status::InvalidArgument("The topic[" + name + "] is conflict with system topic.");
  }
  const auto in_range = [](std::int32_t queues) { return queues >= 0 && queues <= kQueuesMax; };
  if (!in_range(topic.read_queues) || !in_range(topic.write_queues)) {
    return Status::InvalidArgument("readQueueNums and writeQueueNums must be 0 to " +
                                   std::to_string(kQueuesMax));
  }
  if (topic.perm < 0 || topic.perm > 15) {
    return Status::InvalidArgument("perm must be 0 to 15: 4 = read, 2 = write");
  }
  return Status::Ok();
}

Status CheckStrictOrder(const std::optional<TopicConfig>& known, const TopicConfig& next) {
  if (!known || !Strict(*known) || !Strict(next)) return Status::Ok();
  if (known->write_queues == next.write_queues && known->read_queues == next.read_queues) {
    return Status::Ok();
  }
  const std::string name = next.name.value();
  return Status::InvalidArgument(
      "topic[" + name + "] has the attribute order=strict and " +
      std::to_string(known->write_queues) + " write and " + std::to_string(known->read_queues) +
      " read queues; another number would send a key to another queue while its earlier messages "
      "still wait. To change it: stop the producers, wait until consumerProgress shows no "
      "difference for any group of the topic, repeat the command with the attribute '-order', "
      "and set '+order=strict' again");
}

void TopicProcessor::Enqueue(const RequestPtr& request, const Reply& reply,
                             std::function<void()> update) {
  std::function<void()> in_time = [this, request, reply, update = std::move(update)] {
    if (context_.clock.MonoNow() < request->arrived + kBudget) {
      update();
    } else {
      Ending(reply)(
          ResponseOf(request->command,
                     Status::Unavailable("other changes of topics took too long; try again")));
    }
  };
  bool has_room = false;
  {
    const std::lock_guard hold(mutex_);
    has_room = updates_.size() < kUpdatesMax;
    if (has_room) {
      updates_.push_back(std::move(in_time));
      if (updates_.size() > 1) return;
      is_running_ = true;
    }
  }
  if (has_room) {
    RunUpdates();
  } else {
    reply(ResponseOf(request->command, Status::Busy("too many changes of topics are waiting")));
  }
}

// One after another, in this thread while each ends within its call.
void TopicProcessor::RunUpdates() {
  while (true) {
    std::function<void()> first;
    {
      const std::lock_guard hold(mutex_);
      first = updates_.front();
    }
    first();
    const std::lock_guard hold(mutex_);
    is_running_ = has_ended_ && updates_.size() > 1;
    if (!std::exchange(has_ended_, false)) return;  // it goes on elsewhere
    updates_.pop_front();
    if (!is_running_) return;
  }
}

void TopicProcessor::EndUpdate() {
  {
    const std::lock_guard hold(mutex_);
    if (is_running_) {
      has_ended_ = true;
      return;
    }
    updates_.pop_front();
    if (updates_.empty()) return;
    is_running_ = true;
  }
  RunUpdates();
}

Reply TopicProcessor::Ending(const Reply& reply) {
  return [this, reply](remoting::Command answer) {
    EndUpdate();
    reply(std::move(answer));
  };
}

// What the topic becomes: its attributes are those it has now, changed.
Result<TopicConfig> TopicProcessor::Changed(const Wanted& wanted) const {
  TopicConfig topic = wanted.topic;
  const auto known = context_.store.state().FindTopic(topic.name);
  topic.attributes = known ? known->attributes : std::map<std::string, std::string>();
  TRIAD_RETURN_IF_ERROR(CheckChange(topic));
  TRIAD_RETURN_IF_ERROR(ApplyAttributeChanges(wanted.attributes, !known, &topic.attributes));
  TRIAD_RETURN_IF_ERROR(CheckStrictOrder(known, topic));
  return topic;
}

void TopicProcessor::OnUpdate(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::CreateTopicRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  const std::string& filter = header->topic_filter_type;
  if (!filter.empty() && filter != "SINGLE_TAG" && filter != "MULTI_TAG") {
    reply(BadRequest(request->command,
                     Status::InvalidArgument("topicFilterType = [" + filter + "] value invalid")));
    return;
  }
  Wanted wanted;
  wanted.topic.name = Topic(header->topic);
  wanted.topic.read_queues = header->read_queue_nums;
  wanted.topic.write_queues = header->write_queue_nums;
  wanted.topic.perm = header->perm;
  wanted.topic.sys_flag = header->topic_sys_flag;
  wanted.topic.order = header->order;
  wanted.topic.multi_tag = header->topic_filter_type == "MULTI_TAG";
  wanted.attributes = ParseAttributeChanges(header->attributes);
  Enqueue(request, reply,
          [this, request, reply, wanted] { Update(request, reply, {wanted}, false); });
}

void TopicProcessor::OnUpdateList(const RequestPtr& request, const Reply& reply) {
  auto body = remoting::TopicConfigList::Decode(request->command.body);
  if (!body.ok()) {
    reply(BadRequest(request->command, body.status()));
    return;
  }
  std::vector<Wanted> wanted;
  for (const remoting::TopicConfigBody& one : body->topics) {
    wanted.push_back({FromBody(one), one.attributes});
  }
  Enqueue(request, reply, [this, request, reply, wanted = std::move(wanted)] {
    Update(request, reply, wanted, false);
  });
}

Result<TopicProcessor::Changes> TopicProcessor::ChangesOf(const std::vector<Wanted>& wanted) const {
  Changes changes;
  for (const Wanted& one : wanted) {
    auto changed = Changed(one);
    if (!changed.ok()) return changed.status();
    const auto known = context_.store.state().FindTopic(changed->name);
    if (known) changed->created_position = known->created_position;
    if (known && *known == *changed) continue;
    if (ConcernsOtherGroups(known, *changed)) changes.to_ask.push_back(*changed);
    changes.topics.push_back(std::move(changed).value());
  }
  return changes;
}

void TopicProcessor::Update(const RequestPtr& request, const Reply& reply,
                            const std::vector<Wanted>& wanted, bool confirmed) {
  const Reply ended = Ending(reply);
  const auto changes = ChangesOf(wanted);
  if (!changes.ok()) {
    ended(ResponseOf(request->command, changes.status()));
  } else if (!changes->topics.empty()) {
    AskOtherGroups(changes->to_ask,
                   [this, request, reply, wanted, changes = *changes](const Status& allowed) {
                     if (allowed.ok()) {
                       PutUnlessOvertaken(request, reply, wanted, changes);
                     } else {
                       Ending(reply)(ResponseOf(request->command, allowed));
                     }
                   });
  } else if (confirmed) {
    ended(Success(request->command));
  } else {
    // Nothing to change, if this state is the newest: another leader may have changed it.
    WhenConfirmed(context_, request, ended,
                  [this, request, reply, wanted] { Update(request, reply, wanted, true); });
  }
}

void TopicProcessor::AskOtherGroups(const std::vector<TopicConfig>& topics,
                                    std::function<void(Status)> done) {
  if (topics.empty() || context_.other_groups == nullptr) {
    done(Status::Ok());
  } else {
    CheckOneGroupOfEach(*context_.other_groups, topics, std::move(done));
  }
}

// While others were asked, a send may have made the topic, or another leader deleted it.
void TopicProcessor::PutUnlessOvertaken(const RequestPtr& request, const Reply& reply,
                                        const std::vector<Wanted>& wanted,
                                        const Changes& asked_about) {
  const auto changes = ChangesOf(wanted);
  if (changes.ok() && *changes == asked_about) {
    Proposal proposal;
    proposal.command.put_topics = changes->topics;
    Put(request, reply, std::move(proposal));
  } else if (context_.clock.MonoNow() < request->arrived + kBudget) {
    Update(request, reply, wanted, false);
  } else {
    Ending(reply)(ResponseOf(request->command,
                             Status::Unavailable("the topic is being changed by others; try "
                                                 "again")));
  }
}

void TopicProcessor::Put(const RequestPtr& request, const Reply& reply, Proposal proposal) {
  proposal.deadline = request->arrived + kBudget;
  proposal.done = [this, request, reply](const AppendOutcome& outcome) {
    EndUpdate();
    if (!outcome.status.ok()) {
      reply(ResponseOf(request->command, outcome.status));
      return;
    }
    // Tools ask the name server for the route at once.
    context_.registration.RegisterNow(kRegisterBudget,
                                      [request, reply] { reply(Success(request->command)); });
  };
  context_.store.appender().Submit(std::move(proposal));
}

void TopicProcessor::OnDelete(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::TopicRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  Status valid;
  if (header->topic.empty()) {
    valid = Status::InvalidArgument("The specified topic is blank.");
  }
  if (valid.ok() && IsSystemTopic(context_.config, header->topic)) {
    valid =
        Status::InvalidArgument("The topic[" + header->topic + "] is conflict with system topic.");
  }
  if (!valid.ok()) {
    reply(ResponseOf(request->command, valid));
    return;
  }
  Enqueue(request, reply, [this, request, ended = Ending(reply), topic = Topic(header->topic)] {
    if (context_.store.state().FindTopic(topic)) {
      Delete(request, ended, topic);
      return;
    }
    WhenConfirmed(context_, request, ended, [this, request, ended, topic] {
      if (context_.store.state().FindTopic(topic)) {
        Delete(request, ended, topic);
      } else {
        ended(Success(request->command));
      }
    });
  });
}

void TopicProcessor::Delete(const RequestPtr& request, const Reply& reply, const Topic& topic) {
  Proposal proposal;
  proposal.command.delete_topics.push_back(topic);
  proposal.deadline = request->arrived + kBudget;
  proposal.done = [this, request, reply, topic](const AppendOutcome& outcome) {
    if (outcome.status.ok()) context_.pulled->ForgetTopic(topic);
    reply(ResponseOf(request->command, outcome.status));
  };
  context_.store.appender().Submit(std::move(proposal));
}

void TopicProcessor::OnGetAll(const RequestPtr& request, const Reply& reply) {
  const auto term = context_.store.node().leader_info().term;
  reply(SuccessWith(request->command,
                    TopicTable(context_.store.state(), static_cast<std::int64_t>(term.value()),
                               context_.config.broker_permission)
                        .Encode()));
}

void TopicProcessor::OnGet(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::TopicRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  WhenConfirmed(context_, request, reply, [this, request, reply, name = header->topic] {
    const auto topic = context_.store.state().FindTopic(Topic(name));
    if (topic) {
      reply(SuccessWith(request->command, ToBody(*topic).Encode()));
    } else {
      reply(remoting::Command::ResponseTo(request->command, remoting::kTopicNotExist,
                                          "No topic in this broker. topic: " + name));
    }
  });
}

void TopicProcessor::OnSystemList(const RequestPtr& request, const Reply& reply) {
  remoting::TopicList list;
  list.topic_list = SystemTopics(context_.config);
  for (const TopicConfig& topic : context_.store.state().Topics()) {
    const std::string& name = topic.name.value();
    const bool listed =
        std::find(list.topic_list.begin(), list.topic_list.end(), name) != list.topic_list.end();
    if (!listed && IsSystemTopic(context_.config, name)) list.topic_list.push_back(name);
  }
  reply(SuccessWith(request->command, list.Encode()));
}

void TopicProcessor::OnStats(const RequestPtr& request, const Reply& reply) {
  auto header = remoting::TopicRequest::Decode(request->command.ext);
  if (!header.ok()) {
    reply(BadRequest(request->command, header.status()));
    return;
  }
  const auto topic = context_.store.state().FindTopic(Topic(header->topic));
  if (!topic) {
    reply(remoting::Command::ResponseTo(request->command, remoting::kTopicNotExist,
                                        "topic[" + header->topic + "] not exist"));
    return;
  }
  // The time of each queue's last message may have to be read from a file.
  const bool posted = context_.store.node().PostReader(
      [this, request, reply, topic = *topic] { ReadStats(request, reply, topic); });
  if (!posted) reply(ResponseOf(request->command, Status::Busy("too many reads wait")));
}

void TopicProcessor::ReadStats(const RequestPtr& request, const Reply& reply,
                               const TopicConfig& topic) {
  remoting::TopicStatsTable table;
  const std::int32_t queues = std::max(topic.read_queues, topic.write_queues);
  for (std::int32_t id = 0; id < queues; ++id) {
    const TopicQueue queue{topic.name, QueueId(id)};
    const QueueRange range = context_.store.RangeOf(queue);
    remoting::MessageQueue key;
    key.topic = topic.name.value();
    key.broker_name = context_.config.broker_name;
    key.queue_id = id;
    remoting::TopicStatsTable::Item& item = table.offset_table[key];
    item.min_offset = range.min.value();
    item.max_offset = range.max.value();
    if (range.max > range.min) {
      item.last_update_timestamp_ms = StoreTimeOf(context_.store, queue, range.max - 1);
    }
  }
  table.topic_put_tps =
      context_.stats->MinuteRate(kTopicPutNums, topic.name.value(), context_.clock.MonoNow());
  reply(SuccessWith(request->command, table.Encode()));
}

}  // namespace triad::broker
