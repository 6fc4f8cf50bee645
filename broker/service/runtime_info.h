// RuntimeInfo: what GET_BROKER_RUNTIME_INFO tells tools, the exporter and the dashboard.
//
// Keys and formats: admin.md §2.9; all values are strings. Owner: Sample runs on a timer once a
// second; Table anywhere (a leaf mutex).

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "broker/config/broker_config.h"
#include "broker/service/counters.h"
#include "broker/service/disk_guard.h"
#include "broker/service/log_alarm.h"
#include "broker/store/message_store.h"
#include "common/clock.h"

namespace triad::broker {

class RuntimeInfo {
 public:
  // All references outlive the object.
  RuntimeInfo(const BrokerConfig& config, const Clock& clock, const Counters& counters,
              const DiskGuard& disk, const LogAlarm& alarm, MessageStore& store);

  void Sample();
  std::map<std::string, std::string> Table() const;

 private:
  // A counter as it stood at the last two midnights of local time.
  struct Daily {
    std::int64_t today_morning = 0;
    std::int64_t yesterday_morning = 0;
  };
  void AddRates(std::map<std::string, std::string>* table) const;
  void AddDaily(std::map<std::string, std::string>* table) const;
  void AddStore(std::map<std::string, std::string>* table) const;
  void AddDelays(std::map<std::string, std::string>* table) const;
  void LookForEarliest();

  const BrokerConfig& config_;
  const Clock& clock_;
  const Counters& counters_;
  const DiskGuard& disk_;
  const LogAlarm& alarm_;
  MessageStore& store_;
  const std::int64_t boot_ms_;
  LogIndex looked_for_;  // Sample only
  std::atomic<std::int64_t> earliest_ms_{0};

  RateWindow put_;
  RateWindow found_;
  RateWindow miss_;
  RateWindow total_;
  RateWindow transferred_;
  mutable std::mutex mutex_;
  std::int64_t day_ = 0;
  Daily put_daily_;
  Daily get_daily_;
};

}  // namespace triad::broker
