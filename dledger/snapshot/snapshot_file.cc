#include "dledger/snapshot/snapshot_file.h"

#include <algorithm>
#include <utility>

#include "common/crc32c.h"
#include "common/mutant.h"
#include "dledger/log/record_codec.h"

namespace triad::dledger {
namespace {

constexpr std::uint32_t kMagic = 0x54524449;  // "TRDI"
constexpr std::uint32_t kVersion = 1;
constexpr char kIn[] = "in";
constexpr char kReady[] = "ready";

std::string EncodeHead(const SnapshotHead& head) {
  RecordWriter out;
  out.U32(kMagic);
  out.U32(kVersion);
  out.U64(head.applied.value());
  out.U64(head.total_bytes);
  out.U32(head.crc);
  out.Bytes(EncodeBegin({.base = head.base, .fresh = false}));
  std::string bytes = std::move(out).Take();
  AppendBe32(&bytes, Crc32c(bytes));
  return bytes;
}

std::optional<SnapshotHead> DecodeHead(std::string_view bytes) {
  RecordReader in(bytes);
  if (in.U32() != kMagic || in.U32() != kVersion) return std::nullopt;
  SnapshotHead head;
  head.applied = LogIndex(in.U64());
  head.total_bytes = in.U64();
  head.crc = in.U32();
  const std::string_view base = in.Bytes();
  const std::uint32_t crc = in.U32();
  if (!in.ok()) return std::nullopt;
  const std::size_t covered = 4 + 4 + 8 + 8 + 4 + 8 + base.size();
  if (crc != Crc32c(bytes.substr(0, covered))) return std::nullopt;
  const std::optional<BeginRecord> begin = DecodeBegin(base);
  if (!begin) return std::nullopt;
  head.base = begin->base;
  return head;
}

class FilePieces final : public StoredPieces {
 public:
  explicit FilePieces(std::unique_ptr<SnapshotFile> file) : file_(std::move(file)) {}

  Result<bool> Next(std::string* piece) override {
    const SnapshotHead& head = file_->head();
    const std::uint64_t left = head.total_bytes - offset_;
    if (left == 0) {
      if (crc_ != head.crc) return Status::Corruption("snapshot: wrong checksum");
      return false;
    }
    piece->resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, kSnapshotChunkBytes)));
    const Result<std::size_t> n = file_->Read(offset_, std::span<char>(*piece));
    if (!n.ok()) return n.status();
    if (*n != piece->size()) return Status::Corruption("snapshot: the file became shorter");
    crc_ = Crc32c(*piece, crc_);
    offset_ += *n;
    return true;
  }
  void Rewind() override {
    offset_ = 0;
    crc_ = 0;
  }

 private:
  const std::unique_ptr<SnapshotFile> file_;
  std::uint64_t offset_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace

std::string SnapshotDir(const std::string& log_dir) {
  return log_dir + "/snapshot";
}

Result<std::unique_ptr<SnapshotFile>> SnapshotFile::Create(FileSystem& fs, const std::string& dir,
                                                           const std::string& name) {
  TRIAD_RETURN_IF_ERROR(fs.CreateDirs(dir));
  std::string path = dir + "/" + name;
  Result<std::unique_ptr<File>> file = fs.Open(path, {.create = true, .truncate = true});
  if (!file.ok()) return file.status();
  return std::unique_ptr<SnapshotFile>(new SnapshotFile(std::move(path), std::move(*file)));
}

Result<std::unique_ptr<SnapshotFile>> SnapshotFile::Open(FileSystem& fs, const std::string& dir,
                                                         const std::string& name) {
  std::string path = dir + "/" + name;
  Result<std::unique_ptr<File>> file = fs.Open(path, {.read_only = true});
  if (!file.ok()) return file.status();
  std::unique_ptr<SnapshotFile> snapshot(new SnapshotFile(std::move(path), std::move(*file)));
  std::string head(kSnapshotHeadBytes, '\0');
  const Result<std::size_t> n = snapshot->file_->Read(0, std::span<char>(head));
  if (!n.ok()) return n.status();
  const std::optional<SnapshotHead> decoded =
      DecodeHead(std::string_view(head).substr(0, n.value()));
  if (!decoded) return Status::Corruption(snapshot->path_ + ": its head is damaged");
  snapshot->head_ = *decoded;
  snapshot->size_ = decoded->total_bytes;
  snapshot->crc_ = decoded->crc;
  return snapshot;
}

Status SnapshotFile::Append(std::string_view bytes) {
  TRIAD_RETURN_IF_ERROR(file_->Write(kSnapshotHeadBytes + size_, bytes));
  size_ += bytes.size();
  crc_ = Crc32c(bytes, crc_);
  return Status::Ok();
}

Status SnapshotFile::Seal(const SnapshotHead& head) {
  const std::string bytes = EncodeHead(head);
  if (bytes.size() > kSnapshotHeadBytes) return Status::InvalidArgument("snapshot: head too large");
  head_ = head;
  TRIAD_RETURN_IF_ERROR(Verify());
  TRIAD_RETURN_IF_ERROR(file_->Write(0, bytes));
  return file_->SyncAll();
}

Result<std::size_t> SnapshotFile::Read(std::uint64_t offset, std::span<char> buffer) const {
  return file_->Read(kSnapshotHeadBytes + offset, buffer);
}

Status SnapshotFile::Verify() const {
  std::string buffer(kSnapshotChunkBytes, '\0');
  std::uint32_t crc = 0;
  std::uint64_t offset = 0;
  while (offset < head_.total_bytes) {
    const auto want = static_cast<std::size_t>(
        std::min<std::uint64_t>(buffer.size(), head_.total_bytes - offset));
    const Result<std::size_t> n = Read(offset, std::span<char>(buffer.data(), want));
    if (!n.ok()) return n.status();
    if (*n != want) return Status::Corruption(path_ + ": shorter than its head says");
    crc = Crc32c(std::string_view(buffer.data(), want), crc);
    offset += want;
  }
  if (crc != head_.crc) return Status::Corruption(path_ + ": wrong checksum");
  return Status::Ok();
}

std::unique_ptr<StoredPieces> PiecesOf(std::unique_ptr<SnapshotFile> file) {
  return std::make_unique<FilePieces>(std::move(file));
}

Status PublishSnapshot(FileSystem& fs, const std::string& log_dir) {
  const std::string dir = SnapshotDir(log_dir);
  TRIAD_RETURN_IF_ERROR(fs.Rename(dir + "/" + kIn, dir + "/" + kReady));
  if (TRIAD_MUTANT(36)) return Status::Ok();
  TRIAD_RETURN_IF_ERROR(fs.SyncDir(log_dir));  // the directory itself may be new
  return fs.SyncDir(dir);
}

Result<std::unique_ptr<SnapshotFile>> OpenReadySnapshot(FileSystem& fs,
                                                        const std::string& log_dir) {
  Result<std::unique_ptr<SnapshotFile>> ready =
      SnapshotFile::Open(fs, SnapshotDir(log_dir), kReady);
  if (ready.status().code() == StatusCode::kNotFound) return std::unique_ptr<SnapshotFile>();
  if (!ready.ok()) return ready.status();
  TRIAD_RETURN_IF_ERROR(ready.value()->Verify());
  return ready;
}

Status RemoveReadySnapshot(FileSystem& fs, const std::string& log_dir) {
  const std::string dir = SnapshotDir(log_dir);
  const Status removed = fs.Remove(dir + "/" + kReady);
  if (removed.code() == StatusCode::kNotFound) return Status::Ok();
  TRIAD_RETURN_IF_ERROR(removed);
  return fs.SyncDir(dir);
}

Status CleanSnapshotDir(FileSystem& fs, const std::string& log_dir) {
  const std::string dir = SnapshotDir(log_dir);
  if (!fs.Exists(dir)) return Status::Ok();
  const Result<std::vector<DirEntry>> names = fs.List(dir);
  if (!names.ok()) return names.status();
  for (const DirEntry& name : *names) {
    if (name.is_directory || name.name == kReady) continue;
    TRIAD_RETURN_IF_ERROR(fs.Remove(dir + "/" + name.name));
  }
  return Status::Ok();
}

}  // namespace triad::dledger
