// All three peers are restarted, one after the other, with the settings that users have: clients
// that go on sending and consuming all the time notice nothing.

#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/e2e/planned_moves.h"

namespace triad {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RollingRestart : public ClusterTest {};

// A peer forwards for half a minute before it ends: this takes two.
TEST_F(RollingRestart, OfAllThreePeersAtTheUsualSettingsIsNoticedByNobody) {
  StartCluster();
  CreateTopic("Rolling", 8);
  PlannedMoves clients([this](const std::string& instance) { return ClientOf(instance); },
                       "Rolling");
  ASSERT_TRUE(clients.Start().ok());
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  std::thread load([&] {
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, milliseconds(50), [&] { return over; })) clients.Send(10);
  });
  for (std::size_t i = 0; i < 3; ++i) {
    const Result<int> ended = cluster_->Signal(i, SIGTERM, seconds(90));
    EXPECT_TRUE(ended.ok()) << ended.status();
    EXPECT_EQ(ended.ok() ? *ended : -1, 0) << LocalCluster::Tail(cluster_->brokers()[i].log_file);
    EXPECT_TRUE(cluster_->StartBroker(i).ok());
    EXPECT_TRUE(cluster_->WaitForMembers(3, seconds(60)).ok());
  }
  {
    const std::lock_guard lock(mutex);
    over = true;
  }
  changed.notify_all();
  load.join();
  clients.ExpectUnnoticed();
  CheckStored(&clients.load(), "Rolling", {});
}

}  // namespace
}  // namespace triad
