// DynamicConfig: changes of the configuration while the broker runs (UPDATE_BROKER_CONFIG).
//
// A change is checked as a start would check it, written into the broker's file (that line alone is
// replaced or one is appended), and taken: Live members and the list of name servers at once, all
// else at the next start. All of a request or nothing. Thread: safe on every thread; Update may
// write a file and blocks others that update. Source: admin.md §2.7, §11.1; cases.md CFG-9.

#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "broker/config/broker_config.h"
#include "common/file_system.h"
#include "common/properties.h"
#include "common/status.h"

namespace triad::broker {

class DynamicConfig {
 public:
  struct Effects {
    std::function<void()> on_permission;                           // register again
    std::function<void(const std::string& list)> on_name_servers;  // the new list
  };
  // `config` and `fs` outlive the object.
  DynamicConfig(BrokerConfig* config, FileSystem& fs, Effects effects);

  struct Outcome {
    std::vector<std::string> now;         // in force
    std::vector<std::string> at_restart;  // written, in force at the next start
    std::vector<std::string> no_effect;   // keys of the original without meaning here
    bool kept = true;                     // false: there is no file to write to
    std::string ToString() const;
  };
  // Errors: kPermissionDenied: a key that may not be changed; kInvalidArgument: an unknown key or a
  // bad value, all of them in the message; kIoError: the file cannot be written. Nothing changed.
  Result<Outcome> Update(const Properties& wanted, const std::string& client);

  // What is in force.
  std::string Print() const;
  std::int64_t version() const;  // how often it was changed

 private:
  Status Check(const Properties& wanted) const;
  Status WriteFile(const Properties& wanted) const;
  void Take(const Properties& wanted, const std::string& client, Outcome* outcome);

  BrokerConfig* const config_;
  FileSystem& fs_;
  const Effects effects_;
  mutable std::mutex mutex_;
  std::string namesrv_addr_;
  std::int64_t version_ = 0;
};

}  // namespace triad::broker
