// mqadmin: looks at and changes a cluster. The verbs and options of the original's everyday
// commands, and this project's own. The verbs are in bin/admin/.
//
//   mqadmin clusterList -n 127.0.0.1:9876
//
// Exit code: 0 done, 1 the cluster refused or has no such thing, 2 wrong usage or nobody could be
// reached.

#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <string>

#include "bin/admin/session.h"
#include "bin/admin/verbs.h"

namespace triad::admin {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("Looks at and changes a cluster. 'mqadmin VERB --help' explains a verb.", "mqadmin");
  app.require_subcommand(1);
  Registry verbs(&app);
  AddClusterVerbs(&verbs);
  AddTopicVerbs(&verbs);
  AddGroupVerbs(&verbs);
  AddMessageVerbs(&verbs);
  AddReplicationVerbs(&verbs);
  AddVerifyVerbs(&verbs);
  AddDlqVerbs(&verbs);
  // "help VERB" as in the original.
  if (argc == 3 && std::string(argv[1]) == "help") {
    std::string verb = argv[2];
    std::string help = "--help";
    char* words[] = {argv[0], verb.data(), help.data()};
    try {
      app.parse(3, words);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? kDone : kUnreachable;
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUnreachable;
  }
  return verbs.Run();
}

}  // namespace
}  // namespace triad::admin

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_ERROR;
  google::InitGoogleLogging(argv[0]);
  return triad::admin::Main(argc, argv);
}
