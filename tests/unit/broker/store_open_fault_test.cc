// Every operation of a message store's start on its disk fails once: the failure is reported, and
// the next start has all that the log and the state have. What a start finds and cannot be is
// refused.

#include "broker/state/state_keys.h"
#include "broker/state/state_records.h"
#include "tests/unit/broker/open_fault_fixture.h"

namespace triad::broker {
namespace {

TEST_F(OpenFault, AnOrderlyStoppedStore) {
  FailEachOfAStart(Stopped(), 60, [this] { ExpectEverything(); });
}

TEST_F(OpenFault, AStoreWithoutItsDerivedDirectories) {
  const FileDisk disk = Changed(Stopped(), [this](SimFileSystem& fs) {
    RemoveAll(fs, root() + "/consumequeue");
    RemoveAll(fs, root() + "/keyindex");
  });
  FailEachOfAStart(disk, 60, [this] { ExpectEverything(); });
}

TEST_F(OpenFault, AStoreWithADamagedKeyIndex) {
  const FileDisk disk = Changed(Stopped(20'000), [this](SimFileSystem& fs) {
    ASSERT_GT(fs.List(root() + "/keyindex")->size(), 2u);
    fs.Rot(KeyFile(fs), 0, 1);
  });
  FailEachOfAStart(disk, 60, [this] { ExpectEverything(); });
}

TEST_F(OpenFault, AStoreWhoseLogBeginsLaterThanWhatIsDerived) {
  delay_levels_ = "1s 5s";
  const FileDisk disk = Changed(Stopped(20'000), [this](SimFileSystem& fs) {
    const auto log = OpenLog(fs);
    ASSERT_GT(log->segments().size(), 3u);
    ASSERT_EQ(log->DropBefore(log->segments()[3].first).value(), 3u);
    ASSERT_TRUE(log->Close().ok());
  });
  FailEachOfAStart(disk, 60, [this] {
    const QueueRange range = store_->RangeOf(Queue("T", 0));
    ASSERT_GT(range.min, QueueOffset(0));
    const std::vector<std::string> kept(bodies_t_.begin() + range.min.value(), bodies_t_.end());
    EXPECT_EQ(Bodies(Queue("T", 0)), kept);
    EXPECT_EQ(ByKey("T", "k"), kept);
  });
}

TEST_F(OpenFault, AStoreThatReceivedAState) {
  const FileDisk disk = Changed(Stopped(), [this](SimFileSystem& fs) { PublishSnapshot(fs, 0); });
  FailEachOfAStart(disk, 60, [this] {
    EXPECT_EQ(store_->state().applied_index(), applied_);
    EXPECT_EQ(store_->node().status().first_index, applied_ + 1);
    EXPECT_EQ(store_->RangeOf(Queue("T", 0)).max, QueueOffset(kMessages));
  });
}

// In many batches: a start that failed between two of them left parts of both states.
TEST_F(OpenFault, AStoreThatReceivedAStateLargerThanABatch) {
  install_batch_bytes_ = 200;
  const FileDisk disk = Changed(Stopped(), [this](SimFileSystem& fs) { PublishSnapshot(fs, 0); });
  FailEachOfAStart(disk, 80, [this] {
    EXPECT_EQ(store_->state().applied_index(), applied_);
    EXPECT_EQ(store_->node().status().first_index, applied_ + 1);
    EXPECT_EQ(store_->RangeOf(Queue("T", 0)).max, QueueOffset(kMessages));
  });
}

TEST_F(OpenFault, AReceivedStateWithoutRoomIsSaidSoAndInstalledByAStartThatHasSome) {
  SimFileSystem fs(5, Stopped());
  PublishSnapshot(fs, 0);
  fs.set_capacity(0);
  const Status refused = TryOpen();
  EXPECT_EQ(refused.code(), StatusCode::kNoSpace) << refused;
  EXPECT_NE(refused.message().find(root()), std::string::npos) << refused;
  store_.reset();
  fs.set_capacity(1u << 30);
  Open();
  EXPECT_EQ(store_->state().applied_index(), applied_);
  EXPECT_EQ(store_->node().status().first_index, applied_ + 1);
  store_.reset();  // before its disk
}

TEST_F(OpenFault, AReceivedStateThatIsNotWhatWasOfferedIsRefused) {
  SimFileSystem fs(5, Stopped());
  PublishSnapshot(fs, 3);
  EXPECT_EQ(TryOpen().code(), StatusCode::kCorruption);
}

TEST_F(OpenFault, AReceivedStateThatIsNoneIsRefused) {
  SimFileSystem fs(5, Stopped());
  PublishSnapshot(fs, 0, std::string(8, '\0'));  // a record without a key; the state's follow
  EXPECT_EQ(TryOpen().code(), StatusCode::kCorruption);
}

TEST_F(OpenFault, AStateThatTheLogContradictsIsRefused) {
  const FileDisk disk = Changed(Stopped(), [this](SimFileSystem& fs) {
    RemoveAll(fs, root() + "/consumequeue");  // so that all of the log is replayed
  });
  const std::pair<std::string, std::string> bad[] = {
      {NextOffsetKey(Queue("T", 0)), EncodeInt64(kMessages + 1)},
      {NextOffsetKey(Queue("T", 0)), "short"},
  };
  for (const auto& [key, value] : bad) {
    SCOPED_TRACE(value);
    SimFileSystem fs(5, disk);
    fs_ = &fs;
    WriteState(fs, key, value);
    EXPECT_EQ(TryOpen().code(), StatusCode::kCorruption);
    store_.reset();
  }
}

// Nothing of this program makes such an entry; its checksum is right.
TEST_F(OpenFault, AnEntryThatHoldsNoMessagesWhereItShouldIsRefused) {
  SimFileSystem fs(5, Stopped());
  fs_ = &fs;
  dledger::LogTail tail;
  {
    const auto log = OpenLog(fs);
    tail = log->tail();
    const dledger::EntryRef entry = dledger::MakeEntry(tail.last_term, dledger::EntryType::kBatch,
                                                       tail.last_store_time_ms, "abc", &tail);
    ASSERT_TRUE(log->Append({&entry, 1}).ok());
    ASSERT_TRUE(log->Sync().ok());
    ASSERT_TRUE(log->Close().ok());
  }
  {
    ReplicatedState state(OpenMemoryStateStore(fs, root() + "/state").value());
    ASSERT_TRUE(state.Load().ok());
    ApplyContext context;
    context.index = state.applied_index() + 1;
    context.term = tail.last_term;
    context.end_position = tail.position;
    context.store_time_ms = tail.last_store_time_ms;
    state.FinishEntry(context);
    ASSERT_TRUE(state.Flush({}).ok());
  }
  EXPECT_EQ(TryOpen().code(), StatusCode::kCorruption);
}

TEST_F(OpenFault, CheckpointsThatCannotBeAreRefused) {
  const FileDisk disk = Stopped();
  const std::pair<const char*, const char*> bad[] = {
      {"cq_checkpoint", ""},        {"cq_checkpoint", "x 5"}, {"cq_checkpoint", "1 y"},
      {"cq_checkpoint", "99999 8"}, {"key_run", "x"},         {"key_run", "5 "},
  };
  for (const auto& [name, text] : bad) {
    SCOPED_TRACE(std::string(name) + "=" + text);
    SimFileSystem fs(5, disk);
    fs_ = &fs;
    {
      ReplicatedState state(OpenMemoryStateStore(fs, root() + "/state").value());
      ASSERT_TRUE(state.Load().ok());
      ASSERT_TRUE(state.Flush({{name, text}}).ok());
    }
    EXPECT_EQ(TryOpen().code(), StatusCode::kCorruption);
    store_.reset();
  }
}

TEST_F(OpenFault, DelayLevelsThatCannotBeAreRefused) {
  SimFileSystem fs(5);
  fs_ = &fs;
  delay_levels_ = "1s soon";
  EXPECT_EQ(TryOpen().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace triad::broker
