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

  // CONSUMER_SEND_MSG_BACK; when that fails, a send to %RETRY%group.
  // `reason`: why the listener failed; empty when it did not say.
  Status SendBack(const ReceivedMessage& message, int delay_level, const std::string& reason = {});
  // The send alone: how an orderly consumer gives up on a message.
  Status SendToRetryTopic(const ReceivedMessage& message, const std::string& reason = {});

 private:
  ConsumerContext* const context_;
};

}  // namespace triad::client
