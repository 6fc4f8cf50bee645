#include "tests/chaos/crash_journal.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace triad::chaos {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kSector = 512;

int Errno(int result) {
  return result < 0 ? errno : 0;
}

}  // namespace

CrashJournal::CrashJournal(std::string root, std::string trash)
    : root_(std::move(root)), trash_(std::move(trash)) {}

CrashJournal::File* CrashJournal::FileOf(int fd) {
  struct stat status {};
  CHECK_EQ(::fstat(fd, &status), 0);
  const auto [found, is_new] = files_.try_emplace(status.st_ino);
  if (is_new) found->second.synced_size = static_cast<std::uint64_t>(status.st_size);
  return &found->second;
}

// Remembers the pages of [begin, end) as they were at the last sync.
int CrashJournal::Keep(int fd, File* file, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t page = begin / kPage; page * kPage < end; ++page) {
    if (page * kPage >= file->synced_size || file->pages.contains(page)) continue;
    std::string bytes(kPage, '\0');
    const ssize_t got = ::pread(fd, bytes.data(), kPage, static_cast<off_t>(page * kPage));
    if (got < 0) return errno;
    bytes.resize(std::min<std::uint64_t>(kPage, file->synced_size - page * kPage));
    file->pages.emplace(page, std::move(bytes));
  }
  return 0;
}

int CrashJournal::Write(int fd, const char* bytes, std::size_t size, std::uint64_t offset) {
  std::lock_guard hold(mutex_);
  File* const file = FileOf(fd);
  if (const int error = Keep(fd, file, offset, offset + size); error != 0) return error;
  // Pages behind the synced end are lost by cutting; they are named so that they can survive too.
  for (std::uint64_t page = offset / kPage; page * kPage < offset + size; ++page) {
    file->pages.try_emplace(page);
  }
  if (offset + size > file->synced_size) file->metadata = true;
  for (std::size_t done = 0; done < size;) {
    const ssize_t wrote =
        ::pwrite(fd, bytes + done, size - done, static_cast<off_t>(offset + done));
    if (wrote < 0) return errno;
    done += static_cast<std::size_t>(wrote);
  }
  return 0;
}

int CrashJournal::Truncate(int fd, std::uint64_t size) {
  std::lock_guard hold(mutex_);
  File* const file = FileOf(fd);
  if (const int error = Keep(fd, file, size, file->synced_size); error != 0) return error;
  file->metadata = true;
  return Errno(::ftruncate(fd, static_cast<off_t>(size)));
}

void CrashJournal::Synced(int fd, bool all) {
  std::lock_guard hold(mutex_);
  struct stat status {};
  CHECK_EQ(::fstat(fd, &status), 0);
  const auto found = files_.find(status.st_ino);
  const bool metadata = found != files_.end() && found->second.metadata;
  if (found != files_.end()) files_.erase(found);
  if (all || metadata) ForgetNames(names_.size());
}

void CrashJournal::SyncedNames() {
  std::lock_guard hold(mutex_);
  ForgetNames(names_.size());
}

void CrashJournal::ForgetNames(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!names_[i].kept.empty()) ::unlink(names_[i].kept.c_str());
  }
  names_.erase(names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(count));
}

void CrashJournal::MarkMetadata(const std::string& path) {
  struct stat status {};
  if (::stat(Real(path).c_str(), &status) != 0) return;
  const auto [found, is_new] = files_.try_emplace(status.st_ino);
  if (is_new) found->second.synced_size = static_cast<std::uint64_t>(status.st_size);
  found->second.metadata = true;
}

int CrashJournal::Created(const std::string& path) {
  std::lock_guard hold(mutex_);
  names_.push_back({Kind::kCreate, path, "", ""});
  MarkMetadata(path);
  return 0;
}

int CrashJournal::Remove(const std::string& path) {
  std::lock_guard hold(mutex_);
  const std::string kept = NewTrash();
  if (::rename(Real(path).c_str(), kept.c_str()) != 0) return errno;
  names_.push_back({Kind::kRemove, path, "", kept});
  return 0;
}

int CrashJournal::Rename(const std::string& from, const std::string& to) {
  std::lock_guard hold(mutex_);
  std::string kept;
  struct stat status {};
  if (::stat(Real(to).c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
    kept = NewTrash();
    if (::link(Real(to).c_str(), kept.c_str()) != 0) return errno;
  }
  if (::rename(Real(from).c_str(), Real(to).c_str()) != 0) {
    const int error = errno;
    if (!kept.empty()) ::unlink(kept.c_str());
    return error;
  }
  names_.push_back({Kind::kRename, from, to, kept});
  MarkMetadata(to);
  return 0;
}

int CrashJournal::MakeDir(const std::string& path, mode_t mode) {
  std::lock_guard hold(mutex_);
  if (::mkdir(Real(path).c_str(), mode) != 0) return errno;
  names_.push_back({Kind::kMakeDir, path, "", ""});
  return 0;
}

int CrashJournal::RemoveDir(const std::string& path) {
  std::lock_guard hold(mutex_);
  if (::rmdir(Real(path).c_str()) != 0) return errno;
  names_.push_back({Kind::kRemoveDir, path, "", ""});
  return 0;
}

void CrashJournal::Undo(const Change& change) {
  const std::string path = Real(change.path);
  switch (change.kind) {
    case Kind::kCreate: ::unlink(path.c_str()); return;
    case Kind::kRemove: ::rename(change.kept.c_str(), path.c_str()); return;
    case Kind::kRename:
      ::rename(Real(change.other).c_str(), path.c_str());
      if (!change.kept.empty()) ::rename(change.kept.c_str(), Real(change.other).c_str());
      return;
    case Kind::kMakeDir: ::rmdir(path.c_str()); return;
    case Kind::kRemoveDir: ::mkdir(path.c_str(), 0755); return;
  }
}

std::map<CrashJournal::FileKey, std::string> CrashJournal::PathsOfFiles() const {
  std::map<FileKey, std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) {
    struct stat status {};
    if (!entry.is_regular_file() || ::stat(entry.path().c_str(), &status) != 0) continue;
    paths[status.st_ino] = entry.path().string();
  }
  return paths;
}

CrashJournal::Loss CrashJournal::Crash(std::uint64_t seed) {
  std::lock_guard hold(mutex_);
  sim::Random random(seed);
  Loss loss;
  const std::size_t survive = random.OneIn(3) ? 0 : random.Below(names_.size() + 1);
  // Contents first: a file whose removal or renaming is undone has its old bytes again.
  const std::map<FileKey, std::string> paths = PathsOfFiles();
  for (const auto& [key, file] : files_) {
    const auto path = paths.find(key);
    if (path != paths.end()) Tear(path->second, file, &random, &loss);
  }
  while (names_.size() > survive) {
    Undo(names_.back());
    names_.pop_back();
    ++loss.names_undone;
  }
  ForgetNames(names_.size());
  files_.clear();
  return loss;
}

// Every un-synced page: as it was, as it is, or the first sectors new and the rest old.
void CrashJournal::Tear(const std::string& path, const File& file, sim::Random* random,
                        Loss* loss) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  struct stat status {};
  CHECK_EQ(::fstat(fd, &status), 0);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  // A cut of the file that is not synced happened wholly or not at all.
  const bool was_cut = size < file.synced_size;
  std::uint64_t new_size = was_cut && random->OneIn(2) ? size : file.synced_size;
  const std::uint32_t keep_millionths =
      random->OneIn(2) ? 0 : static_cast<std::uint32_t>(random->Below(1'000'001));
  for (const auto& [page, old] : file.pages) {
    const std::uint64_t begin = page * kPage;
    const bool is_cut = was_cut && begin + kPage > size;
    const bool keeps = !is_cut && random->Chance(keep_millionths);
    const bool tears = !is_cut && !keeps && keep_millionths != 0 && random->OneIn(8);
    ++(keeps ? loss->pages_kept : tears ? loss->pages_torn : loss->pages_lost);
    std::string bytes = old;
    bytes.resize(kPage);
    const std::size_t new_bytes = keeps   ? kPage
                                  : tears ? kSector * (1 + random->Below(kPage / kSector - 1))
                                          : 0;
    if (new_bytes > 0 && begin < size) {
      const std::uint64_t end = std::min(size, begin + new_bytes);
      new_size = std::max(new_size, end);
    }
    if (new_bytes >= kPage) continue;
    const std::size_t from = new_bytes;
    if (::pwrite(fd, bytes.data() + from, kPage - from, static_cast<off_t>(begin + from)) < 0) {
      LOG(FATAL) << "cannot put " << path << " back";
    }
  }
  CHECK_EQ(::ftruncate(fd, static_cast<off_t>(new_size)), 0) << path;
  ::close(fd);
}

}  // namespace triad::chaos
