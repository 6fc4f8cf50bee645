// DlqProcessor: dead letters for administrators: what is settled (60020), replay one (60021), drop
// one (60022); on the leader. Our own codes, for `mqadmin dlq`.
//
// Exact: the copy and the mark that its dead letter is settled are ONE entry, so a dead letter is
// replayed once however often it is asked for, and whoever dies in between. Bounds: one proposal
// per dead letter in flight; kDlqMarksMax marks per queue out of order. Thread: safe on every
// thread; dead letters are read on a reader thread.

#pragma once

#include <mutex>
#include <set>
#include <string>
#include <tuple>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"

namespace triad::broker {

inline constexpr std::size_t kDlqMarksMax = 10000;

class DlqProcessor {
 public:
  // `context` outlives the processor.
  explicit DlqProcessor(BrokerContext& context) : context_(context) {}
  void Register(Dispatcher* dispatcher);

 private:
  using Key = std::tuple<GroupName, QueueId, QueueOffset>;
  struct Settle {
    RequestPtr request;
    Reply reply;
    GroupName group;
    QueueId queue_id;  // of %DLQ%group
    QueueOffset offset;
    std::string to;  // target of a replay; empty: the group's retry topic
    bool replay = false;
    Term term;  // this peer leads in it
    Key key() const { return {group, queue_id, offset}; }
    TopicQueue queue() const;
  };

  void OnProgress(const RequestPtr& request, const Reply& reply);
  void OnSettle(const RequestPtr& request, const Reply& reply, bool replay);
  // Empty when it may go on; else the answer was sent.
  bool Begin(const Settle& settle);
  void Read(const Settle& settle);
  Result<MessageDraft> Copy(const Settle& settle, const MessageView& dead) const;
  void Submit(const Settle& settle, Proposal proposal);
  void Finish(const Settle& settle, const remoting::Command& response);
  void Finish(const Settle& settle, const Status& status);

  BrokerContext& context_;
  std::mutex mutex_;
  std::set<Key> in_flight_;
};

}  // namespace triad::broker
