// TopicProcessor: topics for administrators: create and change (17, 18), delete (215), list (21,
// 305), one (351), statistics (202).
//
// Changes go through the log, one after the other: each is made of what the one in front of it
// left; they are answered when committed and told to the name servers. Bounds: kUpdatesMax wait.
// 21 and 305 are answered by any peer from its applied state, 202 by the leader; a topic is a
// linearizable object to 17, 18, 215 and 351, which the leader answers and confirms.
// Thread: safe on every thread. Source: wire.md §12, admin.md §2.5.

#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "broker/processor/broker_context.h"
#include "broker/processor/dispatcher.h"
#include "remoting/headers.h"

namespace triad::broker {

class TopicProcessor {
 public:
  explicit TopicProcessor(BrokerContext& context) : context_(context) {}
  void Register(Dispatcher* dispatcher);

 private:
  void OnUpdate(const RequestPtr& request, const Reply& reply);
  void OnUpdateList(const RequestPtr& request, const Reply& reply);
  void OnDelete(const RequestPtr& request, const Reply& reply);
  void OnGetAll(const RequestPtr& request, const Reply& reply);
  void OnGet(const RequestPtr& request, const Reply& reply);
  void OnSystemList(const RequestPtr& request, const Reply& reply);
  void OnStats(const RequestPtr& request, const Reply& reply);
  void ReadStats(const RequestPtr& request, const Reply& reply, const TopicConfig& topic);

  // Runs it when those in front of it have ended; it calls EndUpdate once its outcome is known.
  void Enqueue(const RequestPtr& request, const Reply& reply, std::function<void()> update);
  void RunUpdates();
  void EndUpdate();                  // of the first one; on any thread
  Reply Ending(const Reply& reply);  // EndUpdate, then the answer
  struct Wanted {
    TopicConfig topic;
    std::map<std::string, std::string> attributes;  // changes
  };
  struct Changes {
    std::vector<TopicConfig> topics;  // that differ from the state
    std::vector<TopicConfig> to_ask;  // of those, which other groups may be against
    bool operator==(const Changes&) const = default;
  };
  Result<Changes> ChangesOf(const std::vector<Wanted>& wanted) const;
  // `confirmed`: nothing that was committed before the request is missing in the state.
  void Update(const RequestPtr& request, const Reply& reply, const std::vector<Wanted>& wanted,
              bool confirmed);
  Result<TopicConfig> Changed(const Wanted& wanted) const;
  // Whether no other group stands against any of these; on the caller's thread or the remoting
  // client's.
  void AskOtherGroups(const std::vector<TopicConfig>& topics, std::function<void(Status)> done);
  // Begins again when the changes are no more what the others were asked about.
  void PutUnlessOvertaken(const RequestPtr& request, const Reply& reply,
                          const std::vector<Wanted>& wanted, const Changes& asked_about);
  // The last step of an update: puts what differs from the state into the log, tells the name
  // servers, answers.
  void Put(const RequestPtr& request, const Reply& reply, Proposal proposal);
  void Delete(const RequestPtr& request, const Reply& reply, const Topic& topic);
  Status CheckChange(const TopicConfig& topic) const;

  BrokerContext& context_;
  std::mutex mutex_;                           // a leaf
  std::deque<std::function<void()>> updates_;  // the first one has begun
  bool is_running_ = false;                    // a thread is in RunUpdates
  bool has_ended_ = false;                     // the first one, while that thread is in its call
};

// Attribute changes "+k=v,-k2" (or keys with a sign in a map) applied to `current`.
// Errors: kInternal (code 1 on the wire) naming the key.
Status ApplyAttributeChanges(const std::map<std::string, std::string>& changes, bool is_new_topic,
                             std::map<std::string, std::string>* current);
// kInvalidArgument when the number of queues of a topic with order=strict would change.
Status CheckStrictOrder(const std::optional<TopicConfig>& known, const TopicConfig& next);
std::map<std::string, std::string> ParseAttributeChanges(const std::string& text);

}  // namespace triad::broker
