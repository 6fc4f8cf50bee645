#include "tests/unit/dledger/node_harness.h"

#include <arpa/inet.h>
#include <glog/logging.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "common/crc32c.h"
#include "dledger/open_log.h"

namespace triad::dledger {

void Board::Notify() {
  { std::lock_guard hold(mutex_); }
  changed_.notify_all();
}

bool Board::Await(const std::function<bool()>& predicate, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, predicate);
}

std::string Sized(std::string text) {
  std::string payload = std::to_string(text.size()) + ":";
  return payload + std::move(text);
}

std::string_view TextOf(const Entry& entry) {
  if (entry.type != EntryType::kBatch) return {};
  const std::string_view payload = entry.payload();
  const std::size_t colon = payload.find(':');
  const std::size_t size = std::stoul(std::string(payload.substr(0, colon)));
  return payload.substr(colon + 1, size);
}

BuildResult Recorder::Build(const BuildContext& context, std::string* payload) {
  std::lock_guard hold(mutex_);
  if (queue_.empty()) return BuildResult::kNothing;
  if (queue_.front().size() > context.room_bytes) return BuildResult::kDoesNotFit;
  payload->append(queue_.front());
  queue_.pop_front();
  builder_ = std::this_thread::get_id();
  return BuildResult::kBuilt;
}

void Recorder::OnLeaderChange(const LeaderInfo& info) {
  {
    std::lock_guard hold(mutex_);
    changes_.push_back(info);
    if (!info.ready) queue_.clear();
  }
  board_.Notify();
}

void Recorder::Apply(std::span<const EntryRef> entries) {
  {
    std::lock_guard hold(mutex_);
    applied_.insert(applied_.end(), entries.begin(), entries.end());
    for (const EntryRef& entry : entries) {
      CHECK_EQ(entry->index, state_.index + 1);
      state_ = {.index = entry->index, .crc = Crc32c(entry->bytes, state_.crc)};
    }
  }
  board_.Notify();
}

std::thread::id Recorder::builder() const {
  std::lock_guard hold(mutex_);
  return builder_;
}

LogIndex Recorder::DurableIndex() const {
  return keeps_state_ ? state().index : LogIndex(0);
}

Recorder::State Recorder::state() const {
  std::lock_guard hold(mutex_);
  return state_;
}

int Recorder::installed() const {
  std::lock_guard hold(mutex_);
  return installed_;
}

namespace {

// The checksum, in pieces of one byte, behind so much filling that it takes several chunks.
class CrcPieces final : public StatePieces {
 public:
  explicit CrcPieces(std::uint32_t crc) : bytes_(2 * kSnapshotChunkBytes, 'f') {
    bytes_ += std::to_string(crc);
  }
  Result<bool> Next(std::string* piece) override {
    if (at_ == bytes_.size()) return false;
    const std::size_t size = at_ < 2 * kSnapshotChunkBytes ? 1000 : 1;
    *piece = bytes_.substr(at_, size);
    at_ += piece->size();
    return true;
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

}  // namespace

Result<StateImage> Recorder::TakeImage() {
  const State now = state();
  return StateImage{.applied = now.index, .pieces = std::make_unique<CrcPieces>(now.crc)};
}

Status Recorder::InstallImage(StoredPieces* pieces, LogIndex applied, LogIndex /*first*/) {
  std::string bytes;
  std::string piece;
  while (true) {
    const Result<bool> more = pieces->Next(&piece);
    if (!more.ok()) return more.status();
    if (!*more) break;
    bytes += piece;
  }
  {
    std::lock_guard hold(mutex_);
    const std::string crc = bytes.substr(2 * kSnapshotChunkBytes);
    state_ = {.index = applied, .crc = static_cast<std::uint32_t>(std::stoul(crc))};
    ++installed_;
    applied_.clear();
  }
  if (on_installed_) on_installed_();
  board_.Notify();
  return Status::Ok();
}

void Recorder::Queue(std::string payload) {
  std::lock_guard hold(mutex_);
  queue_.push_back(std::move(payload));
}

std::vector<EntryRef> Recorder::applied() const {
  std::lock_guard hold(mutex_);
  return applied_;
}

std::size_t Recorder::applied_count() const {
  std::lock_guard hold(mutex_);
  return applied_.size();
}

bool Recorder::has_applied(const std::string& payload) const {
  std::lock_guard hold(mutex_);
  for (auto it = applied_.rbegin(); it != applied_.rend(); ++it) {
    if (TextOf(**it) == payload) return true;
  }
  return false;
}

std::vector<LeaderInfo> Recorder::changes() const {
  std::lock_guard hold(mutex_);
  return changes_;
}

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "triad-node-XXXXXX").string();
  CHECK(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::uint16_t FreePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  CHECK_GE(fd, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  CHECK_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  CHECK_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

namespace {

class FullableFile final : public File {
 public:
  FullableFile(std::unique_ptr<File> file, std::shared_ptr<const std::atomic<bool>> is_full)
      : file_(std::move(file)), is_full_(std::move(is_full)) {}

  Status Write(std::uint64_t offset, std::span<const std::string_view> parts) override {
    if (*is_full_) {
      std::uint64_t end = offset;
      for (const std::string_view part : parts) end += part.size();
      const Result<std::uint64_t> size = file_->Size();
      if (!size.ok()) return size.status();
      if (end > *size) return Status::NoSpace("the test filled the disk");
    }
    return file_->Write(offset, parts);
  }
  Result<std::size_t> Read(std::uint64_t offset, std::span<char> buffer) const override {
    return file_->Read(offset, buffer);
  }
  Status Sync() override { return file_->Sync(); }
  Status SyncAll() override { return file_->SyncAll(); }
  Status Truncate(std::uint64_t size_bytes) override { return file_->Truncate(size_bytes); }
  Result<std::uint64_t> Size() const override { return file_->Size(); }
  Status Lock() override { return file_->Lock(); }

 private:
  const std::unique_ptr<File> file_;
  const std::shared_ptr<const std::atomic<bool>> is_full_;
};

}  // namespace

Result<std::unique_ptr<File>> BootFileSystem::Open(const std::string& path, OpenFlags flags) {
  const bool is_boot_id = path == "/proc/sys/kernel/random/boot_id";
  Result<std::unique_ptr<File>> file =
      PosixFileSystem().Open(is_boot_id ? boot_id_path_ : path, flags);
  if (!file.ok()) return file;
  return std::unique_ptr<File>(new FullableFile(std::move(file).value(), is_full_));
}

Cluster::Cluster(std::size_t peers) : members_(peers) {
  std::vector<PeerAddress> list;
  for (std::size_t i = 0; i < peers; ++i) {
    list.push_back(PeerAddress{
        .id = PeerId("n" + std::to_string(i)), .host = "127.0.0.1", .port = FreePort()});
  }
  for (std::size_t i = 0; i < peers; ++i) {
    NodeOptions& options = members_[i].options;
    options.group = "harness";
    options.self = list[i].id;
    options.peers = list;
    options.dir = dir_.path() + "/" + list[i].id.value();
    options.client_address = "127.0.0.1:1091" + std::to_string(i);
    options.bind_address = "127.0.0.1";
    options.segment_bytes = 1u << 20;
    options.cache_bytes = 4u << 20;
    options.prepare_bytes = 1u << 20;
    members_[i].boot_id_path = options.dir + ".boot_id";
    members_[i].fs = std::make_unique<BootFileSystem>(members_[i].boot_id_path);
    std::ofstream(members_[i].boot_id_path) << "boot 1";
  }
}

Cluster::~Cluster() {
  for (std::size_t i = 0; i < size(); ++i) Stop(i);
}

Status Cluster::Start(std::size_t i) {
  Member& member = members_[i];
  CHECK(member.node == nullptr);
  std::filesystem::create_directories(member.options.dir);
  if (!keeps_state_) member.state = {.index = member.options.applied, .crc = 0};
  member.recorder = std::make_unique<Recorder>(board_, keeps_state_, member.state);
  member.recorder->set_on_installed(member.on_installed);
  Result<std::optional<ReadySnapshot>> ready =
      Node::FindReadySnapshot(*member.fs, member.options.dir);
  if (!ready.ok()) return ready.status();
  if (ready->has_value()) {
    TRIAD_RETURN_IF_ERROR(
        member.recorder->InstallImage((*ready)->pieces.get(), (*ready)->applied, LogIndex(0)));
  }
  if (keeps_state_) member.options.applied = member.recorder->state().index;
  Result<std::unique_ptr<Node>> opened =
      Node::Open(*member.fs, SystemClock(), member.options, member.recorder.get());
  if (!opened.ok()) return opened.status();
  member.node = std::move(opened).value();
  return member.node->Start();
}

void Cluster::StartAll() {
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_running(i)) continue;
    const Status started = Start(i);
    ASSERT_TRUE(started.ok()) << started;
  }
}

void Cluster::Stop(std::size_t i) {
  Member& member = members_[i];
  if (member.node == nullptr) return;
  member.node->Stop();
  member.node.reset();
  if (keeps_state_) member.state = member.recorder->state();
}

void Cluster::Wipe(std::size_t i) {
  CHECK(!is_running(i));
  std::filesystem::remove_all(members_[i].options.dir);
  members_[i].state = {};
}

bool Cluster::AwaitEqualStates() {
  return board_.Await([this] {
    std::optional<Recorder::State> first;
    for (std::size_t i = 0; i < size(); ++i) {
      if (!is_running(i)) continue;
      const Recorder::State state = recorder(i).state();
      if (first && !(*first == state)) return false;
      first = state;
    }
    return first.has_value();
  });
}

void Cluster::SaveVote(std::size_t i, const HardState& vote) {
  Member& member = members_[i];
  CHECK(member.node == nullptr);
  std::filesystem::create_directories(member.options.dir);
  const Result<OpenedLog> log = OpenLog(*member.fs, member.options);
  CHECK(log.ok()) << log.status();
  const Status saved = log->store->SaveHardState(vote);
  CHECK(saved.ok()) << saved;
}

void Cluster::Reboot(const std::vector<std::size_t>& which) {
  for (const std::size_t i : which) {
    const std::string& dir = members_[i].options.dir;
    std::filesystem::copy(dir, dir + ".image", std::filesystem::copy_options::recursive);
  }
  for (std::size_t i = 0; i < size(); ++i) Stop(i);
  for (const std::size_t i : which) {
    const std::string& dir = members_[i].options.dir;
    std::filesystem::remove_all(dir);
    std::filesystem::rename(dir + ".image", dir);
    std::ofstream(members_[i].boot_id_path) << "boot 2";
  }
}

std::optional<std::size_t> Cluster::Leader() {
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_running(i) && node(i).leader_info().ready) return i;
  }
  return std::nullopt;
}

std::size_t Cluster::AwaitLeader() {
  EXPECT_TRUE(board_.Await([this] { return Leader().has_value(); })) << "nobody leads";
  return Leader().value_or(0);
}

void Cluster::Propose(std::size_t i, const std::string& text) {
  recorder(i).Queue(Sized(text));
  node(i).WakeProposer();
}

void Cluster::Commit(const std::string& text) {
  Propose(AwaitLeader(), text);
  EXPECT_TRUE(AwaitAppliedByAll(text)) << "not applied everywhere: " << text.substr(0, 40);
}

bool Cluster::AwaitAppliedByAll(const std::string& text) {
  return board_.Await([&] {
    for (std::size_t i = 0; i < size(); ++i) {
      if (is_running(i) && !recorder(i).has_applied(text)) return false;
    }
    return true;
  });
}

Status Cluster::AwaitRead(std::size_t i, std::chrono::milliseconds timeout) {
  const auto answer = std::make_shared<std::promise<Status>>();
  std::future<Status> outcome = answer->get_future();
  node(i).ReadIndex(timeout, [answer](Status status) { answer->set_value(std::move(status)); });
  return outcome.get();
}

std::string Cluster::AppliedBytes(std::size_t i) {
  std::string bytes;
  for (const EntryRef& entry : recorder(i).applied()) bytes += entry->bytes;
  return bytes;
}

bool Cluster::AwaitIdentical(std::size_t a, std::size_t b) {
  return board_.Await([&] {
    return recorder(a).applied_count() == recorder(b).applied_count() &&
           AppliedBytes(a) == AppliedBytes(b);
  });
}

}  // namespace triad::dledger
