// fuzz_snapshot: what a peer is told about another one's state, and what it finds of it on its
// disk.
//
// Input: one byte says which. 0: frames between peers, back to back, into a receiver over a model
// of its file. 1: offers and chunks made of small numbers (so that some fit), into the same. 2:
// bytes as a published snapshot file, into what a start does with it. 3: bytes as a membership, and
// as the begin of a log. Must hold: what decodes encodes to what decodes the same; pieces are
// written one behind the other, one at a time; nothing is installed that is not, byte for byte,
// what was offered; a file is read whole and as its head says, or refused by name; members are
// unique and within bounds.

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "common/byte_order.h"
#include "common/crc32c.h"
#include "dledger/membership_codec.h"
#include "dledger/peer/peer_codec.h"
#include "dledger/snapshot/snapshot_file.h"
#include "dledger/snapshot/snapshot_receiver.h"
#include "tests/fuzz/input.h"
#include "tests/sim/sim_file_system.h"

namespace triad::fuzz {
namespace {

using namespace dledger;

constexpr int kStepsMax = 200;
constexpr char kLog[] = "/log";

// The receiver's file as it should be: its hands are the model.
class Receiving final : public ReceiverHands {
 public:
  Receiving() : receiver_(this) {}

  void Offer(const SnapshotOffer& offer, bool follows) {
    receiver_.OnOffer(kFrom, offer, follows, TimePoint());
  }
  void Chunk(const SnapshotChunk& chunk) { receiver_.OnChunk(kFrom, chunk, TimePoint()); }
  // The end of the file work at hand, or of the installation.
  void Finish(bool ok) {
    if (head_.has_value()) {
      head_.reset();
      if (!ok) return receiver_.OnRefused();
      return receiver_.OnInstalled();
    }
    if (!working_.has_value()) return;
    if (!ok) file_.reset();
    receiver_.OnDone(*std::exchange(working_, std::nullopt), ok, TimePoint());
  }

  void SendSnapshot(const PeerId& to, SnapshotMessage message) override {
    CHECK_EQ(to, kFrom);
    const auto* answer = std::get_if<SnapshotAnswer>(&message);
    CHECK(answer != nullptr);
    if (answer->kind != SnapshotAnswer::Kind::kSendFrom || working_.has_value()) return;
    if (file_.has_value() && !head_.has_value()) CHECK_EQ(answer->offset, file_->size());
  }
  void CreateIncoming(std::uint64_t id, std::uint64_t bytes) override {
    Begin(id);
    total_ = bytes;
    file_ = "";
  }
  void WriteIncoming(std::uint64_t id, std::string data) override {
    Begin(id);
    CHECK(file_.has_value());
    *file_ += data;
    CHECK_LE(file_->size(), total_);
  }
  void SealIncoming(std::uint64_t id, const SnapshotHead& head) override {
    Begin(id);
    CHECK(file_.has_value());
    CHECK_EQ(file_->size(), head.total_bytes) << "sealed before it is whole";
    is_right_ = Crc32c(*file_) == head.crc;
    sealed_ = head;
  }
  void Install(const SnapshotHead& head) override {
    CHECK(!head_.has_value() && !working_.has_value());
    CHECK(sealed_ == head);
    head_ = head;
  }
  // What the desk says of a sealed file.
  bool is_right() const { return is_right_; }
  bool is_sealing() const { return working_.has_value() && sealed_.has_value(); }

 private:
  void Begin(std::uint64_t id) {
    CHECK(!working_.has_value()) << "two pieces of file work at once";
    CHECK(!head_.has_value()) << "file work beside an installation";
    sealed_.reset();
    working_ = id;
  }

  static const PeerId kFrom;
  SnapshotReceiver receiver_;
  std::optional<std::uint64_t> working_;
  std::optional<std::string> file_;
  std::uint64_t total_ = 0;
  std::optional<SnapshotHead> sealed_;
  std::optional<SnapshotHead> head_;  // being installed
  bool is_right_ = false;
};
const PeerId Receiving::kFrom("n1");

void FinishOne(Receiving* receiving, bool ok) {
  receiving->Finish(receiving->is_sealing() ? receiving->is_right() : ok);
}

std::string Encode(const PeerFrame& frame) {
  std::string bytes = EncodeFrameHead(frame);
  for (const EntryRef& entry : FrameEntries(frame)) bytes += entry->bytes;
  return bytes;
}

void TryFrames(std::string_view bytes) {
  Receiving receiving;
  while (true) {
    const Result<std::size_t> size = FrameSize(bytes);
    if (!size.ok() || *size == 0 || *size > bytes.size()) return;
    const Result<PeerFrame> frame = DecodeFrame(bytes.substr(0, *size));
    bytes.remove_prefix(*size);
    if (!frame.ok()) {
      CHECK(frame.status().code() == StatusCode::kCorruption) << frame.status();
      return;  // its connection is closed
    }
    const std::string again = Encode(*frame);
    const Result<PeerFrame> decoded = DecodeFrame(again);
    CHECK(decoded.ok()) << decoded.status();
    CHECK(Encode(*decoded) == again);
    const auto* message = std::get_if<SnapshotMessage>(&frame->body);
    if (message == nullptr) continue;
    if (const auto* offer = std::get_if<SnapshotOffer>(message)) receiving.Offer(*offer, true);
    if (const auto* chunk = std::get_if<SnapshotChunk>(message)) receiving.Chunk(*chunk);
    FinishOne(&receiving, true);
  }
}

void TryConversation(Input input) {
  const std::string state = "0123456789abcdefghijklmnopqrstuvwxyz";
  Receiving receiving;
  for (int step = 0; step < kStepsMax && !input.empty(); ++step) {
    const std::uint64_t id = 1 + input.Below(2);
    switch (input.Below(4)) {
      case 0: {
        SnapshotOffer offer{.term = Term(1), .id = id, .head = {}};
        offer.head.applied = LogIndex(10);
        offer.head.total_bytes = input.Flag() ? state.size() : input.Below(8);
        offer.head.crc = Crc32c(std::string_view(state).substr(0, offer.head.total_bytes));
        if (input.Below(8) == 0) ++offer.head.crc;
        receiving.Offer(offer, input.Below(8) != 0);
        break;
      }
      case 1: {
        const std::uint64_t at = input.Below(state.size());
        SnapshotChunk chunk{.id = id, .offset = at, .crc = 0, .data = {}};
        chunk.data = state.substr(at, input.Below(state.size() + 1));
        if (!chunk.data.empty() && input.Below(8) == 0) ++chunk.data[0];
        chunk.crc = Crc32c(chunk.data);
        if (input.Below(8) == 0) ++chunk.crc;
        receiving.Chunk(chunk);
        break;
      }
      default: FinishOne(&receiving, input.Below(8) != 0);
    }
  }
}

void TryFile(std::string_view bytes) {
  sim::SimFileSystem fs(1);
  CHECK(fs.CreateDirs(SnapshotDir(kLog)).ok());
  const std::string path = SnapshotDir(kLog) + "/ready";
  std::string file(kSnapshotHeadBytes, '\0');
  // The head stands in the front of its 64 KiB; an input need not bring the zeros.
  const std::string_view head = bytes.substr(0, std::min<std::size_t>(bytes.size(), 512));
  file.replace(0, head.size(), head);
  file += bytes.substr(head.size());
  CHECK(WriteFileAtomically(fs, path, file).ok());
  auto ready = OpenReadySnapshot(fs, kLog);
  if (!ready.ok()) {
    CHECK(ready.status().code() == StatusCode::kCorruption) << ready.status();
    CHECK(ready.status().message().find(path) != std::string::npos) << ready.status();
    return;
  }
  CHECK(*ready != nullptr);
  const SnapshotHead found = (*ready)->head();
  std::string all;
  const std::unique_ptr<StoredPieces> pieces = PiecesOf(std::move(*ready));
  for (std::string piece;;) {
    const Result<bool> more = pieces->Next(&piece);
    CHECK(more.ok()) << more.status();
    if (!*more) break;
    all += piece;
  }
  CHECK_EQ(all.size(), found.total_bytes);
  CHECK_EQ(Crc32c(all), found.crc);
  // What was read and is written again is the same.
  auto again = SnapshotFile::Create(fs, SnapshotDir(kLog), "in");
  CHECK(again.ok() && (*again)->Append(all).ok());
  CHECK((*again)->Seal(found).ok());
  CHECK(PublishSnapshot(fs, kLog).ok());
  const auto reread = OpenReadySnapshot(fs, kLog);
  CHECK(reread.ok()) << reread.status();
  CHECK((*reread)->head() == found);
  CHECK((*reread)->head().base.membership == found.base.membership);
}

void TryMembership(std::string_view bytes) {
  const Result<Membership> decoded = DecodeMembership(bytes);
  if (!decoded.ok()) {
    CHECK(decoded.status().code() == StatusCode::kCorruption) << decoded.status();
  } else {
    std::set<PeerId> ids(decoded->voters.begin(), decoded->voters.end());
    ids.insert(decoded->learners.begin(), decoded->learners.end());
    CHECK_EQ(ids.size(), decoded->voters.size() + decoded->learners.size());
    CHECK(!decoded->voters.empty());
    for (const PeerId& id : ids) {
      CHECK(!id.empty() && id.value().size() <= kMemberTextBytesMax);
    }
    const Result<Membership> again = DecodeMembership(EncodeMembership(*decoded));
    CHECK(again.ok()) << again.status();
    CHECK(*again == *decoded);
  }
  const std::optional<BeginRecord> begin = DecodeBegin(bytes);
  if (!begin) return;
  const std::optional<BeginRecord> same = DecodeBegin(EncodeBegin(*begin));
  CHECK(same.has_value());
  CHECK(same->base == begin->base && same->fresh == begin->fresh);
}

// The checksums that guard a file's head, of the begin record in it and of all of it.
void RepairHead(char* head, std::size_t size) {
  constexpr std::size_t kBeginAt = 4 + 4 + 8 + 8 + 4 + 8;
  if (size < kBeginAt + 4) return;
  const std::uint64_t begin_bytes = LoadBe64(head + kBeginAt - 8);
  if (begin_bytes < 4 || begin_bytes > size - kBeginAt - 4) return;
  char* const begin = head + kBeginAt;
  const auto content = static_cast<std::size_t>(begin_bytes) - 4;
  StoreBe32(begin + content, Crc32c(std::string_view(begin, content)));
  char* const end = begin + begin_bytes;
  StoreBe32(end, Crc32c(std::string_view(head, static_cast<std::size_t>(end - head))));
}

}  // namespace
}  // namespace triad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace triad::fuzz;
  FLAGS_minloglevel = google::GLOG_FATAL;
  triad::fuzz::Input input(data, size);
  switch (input.Below(4)) {
    case 0: TryFrames(input.Rest()); break;
    case 1: TryConversation(input); break;
    case 2: TryFile(input.Rest()); break;
    default: TryMembership(input.Rest()); break;
  }
  return 0;
}

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                    unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 4 == 0 || size <= 1) return size;
  char* const bytes = reinterpret_cast<char*>(data) + 1;
  const std::size_t count = size - 1;
  if (data[0] % 4 == 2) {
    const std::size_t head = std::min<std::size_t>(count, 512);
    if (seed % 2 == 0 && count > 512) {
      // What the head says of the bytes behind it.
      const std::string_view rest(bytes + head, count - head);
      triad::StoreBe64(bytes + 16, rest.size());
      triad::StoreBe32(bytes + 24, triad::Crc32c(rest));
    }
    triad::fuzz::RepairHead(bytes, head);
  }
  if (data[0] % 4 == 3 && count > 4) {
    triad::StoreBe32(bytes + count - 4, triad::Crc32c(std::string_view(bytes, count - 4)));
  }
  return size;
}
