#include "common/broken_ground.h"

#include <glog/logging.h>

#include <atomic>
#include <cstdlib>

namespace triad {
namespace {

std::atomic<BrokenGroundHandler> g_handler{nullptr};

}  // namespace

void SetBrokenGroundHandler(BrokenGroundHandler handler) {
  g_handler = handler;
}

void DieOfBrokenGround(const std::string& what) {
  if (const BrokenGroundHandler handler = g_handler) handler(what);
  LOG(FATAL) << what;
  std::abort();  // not reached
}

}  // namespace triad
