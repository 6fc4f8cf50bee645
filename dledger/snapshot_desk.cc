#include "dledger/snapshot_desk.h"

#include <glog/logging.h>

#include <future>
#include <utility>

namespace triad::dledger {
namespace {

constexpr std::uint64_t kRoomBesideImage = 64u << 20;

}  // namespace

SnapshotDesk::SnapshotDesk(FileSystem& fs, std::string log_dir, const Clock& clock, LogStore& log,
                           Application& application, std::uint64_t bytes_per_second, Links links)
    : fs_(fs),
      log_dir_(std::move(log_dir)),
      clock_(clock),
      log_(log),
      application_(application),
      links_(std::move(links)),
      sender_(this, bytes_per_second),
      receiver_(this) {}

void SnapshotDesk::OnNeeded(const PeerId& peer, Term term) {
  // No image is made for a peer that is down; the core asks again with the next heartbeat.
  if (!links_.connected(peer)) return OnSent(peer, term, false, LogIndex(0));
  sender_.Start(peer, term, log_.base().tail.next_index, clock_.MonoNow());
}

void SnapshotDesk::OnMessage(const PeerId& from, SnapshotMessage message, bool follows, Term term) {
  const TimePoint now = clock_.MonoNow();
  if (const SnapshotOffer* offer = std::get_if<SnapshotOffer>(&message)) {
    receiver_.OnOffer(from, *offer, follows && offer->term == term, now);
  } else if (SnapshotChunk* chunk = std::get_if<SnapshotChunk>(&message)) {
    receiver_.OnChunk(from, *chunk, now);
  } else {
    sender_.OnAnswer(from, std::get<SnapshotAnswer>(message), now);
  }
}

void SnapshotDesk::SendSnapshot(const PeerId& to, SnapshotMessage message) {
  links_.send(to, std::move(message));
}

void SnapshotDesk::OnSent(const PeerId& peer, Term term, bool ok, LogIndex base_index) {
  links_.on_sent(peer, term, ok, base_index);
}

// ---- sending ------------------------------------------------------------------------------------

Result<SnapshotDesk::SharedFile> SnapshotDesk::WriteImage(const std::string& name,
                                                          StatePieces* pieces,
                                                          const StoreBase& base,
                                                          LogIndex applied) const {
  const std::string dir = SnapshotDir(log_dir_);
  Result<std::unique_ptr<SnapshotFile>> created = SnapshotFile::Create(fs_, dir, name);
  if (!created.ok()) return created.status();
  const SharedFile file(created->release(), [&fs = fs_, path = dir + "/" + name](SnapshotFile* f) {
    delete f;
    IgnoreError(fs.Remove(path), "the next start removes it");
  });
  SnapshotFile& image = *file;
  std::string piece;
  while (true) {
    const Result<bool> more = pieces->Next(&piece);
    if (!more.ok()) return more.status();
    if (!*more) break;
    TRIAD_RETURN_IF_ERROR(image.Append(piece));
  }
  TRIAD_RETURN_IF_ERROR(image.Seal(
      {.base = base, .applied = applied, .total_bytes = image.size(), .crc = image.crc()}));
  return file;
}

void SnapshotDesk::DropImage() {
  // Giving back the space is file work.
  links_.post_reader([image = std::exchange(image_, nullptr)] {});
}

void SnapshotDesk::MakeImage() {
  const std::uint64_t number = ++image_number_;
  const auto finish = [this, number](Result<SharedFile> image) {
    links_.post_log([this, number, image = std::move(image)] {
      if (number != image_number_) return;
      LOG_IF(ERROR, !image.ok()) << "no image of the state for a peer that needs it: "
                                 << image.status();
      if (image.ok()) image_ = *image;
      sender_.OnImage(image.ok() ? std::optional(image_->head()) : std::nullopt, clock_.MonoNow());
    });
  };
  links_.post_apply([this, finish, number] {
    // The log's begin first: it only moves up to what the state holds by then.
    const StoreBase base = log_.base();
    Result<StateImage> taken = application_.TakeImage();
    if (!taken.ok()) {
      finish(taken.status());
      return;
    }
    auto image = std::make_shared<StateImage>(std::move(taken).value());
    const std::string name = "out-" + std::to_string(number);
    const bool is_taken = links_.post_reader([this, finish, name, base, image] {
      finish(WriteImage(name, image->pieces.get(), base, image->applied));
    });
    if (!is_taken) finish(Status::Busy("too many reads wait"));
  });
}

void SnapshotDesk::ReadImage(const PeerId& peer, std::uint64_t id, std::uint64_t offset) {
  const auto finish = [this, peer, id, offset](std::string data) {
    links_.post_log([this, peer, id, offset, data = std::move(data)]() mutable {
      sender_.OnChunk(peer, id, offset, std::move(data), clock_.MonoNow());
    });
  };
  const bool is_taken = links_.post_reader([finish, offset, image = image_] {
    const std::uint64_t left = image->head().total_bytes - offset;
    std::string data(static_cast<std::size_t>(std::min<std::uint64_t>(left, kSnapshotChunkBytes)),
                     '\0');
    const Result<std::size_t> n = image->Read(offset, std::span<char>(data));
    LOG_IF(ERROR, !n.ok()) << "the image of the state cannot be read: " << n.status();
    finish(n.ok() && *n == data.size() ? std::move(data) : std::string());
  });
  if (!is_taken) finish({});
}

// ---- receiving ----------------------------------------------------------------------------------

void SnapshotDesk::Incoming(std::uint64_t id, std::function<Status()> work) {
  const auto finish = [this, id](const Status& status) {
    LOG_IF(ERROR, !status.ok()) << "a received state: " << status;
    links_.post_log([this, id, ok = status.ok()] { receiver_.OnDone(id, ok, clock_.MonoNow()); });
  };
  const bool is_taken = links_.post_reader([this, finish, work = std::move(work)] {
    const Status status = work();
    if (!status.ok()) RemoveIncoming();
    finish(status);
  });
  if (!is_taken) finish(Status::Busy("too many reads wait"));
}

void SnapshotDesk::RemoveIncoming() {
  incoming_.reset();
  IgnoreError(fs_.Remove(SnapshotDir(log_dir_) + "/in"), "the next one takes its place");
}

void SnapshotDesk::OnRefused() {
  // Until the file is gone the receiver takes no other, which would be of the same name.
  const bool is_taken = links_.post_reader([this] {
    RemoveIncoming();
    links_.post_log([this] { receiver_.OnRefused(); });
  });
  if (!is_taken) receiver_.OnRefused();
}

void SnapshotDesk::CreateIncoming(std::uint64_t id, std::uint64_t bytes) {
  Incoming(id, [this, bytes]() -> Status {
    // The image, the state made of it, and that state's own log. Once it is whole there is no way
    // back: an installation without room ends the process, and so does every start after it.
    const Result<Space> space = fs_.GetSpace(log_dir_);
    if (space.ok() && (space->available_bytes < kRoomBesideImage ||
                       (space->available_bytes - kRoomBesideImage) / 3 < bytes)) {
      return Status::NoSpace(
          "not taken for want of room: three times " + std::to_string(bytes >> 20) + " MiB and " +
          std::to_string(kRoomBesideImage >> 20) + " more are wanted in " + log_dir_ + ", " +
          std::to_string(space->available_bytes >> 20) + " are free");
    }
    Result<std::unique_ptr<SnapshotFile>> file =
        SnapshotFile::Create(fs_, SnapshotDir(log_dir_), "in");
    if (file.ok()) incoming_ = std::move(file).value();
    return file.status();
  });
}

void SnapshotDesk::WriteIncoming(std::uint64_t id, std::string data) {
  Incoming(id, [this, data = std::move(data)] { return incoming_->Append(data); });
}

void SnapshotDesk::SealIncoming(std::uint64_t id, const SnapshotHead& head) {
  Incoming(id, [this, head]() -> Status {
    if (incoming_->size() != head.total_bytes || incoming_->crc() != head.crc) {
      return Status::Corruption("it is not what was offered");
    }
    const Status sealed = incoming_->Seal(head);
    incoming_.reset();
    return sealed;
  });
}

void SnapshotDesk::Install(const SnapshotHead& head) {
  {
    const std::lock_guard hold(mutex_);
    pending_ = head;
  }
  links_.install(head);
}

Status SnapshotDesk::ReplaceLogAndState(const SnapshotHead& head) {
  TRIAD_RETURN_IF_ERROR(log_.Restart(head.base));
  Result<std::unique_ptr<SnapshotFile>> ready = OpenReadySnapshot(fs_, log_dir_);
  if (!ready.ok()) return ready.status();
  const std::unique_ptr<StoredPieces> pieces = PiecesOf(std::move(ready).value());
  return application_.InstallImage(pieces.get(), head.applied, head.base.tail.next_index);
}

Status SnapshotDesk::InstallPending(const std::function<void(LogIndex applied)>& take_over) {
  SnapshotHead head;
  {
    const std::lock_guard hold(mutex_);
    CHECK(pending_.has_value());
    head = *std::exchange(pending_, std::nullopt);
  }
  TRIAD_RETURN_IF_ERROR(PublishSnapshot(fs_, log_dir_));
  // From here on a start finishes what is left to do. All of it in one task of the apply thread,
  // while this one waits: apply never sees the new log beside its old state.
  std::promise<Status> installed;
  links_.post_apply([&] {
    Status status = ReplaceLogAndState(head);
    if (status.ok()) take_over(head.applied);
    installed.set_value(std::move(status));
  });
  TRIAD_RETURN_IF_ERROR(installed.get_future().get());
  TRIAD_RETURN_IF_ERROR(RemoveReadySnapshot(fs_, log_dir_));
  links_.post_log([this] { receiver_.OnInstalled(); });
  return Status::Ok();
}

}  // namespace triad::dledger
