#include "dledger/node.h"

#include <glog/logging.h>

#include <utility>

#include "dledger/node_shell.h"
#include "dledger/open_log.h"
#include "dledger/snapshot/snapshot_file.h"

namespace triad::dledger {

Result<std::optional<ReadySnapshot>> Node::FindReadySnapshot(FileSystem& fs,
                                                             const std::string& dir) {
  Result<std::unique_ptr<SnapshotFile>> ready = OpenReadySnapshot(fs, dir);
  if (!ready.ok()) return ready.status();
  std::optional<ReadySnapshot> found;
  if (ready.value() == nullptr) return found;
  found.emplace();
  found->applied = (*ready)->head().applied;
  found->pieces = PiecesOf(std::move(ready).value());
  return found;
}

Result<std::unique_ptr<Node>> Node::Open(FileSystem& fs, const Clock& clock, NodeOptions options,
                                         Application* application) {
  CHECK(application != nullptr);
  Result<OpenedLog> log = OpenLog(fs, options);
  if (!log.ok()) return log.status();
  auto node = std::make_unique<NodeShell>(fs, clock, std::move(options), std::move(log->store),
                                          std::move(log->recovered), application);
  TRIAD_RETURN_IF_ERROR(node->Listen());
  return std::unique_ptr<Node>(std::move(node));
}

}  // namespace triad::dledger
