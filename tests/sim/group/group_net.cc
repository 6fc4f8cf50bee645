#include "tests/sim/group/group_net.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "broker/processor/codes.h"
#include "remoting/frame.h"
#include "tests/sim/group/group_oracle.h"
#include "tests/sim/group/sim_peer.h"

namespace triad::sim {
namespace {

constexpr Micros kConnectTimeout = 3 * kSecond;

dledger::PeerFrame ThroughTheCodec(const dledger::PeerFrame& frame) {
  std::string bytes = dledger::EncodeFrameHead(frame);
  for (const dledger::EntryRef& entry : dledger::FrameEntries(frame)) bytes += entry->bytes;
  Result<dledger::PeerFrame> read = dledger::DecodeFrame(bytes);
  CHECK(read.ok()) << read.status();
  return std::move(read).value();
}

}  // namespace

std::string AddressOf(int peer) {
  return "10.0.0." + std::to_string(peer + 1) + ":10911";
}

int PeerOf(const std::string& address) {
  for (int peer = 0; peer < kPeersMax; ++peer) {
    if (address == AddressOf(peer)) return peer;
  }
  return -1;
}

// What a connection thread does around the requests of one read; also when the peer dies of one.
class Around {
 public:
  explicit Around(const remoting::ServerHandler& handler) : handler_(handler) {
    handler_.before_requests();
  }
  ~Around() { handler_.after_requests(); }
  Around(const Around&) = delete;
  Around& operator=(const Around&) = delete;

 private:
  const remoting::ServerHandler& handler_;
};

// Of a frame whose connection broke only the first half came: the decoder must wait for the rest.
void CutInHalf(const remoting::Command& request) {
  const Result<std::string> frame = remoting::EncodeFrame(request);
  CHECK(frame.ok()) << frame.status();
  remoting::FrameDecoder decoder;
  decoder.Append(std::string_view(*frame).substr(0, frame->size() / 2));
  const Result<std::optional<remoting::Command>> none = decoder.Next();
  CHECK(none.ok() && !none->has_value()) << "half a frame was taken for a request";
}

// As it comes from a socket: plain sends go their short way.
bool TakesFrame(const remoting::ServerHandler& handler, const remoting::ConnectionPtr& connection,
                const remoting::Command& request) {
  const Result<std::string> frame = remoting::EncodeFrame(request);
  CHECK(frame.ok()) << frame.status();
  return handler.on_frame(connection, *frame);
}

// The server's end of a connection.
class LoopConnection final : public remoting::Connection {
 public:
  LoopConnection(GroupNet& net, int from, int to, std::uint64_t epoch, std::uint64_t id)
      : net_(net),
        from_(from),
        to_(to),
        epoch_(epoch),
        id_(id),
        life_(net.peers_[static_cast<std::size_t>(to)]->life()),
        address_("10.0.1." + std::to_string(from + 1) + ":50000") {}

  void Send(remoting::Command command) override {
    if (life_->over || !command.is_response()) return;
    net_.Answer(from_, to_, epoch_, std::move(command));
  }
  void SendFrames(std::string frames, std::size_t count) override {
    remoting::FrameDecoder decoder;
    decoder.Append(frames);
    for (std::size_t left = count; left > 0; --left) {
      Result<std::optional<remoting::Command>> answer = decoder.Next();
      CHECK(answer.ok() && answer->has_value()) << answer.status();
      Send(std::move(**answer));
    }
    CHECK_EQ(decoder.buffered_bytes(), 0u);
  }
  void Call(remoting::Command, std::chrono::milliseconds,
            std::function<void(Result<remoting::Command>)> done) override {
    done(Status::Unavailable("nobody answers calls here"));
  }
  void ForgetRequest() override {}
  void Close() override {}
  bool closed() const override { return net_.calls(from_, to_).epoch != epoch_; }
  std::uint64_t id() const override { return id_; }
  const std::string& remote_address() const override { return address_; }
  remoting::SerializeType last_serialize_type() const override {
    return remoting::SerializeType::kJson;
  }
  void Post(std::function<void()> task) override {
    if (life_->over) return;
    net_.peers_[static_cast<std::size_t>(to_)]->Post(0, std::move(task));
  }

 private:
  GroupNet& net_;
  const int from_;
  const int to_;
  const std::uint64_t epoch_;
  const std::uint64_t id_;
  const LifePtr life_;
  const std::string address_;
};

GroupNet::GroupNet(const GroupOptions& options, EventLoop& loop, GroupOracle& oracle)
    : options_(options), loop_(loop), oracle_(oracle), dice_(options.seed ^ 0x6e6574u) {}

GroupNet::~GroupNet() = default;

// A peer's events end with its life and wait while it is paused; a client has neither.
void GroupNet::AtNode(int node, Micros at, std::function<void()> task) {
  if (node >= options_.machines()) {
    loop_.At(at, std::move(task));
    return;
  }
  peers_[static_cast<std::size_t>(node)]->Post(at - loop_.now(), std::move(task));
}

Micros GroupNet::Arrival(int from, int to, Micros* last) {
  Micros delay = dice_.Between(20, healed_ ? 500 : options_.delay_max);
  if (!healed_ && options_.tail_delay_max > 0 && dice_.OneIn(100)) {
    delay += dice_.Between(0, options_.tail_delay_max);
  }
  *last = std::max(*last, std::max(loop_.now(), cut(from, to)) + delay);
  return *last;
}

// ---- between peers ----

void GroupNet::OnPeerUp(int peer) {
  for (int other = 0; other < options_.machines(); ++other) {
    if (other != peer) raft(peer, other) = RaftSession{.epoch = raft(peer, other).epoch + 1};
  }
  DialWanted(peer);
}

const PeerId& GroupNet::IdOf(int machine) const {
  return peers_[static_cast<std::size_t>(machine)]->id();
}

void GroupNet::DialWanted(int from) {
  for (int to = 0; to < options_.machines(); ++to) {
    const bool is_wanted = !peers_[static_cast<std::size_t>(from)]->dialled(to).empty();
    if (!is_wanted || raft(from, to).up || raft(from, to).dialling) continue;
    Dial(from, to, dice_.Between(0, 5 * kMs));
  }
}

void GroupNet::OnPeerDown(int peer, bool noticed) {
  for (int other = 0; other < options_.machines(); ++other) {
    if (other == peer) continue;
    raft(peer, other).up = false;
    ++raft(peer, other).epoch;
    raft(peer, other).dialling = false;
    if (raft(other, peer).up) {
      raft(other, peer).up = false;
      ++raft(other, peer).epoch;
      const Micros after = noticed ? dice_.Between(20, 5 * kMs) : dice_.Between(kMs, kSecond);
      const PeerId id = IdOf(peer);
      SimPeer* const there = peers_[static_cast<std::size_t>(other)];
      if (there->up()) {
        there->Post(after, [this, there, id, other, peer] {
          there->node()->OnDisconnected(id);
          Dial(other, peer, dice_.Between(20 * kMs, 100 * kMs));
        });
      }
    }
  }
  for (int node = 0; node < kNodesMax; ++node) {
    BreakCalls(node, peer);
    if (node < options_.machines()) BreakCalls(peer, node);
  }
}

void GroupNet::Dial(int from, int to, Micros delay) {
  if (raft(from, to).up || std::exchange(raft(from, to).dialling, true)) return;
  peers_[static_cast<std::size_t>(from)]->Post(delay, [this, from, to] { Connect(from, to); });
}

void GroupNet::Connect(int from, int to) {
  RaftSession& session = raft(from, to);
  session.dialling = false;
  SimPeer* const there = peers_[static_cast<std::size_t>(to)];
  SimPeer* const here = peers_[static_cast<std::size_t>(from)];
  if (session.up || here->dialled(to).empty()) return;
  const bool is_there = there->up() && there->id() == here->dialled(to);
  const bool reachable = is_there && !there->paused() && !IsCut(from, to) && !IsCut(to, from);
  const std::uint64_t ours = here->node()->group_id();
  const std::uint64_t theirs = reachable ? there->node()->group_id() : 0;
  if (reachable && ours != 0 && theirs != 0 && ours != theirs) {
    oracle_.Fail("R1", "two groups were founded");
    return;
  }
  if (!reachable) return Dial(from, to, dice_.Between(20 * kMs, 200 * kMs));
  session.up = true;
  ++session.epoch;
  session.last_arrival = loop_.now();
  dledger::Hello our_hello = here->node()->OwnState();
  our_hello.from = here->id();
  our_hello.peer_address = PeerAddressOf(from);
  dledger::Hello their_hello = there->node()->OwnState();
  their_hello.from = there->id();
  their_hello.peer_address = PeerAddressOf(to);
  there->Post(dice_.Between(20, 500), [there, our_hello] { there->node()->OnHello(our_hello); });
  here->Post(dice_.Between(20, 500), [here, their_hello] { here->node()->OnHello(their_hello); });
}

void GroupNet::SendRaft(int from, int to, dledger::PeerFrame frame) {
  RaftSession& session = raft(from, to);
  if (!session.up) return;
  if (dice_.OneIn(8)) frame = ThroughTheCodec(frame);
  const Micros at = Arrival(from, to, &session.last_arrival);
  SimPeer* const there = peers_[static_cast<std::size_t>(to)];
  if (!there->up()) return;
  there->Post(at - loop_.now(), [this, there, from, to, epoch = session.epoch, id = IdOf(from),
                                 frame = std::move(frame)]() mutable {
    const RaftSession& now = raft(from, to);
    const bool had_arrived = now.epoch == epoch + 1 && loop_.now() <= now.arrived_until;
    if (now.epoch != epoch && !had_arrived) return;
    if (auto* message = std::get_if<dledger::Message>(&frame.body)) {
      return there->node()->OnMessage(id, std::move(*message), frame.wall_ms);
    }
    auto& message = std::get<dledger::SnapshotMessage>(frame.body);
    there->node()->OnSnapshot(id, std::move(message));
  });
}

void GroupNet::BreakRaft(int a, int b) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    RaftSession& session = raft(from, to);
    if (!session.up) continue;
    session.up = false;
    ++session.epoch;
    const Micros noticed = dice_.Between(0, 50 * kMs);
    session.arrived_until = loop_.now() + (dice_.OneIn(2) ? dice_.Between(0, noticed) : 0) - 1;
    for (const int end : {from, to}) {
      SimPeer* const peer = peers_[static_cast<std::size_t>(end)];
      const PeerId other = IdOf(end == from ? to : from);
      if (!peer->up()) continue;
      peer->Post(noticed, [this, peer, other, end, from = from, to = to] {
        peer->node()->OnDisconnected(other);
        if (end == from) Dial(from, to, dice_.Between(20 * kMs, 100 * kMs));
      });
    }
  }
}

// ---- requests ----

bool GroupNet::ConnectCalls(int from, int to) {
  CallSession& session = calls(from, to);
  if (session.connection != nullptr) return true;
  SimPeer* const there = peers_[static_cast<std::size_t>(to)];
  if (!there->up() || !there->server().on_request) return false;
  if (IsCut(from, to) || IsCut(to, from)) return false;
  ++session.epoch;
  session.connection =
      std::make_shared<LoopConnection>(*this, from, to, session.epoch, next_connection_++);
  session.last_there = session.last_back = loop_.now();
  return true;
}

void GroupNet::Call(int from, int to, remoting::Command request, Micros timeout, Done done) {
  CallSession& session = calls(from, to);
  if (!ConnectCalls(from, to)) {
    const bool cut_off = IsCut(from, to) || IsCut(to, from);
    const Micros after = cut_off ? std::min(timeout, kConnectTimeout) : dice_.Between(50, kMs);
    AtNode(from, loop_.now() + after,
           [done = std::move(done)] { done(Status::Unavailable("cannot connect")); });
    return;
  }
  const std::int32_t opaque = session.next_opaque++;
  session.pending[opaque] =
      Pending{.code = request.code, .opaque = request.opaque, .done = std::move(done)};
  request.opaque = opaque;
  AtNode(from, loop_.now() + timeout, [this, from, to, opaque] {
    Fail(from, to, opaque, Status::TimedOut("no answer in time"));
  });
  SendRequest(from, to, std::move(request));
}

void GroupNet::CallOneWay(int from, int to, remoting::Command request) {
  if (!ConnectCalls(from, to)) return;
  request.flag |= remoting::kFlagOneway;
  request.opaque = calls(from, to).next_opaque++;
  SendRequest(from, to, std::move(request));
}

void GroupNet::SendRequest(int from, int to, remoting::Command request) {
  CallSession& session = calls(from, to);
  const Micros at = Arrival(from, to, &session.last_there);
  if (std::exchange(breaks_next_, false) && !healed_) {
    loop_.At(dice_.Between(loop_.now(), at), [this, from, to] { BreakCalls(from, to); });
  }
  peers_[static_cast<std::size_t>(to)]->Post(
      at - loop_.now(), [this, from, to, epoch = session.epoch, connection = session.connection,
                         request = std::move(request)]() mutable {
        Arrive(from, to, epoch, connection, std::move(request));
      });
}

void GroupNet::Arrive(int from, int to, std::uint64_t epoch,
                      const remoting::ConnectionPtr& connection, remoting::Command request) {
  CallSession& now = calls(from, to);
  if (now.epoch != epoch || now.connection == nullptr) {
    if (now.epoch != epoch + 1 || loop_.now() > now.arrived_until) return;
    if (dice_.OneIn(2)) {
      // The break went through this one.
      ++halves_;
      now.arrived_until = 0;
      return CutInHalf(request);
    }
  }
  const remoting::ServerHandler handler = peers_[static_cast<std::size_t>(to)]->server();
  if (!handler.on_request) return;
  const Around around(handler);
  if (dice_.OneIn(2) && TakesFrame(handler, connection, request)) return;
  handler.on_request(connection, std::move(request));
}

void GroupNet::Answer(int from, int to, std::uint64_t epoch, remoting::Command response) {
  CallSession& session = calls(from, to);
  if (session.epoch != epoch) return;
  const auto found = session.pending.find(response.opaque);
  if (found == session.pending.end()) return;  // the caller gave up
  oracle_.OnAnswerLeaves(to, found->second.code, response);
  const Micros at = Arrival(to, from, &session.last_back);
  AtNode(from, at, [this, from, to, epoch, response = std::move(response)]() mutable {
    CallSession& now = calls(from, to);
    const auto waiting = now.pending.find(response.opaque);
    if (now.epoch != epoch || waiting == now.pending.end()) return;
    Pending pending = std::move(waiting->second);
    now.pending.erase(waiting);
    response.opaque = pending.opaque;
    pending.done(std::move(response));
  });
}

void GroupNet::Fail(int from, int to, std::int32_t opaque, Status why) {
  CallSession& session = calls(from, to);
  const auto found = session.pending.find(opaque);
  if (found == session.pending.end()) return;
  const Done done = std::move(found->second.done);
  session.pending.erase(found);
  done(std::move(why));
}

void GroupNet::BreakCalls(int from, int to) {
  CallSession& session = calls(from, to);
  if (session.connection == nullptr) return;
  const remoting::ConnectionPtr connection = std::exchange(session.connection, nullptr);
  ++session.epoch;
  const Micros noticed = dice_.Between(0, 20 * kMs);
  session.arrived_until = loop_.now() + (dice_.OneIn(2) ? dice_.Between(0, noticed) : 0) - 1;
  const std::map<std::int32_t, Pending> pending = std::exchange(session.pending, {});
  for (const auto& [opaque, one] : pending) {
    AtNode(from, loop_.now() + dice_.Between(0, 20 * kMs), [done = one.done] {
      done(Status::Unavailable("the connection was lost before an answer"));
    });
  }
  SimPeer* const there = peers_[static_cast<std::size_t>(to)];
  if (!there->up()) return;
  there->Post(noticed, [there, connection] {
    if (there->server().on_closed) there->server().on_closed(connection);
  });
}

void GroupNet::Heal() {
  healed_ = true;
  cuts_.fill(0);
}

// ---- the broker's client ----

namespace {

class LoopClient final : public remoting::Client {
 public:
  LoopClient(GroupNet& net, int peer) : net_(net), peer_(peer) {}

  void Call(const std::string& address, remoting::Command request,
            std::chrono::milliseconds timeout,
            std::function<void(Result<remoting::Command>)> done) override {
    const int to = PeerOf(address);
    CHECK_GE(to, 0) << address;
    net_.Call(peer_, to, std::move(request), timeout.count() * kMs, std::move(done));
  }
  Result<remoting::Command> CallSync(const std::string&, remoting::Command,
                                     std::chrono::milliseconds) override {
    return Status::Unsupported("one thread cannot wait");
  }
  void Oneway(const std::string& address, remoting::Command request,
              std::function<void(Status)> done) override {
    Call(address, std::move(request), std::chrono::milliseconds(1000),
         [](const Result<remoting::Command>&) {});
    if (done) done(Status::Ok());
  }
  void Disconnect(const std::string&) override {}
  void Stop() override {}

 private:
  GroupNet& net_;
  const int peer_;
};

}  // namespace

std::unique_ptr<remoting::Client> MakeLoopClient(GroupNet& net, int peer) {
  return std::make_unique<LoopClient>(net, peer);
}

}  // namespace triad::sim
