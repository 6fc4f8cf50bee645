// RetrySender: brings a message that a listener failed on back to the group, or to its dead
// letters.
//
// Thread: safe on every thread; calls block, so only on listener threads. Source: wire.md §7.7,
// §7.8, §8.2, §8.3.

#pragma once

#include "client/consumer_context.h"

namespace triad::client {

// The message as a send to %RETRY%group; pure. The broker counts: beyond the maximum it becomes a
// dead letter.
SendTask MakeRetryTask(const ReceivedMessage& message, const std::string& group,
                       int max_reconsume_times, const std::string& reason = {});

class RetrySender {
 public:
  explicit RetrySender(ConsumerContext* context) : context_(context) {}

  static constexpr int kToDeadLetters = -1;  // a delay level: how an orderly consumer gives up

  // CONSUMER_SEND_MSG_BACK, which a broker of ours does once however often it is asked; a send of a
  // copy to %RETRY%group when it was certainly refused. `reason`: why the listener failed; empty
  // when it did not say.
  struct Outcome {
    Status status;
    // Not OK, but it may be done: the listener is not called again for it, it is offered again. A
    // send-back does that no harm; a copy may be there twice then.
    bool is_open = false;
  };
  Outcome SendBack(const ReceivedMessage& message, int delay_level, const std::string& reason = {});

 private:
  Outcome SendCopy(const ReceivedMessage& message, const std::string& reason);

  ConsumerContext* const context_;
};

}  // namespace triad::client
