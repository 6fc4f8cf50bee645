// Layout: one network namespace per host, joined by a bridge, with nothing else to reach.
//
// Hosts are "ns", "n0".."n2" (the peers) and "c" (the clients). Links can be cut in one direction,
// made lossy or slow, and healed. Names and addresses carry the run's id, so that runs do not meet;
// everything is removed by the destructor. Needs root, ip and nft. Thread: one at a time.
// Source: testing.md §4.2.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"

namespace triad::chaos {

class Layout {
 public:
  // With the first free id from `id` on: 1 to 254, and round. Errors: kIoError saying which command
  // failed and how.
  static Result<std::unique_ptr<Layout>> Build(int id);
  ~Layout();
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  const std::vector<std::string>& hosts() const { return hosts_; }
  std::string AddressOf(const std::string& host) const;
  // An address in their network that no host has.
  std::string FreeAddress() const { return AddressOf("nobody"); }
  // What runs a program on `host`, in front of its command line.
  std::vector<std::string> WrapperOf(const std::string& host) const;
  // Moves the calling thread, and those it starts, to `host`.
  Status Enter(const std::string& host) const;

  // `to` receives nothing from `from` any more, silently: whatever addresses it uses.
  Status Cut(const std::string& from, const std::string& to);
  // `to` loses so many of the packets from `from`.
  Status Lose(const std::string& from, const std::string& to, int percent);
  // `host` sends 2 Mbit/s at most.
  Status Slow(const std::string& host);
  // Packets that Cut and Lose dropped so far, healed ones too.
  Result<std::int64_t> Dropped() const;
  // Packets of `host` that had to wait since it is slow.
  Result<std::int64_t> WaitedAt(const std::string& host) const;
  // Everything is as in the beginning.
  Status Heal();

 private:
  explicit Layout(int id);
  // False: another run has this id.
  Result<bool> Claim();
  Status Make();
  Status AddNamespace(const std::string& name);
  Status AddHost(const std::string& host);
  std::string NamespaceOf(const std::string& host) const;
  std::string MacOf(const std::string& host) const;
  Status Rule(const std::string& from, const std::string& to, const std::vector<std::string>& rest);

  const int id_;
  const std::vector<std::string> hosts_{"ns", "n0", "n1", "n2", "c"};
  std::vector<std::string> made_;  // namespaces
  std::vector<std::string> slow_;
};

}  // namespace triad::chaos
