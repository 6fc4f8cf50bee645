// SnapshotDesk: state transfer's hands: the files, threads and calls around SnapshotSender and
// SnapshotReceiver. Private to dledger/.
//
// Owner: the log thread, but for InstallPending (disk thread). File work runs on reader threads;
// the application's image is taken and installed on the apply thread. Bounds: one image file and
// one incoming file, a chunk in memory per peer.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/file_system.h"
#include "dledger/log/log_store.h"
#include "dledger/node.h"
#include "dledger/snapshot/snapshot_file.h"
#include "dledger/snapshot/snapshot_receiver.h"
#include "dledger/snapshot/snapshot_sender.h"

namespace triad::dledger {

class SnapshotDesk final : private SenderHands, private ReceiverHands {
 public:
  // What the node does for it.
  struct Links {
    std::function<void(const PeerId&, SnapshotMessage)> send;  // log thread
    std::function<bool(const PeerId&)> connected;              // log thread
    std::function<bool(std::function<void()>)> post_reader;    // false: too many wait
    std::function<void(std::function<void()>)> post_apply;
    std::function<void(std::function<void()>)> post_log;
    std::function<std::uint64_t()> random;
    // Log thread. A transfer to a peer ended.
    std::function<void(const PeerId&, Term, bool ok, LogIndex base_index)> on_sent;
    // Log thread. A snapshot waits, whole and checked, for InstallPending or OnRefused.
    std::function<void(const SnapshotHead&)> install;
  };
  // All outlive it.
  SnapshotDesk(FileSystem& fs, std::string log_dir, const Clock& clock, LogStore& log,
               Application& application, std::uint64_t bytes_per_second, Links links);

  // ---- log thread ----
  void OnNeeded(const PeerId& peer, Term term);
  // `follows`: the sender is the leader that this peer follows; `term` is this peer's.
  void OnMessage(const PeerId& from, SnapshotMessage message, bool follows, Term term);
  void OnTick() { sender_.OnTick(clock_.MonoNow()); }
  void StopSending() { sender_.StopAll(); }
  void OnRefused();

  // ---- disk thread ----
  // Log and state become the snapshot's. `take_over` runs on the apply thread behind the
  // application's part. A crash inside leaves the old ones, or the new ones after the next start.
  Status InstallPending(const std::function<void(LogIndex applied)>& take_over);

 private:
  // ---- SenderHands ----
  void SendSnapshot(const PeerId& to, SnapshotMessage message) override;  // and ReceiverHands
  void MakeImage() override;
  void ReadImage(const PeerId& peer, std::uint64_t id, std::uint64_t offset) override;
  void DropImage() override;
  void OnSent(const PeerId& peer, Term term, bool ok, LogIndex base_index) override;
  std::uint64_t NewSnapshotId() override { return links_.random(); }
  // ---- ReceiverHands ----
  void CreateIncoming(std::uint64_t id, std::uint64_t bytes) override;
  void WriteIncoming(std::uint64_t id, std::string data) override;
  void SealIncoming(std::uint64_t id, const SnapshotHead& head) override;
  void Install(const SnapshotHead& head) override;

  using SharedFile = std::shared_ptr<SnapshotFile>;
  // The file goes with the last one who holds it.
  Result<SharedFile> WriteImage(const std::string& name, StatePieces* pieces, const StoreBase& base,
                                LogIndex applied) const;
  void RemoveIncoming();
  Status ReplaceLogAndState(const SnapshotHead& head);  // apply thread; the disk thread waits
  // Runs `work` on a reader thread; its end goes to the receiver. A failure removes the file.
  void Incoming(std::uint64_t id, std::function<Status()> work);

  FileSystem& fs_;
  const std::string log_dir_;
  const Clock& clock_;
  LogStore& log_;
  Application& application_;
  const Links links_;
  SnapshotSender sender_;
  SnapshotReceiver receiver_;
  SharedFile image_;
  std::uint64_t image_number_ = 0;
  SharedFile incoming_;  // one task at a time touches it

  std::mutex mutex_;
  std::optional<SnapshotHead> pending_;  // from Install to InstallPending
};

}  // namespace triad::dledger
