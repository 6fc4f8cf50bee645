// PullProcessor: PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361), on every peer.
//
// Only committed and applied messages are ever handed out, so any peer may serve what it has. What
// moves a consumer's offset (21) is said by a leader that has just confirmed that it is one; a
// follower holds such a pull and then asks the leader. Memory is read on the caller's thread,
// files on reader threads. Nothing new: parked in LongPolling. Thread: safe on every thread; never
// blocks. Source: wire.md §5, §11.

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "broker/processor/send_checks.h"
#include "broker/service/long_polling.h"
#include "broker/service/tag_filter.h"
#include "remoting/headers.h"

namespace triad::broker {

class PullProcessor {
 public:
  // `context` outlives the processor; its long_polling is set.
  explicit PullProcessor(BrokerContext& context) : context_(context) {}
  void Register(Dispatcher* dispatcher);

 private:
  // One pull until it is answered.
  struct Pull {
    RequestPtr request;
    Reply reply;
    remoting::PullMessageRequest header;
    TopicQueue queue;
    TagFilter filter;
    QueueOffset from;      // nothing in front of it passes the filter
    TimePoint hold_until;  // nothing new is not said before
    bool held = false;     // was parked at least once
    TimePoint read_at;     // began to be read
    TimePoint patience;    // while its place in the queue is rebuilt; not set: did not have to wait
  };
  using PullPtr = std::shared_ptr<Pull>;
  // What a pull hands out.
  struct Batch {
    Status status;            // not OK: nothing could be read
    bool needs_file = false;  // nothing yet: not all of it is in memory
    std::string body;
    std::int64_t messages = 0;
    QueueOffset next;              // behind the last unit that was looked at
    PhysicalOffset last_position;  // of the last message
  };

  struct Bounds {
    std::size_t messages = 0;
    std::size_t bytes = 0;
  };

  void OnPull(const RequestPtr& request, const Reply& reply);
  Refusal CheckPermissions(const remoting::PullMessageRequest& header) const;
  // `elsewhere`: the subscription as another peer knows it, when this one does not; may be null.
  Refusal FindFilter(const remoting::PullMessageRequest& header, SubscriptionPtr elsewhere,
                     TagFilter* filter) const;
  // With its filter, or with why there is none.
  void Begin(const PullPtr& pull, Refusal refusal);
  void CommitOffset(const Pull& pull) const;
  bool AnswerReset(const Pull& pull);

  void Examine(const PullPtr& pull);
  void Fetch(const PullPtr& pull, bool on_reader);
  // Where the part of the log begins that counts as in memory.
  PhysicalOffset MemoryBegin() const;
  // Of one answer, as far as its messages are in memory, or not.
  Bounds BoundsOf(const Pull& pull, bool in_memory) const;
  Batch Collect(const Pull& pull, bool on_reader) const;
  void WaitForRebuild(const PullPtr& pull, const Status& why);
  void OnOutOfRange(const PullPtr& pull, QueueRange range);
  void AnswerMoved(const PullPtr& pull);
  void HoldOrAnswer(const PullPtr& pull);
  // Its group's next pull of this queue begins at `next`.
  void NotePulled(const Pull& pull, QueueOffset next) const;
  void AskLeader(const PullPtr& pull);
  // A group with a queue lock consumes in order, and that order is the leader's.
  bool IsOrderly(const Pull& pull) const;
  // Where the next pull had better go (slaveReadEnable): 0 = the leader.
  std::int64_t SuggestBroker(const Pull& pull, PhysicalOffset position) const;
  bool Leads() const { return context_.store.node().leader_info().ready; }
  // Elected, but its log is not applied yet: the leader before it may have shown more.
  bool MustNotSpeak() const {
    const dledger::LeaderInfo info = context_.store.node().leader_info();
    return info.role == dledger::Role::kLeader && !info.ready;
  }
  void Answer(const Pull& pull, std::int32_t code, QueueOffset next, QueueRange range,
              std::string_view remark, std::string body, std::int64_t suggested = 0) const;
  void Fail(const Pull& pull, std::int32_t code, std::string remark) const;
  void Refuse(const Pull& pull, const Refusal& refusal) const;

  BrokerContext& context_;
};

}  // namespace triad::broker
