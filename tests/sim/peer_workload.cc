#include "tests/sim/peer_workload.h"

#include <glog/logging.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "broker/state/state_image.h"
#include "broker/store/message.h"
#include "common/crc32c.h"
#include "dledger/snapshot_desk.h"
#include "tests/sim/one_peer.h"

namespace triad::sim {
namespace {

constexpr int kQueues = 2;
constexpr char kTopic[] = "T";

TopicQueue QueueOf(int message) {
  return {Topic(kTopic), QueueId{message % kQueues}};
}
std::string BodyOf(int message) {
  return "message " + std::to_string(message) + std::string(200, '.');
}

Status Create(OnePeer* peer, const std::string& topic) {
  broker::Proposal proposal;
  proposal.command.put_topics.emplace_back().name = Topic(topic);
  return peer->Send(std::move(proposal));
}

Status SendMessage(OnePeer* peer, int message) {
  broker::MessageDraft draft;
  draft.topic = QueueOf(message).topic;
  draft.queue_id = QueueOf(message).queue_id;
  draft.born_time_ms = 1'700'000'000'000;
  draft.born_host = broker::ParseHostPort("10.0.0.9:50000").value();
  draft.body = BodyOf(message);
  draft.properties = "KEYS\x01k\x02";
  broker::Proposal proposal;
  proposal.messages.push_back(std::move(draft));
  return peer->Send(std::move(proposal));
}

// How many messages of the whole store are there, from the first, each in its place and found by
// its key: or what is wrong. kUnavailable: something is being rebuilt.
Result<int> CountMessages(OnePeer* peer) {
  broker::MessageStore& store = peer->store();
  int count = 0;
  for (int queue = 0; queue < kQueues; ++queue) {
    count += static_cast<int>(store.RangeOf(QueueOf(queue)).max.value());
  }
  for (int message = 0; message < count; ++message) {
    const auto units = store.queues().Read(QueueOf(message), QueueOffset(message / kQueues), 1);
    if (!units.ok()) return units.status();
    if (units->empty()) return Status::Corruption("a queue has no unit where it says it has");
    const auto loaded = store.ReadMessage(units->front());
    if (!loaded.ok()) return loaded.status();
    const auto parsed = broker::ParseMessage(loaded->record, true);
    if (!parsed.ok()) return parsed.status();
    if (parsed->body != BodyOf(message)) return Status::Corruption("a message is another one");
  }
  if (count == 0) return 0;
  broker::KeyQuery query;
  query.topic = Topic(kTopic);
  query.key = "k";
  const auto found = store.FindMessages(query);
  if (!found.ok()) return found.status();
  if (found->size() != static_cast<std::size_t>(count)) {
    return Status::Corruption("of " + std::to_string(count) + " messages " +
                              std::to_string(found->size()) + " are found by their key");
  }
  return count;
}

// What of it a broker holds that leads again and has filled what it lacks.
Result<int> CountWhenWhole(OnePeer* peer) {
  TRIAD_RETURN_IF_ERROR(peer->Lead());
  Result<int> count = 0;
  TRIAD_RETURN_IF_ERROR(peer->RunUntil([&] {
    count = CountMessages(peer);
    return count.status().code() != StatusCode::kUnavailable;
  }));
  return count;
}

struct Sent {
  int acked = 0;
  int tried = 0;
};

// Promise: every acknowledged message is there, in its place and under its key, and none that
// nobody sent.
class ServingWorkload : public CrashWorkload {
 public:
  ServingWorkload(std::string name, std::uint64_t seed)
      : name_(std::move(name)), seed_(seed), fs_(seed) {
    fs_.Record(true);
    Mark();
  }

  // ---- the script ----
  void Open() {
    peer_.emplace(fs_, seed_ + promises_.size(), 1);
    const Status opened = peer_->Open();
    CHECK(opened.ok()) << opened;
    const Result<int> count = CountWhenWhole(&*peer_);
    CHECK(count.ok()) << count.status();
    CHECK_EQ(*count, now_.acked);
  }
  void CreateTopic() { CHECK(Create(&*peer_, kTopic).ok()); }
  void Send(int count) {
    for (int i = 0; i < count; ++i) {
      ++now_.tried;
      Mark();
      CHECK(SendMessage(&*peer_, now_.acked).ok());
      now_.acked = now_.tried;
      Mark();
    }
  }
  void Pass(Micros time) {
    const TimePoint end = peer_->clock().MonoNow() + std::chrono::microseconds(time);
    CHECK(peer_->RunUntil([&] { return peer_->clock().MonoNow() >= end; }).ok());
  }
  void Stop() {
    CHECK(peer_->Stop().ok());
    Kill();
  }
  void Kill() {
    peer_.reset();
    fs_.Kill();
  }
  // From here on, as the disk is now: all of it durable.
  void Begin(const std::function<void(SimFileSystem&)>& change) {
    change(fs_);
    fs_.Crash(CrashMode::kKeepAll);
    begin_ = fs_.disk();
    fs_.Record(true);
    Mark();
  }

  // ---- what it left ----
  const std::string& name() const override { return name_; }
  FileDisk begin() const override { return begin_; }
  std::vector<DiskOp> trace() const override { return fs_.trace(); }

  std::string Recover(SimFileSystem& fs, std::uint64_t mark, std::string* found) const override {
    const Sent& promise = promises_.at(static_cast<std::size_t>(mark));
    OnePeer peer(fs, seed_, 1);
    const Status opened = peer.Open();
    if (!opened.ok()) return "does not open: " + opened.ToString();
    const Result<int> count = CountWhenWhole(&peer);
    if (!count.ok()) return count.status().ToString();
    *found = std::to_string(*count);
    if (*count < promise.acked) return "an acknowledged message is lost: there are " + *found;
    if (*count > promise.tried) return "there are messages that nobody sent";
    return {};
  }

 private:
  void Mark() {
    fs_.Mark(promises_.size());
    promises_.push_back(now_);
  }

  const std::string name_;
  const std::uint64_t seed_;
  SimFileSystem fs_;
  FileDisk begin_;
  std::optional<OnePeer> peer_;
  Sent now_;
  std::vector<Sent> promises_;
};

void RemoveAll(SimFileSystem& fs, const std::string& path) {
  const auto entries = fs.List(path);
  CHECK(entries.ok()) << entries.status();
  for (const DirEntry& entry : *entries) {
    const std::string inner = path + "/" + entry.name;
    if (entry.is_directory) {
      RemoveAll(fs, inner);
    } else {
      CHECK(fs.Remove(inner).ok());
    }
  }
  CHECK(fs.Remove(path).ok());
}

// ---- another peer's state -----------------------------------------------------------------------

struct ReceivedState {
  dledger::SnapshotHead head;
  std::string bytes;
  int messages = 0;
};

// Of a peer that has `messages` of the topic; its log begins `behind` entries before the state
// ends.
ReceivedState StateOfAnother(int messages, std::uint64_t behind, std::uint64_t seed) {
  SimFileSystem fs(seed);
  {
    OnePeer peer(fs, seed, 1);
    CHECK(peer.Open().ok());
    CHECK(peer.Lead().ok());
    CHECK(Create(&peer, kTopic).ok());
    CHECK(Create(&peer, "another").ok());
    for (int i = 0; i < messages; ++i) CHECK(SendMessage(&peer, i).ok());
    CHECK(peer.Stop().ok());
  }
  OnePeer peer(fs, seed, 1);
  CHECK(peer.Open().ok());
  const auto records = peer.store().state().NewImage();
  CHECK(records.ok()) << records.status();
  ReceivedState state;
  for (std::string piece; broker::NextImagePiece(records.value().get(), &piece).value();) {
    state.bytes += piece;
  }
  state.messages = messages;
  state.head.applied = peer.store().state().applied_index();
  state.head.total_bytes = state.bytes.size();
  state.head.crc = Crc32c(state.bytes);
  dledger::StoreBase& base = state.head.base;
  base.tail.next_index = LogIndex(state.head.applied.value() + 1 - behind);
  base.tail.position = base.tail.segment_base = PhysicalOffset(1 << 20);
  base.tail.last_term = Term(1);
  base.membership = {.group_id = 7, .voters = {PeerId("n0"), PeerId("n1")}, .learners = {}};
  return state;
}

// A follower gets a state in chunks and installs it, as its disk thread does; then it is killed and
// starts again. Promise: its old log and state, whole, or the new ones, and from the installation's
// end on the new ones.
class InstallWorkload final : public CrashWorkload {
 public:
  InstallWorkload(std::string name, std::uint64_t behind, std::uint64_t seed)
      : name_(std::move(name)),
        seed_(seed),
        received_(StateOfAnother(kNewMessages, behind, seed + 1)),
        fs_(seed) {
    LiveBefore();
    fs_.Crash(CrashMode::kKeepAll);
    begin_ = fs_.disk();
    fs_.Record(true);
    {
      OnePeer peer(fs_, seed_, kPeers);
      CHECK(peer.Open().ok());
      Receive(&peer);
      fs_.Mark(kMayBeNew);
      const Status installed = desk_->InstallPending([](LogIndex) {});
      CHECK(installed.ok()) << installed;
      RunTasks();
      fs_.Mark(kIsNew);
      desk_.reset();
    }
    fs_.Kill();
    OnePeer again(fs_, seed_, kPeers);
    CHECK(again.Open().ok());
  }

  const std::string& name() const override { return name_; }
  FileDisk begin() const override { return begin_; }
  std::vector<DiskOp> trace() const override { return fs_.trace(); }

  std::string Recover(SimFileSystem& fs, std::uint64_t mark, std::string* found) const override {
    OnePeer peer(fs, seed_, kPeers);
    const Status opened = peer.Open();
    if (!opened.ok()) return "does not open: " + opened.ToString();
    const LogIndex applied = peer.store().state().applied_index();
    const bool is_new = applied == received_.head.applied;
    *found = std::to_string(applied.value());
    if (is_new && mark == kIsOld) return "was installed before it was whole";
    if (!is_new && mark == kIsNew) return "an installed state is gone";
    return is_new ? LookAtNew(&peer) : LookAtOld(&peer);
  }

 private:
  static constexpr int kPeers = 2;
  static constexpr int kOldMessages = 5;
  static constexpr int kNewMessages = 12;
  enum : std::uint64_t { kIsOld = 0, kMayBeNew = 1, kIsNew = 2 };

  void LiveBefore() {
    OnePeer peer(fs_, seed_, 1);
    CHECK(peer.Open().ok());
    CHECK(peer.Lead().ok());
    CHECK(Create(&peer, kTopic).ok());
    for (int i = 0; i < kOldMessages; ++i) CHECK(SendMessage(&peer, i).ok());
    CHECK(peer.Stop().ok());
    old_applied_ = peer.store().state().applied_index();
  }

  void Receive(OnePeer* peer) {
    dledger::SnapshotDesk::Links links;
    links.send = [](const PeerId&, const dledger::SnapshotMessage&) {};
    links.connected = [](const PeerId&) { return true; };
    links.post_reader = [this](std::function<void()> task) {
      tasks_.push_back(std::move(task));
      return true;
    };
    links.post_log = [this](std::function<void()> task) { tasks_.push_back(std::move(task)); };
    links.post_apply = [](const std::function<void()>& task) { task(); };
    links.random = [] { return std::uint64_t{1}; };
    links.on_sent = [](const PeerId&, Term, bool, LogIndex) {};
    links.install = [](const dledger::SnapshotHead&) {};
    desk_.emplace(peer->fs(), kPeerLogDir, peer->clock(), peer->node().log(), peer->application(),
                  1u << 30, std::move(links));
    const PeerId leader("n1");
    const auto hear = [&](dledger::SnapshotMessage message) {
      desk_->OnMessage(leader, std::move(message), true, Term(1));
      RunTasks();
    };
    hear(dledger::SnapshotOffer{.term = Term(1), .id = 4, .head = received_.head});
    constexpr std::size_t kChunk = 700;
    for (std::size_t at = 0; at < received_.bytes.size(); at += kChunk) {
      std::string data = received_.bytes.substr(at, kChunk);
      const std::uint32_t crc = Crc32c(data);
      hear(dledger::SnapshotChunk{.id = 4, .offset = at, .crc = crc, .data = std::move(data)});
    }
  }
  void RunTasks() {
    for (; !tasks_.empty(); tasks_.pop_front()) std::function<void()>(tasks_.front())();
  }

  std::string LookAtOld(OnePeer* peer) const {
    if (peer->store().state().applied_index() != old_applied_) return "another state than before";
    if (peer->node().log().base().tail.next_index != LogIndex(1)) {
      return "the new log beside the old state";
    }
    const Result<int> count = CountMessages(peer);
    if (!count.ok()) return "of the old store: " + count.status().ToString();
    return *count == kOldMessages ? "" : "the old store holds " + std::to_string(*count);
  }
  std::string LookAtNew(OnePeer* peer) const {
    const broker::MessageStore& store = peer->store();
    if (!store.state().FindTopic(Topic("another"))) return "the new state lacks a topic";
    if (peer->node().log().base() != received_.head.base) {
      return "the log does not begin where the new state's does";
    }
    if (peer->node().log().recovered().last_index + 1 != received_.head.base.tail.next_index) {
      return "an entry of the old log is left";
    }
    for (int queue = 0; queue < kQueues; ++queue) {
      const auto range = store.queues().Range(QueueOf(queue));
      if (range && range->min != range->max) return "the queues hold units of the old log";
    }
    return {};
  }

  const std::string name_;
  const std::uint64_t seed_;
  const ReceivedState received_;
  SimFileSystem fs_;
  FileDisk begin_;
  LogIndex old_applied_;
  std::deque<std::function<void()>> tasks_;
  std::optional<dledger::SnapshotDesk> desk_;
};

}  // namespace

std::vector<std::unique_ptr<CrashWorkload>> PeerWorkloads(std::uint64_t seed) {
  std::vector<std::unique_ptr<CrashWorkload>> all;
  const auto add = [&](const char* name, const std::function<void(ServingWorkload&)>& script) {
    auto workload = std::make_unique<ServingWorkload>(name, seed + 40 + all.size());
    workload->Open();
    script(*workload);
    all.push_back(std::move(workload));
  };
  const auto live = [](ServingWorkload& w) {
    w.CreateTopic();
    w.Send(9);
    w.Pass(600 * kMs);
    w.Send(4);
  };
  add("broker, flushed and killed", [](ServingWorkload& w) {
    w.CreateTopic();
    w.Stop();
    w.Begin([](SimFileSystem&) {});
    w.Open();
    w.Send(3);
    w.Pass(200 * kMs);
    w.Send(2);
    w.Pass(300 * kMs);
    w.Kill();
    w.Open();
    w.Send(1);
    w.Stop();
  });
  add("queues and keys rebuilt", [&](ServingWorkload& w) {
    live(w);
    w.Stop();
    w.Begin([](SimFileSystem& fs) {
      RemoveAll(fs, "/store/consumequeue");
      RemoveAll(fs, "/store/keyindex");
    });
    w.Open();
    w.Pass(300 * kMs);
    w.Kill();
    w.Open();
    w.Stop();
  });
  add("a rotten queue rebuilt", [&](ServingWorkload& w) {
    live(w);
    w.Stop();
    w.Begin([](SimFileSystem& fs) {
      const std::string dir = "/store/consumequeue/T/0";
      fs.Rot(dir + "/" + fs.List(dir)->front().name, 30, 1);
    });
    w.Open();
    w.Pass(300 * kMs);
    w.Send(1);
    w.Stop();
  });
  all.push_back(std::make_unique<InstallWorkload>("state installed", 0, seed + 60));
  all.push_back(
      std::make_unique<InstallWorkload>("state ahead of its log installed", 3, seed + 61));
  return all;
}

}  // namespace triad::sim
