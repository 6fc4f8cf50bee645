// PlainSends: the short way of the sends that need no decision: a message of the leader's own
// client, to an existing, writable topic without a rule, with nothing unusual about it. Their
// records are encoded straight from the frames that one read brought, go to the log as one unit,
// and their answers leave as one.
//
// Whatever is unusual or wrong is not taken: send_processor.h, which judges every send, gets it.
// What is taken here is stored and answered as there; a test holds the two against each other.
// The order of a connection's sends is kept. Thread: Take and Flush on connection threads, whose
// batch is that thread's own; answers come from any thread. Bounds: kPlainBatchMax requests and
// kPlainBatchBytesMax of records per unit, kTopicsMax remembered topics per thread.

#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "remoting/server.h"

namespace triad::broker {

inline constexpr std::size_t kPlainBatchMax = 64;
inline constexpr std::size_t kPlainBatchBytesMax = 256u << 10;

class PlainSends {
 public:
  // `context` and `dispatcher` outlive it and every answer that is owed.
  PlainSends(BrokerContext& context, const Dispatcher& dispatcher);
  ~PlainSends();

  // A whole request frame. True: it is answered here. False: what was taken before is on its way,
  // so that the caller's other way does not overtake it.
  bool Take(const remoting::ConnectionPtr& connection, std::string_view frame);
  // Behind the last frame that one read brought, on the same thread.
  void Flush();

 private:
  struct Batch;
  struct ThreadState;
  struct TopicFacts;

  bool Add(const remoting::ConnectionPtr& connection, std::string_view frame, ThreadState* state);
  ThreadState& State() const;
  const TopicFacts& FactsOf(std::string_view topic, ThreadState* state) const;
  void Submit(ThreadState* state);
  void Answer(const Batch& batch, const AppendOutcome& outcome) const;
  void AnswerStored(const Batch& batch, const AppendOutcome& outcome) const;
  void SendAgain(const Batch& batch, std::string_view records) const;

  BrokerContext& context_;
  const Dispatcher& dispatcher_;
  const std::uint64_t number_;  // of this object in its process: whose a thread's state is
};

}  // namespace triad::broker
