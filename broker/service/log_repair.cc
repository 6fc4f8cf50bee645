#include "broker/service/log_repair.h"

#include <glog/logging.h>

#include <chrono>
#include <utility>

#include "remoting/codes.h"

namespace triad::broker {
namespace {

constexpr std::chrono::milliseconds kFetchTimeout{5000};

}  // namespace

struct LogRepair::Job {
  Wish wish;
  std::function<void(Status)> done;
  std::size_t next = 0;  // of wish.sources
  std::string bytes;     // empty: nobody gave it yet
  std::string refusals;
};

Status LogRepair::CheckDamaged(const Wish& wish) const {
  if (wish.position < 0 || wish.position % 8 != 0 || wish.bytes <= 0 || wish.bytes % 8 != 0) {
    return Status::InvalidArgument("position and bytes must be multiples of 8");
  }
  if (wish.position >= store_.node().status().end_position.value()) {
    return Status::InvalidArgument("position " + std::to_string(wish.position) +
                                   " is behind the end of this peer's log");
  }
  const auto records = store_.node().raw_log().Records(PhysicalOffset(wish.position),
                                                       PhysicalOffset(wish.position + 8));
  if (!records.ok()) return records.status();
  const dledger::RawRecord& here = records->front();
  if (here.damage.empty()) {
    return Status::InvalidArgument("the record at position " + std::to_string(wish.position) +
                                   " is intact here; nothing is changed");
  }
  return {};
}

void LogRepair::Repair(Wish wish, std::function<void(Status)> done) {
  const Status damaged = CheckDamaged(wish);
  if (!damaged.ok()) {
    done(damaged);
    return;
  }
  auto job = std::make_shared<Job>();
  job->wish = std::move(wish);
  job->done = std::move(done);
  AskNext(job);
}

void LogRepair::AskNext(const std::shared_ptr<Job>& job) {
  if (job->next == job->wish.sources.size()) {
    Replace(job);
    return;
  }
  const std::string source = job->wish.sources[job->next++];
  remoting::Command request = remoting::Command::Request(remoting::kTriadLogBytes);
  request.ext.Set("position", job->wish.position);
  request.ext.Set("bytes", job->wish.bytes);
  client_.Call(source, std::move(request), kFetchTimeout,
               [this, job, source](Result<remoting::Command> answer) {
                 OnAnswer(job, source, std::move(answer));
               });
}

void LogRepair::OnAnswer(const std::shared_ptr<Job>& job, const std::string& source,
                         Result<remoting::Command> answer) {
  const bool has_it = answer.ok() && answer->code == remoting::kSuccess;
  if (!has_it) {
    job->refusals += "; " + source + ": " +
                     (answer.ok() ? answer->remark : std::string(answer.status().message()));
  } else if (job->bytes.empty()) {
    job->bytes = std::move(answer->body);
  } else if (job->bytes != answer->body) {
    job->done(Status::Corruption("the other peers have different bytes at position " +
                                 std::to_string(job->wish.position)));
    return;
  }
  AskNext(job);
}

void LogRepair::Replace(const std::shared_ptr<Job>& job) {
  if (job->bytes.empty()) {
    job->done(Status::Unavailable("no other peer gave the record" + job->refusals));
    return;
  }
  const Result<dledger::EntryRef> entry = dledger::RawLog::Parse(job->bytes);
  if (!entry.ok() || (*entry)->position.value() != job->wish.position) {
    job->done(Status::Corruption("what the other peers gave is not the record at position " +
                                 std::to_string(job->wish.position)));
    return;
  }
  store_.node().Replace(*entry, [this, job](Status replaced) {
    if (replaced.ok()) {
      LOG(WARNING) << "the record at position " << job->wish.position << " (" << job->wish.bytes
                   << " bytes) was damaged and is replaced by what " << job->wish.sources.size()
                   << " other peers have";
      alarm_.EndIn(job->wish.position, job->wish.position + job->wish.bytes);
    }
    job->done(std::move(replaced));
  });
}

}  // namespace triad::broker
