// LogComparison: compares this peer's committed log with the leader's, all the time, slowly.
//
// A follower takes the next stretch of at most logVerifyBytesPerSecond once a second, hashes what
// stands on its disk and asks the leader for the same hash; a peer without a leader to ask checks
// its own CRCs. A difference raises the alarm, with the record and whose CRC is right; it ends when
// that very stretch is the same again. Thread: Start and Stop on any; steps on reader, timer and
// client threads, one at a time. Size: one question at a time.

#pragma once

#include <cstdint>
#include <memory>

#include "broker/config/broker_config.h"
#include "broker/service/log_alarm.h"
#include "broker/service/log_reader.h"
#include "broker/service/timer_queue.h"
#include "broker/store/message_store.h"
#include "remoting/client.h"

namespace triad::broker {

class LogComparison {
 public:
  // All references outlive the timers' and the client's end.
  LogComparison(const BrokerConfig& config, TimerQueue& timers, remoting::Client& client,
                MessageStore& store, LogReader& reader, LogAlarm& alarm);
  ~LogComparison();

  void Start();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

// The first record that differs between two peers, in words; empty when there is none.
std::string DescribeDifference(const remoting::LogRecordsBody& here,
                               const remoting::LogRecordsBody& there,
                               const std::string& there_name);

}  // namespace triad::broker
