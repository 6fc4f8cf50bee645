#include "client/offset_committer.h"

#include <glog/logging.h>

#include <utility>

#include "common/file_system.h"
#include "common/log_rate_limiter.h"
#include "remoting/codes.h"
#include "remoting/headers.h"

namespace triad::client {

namespace {
constexpr std::chrono::milliseconds kCommitTimeout{3000};
}  // namespace

void OffsetCommitter::Start() {
  context_->instance->scheduler().After(context_->options.offset_commit_interval,
                                        [self = shared_from_this()] { self->Tick(); });
}

void OffsetCommitter::Tick() {
  if (context_->stopping) return;
  if (context_->clustering()) {
    if (open_ == 0) CommitAll();
  } else if (!is_saving_.exchange(true)) {
    context_->pool->Submit([self = shared_from_this()] {
      const Status saved = self->SaveFile();
      if (!saved.ok()) LOG(ERROR) << "offsets could not be saved: " << saved;
      self->is_saving_ = false;
    });
  }
  Start();
}

void OffsetCommitter::CommitAll() {
  static LogRateLimiter lines(std::chrono::seconds(5));
  ClientInstance& instance = *context_->instance;
  for (const auto& [queue, offset] : context_->offsets.Uncommitted()) {
    const ProcessQueuePtr process = table_->Find(queue);
    const TimePoint now = SystemClock().MonoNow();
    if (process == nullptr || process->dropped()) continue;  // its release commits
    if (context_->orderly && !process->HasLock(now)) continue;
    const std::string address = instance.book().Pick(queue.broker_name, now);
    if (address.empty()) continue;
    remoting::UpdateConsumerOffsetRequest header;
    header.consumer_group = context_->options.group;
    header.topic = queue.topic;
    header.queue_id = queue.queue_id;
    header.commit_offset = offset;
    remoting::Command request = remoting::Command::Request(remoting::kUpdateConsumerOffset);
    header.Encode(&request.ext);
    if (process->fence_token() != 0) {
      request.ext.Set("fenceToken", static_cast<std::int64_t>(process->fence_token()));
    }
    ++open_;
    instance.remoting().Call(
        address, std::move(request), kCommitTimeout,
        [self = shared_from_this(), queue = queue,
         offset = offset](const Result<remoting::Command>& answer) {
          --self->open_;
          const Status status =
              answer.ok() ? StatusOfCode(*answer, "commit of an offset") : answer.status();
          if (status.ok()) {
            self->context_->offsets.Committed(queue, offset);
          } else if (auto suppressed = lines.Allow(SystemClock().MonoNow())) {
            LOG(WARNING) << "offset " << offset << " of " << queue.topic << ":" << queue.queue_id
                         << " is not committed yet: " << status << SuppressedNote(*suppressed);
          }
        });
  }
}

std::string OffsetCommitter::FilePath(const PushConsumerOptions& options) {
  return options.broadcast_offset_dir + "/" + options.group + ".offsets.json";
}

Status OffsetCommitter::SaveFile() {
  if (context_->options.broadcast_offset_dir.empty()) return Status::Ok();
  return WriteFileAtomically(PosixFileSystem(), FilePath(context_->options),
                             context_->offsets.Encode());
}

Result<std::map<MessageQueue, std::int64_t>> OffsetCommitter::LoadFile(
    const PushConsumerOptions& options) {
  const std::map<MessageQueue, std::int64_t> none;
  if (options.broadcast_offset_dir.empty()) return none;
  TRIAD_RETURN_IF_ERROR(PosixFileSystem().CreateDirs(options.broadcast_offset_dir));
  const Result<std::string> text = ReadFile(PosixFileSystem(), FilePath(options));
  if (text.status().code() == StatusCode::kNotFound) return none;
  if (!text.ok()) return text.status();
  auto offsets = OffsetStore::Decode(*text);
  if (!offsets.ok()) {
    return Status::Corruption(FilePath(options) + ": " + std::string(offsets.status().message()) +
                              "; correct or remove the file");
  }
  return offsets;
}

}  // namespace triad::client
