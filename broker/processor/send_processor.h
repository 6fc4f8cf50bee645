// SendProcessor: SEND_MESSAGE (10), SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320), on the leader.
//
// Checks in the order of wire.md §4.4, then one proposal per request: a batch is atomic. Answered
// when committed and applied. A topic that must be created first is created by one entry, however
// many ask at once, unless another group has it with order=strict. Thread: safe on every thread;
// never blocks. Source: wire.md §4.4-§4.9, §8.3, §8.4, §9.2.

#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "broker/processor/send_checks.h"
#include "broker/service/state_creator.h"
#include "remoting/headers.h"

namespace triad::broker {

class SendProcessor {
 public:
  // `context` outlives the processor.
  explicit SendProcessor(BrokerContext& context);
  void Register(Dispatcher* dispatcher);

 private:
  // One request on its way through the checks.
  struct Send {
    RequestPtr request;
    Reply reply;
    remoting::SendMessageRequest header;
    bool to_dead_letters = false;
    bool is_retry_copy = false;  // a consumer's own send to its retry topic
    int creations = 0;           // topics created for it so far
    std::string unique_key;      // of its first message, once it has drafts
    std::int64_t body_bytes = 0;
  };
  using SendPtr = std::shared_ptr<Send>;

  void OnSend(RequestPtr request, Reply reply);
  void Continue(const SendPtr& send);
  Refusal CheckBroker(const Send& send) const;
  // What has to be created before the message can be stored; empty: nothing. *refusal: it may not.
  StateCommand MissingTopic(const Send& send, Refusal* refusal) const;
  Refusal CheckQueue(const TopicConfig& topic, Send* send) const;
  // wire.md §8.3: a retry goes to the dead letters when it was retried too often, or when its group
  // is an orderly one.
  Refusal RouteRetry(Send* send) const;
  void CreateFirst(const SendPtr& send, StateCommand command);
  // Whether another group may be against the creation; null: nobody has to be asked.
  StateCreator::Question AskBefore(const StateCommand& creation) const;
  void Submit(const SendPtr& send, const TopicConfig& topic);
  std::vector<MessageDraft> Drafts(const TopicConfig& topic, Send* send, Refusal* refusal) const;
  std::vector<MessageDraft> BatchDrafts(const TopicConfig& topic, const HostPort& born_host,
                                        Send* send, Refusal* refusal) const;
  void Answer(const Send& send, const AppendOutcome& outcome) const;
  void NoteRetryCopy(const Send& send) const;
  std::string UniqueKey() const;

  BrokerContext& context_;
  mutable std::atomic<std::uint32_t> counter_{0};  // of unique keys and random queues
  StateCreator creator_;
};

// The number of the group's delay levels.
std::int32_t DelayLevelCount(const ReplicatedState& state);

}  // namespace triad::broker
