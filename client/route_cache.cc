#include "client/route_cache.h"

#include <future>
#include <memory>
#include <utility>

#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::client {

namespace {

constexpr std::chrono::milliseconds kRouteTimeout{3000};

remoting::Command RouteRequest(std::string_view topic) {
  remoting::Command request = remoting::Command::Request(remoting::kGetRouteInfoByTopic);
  remoting::GetRouteInfoRequest header;
  header.topic = std::string(topic);
  header.accept_standard_json_only = true;
  header.Encode(&request.ext);
  return request;
}

Result<remoting::TopicRouteData> RouteOf(const std::string& topic,
                                         const Result<remoting::Command>& answer) {
  if (!answer.ok()) return answer.status();
  if (answer->code == remoting::kTopicNotExist) {
    return Status::NotFound("topic '" + topic +
                            "' has no route: it does not exist, or no broker is registered");
  }
  if (answer->code != remoting::kSuccess) {
    return Status::Unavailable("the name server answered " + std::to_string(answer->code) + ": " +
                               answer->remark);
  }
  return remoting::TopicRouteData::Decode(answer->body);
}

}  // namespace

RouteCache::RouteCache(NameServers* name_servers, AddressBook* book, OnChange on_change)
    : name_servers_(name_servers), book_(book), on_change_(std::move(on_change)) {}

RoutePtr RouteCache::Find(const std::string& topic) const {
  std::lock_guard hold(mutex_);
  const auto found = entries_.find(topic);
  return found == entries_.end() ? nullptr : found->second.route;
}

void RouteCache::Fetch(const std::string& topic, bool for_publish, Done done) {
  bool ask = false;
  {
    std::lock_guard hold(mutex_);
    Entry& entry = entries_[topic];
    entry.for_publish = entry.for_publish || for_publish;
    for_publish = entry.for_publish;
    if (done) entry.waiting.push_back(std::move(done));
    ask = !entry.fetching;
    entry.fetching = true;
  }
  if (ask) Ask(topic, for_publish);
}

void RouteCache::Ask(const std::string& topic, bool for_publish) {
  name_servers_->Call(RouteRequest(topic), kRouteTimeout,
                      [this, topic, for_publish](const Result<remoting::Command>& answer) {
                        Result<remoting::TopicRouteData> data = RouteOf(topic, answer);
                        if (data.ok()) {
                          OnAnswer(topic, MakeRoute(topic, std::move(*data)));
                        } else if (data.status().code() == StatusCode::kNotFound && for_publish) {
                          AskForTemplate(topic);
                        } else {
                          OnAnswer(topic, data.status());
                        }
                      });
}

void RouteCache::AskForTemplate(const std::string& topic) {
  name_servers_->Call(RouteRequest(kTemplateTopic), kRouteTimeout,
                      [this, topic](const Result<remoting::Command>& answer) {
                        Result<remoting::TopicRouteData> data = RouteOf(topic, answer);
                        if (data.ok()) {
                          OnAnswer(topic, MakeTemplateRoute(topic, std::move(*data)));
                        } else {
                          OnAnswer(topic, data.status());
                        }
                      });
}

void RouteCache::OnAnswer(const std::string& topic, Result<RoutePtr> route) {
  std::vector<Done> waiting;
  bool changed = false;
  {
    std::lock_guard hold(mutex_);
    Entry& entry = entries_[topic];
    entry.fetching = false;
    entry.fetched_at = SystemClock().MonoNow();
    waiting.swap(entry.waiting);
    const bool keep =
        !route.ok() || ((*route)->from_template && entry.route && !entry.route->from_template);
    if (!keep) {
      changed = entry.route == nullptr || !(entry.route->data == (*route)->data);
      entry.route = *route;
    } else if (route.status().code() != StatusCode::kUnavailable && entry.route != nullptr) {
      route = entry.route;  // once found, a route is kept
    }
  }
  if (changed) {
    const bool new_address = book_->Update((*route)->data);
    on_change_(topic, new_address);
  }
  for (Done& done : waiting) done(route);
}

Result<RoutePtr> RouteCache::Get(const std::string& topic, bool for_publish) {
  if (RoutePtr known = Find(topic)) return known;
  auto answer = std::make_shared<std::promise<Result<RoutePtr>>>();
  Fetch(topic, for_publish,
        [answer](Result<RoutePtr> result) { answer->set_value(std::move(result)); });
  return answer->get_future().get();
}

void RouteCache::RefreshSoon(const std::string& topic) {
  {
    std::lock_guard hold(mutex_);
    Entry& entry = entries_[topic];
    if (entry.fetching || SystemClock().MonoNow() - entry.fetched_at < kRefreshGap) return;
  }
  Fetch(topic, false, nullptr);
}

void RouteCache::RefreshAll() {
  std::vector<std::string> topics;
  {
    std::lock_guard hold(mutex_);
    for (const auto& [topic, entry] : entries_) topics.push_back(topic);
  }
  for (const std::string& topic : topics) Fetch(topic, false, nullptr);
}

}  // namespace triad::client
