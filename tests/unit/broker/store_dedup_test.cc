// Sends that are known already: what the appender makes of them, before and after they are applied.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/state/memory_state_store.h"
#include "broker/store/dedup_tail.h"
#include "tests/unit/broker/store_support.h"

namespace triad::broker {
namespace {

using dledger::BuildResult;
using std::chrono::milliseconds;
using testing::ElementsAre;

class AppenderDedup : public testing::Test {
 protected:
  AppenderDedup() {
    AppenderOptions options;
    options.store_host = Host("10.0.0.1:10911");
    appender_ = std::make_unique<Appender>(options, clock_);
    auto store = OpenMemoryStateStore(PosixFileSystem(), dir_.path() + "/state");
    CHECK(store.ok());
    state_ = std::make_unique<ReplicatedState>(std::move(store.value()));
    CHECK(state_->Load().ok());
    appender_->set_state(state_.get());
    StateCommand command;
    command.put_topics.emplace_back().name = Topic("T");
    command.put_topics.back().attributes = {{"dedup", "uniqKey"}};
    state_->Apply(command, ContextOf(LogIndex{1}, 0));
    state_->FinishEntry(ContextOf(LogIndex{1}, 0));
    OpenTerm(1);
  }

  void OpenTerm(std::uint64_t term) { appender_->OpenTerm(term_ = Term{term}, {}); }
  ApplyContext ContextOf(LogIndex index, std::int64_t position) const {
    ApplyContext context;
    context.index = index;
    context.term = term_;
    context.position = PhysicalOffset{position};
    context.end_position = PhysicalOffset{position + 100};
    context.store_time_ms = time_ms_;
    return context;
  }

  // Sends one message per key to queue `queue`; "" has no key.
  std::size_t Send(const std::vector<std::string>& keys, std::int32_t queue = 0) {
    const std::size_t number = outcomes_.size();
    outcomes_.emplace_back();
    Proposal proposal;
    for (const std::string& key : keys) {
      MessageDraft draft = Draft("T", queue, "body of " + key + std::to_string(number));
      if (!key.empty()) SetProperty(&draft.properties, "UNIQ_KEY", key);
      proposal.messages.push_back(std::move(draft));
    }
    proposal.dedup = {Topic("T"), QueueId{queue}, keys};
    proposal.deadline = clock_.MonoNow() + milliseconds(3000);
    proposal.done = [this, number](AppendOutcome outcome) {
      EXPECT_FALSE(outcomes_[number].has_value()) << "answered twice";
      outcomes_[number] = std::move(outcome);
    };
    appender_->Submit(std::move(proposal));
    return number;
  }
  BuildResult Build() {
    dledger::BuildContext context;
    context.term = term_;
    context.index = index_;
    context.payload_position = position_;
    context.room_bytes = 8u << 20;
    context.store_time_ms = time_ms_;
    payload_.clear();
    const BuildResult result = appender_->Build(context, &payload_);
    if (result == BuildResult::kBuilt) {
      built_.emplace_back(index_, payload_);
      ++index_;
      position_ += static_cast<std::int64_t>(payload_.size()) + 64;
    }
    return result;
  }
  // Applies the oldest entry that was built, as the dispatcher does.
  void Apply() {
    const auto [index, payload] = built_.front();
    built_.erase(built_.begin());
    for (const MessageView& message : RecordsOf(payload)) {
      const std::string key(FindProperty(message.properties, "UNIQ_KEY"));
      if (!key.empty()) {
        state_->NoteKey("T", key,
                        {QueueId{message.queue_id}, message.queue_offset, message.physical_offset,
                         message.store_time_ms});
      }
    }
    state_->FinishEntry(ContextOf(index, static_cast<std::int64_t>(index.value()) * 1000));
    appender_->OnApplied(index, term_, {});
  }
  std::vector<std::string> Bodies() const {
    std::vector<std::string> bodies;
    for (const MessageView& m : RecordsOf(payload_)) bodies.emplace_back(m.body);
    return bodies;
  }
  const AppendOutcome& Of(std::size_t number) const {
    CHECK(outcomes_[number].has_value());
    return *outcomes_[number];
  }
  void ExpectFirstOf(std::size_t again, std::size_t first) {
    ASSERT_TRUE(Of(again).status.ok()) << Of(again).status;
    EXPECT_TRUE(Of(again).messages.at(0).duplicate);
    EXPECT_EQ(Of(again).messages.at(0).queue_offset, Of(first).messages.at(0).queue_offset);
    EXPECT_EQ(Of(again).messages.at(0).physical_offset, Of(first).messages.at(0).physical_offset);
  }

  StoreTempDir dir_;
  ManualClock clock_;
  Term term_{1};
  LogIndex index_{2};
  PhysicalOffset position_{4096};
  std::int64_t time_ms_ = 1700000000500;
  std::unique_ptr<ReplicatedState> state_;
  std::unique_ptr<Appender> appender_;
  std::string payload_;
  std::vector<std::pair<LogIndex, std::string>> built_;
  std::vector<std::optional<AppendOutcome>> outcomes_;
};

TEST_F(AppenderDedup, AKnownKeyIsAnsweredWithTheFirstResultAndNotStored) {
  const std::size_t first = Send({"k"});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  Apply();
  const std::size_t again = Send({"k"}, 3);  // the client chose another queue
  EXPECT_EQ(Build(), BuildResult::kNothing);
  EXPECT_FALSE(Of(first).messages.at(0).duplicate);
  ExpectFirstOf(again, first);
  EXPECT_EQ(Of(again).messages.at(0).first_queue, QueueId{0});
  EXPECT_EQ(appender_->waiting(), 0u);
}

TEST_F(AppenderDedup, WhileTheFirstIsNotCommittedTheSecondWaitsForIt) {
  const std::size_t first = Send({"k"});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  const std::size_t again = Send({"k"});
  EXPECT_EQ(Build(), BuildResult::kNothing);
  EXPECT_FALSE(outcomes_[again].has_value());
  Apply();
  ExpectFirstOf(again, first);
  EXPECT_EQ(appender_->waiting(), 0u);
}

TEST_F(AppenderDedup, BothInOneEntryAreStoredOnce) {
  const std::size_t first = Send({"k"});
  const std::size_t again = Send({"k"});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_THAT(Bodies(), ElementsAre("body of k0"));
  Apply();
  ExpectFirstOf(again, first);
}

TEST_F(AppenderDedup, WhenTheFirstWasLostTheSecondMayBeSentAgain) {
  const std::size_t first = Send({"k"});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  const std::size_t again = Send({"k"});
  EXPECT_EQ(Build(), BuildResult::kNothing);
  appender_->CloseTerm();
  appender_->OnApplied(LogIndex{2}, Term{9}, {});  // another leader's entry took the place
  EXPECT_EQ(Of(first).status.code(), StatusCode::kNotLeader);
  EXPECT_EQ(Of(again).status.code(), StatusCode::kNotLeader);
  built_.clear();
  OpenTerm(10);
  index_ = LogIndex{3};
  const std::size_t anew = Send({"k"});
  ASSERT_EQ(Build(), BuildResult::kBuilt) << "the lost one must not count";
  EXPECT_THAT(Bodies(), ElementsAre("body of k2"));
  EXPECT_FALSE(outcomes_[anew].has_value());
}

TEST_F(AppenderDedup, AWaitingSecondEndsAtItsDeadlineWithoutAnOutcome) {
  Send({"k"});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  clock_.Advance(milliseconds(1000));
  const std::size_t again = Send({"k"});
  EXPECT_EQ(Build(), BuildResult::kNothing);
  clock_.Advance(milliseconds(2500));
  appender_->ExpireWaiters();
  EXPECT_FALSE(outcomes_[again].has_value());
  clock_.Advance(milliseconds(501));
  appender_->ExpireWaiters();
  EXPECT_EQ(Of(again).status.code(), StatusCode::kTimedOut);
}

TEST_F(AppenderDedup, ABatchThatIsKnownIsAnsweredMessageByMessage) {
  const std::size_t first = Send({"a", "b"});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  Apply();
  const std::size_t again = Send({"a", "b"});
  EXPECT_EQ(Build(), BuildResult::kNothing);
  ASSERT_EQ(Of(again).messages.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(Of(again).messages[i].duplicate);
    EXPECT_EQ(Of(again).messages[i].queue_offset, Of(first).messages[i].queue_offset);
  }
}

TEST_F(AppenderDedup, OfABatchOnlyTheNewMessagesAreStored) {
  const std::size_t first = Send({"a"});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  Apply();
  const std::size_t batch = Send({"b", "a", "", "b", "c"});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_THAT(Bodies(), ElementsAre("body of b1", "body of 1", "body of c1"));
  EXPECT_EQ(payload_.size() % 8, 0u);
  Apply();
  const auto& messages = Of(batch).messages;
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_FALSE(messages[0].duplicate);
  EXPECT_EQ(messages[1].physical_offset, Of(first).messages[0].physical_offset);
  EXPECT_EQ(messages[3].physical_offset, messages[0].physical_offset);
  EXPECT_EQ(messages[4].queue_offset, QueueOffset{3});  // offsets stay dense
}

TEST_F(AppenderDedup, BehindAKnownSendTheNextOnesAreStillBuilt) {
  Send({"k"});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  Apply();
  const std::size_t again = Send({"k"});
  Send({"new"});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_THAT(Bodies(), ElementsAre("body of new2"));
  EXPECT_TRUE(Of(again).status.ok());
}

TEST_F(AppenderDedup, AfterItsWindowAKeyIsNew) {
  Send({"k"});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  Apply();
  time_ms_ += 600000;  // no entry came since: the table still holds it
  Send({"k"});
  EXPECT_EQ(Build(), BuildResult::kBuilt);
}

TEST_F(AppenderDedup, AMessageWithoutAKeyIsAlwaysStored) {
  Send({""});
  Send({""});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_EQ(Bodies().size(), 2u);
}

// ---- What a message's key is --------------------------------------------------------------------

std::string Properties(const std::map<std::string, std::string>& all) {
  std::string text;
  for (const auto& [name, value] : all) SetProperty(&text, name, value);
  return text;
}

TEST(DedupKey, IsWhatTheModeSays) {
  const std::string properties = Properties({{"UNIQ_KEY", "u"}, {"KEYS", "a b"}});
  EXPECT_EQ(DedupKeyOf(DedupMode::kUniqKey, properties), "u");
  EXPECT_EQ(DedupKeyOf(DedupMode::kKeys, properties), "a b");
  EXPECT_EQ(DedupKeyOf(DedupMode::kNone, properties), "");
}

TEST(DedupTarget, OfAParkedMessageIsItsTargetAndWhenItComesOutNobody) {
  const std::string parked = Properties({{"REAL_TOPIC", "T"}, {"REAL_QID", "5"}});
  EXPECT_EQ(DedupTargetOf("SCHEDULE_TOPIC_XXXX", QueueId{2}, parked).topic, "T");
  EXPECT_EQ(DedupTargetOf("SCHEDULE_TOPIC_XXXX", QueueId{2}, parked).queue_id, QueueId{5});
  EXPECT_EQ(DedupTargetOf("T", QueueId{5}, parked).topic, "");
  EXPECT_EQ(DedupTargetOf("T", QueueId{5}, "").topic, "T");
  EXPECT_EQ(DedupTargetOf("T", QueueId{5}, "").queue_id, QueueId{5});
}

TEST(DedupTail, ForgetsWhatIsAppliedUnlessItCameAgainSince) {
  DedupTail tail;
  const auto entry = [](std::uint64_t index) {
    return DedupTail::Entry{LogIndex{index}, {QueueId{0}, QueueOffset{0}, PhysicalOffset{1}, 0}};
  };
  tail.Add("T", "a", entry(1));
  tail.Add("T", "b", entry(1));
  tail.Add("T", "b", entry(2));
  tail.Add("U", "a", entry(2));
  tail.DropApplied(LogIndex{1});
  EXPECT_FALSE(tail.Find("T", "a", 0).has_value());
  EXPECT_TRUE(tail.Find("T", "b", 0).has_value());
  tail.DropTopic("T");
  EXPECT_FALSE(tail.Find("T", "b", 0).has_value());
  EXPECT_TRUE(tail.Find("U", "a", 0).has_value());
}

}  // namespace
}  // namespace triad::broker
