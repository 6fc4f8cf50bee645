// Verbs: what mqadmin can do. A verb is a name, its options and an action; families of verbs live
// in a file each and are listed here and in mqadmin_main.cc.
//
// A verb file defines Add...Verbs, which calls Registry::Add per verb, adds the verb's options to
// what it returns, and keeps what they parse into in an object that the action shares.
//
// Thread: main.

#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "bin/admin/session.h"
#include "bin/table.h"

namespace triad::admin {

class Registry {
 public:
  // The exit code.
  using Action = std::function<int(Session*)>;

  // `app` outlives this.
  explicit Registry(CLI::App* app) : app_(app) {}

  // A verb with the option -n; the caller adds its own.
  CLI::App* Add(const char* name, const char* help, Action action);

  // Runs the verb that was parsed; the exit code.
  int Run();

 private:
  struct Verb {
    CLI::App* app;
    Action action;
  };

  CLI::App* const app_;
  std::string namesrv_;
  std::vector<Verb> verbs_;
};

// Checks of options that several verbs have.
CLI::Validator IsFlag();  // true or false

// -c and -b: where a change or a question goes.
void AddPlace(CLI::App* verb, std::string* cluster, std::string* broker);

// -c, -g and -b: which replication groups (peers.h).
struct GroupChoice;
void AddGroupChoice(CLI::App* verb, GroupChoice* choice);

// -o table|json, for verbs that print a table.
void AddOutput(CLI::App* verb, std::string* format);
void Print(const Table& table, const std::string& format);

void AddClusterVerbs(Registry* verbs);
void AddTopicVerbs(Registry* verbs);
void AddGroupVerbs(Registry* verbs);
void AddMessageVerbs(Registry* verbs);
void AddReplicationVerbs(Registry* verbs);
void AddVerifyVerbs(Registry* verbs);
void AddDlqVerbs(Registry* verbs);

}  // namespace triad::admin
