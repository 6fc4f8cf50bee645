// DynamicConfig: changes of the configuration while the broker runs (UPDATE_BROKER_CONFIG).
//
// Some keys are of the group: one value on every peer, in force on each as it applies the entry
// that puts it, and kept in the replicated state; it wins over what a peer's file says. All others
// are this peer's own: the list of name servers and the limit of flow control change at once, the
// rest at the next start. A
// request is checked as a start would check it, all of it or nothing. Every value that is taken
// goes into the broker's file too (its line alone is replaced or one is appended).
// Thread: safe on every thread. Check, UpdateLocal and WriteGroup use the file: reader threads
// only, one after the other; nothing else waits for a file.
// Source: admin.md §2.7, §11.1; cases.md CFG-9; docs/decisions.md.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "broker/config/broker_config.h"
#include "broker/state/replicated_state.h"
#include "common/file_system.h"
#include "common/properties.h"
#include "common/status.h"

namespace triad::broker {

class DynamicConfig {
 public:
  struct Effects {
    std::function<void()> on_permission;                           // register again
    std::function<void(const std::string& list)> on_name_servers;  // the new list
    std::function<void(const BrokerConfig& copy)> on_retention;    // other rules in it
    std::function<void(std::int32_t capacity)> on_send_queue;      // sends that may wait
  };
  // `config` and `fs` outlive the object.
  DynamicConfig(BrokerConfig* config, FileSystem& fs, Effects effects);

  // Before anything is applied: the group's settings, as the state has them, take the place of the
  // file's; where the file says something else, a warning tells both.
  void StartWith(const Settings& settings);

  // A request, taken apart.
  struct Change {
    Settings group;    // for the log
    Properties local;  // for UpdateLocal
  };
  // Errors: kPermissionDenied: a key that may not be changed; kInvalidArgument: an unknown key or a
  // bad value, all of them in the message; kIoError: this peer's file, when it is needed.
  Result<Change> Check(const Properties& wanted) const;

  // The apply thread: the group was told these.
  void Follow(const Settings& put);
  // They are in force here.
  bool Has(const Settings& settings) const;
  // What the group was told and this peer's file does not have yet.
  bool has_unwritten() const;
  // Brings the file up to it. Errors: as the file's; they are logged, and it is not tried again.
  Status WriteGroup();

  struct Outcome {
    std::vector<std::string> now;         // in force
    std::vector<std::string> at_restart;  // written, in force at the next start
    std::vector<std::string> no_effect;   // keys of the original without meaning here
    bool kept = true;                     // false: there is no file to write to
    std::string ToString() const;         // empty when there was nothing to do
  };
  // Changes what Check called local. Errors: as Check's; nothing was changed.
  Result<Outcome> UpdateLocal(const Properties& local, const std::string& client);

  // What is in force. `leads`: this peer leads its group; brokerId and brokerRole say so, as the
  // original changes them with each election.
  std::string Print(bool leads) const;
  std::int64_t version() const;  // how often it was changed

 private:
  BrokerConfig Copy() const;
  bool has_file() const { return !config_->config_file.empty(); }
  Result<std::string> TextWith(const Settings& changes) const;
  Status CheckText(const std::string& text) const;
  void TakeLocal(const Properties& local, const std::string& client, Outcome* outcome);
  // Locked. False: it is as before, or cannot be taken.
  bool TakeOfGroup(const std::string& key, const std::string& value);
  void TellEffects(const std::set<std::string>& changed) const;

  BrokerConfig* const config_;
  FileSystem& fs_;
  const Effects effects_;
  std::mutex file_mutex_;     // one writer of the file; taken before the other one
  mutable std::mutex mutex_;  // a leaf, never held across IO
  std::string namesrv_addr_;
  std::int64_t version_ = 0;
  std::set<std::string> unwritten_;  // keys of the group
};

}  // namespace triad::broker
