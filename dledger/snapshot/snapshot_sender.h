// SnapshotSender: the leader's side of state transfer: who is sent one, and how far it is.
//
// No file, socket or thread: the world is behind SenderHands. Owner: the log thread. One image
// serves every peer that needs one and is made anew when the log has forgotten what it begins with.
// Per peer one chunk is under way; silence repeats the offer, and the answer says where to go on,
// also on another connection. Bounds: a chunk per peer in memory, `bytes_per_second` in all.
// Source: architecture.md §3, "Retention and snapshots".

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/clock.h"
#include "dledger/snapshot/snapshot_types.h"

namespace triad::dledger {

class SenderHands {
 public:
  virtual ~SenderHands() = default;
  virtual void SendSnapshot(const PeerId& to, SnapshotMessage message) = 0;
  virtual void MakeImage() = 0;  // answered by OnImage, always, once
  // Answered by OnChunk, always, once.
  virtual void ReadImage(const PeerId& peer, std::uint64_t id, std::uint64_t offset) = 0;
  virtual void DropImage() = 0;  // nobody needs it any more
  // The transfer to `peer` ended; `base_index`: the entry before the first of the log it got.
  virtual void OnSent(const PeerId& peer, Term term, bool ok, LogIndex base_index) = 0;
  virtual std::uint64_t NewSnapshotId() = 0;  // random, not 0
};

class SnapshotSender {
 public:
  SnapshotSender(SenderHands* hands, std::uint64_t bytes_per_second);

  // The leader of `term` needs `peer` to have a snapshot; the log begins at `log_first`.
  void Start(const PeerId& peer, Term term, LogIndex log_first, TimePoint now);
  void OnImage(const std::optional<SnapshotHead>& head,
               TimePoint now);  // nothing: could not be made
  // Empty data: could not be read.
  void OnChunk(const PeerId& peer, std::uint64_t id, std::uint64_t offset, std::string data,
               TimePoint now);
  void OnAnswer(const PeerId& peer, const SnapshotAnswer& answer, TimePoint now);
  void OnTick(TimePoint now);
  // Not the leader any more, or of another term: every transfer ends without a word to the core.
  void StopAll();

 private:
  struct Transfer {
    Term term;
    LogIndex log_first;
    TimePoint started_at;
    TimePoint heard_at;
    TimePoint asked_at;  // the offer or chunk that waits for an answer
    bool is_reading = false;
    std::optional<std::uint64_t> wanted;  // offset of the chunk that waits for the rate limit
    int percent_logged = 0;
  };
  struct Image {
    std::uint64_t id = 0;
    SnapshotHead head;
  };

  bool Usable(const Transfer& transfer) const;
  void MakeImageIfNeeded();
  void Offer(const PeerId& peer, Transfer* transfer, TimePoint now);
  void ReadNext(const PeerId& peer, Transfer* transfer, TimePoint now);
  void LogProgress(const PeerId& peer, Transfer* transfer, std::uint64_t offset, TimePoint now);
  void End(const PeerId& peer, bool ok);
  bool TakeTokens(TimePoint now);

  SenderHands* const hands_;
  const std::uint64_t bytes_per_second_;
  std::map<PeerId, Transfer> transfers_;
  std::optional<Image> image_;
  bool is_making_ = false;
  double tokens_ = 0;  // bytes that may be sent now
  TimePoint tokens_at_;
};

}  // namespace triad::dledger
