// A message store on a disk whose n-th operation fails, what its broker left there, and the parts
// of it that a test may change while no broker runs.

#pragma once

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/state/state_image.h"
#include "common/broken_ground.h"
#include "dledger/log/log_store.h"
#include "dledger/snapshot/snapshot_file.h"
#include "tests/sim/sim_file_system.h"
#include "tests/unit/broker/message_store_fixture.h"

namespace triad::broker {

// A state whose image cannot be made.
class NoImages final : public StateStore {
 public:
  explicit NoImages(std::unique_ptr<StateStore> store) : store_(std::move(store)) {}
  Status ForEach(
      const std::function<void(std::string_view key, std::string_view value)>& visit) override {
    return store_->ForEach(visit);
  }
  Result<std::unique_ptr<StateRecords>> NewImage() override { return Status::IoError("no image"); }
  Status Write(const StateBatch& batch) override { return store_->Write(batch); }

 private:
  const std::unique_ptr<StateStore> store_;
};

class OpenFault : public MessageStoreTest {
 protected:
  using FileDisk = sim::FileDisk;
  using SimFileSystem = sim::SimFileSystem;
  struct ProcessEnded {
    std::string why;
  };
  static constexpr int kMessages = 6;  // of each queue

  OpenFault() {
    SetBrokenGroundHandler([](const std::string& why) { throw ProcessEnded{why}; });
  }
  ~OpenFault() override {
    store_.reset();  // before its disk
    SetBrokenGroundHandler(nullptr);
    FLAGS_minloglevel = log_level_;
  }

  Status TryOpen() {
    MessageStoreOptions options = Options();
    options.open_state_store =
        [this](const std::string& dir) -> Result<std::unique_ptr<StateStore>> {
      auto opened = OpenMemoryStateStore(*fs_, dir);
      if (!opened.ok() || !without_images_) return opened;
      return std::unique_ptr<StateStore>(std::make_unique<NoImages>(std::move(*opened)));
    };
    options.open_node = [this](FileSystem& fs, const Clock& clock, dledger::NodeOptions node,
                               dledger::Application* application) {
      application_ = application;
      return dledger::Node::Open(fs, clock, std::move(node), application);
    };
    options.node.cache_bytes = 0;
    options.delay_levels = delay_levels_;
    options.install_batch_bytes = install_batch_bytes_;
    ready_ = false;
    auto store = MessageStore::Open(*fs_, SystemClock(), std::move(options), Listener());
    if (!store.ok()) return store.status();
    store_ = std::move(store.value());
    return Status::Ok();
  }
  void Open() {
    const Status opened = TryOpen();
    ASSERT_TRUE(opened.ok()) << opened;
  }

  // A disk of a broker that was stopped in order, behind six messages in each of two queues.
  FileDisk Stopped(std::size_t body_bytes = 0) {
    SimFileSystem fs(5);
    fs_ = &fs;
    Open();
    Start();
    Create("T");
    Create("U");
    for (int i = 0; i < kMessages; ++i) {
      const std::string body = std::to_string(i) + std::string(body_bytes, '.');
      bodies_t_.push_back("t" + body);
      bodies_u_.push_back("u" + body);
      Send("T", 0, bodies_t_.back(), "KEYS\x01k\x02");
      positions_.push_back(Send("U", 1, bodies_u_.back(), "KEYS\x01k\x02").physical_offset);
    }
    Close();
    return fs.disk();
  }
  FileDisk Changed(const FileDisk& disk, const std::function<void(SimFileSystem&)>& change) {
    SimFileSystem fs(5, disk);
    change(fs);
    fs.Crash(sim::CrashMode::kKeepAll);
    return fs.disk();
  }
  void RemoveAll(SimFileSystem& fs, const std::string& path) {
    const auto entries = fs.List(path);
    ASSERT_TRUE(entries.ok()) << entries.status();
    for (const DirEntry& entry : *entries) {
      const std::string inner = path + "/" + entry.name;
      if (entry.is_directory) {
        RemoveAll(fs, inner);
      } else {
        ASSERT_TRUE(fs.Remove(inner).ok());
      }
    }
    ASSERT_TRUE(fs.Remove(path).ok());
  }
  Status Guarded(const std::function<Status()>& work) {
    try {
      return work();
    } catch (const ProcessEnded& end) {
      return Status::IoError(end.why);
    }
  }

  void FailEachOfAStart(const FileDisk& disk, std::uint64_t operations_min,
                        const std::function<void()>& look) {
    std::uint64_t count = 0;
    for (bool failed = true; failed && !HasFailure(); ++count) {
      SCOPED_TRACE("operation " + std::to_string(count) + " fails");
      SimFileSystem fs(7 + count, disk);
      fs_ = &fs;
      fs.FailAfter(count);
      const Status lived = Guarded([this]() -> Status {
        TRIAD_RETURN_IF_ERROR(TryOpen());
        store_->Stop();
        return Status::Ok();
      });
      failed = fs.has_failed();
      EXPECT_TRUE(lived.ok() || failed) << lived;
      store_.reset();
      fs.Crash(sim::CrashMode::kDropAll);
      Open();
      if (store_ != nullptr) look();
      store_.reset();  // before its disk
    }
    EXPECT_GE(count, operations_min);
  }
  // At once, or after what is missing was filled from the log.
  void ExpectEverything() {
    const bool is_whole = store_->queues().Read(Queue("T", 0), QueueOffset(0), kMessages).ok() &&
                          store_->queues().Read(Queue("U", 1), QueueOffset(0), kMessages).ok() &&
                          store_->FindMessages(ByKeyOfT()).ok();
    if (!is_whole) Start();
    EXPECT_EQ(Bodies(Queue("T", 0)), bodies_t_);
    EXPECT_EQ(Bodies(Queue("U", 1)), bodies_u_);
    EXPECT_EQ(ByKey("T", "k"), bodies_t_);
    if (!is_whole) Close();
  }
  // The state's store, of a broker that does not run.
  void WriteState(SimFileSystem& fs, const std::string& key, const std::string& value) {
    const auto store = OpenMemoryStateStore(fs, root() + "/state");
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Write({.puts = {{key, value}}, .deletes = {}}).ok());
  }
  // The log, of a broker that does not run.
  std::unique_ptr<dledger::LogStore> OpenLog(SimFileSystem& fs) {
    const MessageStoreOptions options = Options();
    dledger::LogStoreOptions log;
    log.dir = root() + "/dledger-n0";
    log.segment_bytes = options.node.segment_bytes;
    log.prepare_bytes = log.first_prepare_bytes = options.node.prepare_bytes;
    return dledger::LogStore::Open(
               fs, log, {.group = options.node.group, .peer_id = options.node.self.value()})
        .value();
  }
  std::string KeyFile(SimFileSystem& fs) {
    return root() + "/keyindex/" + fs.List(root() + "/keyindex").value().front().name;
  }
  static KeyQuery ByKeyOfT() {
    KeyQuery query;
    query.topic = Topic("T");
    query.key = "k";
    return query;
  }

  // What another peer's state is, received and published as one that ends with entry `applied`.
  void PublishSnapshot(SimFileSystem& fs, std::uint64_t applied_more, std::string image = "") {
    fs_ = &fs;
    Open();
    const auto records = store_->state().NewImage();
    ASSERT_TRUE(records.ok()) << records.status();
    std::string piece;
    while (NextImagePiece(records.value().get(), &piece).value()) image += piece;
    dledger::SnapshotHead head;
    applied_ = store_->state().applied_index();
    head.applied = LogIndex(applied_.value() + applied_more);
    head.base.tail.next_index = applied_ + 1;
    head.base.tail.position = head.base.tail.segment_base = PhysicalOffset(1 << 20);
    head.base.tail.last_term = Term(1);
    head.base.membership = {.group_id = 1, .voters = {PeerId("n0")}, .learners = {}};
    store_.reset();
    const std::string log = root() + "/dledger-n0";
    auto file = dledger::SnapshotFile::Create(fs, dledger::SnapshotDir(log), "in");
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(image).ok());
    head.total_bytes = (*file)->size();
    head.crc = (*file)->crc();
    ASSERT_TRUE((*file)->Seal(head).ok());
    ASSERT_TRUE(dledger::PublishSnapshot(fs, log).ok());
  }

  const int log_level_ = std::exchange(FLAGS_minloglevel, google::GLOG_FATAL);
  SimFileSystem* fs_ = nullptr;
  dledger::Application* application_ = nullptr;
  std::string delay_levels_;
  bool without_images_ = false;
  std::size_t install_batch_bytes_ = kInstallBatchBytes;
  std::vector<std::string> bodies_t_;
  std::vector<std::string> bodies_u_;
  std::vector<PhysicalOffset> positions_;
  LogIndex applied_;
};

}  // namespace triad::broker
