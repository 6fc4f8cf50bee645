// Runs beside each other keep out of each other's networks. Needs root and ip.

#include "tests/chaos/layout.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace triad::chaos {
namespace {

// The id of a layout, as its addresses tell it.
std::string IdOf(const Layout& layout) {
  const std::string address = layout.AddressOf("ns");  // 10.99.ID.1
  return address.substr(6, address.rfind('.') - 6);
}

bool Exists(const std::string& id) {
  return ::access(("/run/netns/triad" + id + "-sw").c_str(), F_OK) == 0;
}

TEST(Layout, AnIdThatIsTakenIsPassedByAndItsNetworkStays) {
  auto first = Layout::Build(254);
  if (!first.ok()) {
    std::fprintf(stderr, "MISSING ON THIS MACHINE: no network namespaces: %s\n",
                 first.status().ToString().c_str());
    return;
  }
  const std::string id = IdOf(**first);
  {
    const auto second = Layout::Build(std::stoi(id));
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_NE(IdOf(**second), id);
    EXPECT_TRUE(Exists(IdOf(**second)));
  }
  EXPECT_TRUE(Exists(id));
  first->reset();
  EXPECT_FALSE(Exists(id));
}

}  // namespace
}  // namespace triad::chaos
