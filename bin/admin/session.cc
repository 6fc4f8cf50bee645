#include "bin/admin/session.h"

#include <cstdio>
#include <utility>

namespace triad::admin {

Session::Session(std::string namesrv) : namesrv_(std::move(namesrv)), admin_(client_options()) {}

Session::~Session() {
  admin_.Shutdown();
}

Status Session::Start() {
  return admin_.Start();
}

client::ClientOptions Session::client_options() const {
  client::ClientOptions options;
  options.namesrv_address = namesrv_;
  options.instance_name = "mqadmin";
  return options;
}

int Fail(const Status& status) {
  std::fprintf(stderr, "mqadmin: %s\n", status.ToString().c_str());
  const bool reachable =
      status.code() != StatusCode::kUnavailable && status.code() != StatusCode::kTimedOut;
  return reachable ? kRefused : kUnreachable;
}

int WrongUse(const Status& status) {
  std::fprintf(stderr, "mqadmin: %s\n", std::string(status.message()).c_str());
  return kUnreachable;
}

}  // namespace triad::admin
