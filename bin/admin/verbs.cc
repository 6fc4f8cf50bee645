#include "bin/admin/verbs.h"

#include <cstdio>
#include <utility>

#include "bin/admin/peers.h"

namespace triad::admin {

CLI::App* Registry::Add(const char* name, const char* help, Action action) {
  CLI::App* verb = app_->add_subcommand(name, help);
  verb->add_option("-n,--namesrvAddr", namesrv_,
                   "name server list, host:port;host:port (or NAMESRV_ADDR)")
      ->envname("NAMESRV_ADDR")
      ->required();
  verbs_.push_back({verb, std::move(action)});
  return verb;
}

int Registry::Run() {
  Session session(namesrv_);
  const Status started = session.Start();
  if (!started.ok()) return Fail(started);
  for (const Verb& verb : verbs_) {
    if (verb.app->parsed()) return verb.action(&session);
  }
  return kUnreachable;
}

CLI::Validator IsFlag() {
  return CLI::IsMember({"true", "false"});
}

void AddOutput(CLI::App* verb, std::string* format) {
  verb->add_option("-o,--output", *format, "table or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"table", "json"}));
}

void Print(const Table& table, const std::string& format) {
  if (format == "json") {
    std::printf("%s\n", table.Json().c_str());
  } else {
    table.Print();
  }
}

void AddGroupChoice(CLI::App* verb, GroupChoice* choice) {
  verb->add_option("-c,--clusterName", choice->cluster, "groups of this cluster");
  verb->add_option("-g,--group", choice->group, "the group of this brokerName or dLegerGroup");
  verb->add_option("-b,--brokerAddr", choice->broker_address, "the group of the peer at host:port");
}

void AddPlace(CLI::App* verb, std::string* cluster, std::string* broker) {
  verb->add_option("-c,--clusterName", *cluster,
                   "in every group of this cluster (default: every cluster)");
  verb->add_option("-b,--brokerAddr", *broker, "only at this address");
}

}  // namespace triad::admin
