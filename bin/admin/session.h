// Session: one run of one mqadmin verb, its connection to the cluster and how it ends.
//
// Thread: main.

#pragma once

#include <string>

#include "triad/admin.h"
#include "triad/client_options.h"

namespace triad::admin {

// Exit codes of mqadmin.
inline constexpr int kDone = 0;
inline constexpr int kRefused = 1;      // the cluster refused, or has no such thing
inline constexpr int kUnreachable = 2;  // wrong usage, or nobody could be reached

class Session {
 public:
  explicit Session(std::string namesrv);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Fails when no name server answers.
  Status Start();

  client::Admin& admin() { return admin_; }
  // For a verb that needs a producer or a consumer of its own.
  client::ClientOptions client_options() const;

 private:
  const std::string namesrv_;
  client::Admin admin_;
};

// Prints what went wrong; the exit code that says so.
int Fail(const Status& status);
int WrongUse(const Status& status);

}  // namespace triad::admin
