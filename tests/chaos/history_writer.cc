#include "tests/chaos/history_writer.h"

#include <cerrno>
#include <cstring>

#include "common/clock.h"

namespace triad::chaos {

std::int64_t NowNs() {
  return SystemClock().MonoNow().time_since_epoch().count();
}

Result<std::unique_ptr<HistoryWriter>> HistoryWriter::Create(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) {
    return Status::IoError("cannot create " + path + ": " + std::strerror(errno));
  }
  return std::unique_ptr<HistoryWriter>(new HistoryWriter(file));
}

HistoryWriter::~HistoryWriter() {
  std::fclose(file_);
}

void HistoryWriter::Write(const Event& event) {
  const std::string line = FormatEvent(event) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size()) failed_ = true;
}

std::int64_t HistoryWriter::Begin(Event event) {
  std::lock_guard hold(mutex_);
  event.id = next_id_++;
  event.invokes = true;
  event.completes = false;
  event.invoked_ns = NowNs();
  if (event.op == Op::kSend) sends_.insert(event.id);
  Write(event);
  return event.id;
}

void HistoryWriter::End(std::int64_t id, Event end) {
  std::lock_guard hold(mutex_);
  end.id = id;
  end.invokes = false;
  end.completes = true;
  end.returned_ns = NowNs();
  Write(end);
  if (sends_.erase(id) == 0 || end.outcome != Outcome::kOk) return;
  ++acked_;
  last_ack_ns_ = end.returned_ns;
}

void HistoryWriter::Note(Event event) {
  std::lock_guard hold(mutex_);
  event.invokes = event.completes = true;
  if (event.outcome == Outcome::kNone) event.outcome = Outcome::kOk;
  event.invoked_ns = event.returned_ns = NowNs();
  Write(event);
}

Status HistoryWriter::Flush() {
  std::lock_guard hold(mutex_);
  if (std::fflush(file_) != 0 || failed_) {
    return Status::IoError("the history could not be written to its end");
  }
  return Status::Ok();
}

std::uint64_t HistoryWriter::acked() {
  std::lock_guard hold(mutex_);
  return acked_;
}

std::int64_t HistoryWriter::last_ack_ns() {
  std::lock_guard hold(mutex_);
  return last_ack_ns_;
}

}  // namespace triad::chaos
