// mqadmin: looks at and changes a cluster. The verbs and options of the original's everyday
// commands, and this project's own. The verbs are in bin/admin/.
//
//   mqadmin clusterList -n 127.0.0.1:9876
//
// Exit code: 0 done, 1 the cluster refused or has no such thing, 2 wrong usage or nobody could be
// reached. A verb that goes on until it is stopped ends with the worst of its rounds.

#include <glog/logging.h>

#include <string>
#include <vector>

#include "bin/admin/parse.h"
#include "bin/admin/session.h"
#include "common/process.h"

namespace triad::admin {
namespace {

int Main(const std::vector<std::string>& words) {
  const std::vector<Verb> verbs = AllVerbs();
  const Asked asked = Parse(verbs, words);
  if (asked.verb == nullptr) return asked.code;
  if (asked.verb->until_stopped) HoldStopSignals();
  Session session(asked.given.Text("namesrvAddr"));
  const Status started = session.Start();
  if (!started.ok()) return Fail(started);
  return asked.verb->run(asked.given, &session);
}

}  // namespace
}  // namespace triad::admin

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_ERROR;
  google::InitGoogleLogging(argv[0]);
  return triad::admin::Main({argv + 1, argv + argc});
}
