#include "client/address_book.h"

#include <gtest/gtest.h>

namespace triad::client {
namespace {

TimePoint At(int ms) {
  return TimePoint(std::chrono::milliseconds(ms));
}

remoting::TopicRouteData Route(std::map<std::int64_t, std::string> addresses) {
  remoting::TopicRouteData route;
  remoting::BrokerData broker;
  broker.broker_name = "a";
  broker.broker_addrs = std::move(addresses);
  route.broker_datas = {broker};
  return route;
}

TEST(AddressBook, PrefersTheLeader) {
  AddressBook book;
  EXPECT_EQ(book.Pick("a", At(0)), "");
  EXPECT_TRUE(book.Update(Route({{0, "n0"}, {2, "n1"}, {3, "n2"}})));
  EXPECT_EQ(book.Pick("a", At(0)), "n0");
  EXPECT_EQ(book.All(), (std::vector<std::string>{"n0", "n1", "n2"}));
  EXPECT_EQ(book.Leaders(), std::vector<std::string>{"n0"});
}

TEST(AddressBook, PassesOverWhatFailedLately) {
  AddressBook book;
  book.Update(Route({{0, "n0"}, {2, "n1"}, {3, "n2"}}));
  book.NoteFailure("n0", At(100));
  EXPECT_EQ(book.Pick("a", At(101)), "n1");
  book.NoteFailure("n1", At(200));
  EXPECT_EQ(book.Pick("a", At(201)), "n2");
  book.NoteFailure("n2", At(300));
  EXPECT_EQ(book.Pick("a", At(301)), "n0") << "all failed: the oldest failure";
  EXPECT_EQ(book.Pick("a", At(1201)), "n0") << "n0's failure is over a second old";
  book.NoteFailure("n0", At(1201));
  book.NoteSuccess("n0");
  EXPECT_EQ(book.Pick("a", At(1202)), "n0");
}

TEST(AddressBook, ForgivesWhoBecomesTheLeader) {
  AddressBook book;
  book.Update(Route({{0, "n0"}, {2, "n1"}}));
  book.NoteFailure("n1", At(0));
  EXPECT_FALSE(book.Update(Route({{0, "n1"}, {1, "n0"}}))) << "no new address";
  EXPECT_EQ(book.Pick("a", At(1)), "n1");
}

TEST(AddressBook, ReplacesTheAddressesOfAGroup) {
  AddressBook book;
  book.Update(Route({{0, "n0"}, {2, "n1"}}));
  EXPECT_TRUE(book.Update(Route({{0, "n9"}})));
  EXPECT_EQ(book.All(), std::vector<std::string>{"n9"});
  EXPECT_FALSE(book.Contains("n0"));
}

TEST(AddressBook, PicksASuggestedPeerWhileItIsGood) {
  AddressBook book;
  book.Update(Route({{0, "n0"}, {1, "n1"}}));
  EXPECT_EQ(book.PickId("a", 1, At(0)), "n1");
  EXPECT_EQ(book.PickId("a", 7, At(0)), "n0");
  book.NoteFailure("n1", At(0));
  EXPECT_EQ(book.PickId("a", 1, At(1)), "n0");
}

}  // namespace
}  // namespace triad::client
