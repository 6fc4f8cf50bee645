// Checkpoint: the outline of the log up to some synced entry, so that the next start scans only
// what lies behind it.
//
// A file of records: the first holds a whole outline, each later one what came since. So a
// checkpoint every few seconds costs what was written in them, however long the log is. Records are
// chained by their checksums; a torn one ends the file. Derived: a checkpoint that is missing,
// damaged, or does not fit the log costs a longer scan and nothing else. It fits when its last
// entry, and each segment's first, stand in the log with the same header CRC: the chain vouches for
// what is between.
// Owner: the background thread (recovery reads it before). Source: architecture.md §3.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/file_system.h"
#include "dledger/log/entry_index.h"

namespace triad::dledger {

// The body of a record. The base of the log stands in a file of its own (store_base.h).
std::string EncodeOutline(const LogOutline& outline);
// Nothing when the bytes are damaged.
std::optional<LogOutline> DecodeOutline(std::string_view body);
// Whether the log on disk still holds what the outline describes.
bool CheckpointFits(const LogOutline& outline, const SegmentMap& segments);

class CheckpointFile {
 public:
  CheckpointFile(FileSystem& fs, const std::string& dir) : fs_(fs), path_(dir + "/checkpoint") {}

  // The newest outline of the file that fits the log, brought to begin at `base`; nothing when
  // there is none.
  std::optional<LogOutline> Load(const StoreBase& base, const SegmentMap& segments) const;

  // Replaces the file: after a crash it is the old or the new one.
  Status WriteWhole(const LogOutline& outline);
  // Adds what came since; durable on return. Only behind a WriteWhole of this object.
  Status Append(const LogOutline& since);
  // So much was appended that writing the whole is cheaper to read.
  bool grown() const { return file_ == nullptr || appended_bytes_ > whole_bytes_ + kGrowthBytes; }
  Status Remove();

 private:
  static constexpr std::uint64_t kGrowthBytes = 1u << 20;

  FileSystem& fs_;
  const std::string path_;
  std::unique_ptr<File> file_;
  std::uint32_t last_crc_ = 0;
  std::uint64_t whole_bytes_ = 0;
  std::uint64_t appended_bytes_ = 0;
};

}  // namespace triad::dledger
