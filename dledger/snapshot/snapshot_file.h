// SnapshotFile: the bytes of one snapshot on disk, with a checked head in front.
//
// The sender makes `out` from the application's pieces; the receiver writes `in`, and when all of
// it is there and its checksum is right, Publish renames it to `ready`: that is the moment after
// which a start installs it. Anything else in the directory is thrown away by a start. Layout: a
// head of kSnapshotHeadBytes, then the bytes. Owner: one thread at a time. Errors: kNotFound,
// kCorruption, kNoSpace, kIoError.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/file_system.h"
#include "common/status.h"
#include "dledger/snapshot/snapshot_types.h"

namespace triad::dledger {

inline constexpr std::uint64_t kSnapshotHeadBytes = 64u << 10;  // a head with its membership

// "<log directory>/snapshot"
std::string SnapshotDir(const std::string& log_dir);

class SnapshotFile {
 public:
  // Empty, in place of any other of that name.
  static Result<std::unique_ptr<SnapshotFile>> Create(FileSystem& fs, const std::string& dir,
                                                      const std::string& name);
  // With its head read; the bytes are not looked at.
  static Result<std::unique_ptr<SnapshotFile>> Open(FileSystem& fs, const std::string& dir,
                                                    const std::string& name);

  // ---- writing ----
  Status Append(std::string_view bytes);
  std::uint64_t size() const { return size_; }  // of the bytes
  std::uint32_t crc() const { return crc_; }    // of what was appended
  // Reads everything back and compares with `head`; then writes the head, synced.
  // Errors: kCorruption.
  Status Seal(const SnapshotHead& head);

  // ---- reading ----
  const SnapshotHead& head() const { return head_; }
  // Up to buffer.size() bytes at `offset`; fewer at the end.
  Result<std::size_t> Read(std::uint64_t offset, std::span<char> buffer) const;
  // Whether the bytes are those of the head. Reads all of them.
  Status Verify() const;

 private:
  SnapshotFile(std::string path, std::unique_ptr<File> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  const std::string path_;
  const std::unique_ptr<File> file_;
  SnapshotHead head_;
  std::uint64_t size_ = 0;
  std::uint32_t crc_ = 0;
};

// The pieces of a file, checked on the way: the last Next is kCorruption if they were not the
// head's. Bounds: a chunk in memory.
std::unique_ptr<StoredPieces> PiecesOf(std::unique_ptr<SnapshotFile> file);

// ---- the receiver's directory ----
// `in`, sealed, becomes `ready`; durable on return.
Status PublishSnapshot(FileSystem& fs, const std::string& log_dir);
// The published one, verified; nothing when there is none. Errors: kCorruption.
Result<std::unique_ptr<SnapshotFile>> OpenReadySnapshot(FileSystem& fs, const std::string& log_dir);
// It is installed: forgets it, durably.
Status RemoveReadySnapshot(FileSystem& fs, const std::string& log_dir);
// Whatever an earlier life left half-done.
Status CleanSnapshotDir(FileSystem& fs, const std::string& log_dir);

}  // namespace triad::dledger
