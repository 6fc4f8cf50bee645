#include "tests/chaos/history_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "common/clock.h"

namespace triad::chaos {

namespace {
constexpr std::int64_t kImportedIds = std::int64_t{1} << 40;
}  // namespace

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
  Count(event);
  Write(event);
  return event.id;
}

void HistoryWriter::End(std::int64_t id, Event end) {
  std::lock_guard hold(mutex_);
  end.id = id;
  end.invokes = false;
  end.completes = true;
  end.returned_ns = NowNs();
  Count(end);
  Write(end);
}

void HistoryWriter::Import(Event event) {
  std::lock_guard hold(mutex_);
  if (event.id >= 0) event.id += kImportedIds;
  Count(event);
  Write(event);
}

// What the run itself wants to know while it goes on.
void HistoryWriter::Count(const Event& event) {
  if (event.invokes && event.op == Op::kSend) sends_.emplace(event.id, event.client);
  if (!event.invokes) {
    const auto send = sends_.find(event.id);
    if (send == sends_.end()) return;
    if (event.outcome == Outcome::kOk) {
      ++acked_;
      last_acks_ns_[send->second] = event.returned_ns;
    }
    sends_.erase(send);
    return;
  }
  if (event.op == Op::kGroup) {
    groups_[event.group].topic = event.key;
    groups_[event.group].orderly = event.value == "orderly";
    groups_[event.group].last_time = event.attempts - 1;
  }
  if (event.op != Op::kDeliver) return;
  // What repeating clients stored twice has one value and two places; what came back through the
  // retry topic has one value and another place.
  Group& group = groups_[event.group];
  if (event.outcome != Outcome::kOk) {
    if (group.last_time == 0 || event.times < group.last_time) return;
    group.dead.insert(event.value);
  }
  group.taken.insert(group.orderly ? event.key + " " + std::to_string(event.offset) : event.value);
}

std::uint64_t HistoryWriter::DeliveredOf(const std::string& topic) {
  std::lock_guard hold(mutex_);
  for (const auto& [name, group] : groups_) {
    if (group.topic == topic) return group.taken.size();
  }
  return 0;
}

std::uint64_t HistoryWriter::DeadOf(const std::string& group) {
  std::lock_guard hold(mutex_);
  const auto found = groups_.find(group);
  return found == groups_.end() ? 0 : found->second.dead.size();
}

void HistoryWriter::Note(Event event) {
  std::lock_guard hold(mutex_);
  event.invokes = event.completes = true;
  if (event.outcome == Outcome::kNone) event.outcome = Outcome::kOk;
  event.invoked_ns = event.returned_ns = NowNs();
  Count(event);
  Write(event);
}

Status HistoryWriter::Flush() {
  std::lock_guard hold(mutex_);
  if (std::fflush(file_) != 0 || failed_) {
    return Status::IoError("the history could not be written to its end");
  }
  return Status::Ok();
}

Status SortHistory(const std::string& path) {
  std::vector<std::pair<std::int64_t, std::string>> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const Result<Event> event = ParseEvent(line);
    if (!event.ok()) return event.status();
    lines.emplace_back(event->time_ns(), std::move(line));
  }
  if (in.bad()) return Status::IoError("cannot read " + path);
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::ofstream out(path, std::ios::trunc);
  for (const auto& [time_ns, line] : lines) out << line << '\n';
  out.close();
  return out.good() ? Status::Ok() : Status::IoError("cannot write " + path);
}

std::uint64_t HistoryWriter::acked() {
  std::lock_guard hold(mutex_);
  return acked_;
}

std::int64_t HistoryWriter::oldest_ack_ns() {
  std::lock_guard hold(mutex_);
  const auto oldest =
      std::min_element(last_acks_ns_.begin(), last_acks_ns_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return oldest == last_acks_ns_.end() ? 0 : oldest->second;
}

}  // namespace triad::chaos
