#include "broker/store/consume_queue_store.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>

#include "broker/store/consume_queue.h"
#include "broker/store/queue_map.h"
#include "broker/store/queue_tails.h"
#include "common/broken_ground.h"

namespace triad::broker {
namespace {

constexpr char kDeletedMark = '~';  // no topic's directory begins with it
constexpr char kEscape = '=';
constexpr std::size_t kReportsMax = 64;
constexpr std::size_t kOneByOneMax = 64;  // more paths are synced in one go
constexpr std::size_t kWrittenMax = 64;   // of more queues that grew the tails are written together
constexpr std::string_view kTailsName = "tails";
constexpr std::string_view kNewTailsPrefix = "tails.";  // and a number: not in its place yet

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '%' || c == '|';
}

// A legal topic name (wire.md §9.4) is its own directory name; any other byte becomes "=XX".
std::string DirectoryName(std::string_view topic) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string name;
  for (const char c : topic) {
    if (IsPlain(c)) {
      name.push_back(c);
      continue;
    }
    const auto byte = static_cast<std::uint8_t>(c);
    name.push_back(kEscape);
    name.push_back(kDigits[byte >> 4]);
    name.push_back(kDigits[byte & 15]);
  }
  return name;
}

// The other way. nullopt: no directory of ours.
std::optional<std::string> TopicOf(std::string_view name) {
  std::string topic;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != kEscape) {
      topic.push_back(name[i]);
      continue;
    }
    unsigned byte = 0;
    if (i + 2 >= name.size()) return std::nullopt;
    const char* const end = name.data() + i + 3;
    const auto [parsed_to, error] = std::from_chars(name.data() + i + 1, end, byte, 16);
    if (error != std::errc() || parsed_to != end) return std::nullopt;
    topic.push_back(static_cast<char>(byte));
    i += 2;
  }
  if (topic.empty() || DirectoryName(topic) != name) return std::nullopt;
  return topic;
}

// Removes a directory with all below it.
Status RemoveTree(FileSystem& fs, const std::string& dir) {
  const Result<std::vector<DirEntry>> entries = fs.List(dir);
  if (!entries.ok()) return entries.status();
  for (const DirEntry& entry : entries.value()) {
    const std::string path = dir + "/" + entry.name;
    TRIAD_RETURN_IF_ERROR(entry.is_directory ? RemoveTree(fs, path) : fs.Remove(path));
  }
  return fs.Remove(dir);
}

// What a later deletion removed needs no sync.
Status UnlessDeleted(Status status) {
  return status.code() == StatusCode::kNotFound ? Status::Ok() : std::move(status);
}

Status SyncPaths(FileSystem& fs, const std::string& root, const Unsynced& unsynced) {
  if (unsynced.files.size() + unsynced.dirs.size() > kOneByOneMax) {
    Status all = fs.SyncEverything(root);
    if (all.code() != StatusCode::kUnsupported) return all;
  }
  for (const std::string& path : unsynced.files) {
    const Result<std::unique_ptr<File>> file = fs.Open(path, {});
    if (!file.ok()) {
      TRIAD_RETURN_IF_ERROR(UnlessDeleted(file.status()));
      continue;
    }
    TRIAD_RETURN_IF_ERROR(file.value()->Sync());
  }
  for (const std::string& dir : unsynced.dirs) {
    TRIAD_RETURN_IF_ERROR(UnlessDeleted(fs.SyncDir(dir)));
  }
  return Status::Ok();
}

// Behind the sync of the queues' own files: to these they are added.
Status PlaceTails(FileSystem& fs, const std::string& dir, const std::string& written) {
  {
    const Result<std::unique_ptr<File>> file = fs.Open(written, {});
    if (!file.ok()) return file.status();
    TRIAD_RETURN_IF_ERROR(file.value()->SyncAll());
  }
  TRIAD_RETURN_IF_ERROR(fs.Rename(written, dir + "/" + std::string(kTailsName)));
  return fs.SyncDir(dir);
}

// Those of a checkpoint before would count for more than what was written to the queues' files
// since.
Status DropTails(FileSystem& fs, const std::string& dir) {
  TRIAD_RETURN_IF_ERROR(UnlessDeleted(fs.Remove(dir + "/" + std::string(kTailsName))));
  return fs.SyncDir(dir);
}

class FileConsumeQueueStore final : public ConsumeQueueStore {
 public:
  FileConsumeQueueStore(FileSystem& fs, std::string dir) : fs_(fs), dir_(std::move(dir)) {}

  Status Recover(PhysicalOffset checkpoint) {
    TRIAD_RETURN_IF_ERROR(fs_.CreateDirs(dir_));
    const Result<std::vector<DirEntry>> topics = fs_.List(dir_);
    if (!topics.ok()) return topics.status();
    Result<Tails> tails = LoadTails(checkpoint);
    if (!tails.ok()) return tails.status();
    for (const DirEntry& entry : topics.value()) {
      const std::string path = dir_ + "/" + entry.name;
      if (!entry.is_directory) {
        if (entry.name.starts_with(kNewTailsPrefix)) TRIAD_RETURN_IF_ERROR(fs_.Remove(path));
        continue;
      }
      if (entry.name.front() == kDeletedMark) {
        TRIAD_RETURN_IF_ERROR(RemoveTree(fs_, path));
        continue;
      }
      const std::optional<std::string> topic = TopicOf(entry.name);
      if (topic.has_value()) {
        TRIAD_RETURN_IF_ERROR(RecoverTopic(Topic(*topic), path, checkpoint, *tails));
      } else {
        LOG(WARNING) << "not a consume queue, left alone: " << path;
      }
    }
    for (const auto& [queue, tail] : *tails) TakeTail(tail);
    return Status::Ok();
  }

  void Append(const TopicQueue& key, QueueOffset offset, const QueueUnit& unit) override {
    ConsumeQueue& queue = FindOrAdd(key);
    if (!queue.Append(offset, unit)) {
      const Status written = queue.WriteOut(&unsynced_);
      if (written.code() == StatusCode::kNoSpace) {
        queue.LoseOldest();  // the log has it, and fills the hole when there is room
        holed_.insert(key);
      } else if (!written.ok()) {
        DieOfBrokenGround(
            "cannot write a consume queue: " + written.ToString() +
            ". Check the disk, then start again: the queues are rebuilt from the log.");
      }
      CHECK(queue.Append(offset, unit));
    }
    List(queue);
  }

  Status StartEmpty(const TopicQueue& key, QueueOffset next) override {
    return FindOrAdd(key).StartEmpty(next, &unsynced_);
  }

  void DeleteTopic(const Topic& topic) override {
    for (auto& [key, queue] : queues_) {
      if (key.topic != topic) continue;
      queue->ReturnBudget();
      if (queue->listed) std::erase(to_write_, queue.get());
    }
    {
      const std::unique_lock hold(mutex_);
      std::erase_if(queues_, [&](const auto& queue) { return queue.first.topic == topic; });
    }
    const std::string path = dir_ + "/" + DirectoryName(topic.value());
    if (!fs_.Exists(path)) return;
    // Renamed first: after a crash the topic is whole or gone, never a part of itself.
    const std::string deleted = dir_ + "/" + kDeletedMark + std::to_string(++deletions_);
    Status done = fs_.Rename(path, deleted);
    // No room for the new name: the state is durable and knows the topic no more.
    const bool renamed = done.code() != StatusCode::kNoSpace;
    if (done.ok() || !renamed) done = RemoveTree(fs_, renamed ? deleted : path);
    if (!done.ok()) {
      DieOfBrokenGround("cannot remove the consume queues of topic " + topic.value() + ": " +
                        done.ToString() + ". Check the disk and the permissions of " + dir_ +
                        ", then start again.");
    }
    unsynced_.dirs.insert(dir_);
  }

  Status Clear() override {
    for (auto& [key, queue] : queues_) queue->ReturnBudget();
    to_write_.clear();
    behind_begin_.clear();
    holed_.clear();
    unsynced_ = {};
    has_tails_ = false;
    {
      const std::unique_lock hold(mutex_);
      queues_.clear();
    }
    TRIAD_RETURN_IF_ERROR(RemoveTree(fs_, dir_));
    return fs_.CreateDirs(dir_);
  }

  Status WriteOut() override {
    for (ConsumeQueue* const queue : to_write_) {
      TRIAD_RETURN_IF_ERROR(queue->WriteOut(&unsynced_));
      queue->listed = false;
    }
    to_write_.clear();
    return ShrinkIdle();
  }

  Status SyncAll() override {
    const PhysicalOffset all(std::numeric_limits<std::int64_t>::max());
    const Result<std::function<Status()>> sync = PrepareSync(all);
    return sync.ok() ? sync.value()() : sync.status();
  }

  Result<std::function<Status()>> PrepareSync(PhysicalOffset checkpoint) override {
    std::string new_tails;  // empty: none
    if (to_write_.size() > kWrittenMax) {
      TRIAD_RETURN_IF_ERROR(ShrinkIdle());
      new_tails = dir_ + "/" + std::string(kNewTailsPrefix) + std::to_string(++tails_written_);
      const Status written = WriteTails(new_tails, checkpoint);
      if (!written.ok()) {
        IgnoreError(fs_.Remove(new_tails), "a start removes it too");
        return written;
      }
    } else {
      TRIAD_RETURN_IF_ERROR(WriteOut());
    }
    const bool drops_tails = std::exchange(has_tails_, !new_tails.empty()) && new_tails.empty();
    const std::set<std::string> queue_dirs = unsynced_.dirs;
    for (const std::string& dir : queue_dirs) {  // a new queue may have a new topic directory
      if (dir != dir_) unsynced_.dirs.insert(dir.substr(0, dir.rfind('/')));
    }
    if (!queue_dirs.empty()) unsynced_.dirs.insert(dir_);
    auto unsynced = std::make_shared<Unsynced>(std::exchange(unsynced_, {}));
    return std::function<Status()>([&fs = fs_, dir = dir_, unsynced, new_tails, drops_tails] {
      TRIAD_RETURN_IF_ERROR(SyncPaths(fs, dir, *unsynced));
      if (!new_tails.empty()) return PlaceTails(fs, dir, new_tails);
      return drops_tails ? DropTails(fs, dir) : Status::Ok();
    });
  }

  Status SetLogBegin(PhysicalOffset begin) override {
    for (auto& [key, queue] : queues_) TRIAD_RETURN_IF_ERROR(SetBeginOf(key, *queue, begin));
    stepping_begin_ = begin;
    behind_begin_.clear();
    return Status::Ok();
  }

  Result<bool> StepLogBegin(PhysicalOffset begin, std::size_t max_queues) override {
    if (begin != stepping_begin_) {
      stepping_begin_ = begin;
      behind_begin_.clear();
      for (const auto& [key, queue] : queues_) behind_begin_.push_back(key);
    }
    std::vector<TopicQueue> failed;
    Status why;
    for (; max_queues > 0 && !behind_begin_.empty(); --max_queues) {
      const auto found = queues_.find(behind_begin_.back());
      behind_begin_.pop_back();
      if (found == queues_.end()) continue;  // its topic was deleted meanwhile
      const Status done = SetBeginOf(found->first, *found->second, begin);
      if (done.ok()) continue;
      failed.push_back(found->first);
      why = done;
    }
    behind_begin_.insert(behind_begin_.begin(), failed.begin(), failed.end());  // the others first
    if (!why.ok()) return why;
    return behind_begin_.empty();
  }

  void ExtendTo(const TopicQueue& key, QueueOffset offset) override {
    FindOrAdd(key).ExtendTo(offset);
    holed_.insert(key);
  }

  Result<std::optional<Hole>> FindHole() override {
    TRIAD_RETURN_IF_ERROR(TakeReports());
    while (!holed_.empty()) {
      const TopicQueue key = *holed_.begin();
      const auto found = queues_.find(key);
      if (found != queues_.end()) {
        const std::optional<ConsumeQueue::Hole> hole = found->second->hole();
        if (hole) return std::optional(Hole{key, hole->begin, hole->end, hole->behind});
      }
      holed_.erase(key);
      if (found == queues_.end()) continue;
      List(*found->second);
      const Status done = SetBeginOf(key, *found->second, stepping_begin_);
      if (done.ok()) continue;
      behind_begin_.push_back(key);
      return done;
    }
    return std::optional<Hole>();
  }

  std::size_t queues_with_holes() const override { return holed_.size(); }

  Status Feed(const TopicQueue& key, QueueOffset first, std::span<const QueueUnit> units) override {
    return FindOrAdd(key).Feed(first, units, &unsynced_);
  }

  Status CloseHole(const TopicQueue& key) override { return FindOrAdd(key).CloseHole(&unsynced_); }

  std::vector<TopicQueue> Queues() const override {
    std::vector<TopicQueue> keys;
    const std::shared_lock hold(mutex_);
    keys.reserve(queues_.size());
    for (const auto& [key, queue] : queues_) keys.push_back(key);
    return keys;
  }

  std::optional<QueueRange> Range(const TopicQueue& key) const override {
    const std::shared_ptr<ConsumeQueue> queue = Find(key);
    if (queue == nullptr) return std::nullopt;
    return queue->Range();
  }

  std::optional<std::vector<QueueUnit>> ReadNow(const TopicQueue& key, QueueOffset from,
                                                std::size_t max_units) const override {
    const std::shared_ptr<ConsumeQueue> queue = Find(key);
    if (queue == nullptr) return std::vector<QueueUnit>();
    return queue->ReadNow(from, max_units);
  }

  Result<std::vector<QueueUnit>> Read(const TopicQueue& key, QueueOffset from,
                                      std::size_t max_units) const override {
    const std::shared_ptr<ConsumeQueue> queue = Find(key);
    if (queue == nullptr) return std::vector<QueueUnit>();
    Result<std::vector<QueueUnit>> units = queue->Read(from, max_units);
    if (units.status().code() != StatusCode::kCorruption) return units;
    Report(key, from, units.status());
    return Status::Unavailable(std::string(units.status().message()) +
                               "; it is being rebuilt from the log");
  }

 private:
  std::string DirOf(const TopicQueue& key) const {
    return dir_ + "/" + DirectoryName(key.topic.value()) + "/" +
           std::to_string(key.queue_id.value());
  }

  // What the tails hold in front of `checkpoint`, unless they are of an older one.
  using Tails = std::map<TopicQueue, QueueTail>;
  Result<Tails> LoadTails(PhysicalOffset checkpoint) {
    Tails tails;
    Result<QueueTails> read = ReadQueueTails(fs_, dir_ + "/" + std::string(kTailsName));
    if (read.status().code() == StatusCode::kNotFound) return tails;
    if (!read.ok()) return read.status();
    has_tails_ = true;
    if (read->checkpoint < checkpoint) return tails;
    for (QueueTail& tail : read->tails) {
      std::erase_if(tail.units, [&](const QueueUnit& unit) { return unit.position >= checkpoint; });
      if (!tail.units.empty()) tails[tail.queue] = std::move(tail);
    }
    return tails;
  }

  // What does not fit the files is left out: a hole, which the log fills.
  void TakeTail(const QueueTail& tail) {
    const auto found = queues_.find(tail.queue);
    if (found == queues_.end() && tail.has_files) return;
    if (found != queues_.end()) {
      const QueueRange range = found->second->Range();
      if (range.min > tail.first) return;
      if (range.max < tail.first) ExtendTo(tail.queue, tail.first);
    }
    QueueOffset offset = tail.first;
    for (const QueueUnit& unit : tail.units) {
      Append(tail.queue, offset, unit);
      offset = offset + 1;
    }
  }

  // Of all queues that have units in memory only; these stay to be written.
  Status WriteTails(const std::string& path, PhysicalOffset checkpoint) {
    Result<QueueTailsWriter> writer = QueueTailsWriter::Create(fs_, path, checkpoint);
    if (!writer.ok()) return writer.status();
    std::vector<ConsumeQueue*> kept;
    for (const auto& [key, queue] : queues_) {
      if (!queue->listed) continue;
      const QueueOffset max = queue->Range().max;
      QueueTail tail{key, queue->has_files(), max, queue->Unwritten()};
      queue->listed = !tail.units.empty();
      if (!queue->listed) continue;
      kept.push_back(queue.get());
      tail.first = max - static_cast<std::int64_t>(tail.units.size());
      TRIAD_RETURN_IF_ERROR(writer->Add(tail));
    }
    TRIAD_RETURN_IF_ERROR(writer->Finish());
    to_write_ = std::move(kept);
    return Status::Ok();
  }

  Status ShrinkIdle() {
    if (!std::exchange(budget_.refused, false)) return Status::Ok();
    for (auto& [key, queue] : queues_) TRIAD_RETURN_IF_ERROR(queue->ShrinkWhenIdle(&unsynced_));
    return Status::Ok();
  }

  Status RecoverTopic(const Topic& topic, const std::string& path, PhysicalOffset checkpoint,
                      const Tails& tails) {
    const Result<std::vector<DirEntry>> queues = fs_.List(path);
    if (!queues.ok()) return queues.status();
    for (const DirEntry& entry : queues.value()) {
      std::int32_t id = -1;
      const char* const end = entry.name.data() + entry.name.size();
      const auto [parsed_to, error] = std::from_chars(entry.name.data(), end, id);
      if (!entry.is_directory || error != std::errc() || parsed_to != end || id < 0) continue;
      auto queue = std::make_shared<ConsumeQueue>(fs_, path + "/" + entry.name, &budget_);
      const auto tail = tails.find(TopicQueue{topic, QueueId{id}});
      const auto first = tail == tails.end() ? std::nullopt : std::optional(tail->second.first);
      TRIAD_RETURN_IF_ERROR(queue->Recover(checkpoint, first));
      if (!queue->empty()) queues_[{topic, QueueId{id}}] = std::move(queue);
    }
    return Status::Ok();
  }

  void List(ConsumeQueue& queue) {
    if (queue.listed) return;
    queue.listed = true;
    to_write_.push_back(&queue);
  }

  // A queue with a hole follows when it has none.
  Status SetBeginOf(const TopicQueue& key, ConsumeQueue& queue, PhysicalOffset begin) {
    const Status done = queue.SetLogBegin(begin);
    if (done.code() != StatusCode::kUnavailable) return done;
    holed_.insert(key);
    return Status::Ok();
  }

  void Report(const TopicQueue& key, QueueOffset bad, const Status& damage) const {
    const std::lock_guard hold(reports_mutex_);
    if (reports_.size() >= kReportsMax) return;  // it is met again
    const bool is_new = reports_.emplace(key, bad).second;
    LOG_IF(ERROR, is_new) << "consume queue of topic " << key.topic << " queue " << key.queue_id
                          << ": " << damage.message() << "; it is rebuilt from the log";
  }

  Status TakeReports() {
    std::map<TopicQueue, QueueOffset> reports;
    {
      const std::lock_guard hold(reports_mutex_);
      reports.swap(reports_);
    }
    for (const auto& [key, bad] : reports) {
      const auto found = queues_.find(key);
      if (found == queues_.end()) continue;
      TRIAD_RETURN_IF_ERROR(found->second->OpenHole(bad));
      holed_.insert(key);
    }
    return Status::Ok();
  }

  // The apply thread alone changes the map, so it may look without the lock.
  ConsumeQueue& FindOrAdd(const TopicQueue& key) {
    const auto found = queues_.find(key);
    if (found != queues_.end()) return *found->second;
    auto queue = std::make_shared<ConsumeQueue>(fs_, DirOf(key), &budget_);
    const std::unique_lock hold(mutex_);
    return *queues_.emplace(key, std::move(queue)).first->second;
  }

  std::shared_ptr<ConsumeQueue> Find(const TopicQueue& key) const {
    const std::shared_lock hold(mutex_);
    const auto found = queues_.find(key);
    return found == queues_.end() ? nullptr : found->second;
  }

  FileSystem& fs_;
  const std::string dir_;

  mutable std::shared_mutex mutex_;  // for the map; a leaf
  QueueMap<std::shared_ptr<ConsumeQueue>> queues_;

  // Apply thread only.
  RingBudget budget_;
  Unsynced unsynced_;
  std::vector<ConsumeQueue*> to_write_;
  PhysicalOffset stepping_begin_;
  std::vector<TopicQueue> behind_begin_;  // queues that do not follow stepping_begin_ yet
  std::set<TopicQueue> holed_;            // with a hole, or just filled
  std::uint64_t deletions_ = 0;
  bool has_tails_ = false;  // a file of tails is there, or soon will be
  std::uint64_t tails_written_ = 0;

  mutable std::mutex reports_mutex_;                   // for what follows; a leaf
  mutable std::map<TopicQueue, QueueOffset> reports_;  // of damaged units, by readers
};

}  // namespace

Result<std::unique_ptr<ConsumeQueueStore>> ConsumeQueueStore::Open(FileSystem& fs,
                                                                   const std::string& dir,
                                                                   PhysicalOffset checkpoint) {
  auto store = std::make_unique<FileConsumeQueueStore>(fs, dir);
  TRIAD_RETURN_IF_ERROR(store->Recover(checkpoint));
  return std::unique_ptr<ConsumeQueueStore>(std::move(store));
}

}  // namespace triad::broker
