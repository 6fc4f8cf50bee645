// QueueTails: the newest units of many queues in one file, those that a checkpoint left out of the
// queues' own files.
//
// Written whole, in place of the one before; derived, so what is damaged is left out. Layout,
// big-endian: header of 20 bytes: magic, version, checkpoint i64, CRC32C; then blocks of
// [bytes u32][CRC32C u32] and whole queues: topic length u16, topic, queue u32, has files u8, first
// offset i64, units u32, of each position i64, size i32, tag code i64.
// Source: docs/dledger.md, "Byte by byte".

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "broker/store/consume_queue_store.h"

namespace triad::broker {

// Units [first, first + units.size()) of a queue; those in front of them are in its files.
struct QueueTail {
  TopicQueue queue;
  bool has_files = false;
  QueueOffset first;
  std::vector<QueueUnit> units;
};

class QueueTailsWriter {
 public:
  // A new file at `path`; what stood there goes. Nothing is synced here.
  static Result<QueueTailsWriter> Create(FileSystem& fs, const std::string& path,
                                         PhysicalOffset checkpoint);
  Status Add(const QueueTail& tail);
  Status Finish();  // last

 private:
  explicit QueueTailsWriter(std::unique_ptr<File> file) : file_(std::move(file)) {}
  Status WriteBlock();

  std::unique_ptr<File> file_;
  std::uint64_t end_ = 0;
  std::string block_;
};

struct QueueTails {
  PhysicalOffset checkpoint;  // as it was written for
  std::vector<QueueTail> tails;
};
// As much as is whole; a warning says what is not. Errors: kNotFound, kIoError.
Result<QueueTails> ReadQueueTails(FileSystem& fs, const std::string& path);

}  // namespace triad::broker
