// OffsetCommitter: brings a consumer's offsets to the broker every few seconds, or, broadcasting,
// into its file.
//
// Thread: its timer runs on the scheduler; answers on the remoting client's thread. Bounds: one
// round of commits under way. Source: wire.md §6.2, §7.8.

#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "client/consumer_context.h"
#include "client/queue_table.h"

namespace triad::client {

class OffsetCommitter : public std::enable_shared_from_this<OffsetCommitter> {
 public:
  OffsetCommitter(ConsumerContextPtr context, std::shared_ptr<const QueueTable> table)
      : context_(std::move(context)), table_(std::move(table)) {}

  void Start();
  // Broadcasting: writes the file now. Errors: of the file system.
  Status SaveFile();
  // Broadcasting: what the file says; empty when there is none. Errors: kCorruption, kIoError.
  static Result<std::map<MessageQueue, std::int64_t>> LoadFile(const PushConsumerOptions& options);

 private:
  void Tick();
  void CommitAll();
  static std::string FilePath(const PushConsumerOptions& options);

  const ConsumerContextPtr context_;
  const std::shared_ptr<const QueueTable> table_;
  std::atomic<int> open_{0};
  std::atomic<bool> is_saving_{false};  // two at once would write one file
};

}  // namespace triad::client
