#include "client/name_servers.h"

#include <glog/logging.h>

#include <future>
#include <memory>
#include <utility>

namespace triad::client {

std::vector<std::string> SplitAddresses(const std::string& text) {
  std::vector<std::string> addresses;
  std::string current;
  for (const char c : text + ";") {
    if (c == ' ' || c == '\t') continue;
    if (c != ';' && c != ',') {
      current += c;
      continue;
    }
    if (!current.empty()) addresses.push_back(std::move(current));
    current.clear();
  }
  return addresses;
}

NameServers::NameServers(remoting::Client* client, std::vector<std::string> addresses)
    : client_(client), addresses_(std::move(addresses)) {
  CHECK(!addresses_.empty());
}

void NameServers::Call(remoting::Command request, std::chrono::milliseconds timeout, Done done) {
  Try(std::move(request), timeout, 0, std::move(done));
}

void NameServers::Try(remoting::Command request, std::chrono::milliseconds timeout,
                      std::size_t attempt, Done done) {
  const std::size_t index = current_.load() % addresses_.size();
  remoting::Command copy = request;
  client_->Call(
      addresses_[index], std::move(copy), timeout,
      [this, request = std::move(request), timeout, attempt, index,
       done = std::move(done)](Result<remoting::Command> answer) mutable {
        if (answer.ok() || answer.status().code() == StatusCode::kCancelled) {
          done(std::move(answer));
          return;
        }
        std::size_t expected = index;
        current_.compare_exchange_strong(expected, (index + 1) % addresses_.size());
        if (attempt + 1 < addresses_.size()) {
          Try(std::move(request), timeout, attempt + 1, std::move(done));
          return;
        }
        std::string all;
        for (const std::string& address : addresses_) all += (all.empty() ? "" : ", ") + address;
        done(Status::Unavailable("no name server answers (asked " + all +
                                 "); the last said: " + std::string(answer.status().message())));
      });
}

Result<remoting::Command> NameServers::CallSync(remoting::Command request,
                                                std::chrono::milliseconds timeout) {
  auto answer = std::make_shared<std::promise<Result<remoting::Command>>>();
  Call(std::move(request), timeout,
       [answer](Result<remoting::Command> result) { answer->set_value(std::move(result)); });
  return answer->get_future().get();
}

Status NameServers::CallAll(const remoting::Command& request, std::chrono::milliseconds timeout) {
  Status first_failure;
  for (const std::string& address : addresses_) {
    const Result<remoting::Command> answer = client_->CallSync(address, request, timeout);
    if (!answer.ok() && first_failure.ok()) first_failure = answer.status();
  }
  return first_failure;
}

}  // namespace triad::client
