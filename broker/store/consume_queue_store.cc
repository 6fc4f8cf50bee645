#include "broker/store/consume_queue_store.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <shared_mutex>

#include "broker/store/consume_queue.h"
#include "broker/store/queue_map.h"

namespace triad::broker {
namespace {

constexpr char kDeletedMark = '~';  // no topic's directory begins with it
constexpr char kEscape = '=';

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

Status SyncPaths(FileSystem& fs, const Unsynced& unsynced) {
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

class FileConsumeQueueStore final : public ConsumeQueueStore {
 public:
  FileConsumeQueueStore(FileSystem& fs, std::string dir) : fs_(fs), dir_(std::move(dir)) {}

  Status Recover(PhysicalOffset checkpoint) {
    TRIAD_RETURN_IF_ERROR(fs_.CreateDirs(dir_));
    const Result<std::vector<DirEntry>> topics = fs_.List(dir_);
    if (!topics.ok()) return topics.status();
    for (const DirEntry& entry : topics.value()) {
      const std::string path = dir_ + "/" + entry.name;
      if (!entry.is_directory) continue;
      if (entry.name.front() == kDeletedMark) {
        TRIAD_RETURN_IF_ERROR(RemoveTree(fs_, path));
        continue;
      }
      const std::optional<std::string> topic = TopicOf(entry.name);
      if (topic.has_value()) {
        TRIAD_RETURN_IF_ERROR(RecoverTopic(Topic(*topic), path, checkpoint));
      } else {
        LOG(WARNING) << "not a consume queue, left alone: " << path;
      }
    }
    return Status::Ok();
  }

  void Append(const TopicQueue& key, QueueOffset offset, const QueueUnit& unit) override {
    ConsumeQueue& queue = FindOrAdd(key);
    if (!queue.Append(offset, unit)) {
      const Status written = queue.WriteOut(&unsynced_);
      if (!written.ok()) {
        LOG(FATAL) << "cannot write a consume queue: " << written
                   << ". Check the disk and its free space, then start again: the queues are "
                      "rebuilt from the log.";
      }
      CHECK(queue.Append(offset, unit));
    }
    if (queue.listed) return;
    queue.listed = true;
    to_write_.push_back(&queue);
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
    if (done.ok()) done = RemoveTree(fs_, deleted);
    if (!done.ok()) {
      LOG(FATAL) << "cannot remove the consume queues of topic " << topic << ": " << done
                 << ". Check the disk and the permissions of " << dir_ << ", then start again.";
    }
    unsynced_.dirs.insert(dir_);
  }

  Status Clear() override {
    for (auto& [key, queue] : queues_) queue->ReturnBudget();
    to_write_.clear();
    behind_begin_.clear();
    unsynced_ = {};
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
    if (std::exchange(budget_.refused, false)) {
      for (auto& [key, queue] : queues_) queue->ShrinkWhenIdle();
    }
    return Status::Ok();
  }

  Status SyncAll() override {
    const Result<std::function<Status()>> sync = PrepareSync();
    return sync.ok() ? sync.value()() : sync.status();
  }

  Result<std::function<Status()>> PrepareSync() override {
    TRIAD_RETURN_IF_ERROR(WriteOut());
    const std::set<std::string> queue_dirs = unsynced_.dirs;
    for (const std::string& dir : queue_dirs) {  // a new queue may have a new topic directory
      if (dir != dir_) unsynced_.dirs.insert(dir.substr(0, dir.rfind('/')));
    }
    if (!queue_dirs.empty()) unsynced_.dirs.insert(dir_);
    auto unsynced = std::make_shared<Unsynced>(std::exchange(unsynced_, {}));
    return std::function<Status()>([&fs = fs_, unsynced] { return SyncPaths(fs, *unsynced); });
  }

  Status SetLogBegin(PhysicalOffset begin) override {
    for (auto& [key, queue] : queues_) TRIAD_RETURN_IF_ERROR(queue->SetLogBegin(begin));
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
    for (; max_queues > 0 && !behind_begin_.empty(); --max_queues) {
      const auto found = queues_.find(behind_begin_.back());
      behind_begin_.pop_back();
      if (found == queues_.end()) continue;  // its topic was deleted meanwhile
      TRIAD_RETURN_IF_ERROR(found->second->SetLogBegin(begin));
    }
    return behind_begin_.empty();
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
    return queue->Read(from, max_units);
  }

 private:
  std::string DirOf(const TopicQueue& key) const {
    return dir_ + "/" + DirectoryName(key.topic.value()) + "/" +
           std::to_string(key.queue_id.value());
  }

  Status RecoverTopic(const Topic& topic, const std::string& path, PhysicalOffset checkpoint) {
    const Result<std::vector<DirEntry>> queues = fs_.List(path);
    if (!queues.ok()) return queues.status();
    for (const DirEntry& entry : queues.value()) {
      std::int32_t id = -1;
      const char* const end = entry.name.data() + entry.name.size();
      const auto [parsed_to, error] = std::from_chars(entry.name.data(), end, id);
      if (!entry.is_directory || error != std::errc() || parsed_to != end || id < 0) continue;
      auto queue = std::make_shared<ConsumeQueue>(fs_, path + "/" + entry.name, &budget_);
      TRIAD_RETURN_IF_ERROR(queue->Recover(checkpoint));
      if (!queue->empty()) queues_[{topic, QueueId{id}}] = std::move(queue);
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
  std::uint64_t deletions_ = 0;
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
