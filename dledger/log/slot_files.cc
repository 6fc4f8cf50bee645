#include "dledger/log/slot_files.h"

#include <array>
#include <utility>

#include "common/byte_order.h"

namespace triad::dledger {
namespace {

constexpr std::uint8_t kRecovering = 1;
constexpr std::uint8_t kWrittenUnsynced = 2;
constexpr std::uint8_t kLostUnsynced = 4;
constexpr std::size_t kCutBytes = 25;
constexpr std::size_t kHintBytes = 8;

void PutString(std::string_view value, std::string* out) {
  AppendBe16(out, static_cast<std::uint16_t>(value.size()));
  out->append(value);
}

bool TakeString(std::string_view* in, std::string* value) {
  if (in->size() < 2) return false;
  const std::size_t size = LoadBe16(in->data());
  if (in->size() < 2 + size) return false;
  value->assign(in->substr(2, size));
  in->remove_prefix(2 + size);
  return true;
}

std::string EncodeVote(const VoteRecord& record) {
  std::string out;
  AppendBe64(&out, record.hard_state.term.value());
  out.push_back(static_cast<char>((record.recovering ? kRecovering : 0) |
                                  (record.written_unsynced ? kWrittenUnsynced : 0) |
                                  (record.lost_unsynced ? kLostUnsynced : 0)));
  PutString(record.hard_state.voted_for.value(), &out);
  PutString(record.boot_id, &out);
  AppendBe64(&out, record.group_id);
  return out;
}

std::optional<VoteRecord> DecodeVote(std::string_view in) {
  if (in.size() < 9) return std::nullopt;
  VoteRecord record;
  record.hard_state.term = Term(LoadBe64(in.data()));
  const auto flags = static_cast<std::uint8_t>(in[8]);
  record.recovering = (flags & kRecovering) != 0;
  record.written_unsynced = (flags & kWrittenUnsynced) != 0;
  record.lost_unsynced = (flags & kLostUnsynced) != 0;
  in.remove_prefix(9);
  std::string voted_for;
  if (!TakeString(&in, &voted_for) || !TakeString(&in, &record.boot_id)) return std::nullopt;
  record.hard_state.voted_for = PeerId(std::move(voted_for));
  if (in.size() >= 8) record.group_id = LoadBe64(in.data());  // older records end here
  return record;
}

PhysicalOffset LoadOffset(const char* at) {
  return PhysicalOffset(static_cast<std::int64_t>(LoadBe64(at)));
}

}  // namespace

Status CreateSlotFile(FileSystem& fs, const std::string& path) {
  Result<std::unique_ptr<File>> file = fs.Open(path, OpenFlags{.create = true, .truncate = true});
  if (!file.ok()) return file.status();
  SlotPair slots(file->get());
  TRIAD_RETURN_IF_ERROR(slots.Clear());
  return (*file)->SyncAll();
}

Result<std::unique_ptr<VoteFile>> VoteFile::Open(FileSystem& fs, const std::string& path) {
  Result<std::unique_ptr<File>> file = fs.Open(path, OpenFlags{.create = true});
  if (!file.ok()) return file.status();
  std::unique_ptr<VoteFile> vote(new VoteFile(std::move(file).value()));
  vote->slots_.Load();
  if (!vote->slots_.valid()) return vote;
  vote->record_ = DecodeVote(vote->slots_.content());
  // The next record goes over the other slot: this one must be durable by then, not only read.
  TRIAD_RETURN_IF_ERROR(vote->slots_.Repeat());
  TRIAD_RETURN_IF_ERROR(vote->file_->SyncAll());
  return vote;
}

Status VoteFile::Save(const VoteRecord& record) {
  const std::string content = EncodeVote(record);
  if (content.size() > kSlotContentMax) {
    return Status::InvalidArgument("peer id too long: " + record.hard_state.voted_for.value());
  }
  TRIAD_RETURN_IF_ERROR(slots_.Write(content));
  TRIAD_RETURN_IF_ERROR(file_->SyncAll());
  TRIAD_RETURN_IF_ERROR(slots_.Mirror());
  record_ = record;
  return {};
}

Result<std::unique_ptr<SyncedFile>> SyncedFile::Open(FileSystem& fs, const std::string& path) {
  Result<std::unique_ptr<File>> file = fs.Open(path, OpenFlags{.create = true});
  if (!file.ok()) return file.status();
  std::unique_ptr<SyncedFile> synced(new SyncedFile(std::move(file).value()));
  synced->cut_slots_.Load();
  synced->hint_slots_.Load();
  const std::string_view cut = synced->cut_slots_.content();
  if (!synced->cut_slots_.valid() || cut.size() != kCutBytes) return synced;
  SyncedRecord record{.synced = LoadOffset(cut.data()), .cut = std::nullopt};
  const std::string_view hint = synced->hint_slots_.content();
  if (cut[8] != 0) {
    record.cut = RecordedCut{.from = LoadOffset(cut.data() + 9), .to = LoadOffset(cut.data() + 17)};
  } else {
    const bool known = synced->hint_slots_.valid() && hint.size() == kHintBytes;
    record.synced = known ? LoadOffset(hint.data()) : PhysicalOffset(0);
  }
  synced->record_ = record;
  return synced;
}

Status SyncedFile::WriteHint(PhysicalOffset synced) {
  std::array<char, kHintBytes> content;
  StoreBe64(content.data(), static_cast<std::uint64_t>(synced.value()));
  return hint_slots_.Write(std::string_view(content.data(), content.size()));
}

Status SyncedFile::WriteCut(const SyncedRecord& record) {
  const RecordedCut cut = record.cut.value_or(RecordedCut{});
  std::string content;
  AppendBe64(&content, static_cast<std::uint64_t>(record.synced.value()));
  content.push_back(record.cut ? 1 : 0);
  AppendBe64(&content, static_cast<std::uint64_t>(cut.from.value()));
  AppendBe64(&content, static_cast<std::uint64_t>(cut.to.value()));
  TRIAD_RETURN_IF_ERROR(cut_slots_.Write(content));
  TRIAD_RETURN_IF_ERROR(file_->SyncAll());
  record_ = record;
  return {};
}

Status SyncedFile::RecordCut(PhysicalOffset synced, RecordedCut cut) {
  return WriteCut(SyncedRecord{.synced = synced, .cut = cut});
}

Status SyncedFile::ClearCut(PhysicalOffset synced) {
  // Both slots of each: were the newer one lost later, the older must not bring the cut back, nor
  // a hint from before it.
  TRIAD_RETURN_IF_ERROR(WriteHint(synced));
  TRIAD_RETURN_IF_ERROR(WriteHint(synced));
  TRIAD_RETURN_IF_ERROR(file_->SyncAll());
  TRIAD_RETURN_IF_ERROR(WriteCut(SyncedRecord{.synced = synced, .cut = std::nullopt}));
  return WriteCut(SyncedRecord{.synced = synced, .cut = std::nullopt});
}

}  // namespace triad::dledger
