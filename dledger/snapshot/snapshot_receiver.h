// SnapshotReceiver: the follower's side of state transfer, up to a whole and checked file.
//
// No file, socket or thread: the world is behind ReceiverHands. Owner: the log thread. One snapshot
// at a time; another id begins anew, the same id goes on where it was. Nothing of it counts before
// all bytes are there and their checksum is right; then the core decides whether it is installed.
// Bounds: one chunk in memory. Source: architecture.md §3, "Retention and snapshots".

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"
#include "dledger/snapshot/snapshot_types.h"

namespace triad::dledger {

class ReceiverHands {
 public:
  virtual ~ReceiverHands() = default;
  virtual void SendSnapshot(const PeerId& to, SnapshotMessage message) = 0;
  // File work, one at a time, each answered by OnDone(id, ok), always, once.
  virtual void CreateIncoming(std::uint64_t id, std::uint64_t bytes) = 0;  // also checks for room
  virtual void WriteIncoming(std::uint64_t id, std::string data) = 0;      // behind what is there
  virtual void SealIncoming(std::uint64_t id, const SnapshotHead& head) = 0;
  // It waits, whole and checked: to be installed, which is answered by OnInstalled or OnRefused.
  virtual void Install(const SnapshotHead& head) = 0;
};

class SnapshotReceiver {
 public:
  explicit SnapshotReceiver(ReceiverHands* hands);

  // `follows`: the offer comes from the leader that this peer follows, in its term.
  void OnOffer(const PeerId& from, const SnapshotOffer& offer, bool follows, TimePoint now);
  void OnChunk(const PeerId& from, const SnapshotChunk& chunk, TimePoint now);
  void OnDone(std::uint64_t id, bool ok, TimePoint now);
  void OnInstalled();
  void OnRefused();  // it is older than what this peer has

 private:
  enum class State { kIdle, kCreating, kReceiving, kWriting, kSealing, kInstalling };

  void Answer(SnapshotAnswer::Kind kind);
  void AskForMore();
  void Seal();
  void LogProgress(TimePoint now);

  ReceiverHands* const hands_;
  State state_ = State::kIdle;
  PeerId from_;
  std::uint64_t id_ = 0;
  SnapshotHead head_;
  std::uint64_t offset_ = 0;
  std::uint64_t writing_ = 0;
  std::uint64_t installed_id_ = 0;
  std::optional<std::pair<PeerId, SnapshotOffer>> next_;  // came while file work was under way
  TimePoint started_at_;
  int percent_logged_ = 0;
};

}  // namespace triad::dledger
