// AddressBook: where the peers of each broker group listen, and which of them failed lately.
//
// Pure: the caller passes `now`. Thread: safe on every thread (leaf mutex). Bounds: the routes in
// use. A peer that failed is passed over for kSuspectTime while the group has another one; peers
// that do not lead forward what only the leader may do, so any living one will do.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/clock.h"
#include "remoting/route_bodies.h"

namespace triad::client {

class AddressBook {
 public:
  static constexpr std::chrono::milliseconds kSuspectTime{1000};

  // Replaces the addresses of the groups that `route` names. True when one of them is new.
  bool Update(const remoting::TopicRouteData& route);

  // The leader if it is known and did not fail lately, else the next peer that did not, else the
  // one whose failure is the oldest. Empty when the group is unknown.
  std::string Pick(const std::string& broker_name, TimePoint now) const;
  // The address of `broker_id`, or as Pick.
  std::string PickId(const std::string& broker_name, std::int64_t broker_id, TimePoint now) const;

  void NoteFailure(const std::string& address, TimePoint now);
  void NoteSuccess(const std::string& address);

  std::vector<std::string> All() const;      // every address, each once
  std::vector<std::string> Leaders() const;  // brokerId 0 of every group
  bool Contains(const std::string& address) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::int64_t, std::string>> groups_;
  std::map<std::string, TimePoint> failed_at_;
};

}  // namespace triad::client
