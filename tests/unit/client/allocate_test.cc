#include "client/allocate.h"

#include <gtest/gtest.h>

#include <set>

namespace triad::client {
namespace {

std::vector<MessageQueue> Queues(int n) {
  std::vector<MessageQueue> queues;
  for (int i = 0; i < n; ++i) queues.push_back(MessageQueue{"T", "a", i});
  return queues;
}

std::vector<int> Ids(const std::vector<MessageQueue>& queues) {
  std::vector<int> ids;
  for (const MessageQueue& queue : queues) ids.push_back(queue.queue_id);
  return ids;
}

TEST(AllocateAveragely, GivesWhatTheJavaClientGives) {
  struct Case {
    const char* name;
    int queues;
    std::vector<std::string> members;
    std::vector<std::vector<int>> expected;  // by member
  };
  const Case cases[] = {
      {"8 by 3: 3-3-2", 8, {"a", "b", "c"}, {{0, 1, 2}, {3, 4, 5}, {6, 7}}},
      {"one member has all", 4, {"a"}, {{0, 1, 2, 3}}},
      {"as many as queues", 3, {"a", "b", "c"}, {{0}, {1}, {2}}},
      {"more members than queues", 2, {"a", "b", "c"}, {{0}, {1}, {}}},
      {"even", 8, {"a", "b"}, {{0, 1, 2, 3}, {4, 5, 6, 7}}},
      {"10 by 4: 3-3-2-2", 10, {"a", "b", "c", "d"}, {{0, 1, 2}, {3, 4, 5}, {6, 7}, {8, 9}}},
      {"no queue", 0, {"a"}, {{}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    for (std::size_t i = 0; i < c.members.size(); ++i) {
      EXPECT_EQ(Ids(AllocateAveragely(Queues(c.queues), c.members, c.members[i])), c.expected[i]);
    }
  }
}

TEST(AllocateAveragely, GivesNothingToWhoIsNoMember) {
  EXPECT_TRUE(AllocateAveragely(Queues(8), {"a", "b"}, "c").empty());
  EXPECT_TRUE(AllocateAveragely(Queues(8), {}, "c").empty());
}

TEST(AllocateAveragely, CoversEveryQueueOnceForAnyCounts) {
  for (int n = 0; n <= 20; ++n) {
    for (int k = 1; k <= 12; ++k) {
      std::vector<std::string> members;
      for (int i = 0; i < k; ++i) members.push_back(std::string(1, static_cast<char>('a' + i)));
      std::set<int> seen;
      for (const std::string& member : members) {
        for (const int id : Ids(AllocateAveragely(Queues(n), members, member))) {
          EXPECT_TRUE(seen.insert(id).second) << n << " by " << k;
        }
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(n)) << n << " by " << k;
    }
  }
}

}  // namespace
}  // namespace triad::client
