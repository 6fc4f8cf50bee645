// GroupNet: the wires between peers, and between clients and peers.
//
// Connections keep their order, as TCP does. A cut is silent: what is sent meanwhile waits until it
// ends. A broken connection loses what is on its way, but for what had arrived already, the last
// frame of that cut in half; both ends hear of it. Nodes: peers first, then clients. Thread: the
// simulator's only one.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dledger/peer/peer_codec.h"
#include "remoting/client.h"
#include "remoting/server.h"
#include "tests/sim/group/event_loop.h"
#include "tests/sim/group/group_options.h"
#include "tests/sim/random.h"

namespace triad::sim {

class SimPeer;
class GroupOracle;

class GroupNet {
 public:
  static constexpr int kNodesMax = 24;
  using Done = std::function<void(Result<remoting::Command>)>;

  GroupNet(const GroupOptions& options, EventLoop& loop, GroupOracle& oracle);
  ~GroupNet();

  // `peers` outlive the net.
  void SetPeers(std::vector<SimPeer*> peers) { peers_ = std::move(peers); }

  // ---- a peer's process begins and ends ----
  void OnPeerUp(int peer);
  // `noticed`: the others see their connections close; else they wait for what does not come.
  void OnPeerDown(int peer, bool noticed);

  // ---- between peers ----
  void SendRaft(int from, int to, dledger::PeerFrame frame);
  bool connected(int from, int to) const { return raft_[Index(from, to)].up; }
  const PeerId& IdOf(int machine) const;  // now
  void DialWanted(int from);              // whom SimPeer::dialled names
  // ---- requests; `done` runs at `from`, once, unless `from` is a peer whose life ended ----
  void Call(int from, int to, remoting::Command request, Micros timeout, Done done);

  // Nobody answers, and nobody hears what became of it.
  void CallOneWay(int from, int to, remoting::Command request);

  // ---- faults ----
  void Cut(int from, int to, Micros until) { cut(from, to) = until; }
  void BreakRaft(int a, int b);
  void BreakCalls(int from, int to);
  void BreakNextCall() { breaks_next_ = true; }  // while the request is on its way
  void Heal();

  Random& dice() { return dice_; }
  std::uint64_t halves() const { return halves_; }  // frames cut in half by a break

 private:
  friend class LoopConnection;
  struct RaftSession {  // what `from` dialled
    bool up = false;
    bool dialling = false;
    std::uint64_t epoch = 0;
    Micros last_arrival = 0;
    Micros arrived_until = 0;  // of the epoch that broke: that much was there already
  };
  struct Pending {
    std::int32_t code = 0;
    std::int32_t opaque = 0;  // the caller's own
    Done done;
  };
  struct CallSession {
    std::uint64_t epoch = 0;
    remoting::ConnectionPtr connection;  // null: not connected
    Micros last_there = 0;
    Micros last_back = 0;
    Micros arrived_until = 0;  // as above
    std::int32_t next_opaque = 1;
    std::map<std::int32_t, Pending> pending;
  };

  // The connection that a request of `from` goes on. False: there is none.
  bool ConnectCalls(int from, int to);
  void SendRequest(int from, int to, remoting::Command request);
  void Arrive(int from, int to, std::uint64_t epoch, const remoting::ConnectionPtr& connection,
              remoting::Command request);
  void Dial(int from, int to, Micros delay);
  void Connect(int from, int to);
  void AtNode(int node, Micros at, std::function<void()> task);
  Micros Arrival(int from, int to, Micros* last);
  void Answer(int from, int to, std::uint64_t epoch, remoting::Command response);
  void Fail(int from, int to, std::int32_t opaque, Status why);
  bool IsCut(int from, int to) { return cut(from, to) > loop_.now(); }
  Micros& cut(int from, int to) { return cuts_[Index(from, to)]; }
  RaftSession& raft(int from, int to) { return raft_[Index(from, to)]; }
  CallSession& calls(int from, int to) { return calls_[Index(from, to)]; }
  static std::size_t Index(int from, int to) {
    return static_cast<std::size_t>(from * kNodesMax + to);
  }

  const GroupOptions& options_;
  EventLoop& loop_;
  GroupOracle& oracle_;
  Random dice_;
  std::vector<SimPeer*> peers_;
  bool healed_ = false;
  std::uint64_t next_connection_ = 1;
  std::uint64_t halves_ = 0;
  bool breaks_next_ = false;
  std::array<Micros, kNodesMax * kNodesMax> cuts_{};
  std::array<RaftSession, kNodesMax * kNodesMax> raft_;
  std::array<CallSession, kNodesMax * kNodesMax> calls_;
};

// The broker's client, for forwarding.
std::unique_ptr<remoting::Client> MakeLoopClient(GroupNet& net, int peer);
std::string AddressOf(int peer);         // "10.0.0.1:10911"
int PeerOf(const std::string& address);  // -1: nobody's

}  // namespace triad::sim
