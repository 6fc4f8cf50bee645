// SendBackProcessor: CONSUMER_SEND_MSG_BACK (36): a message that a consumer failed on comes again
// later, or goes to the dead letters; on the leader.
//
// Idempotent: the new message and the mark (group, physical offset) are one entry; whoever asks
// again while it is on its way waits for it, later within 10 minutes of log time it is answered at
// once. Bounds: the in-flight table holds at most one item per request in flight. Thread: safe on
// every thread; the message is read on a reader thread. Source: wire.md §8.2.

#pragma once

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "broker/processor/send_checks.h"
#include "broker/service/state_creator.h"
#include "remoting/headers.h"

namespace triad::broker {

class SendBackProcessor {
 public:
  // `context` outlives the processor.
  explicit SendBackProcessor(BrokerContext& context);
  void Register(Dispatcher* dispatcher);

 private:
  using Key = std::pair<GroupName, PhysicalOffset>;
  struct SendBack {
    RequestPtr request;
    remoting::SendBackRequest header;
    GroupConfig group;
    Key key;
    Term term;  // this peer leads in it; what is decided here may not enter the log in another one
  };
  // A message on its way back, and who waits for that.
  struct InFlight {
    std::vector<std::pair<RequestPtr, Reply>> waiters;
  };

  void OnSendBack(const RequestPtr& request, const Reply& reply);
  Refusal CheckGroup(const remoting::SendBackRequest& header, GroupConfig* group) const;
  // Joins whoever sends the same message back right now. False: this one is the first.
  bool JoinInFlight(const Key& key, const RequestPtr& request, const Reply& reply);
  void EnsureRetryTopic(const SendBack& back);
  void Read(const SendBack& back);
  void Load(const SendBack& back);
  void Store(const SendBack& back, const MessageView& message);
  // Where the message goes and what it carries. `command` gets the dead-letter topic when it has to
  // be created.
  Result<MessageDraft> Redirect(const SendBack& back, const MessageView& message,
                                StateCommand* command) const;
  // Answers everybody who waits for this message.
  void Finish(const Key& key, std::int32_t code, const std::string& remark);
  void Finish(const Key& key, const Status& status);
  // The outcome is unknown at the deadline: the new message may still be committed. The key stays
  // in flight until its mark is there or the term is over, so that nobody stores it a second time.
  void OnUnknown(const Key& key, Term term, const Status& status);
  void AskAgain(const Key& key, Term term);
  // `may_pass`: the failure is not for good; see AnswerFailed.
  void AnswerAll(const Key& key, bool keep, std::int32_t code, const std::string& remark,
                 bool may_pass);

  BrokerContext& context_;
  StateCreator creator_;
  std::mutex mutex_;
  std::map<Key, InFlight> in_flight_;
};

}  // namespace triad::broker
