// NodeHarness: real nodes in this process, on loopback ports and fresh directories.
//
// Waiting: Board::Await evaluates a predicate whenever any application hears something (at least
// every 100 ms, OnApplyIdle), until a deadline. Nothing sleeps.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/file_system.h"
#include "dledger/node.h"

namespace triad::dledger {

// The payload of the i-th entry.
inline std::string Text(int i) {
  return "text " + std::to_string(i);
}

inline constexpr std::chrono::milliseconds kPatience{20000};

class Board {
 public:
  void Notify();
  bool Await(const std::function<bool()>& predicate,
             std::chrono::milliseconds patience = kPatience);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

struct RecorderState {
  LogIndex index;
  std::uint32_t crc = 0;
  bool operator==(const RecorderState&) const = default;
};

// An append-only application: remembers every entry it was given. Its state is a checksum over all
// of them, which is durable at once when `keeps_state`.
class Recorder : public Application {
 public:
  using State = RecorderState;
  explicit Recorder(Board& board, bool keeps_state = false, State state = {})
      : board_(board), keeps_state_(keeps_state), state_(state) {}

  BuildResult Build(const BuildContext& context, std::string* payload) override;
  void OnLeaderChange(const LeaderInfo& info) override;
  void Apply(std::span<const EntryRef> entries) override;
  void OnApplyIdle() override { board_.Notify(); }
  LogIndex DurableIndex() const override;
  Result<StateImage> TakeImage() override;
  Status InstallImage(StoredPieces* pieces, LogIndex applied, LogIndex first) override;

  void Queue(std::string payload);
  std::vector<EntryRef> applied() const;
  std::size_t applied_count() const;
  bool has_applied(const std::string& payload) const;
  std::vector<LeaderInfo> changes() const;
  State state() const;
  int installed() const;            // snapshots
  std::thread::id builder() const;  // who made the last entry
  // Apply thread, behind an installation. Set before the node starts.
  void set_on_installed(std::function<void()> heard) { on_installed_ = std::move(heard); }

 private:
  Board& board_;
  const bool keeps_state_;
  State state_;
  int installed_ = 0;
  std::thread::id builder_;
  std::function<void()> on_installed_;
  mutable std::mutex mutex_;
  std::deque<std::string> queue_;
  std::vector<EntryRef> applied_;
  std::vector<LeaderInfo> changes_;
};

// Payload without the entry's padding; recorder payloads carry their own length.
std::string Sized(std::string text);
std::string_view TextOf(const Entry& entry);

class TempDir {
 public:
  TempDir();
  ~TempDir();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A port of 127.0.0.1 that was free a moment ago.
std::uint16_t FreePort();

// The machine's file system, but for the boot id and a disk that is full, which a test decides.
class BootFileSystem : public FileSystem {
 public:
  explicit BootFileSystem(std::string boot_id_path) : boot_id_path_(std::move(boot_id_path)) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) override;
  Status Rename(const std::string& from, const std::string& to) override {
    return PosixFileSystem().Rename(from, to);
  }
  Status Remove(const std::string& path) override { return PosixFileSystem().Remove(path); }
  Status CreateDirs(const std::string& path) override { return PosixFileSystem().CreateDirs(path); }
  Status SyncDir(const std::string& path) override { return PosixFileSystem().SyncDir(path); }
  Result<std::vector<DirEntry>> List(const std::string& path) override {
    return PosixFileSystem().List(path);
  }
  Result<Space> GetSpace(const std::string& path) override {
    return PosixFileSystem().GetSpace(path);
  }
  bool Exists(const std::string& path) override { return PosixFileSystem().Exists(path); }
  // No file grows any more: kNoSpace.
  void set_full(bool is_full) { *is_full_ = is_full; }

 private:
  const std::string boot_id_path_;
  const std::shared_ptr<std::atomic<bool>> is_full_ = std::make_shared<std::atomic<bool>>(false);
};

class Cluster {
 public:
  explicit Cluster(std::size_t peers);
  ~Cluster();

  NodeOptions& options(std::size_t i) { return members_[i].options; }
  // Called by peer i, from its next start on, behind each installation of a state.
  void set_on_installed(std::size_t i, std::function<void()> heard) {
    members_[i].on_installed = std::move(heard);
  }
  Status Start(std::size_t i);
  void StartAll();
  void Stop(std::size_t i);
  void Wipe(std::size_t i);  // stopped: an empty directory, no state
  // Stopped: as if it had voted so in an earlier life.
  void SaveVote(std::size_t i, const HardState& vote);
  void FillDisk(std::size_t i, bool is_full) { members_[i].fs->set_full(is_full); }
  // From here on the peers' states survive a restart, and retention may drop what they hold.
  void KeepState() { keeps_state_ = true; }
  // Of the applications, once all that run hold the same entries.
  bool AwaitEqualStates();
  // As if the machines of `which` had been switched off just now and on again; all peers stop.
  void Reboot(const std::vector<std::size_t>& which);

  bool is_running(std::size_t i) const { return members_[i].node != nullptr; }
  Node& node(std::size_t i) { return *members_[i].node; }
  Recorder& recorder(std::size_t i) { return *members_[i].recorder; }
  std::size_t size() const { return members_.size(); }
  Board& board() { return board_; }

  // Index of a running peer that leads and is ready.
  std::optional<std::size_t> Leader();
  std::size_t AwaitLeader();
  // Through whoever leads; waits until every running peer has applied it.
  void Commit(const std::string& text);
  // Proposes on `i`, waits for nothing.
  void Propose(std::size_t i, const std::string& text);
  bool AwaitAppliedByAll(const std::string& text);
  Status AwaitRead(std::size_t i, std::chrono::milliseconds timeout = kPatience);
  // Bytes of all entries that a peer applied since its start.
  std::string AppliedBytes(std::size_t i);
  bool AwaitIdentical(std::size_t a, std::size_t b);

 private:
  struct Member {
    NodeOptions options;
    std::unique_ptr<BootFileSystem> fs;
    std::string boot_id_path;
    std::unique_ptr<Recorder> recorder;
    std::unique_ptr<Node> node;
    Recorder::State state;  // of a stopped peer
    std::function<void()> on_installed;
  };
  bool keeps_state_ = false;
  TempDir dir_;
  Board board_;
  std::vector<Member> members_;
};

}  // namespace triad::dledger
