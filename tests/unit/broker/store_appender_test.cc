#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/broker/store_support.h"

namespace triad::broker {
namespace {

using dledger::BuildResult;
using std::chrono::milliseconds;
using testing::ElementsAre;
using CommitFate = ReplicatedState::CommitFate;

constexpr std::size_t kRoom = 8u << 20;

class AppenderTest : public testing::Test {
 protected:
  AppenderTest() { Make({}); }

  void Make(AppenderOptions options) {
    options.store_host = Host("10.0.0.1:10911");
    appender_ = std::make_unique<Appender>(options, clock_);
  }
  void Open(std::uint64_t term) {
    term_ = Term{term};
    appender_->OpenTerm(term_, {});
  }

  // Submits; the outcome appears in outcomes_ under the returned number.
  std::size_t Submit(StateCommand command, std::vector<MessageDraft> messages = {},
                     milliseconds ttl = milliseconds(3000)) {
    const std::size_t number = outcomes_.size();
    outcomes_.emplace_back();
    Proposal proposal;
    proposal.command = std::move(command);
    proposal.messages = std::move(messages);
    proposal.deadline = clock_.MonoNow() + ttl;
    proposal.done = [this, number](AppendOutcome outcome) {
      EXPECT_FALSE(outcomes_[number].has_value()) << "answered twice";
      outcomes_[number] = std::move(outcome);
    };
    appender_->Submit(std::move(proposal));
    return number;
  }
  std::size_t Send(const std::string& topic, std::int32_t queue, const std::string& body) {
    return Submit({}, {Draft(topic, queue, body)});
  }

  dledger::BuildContext Context(std::size_t room = kRoom, bool at_start = false) {
    dledger::BuildContext context;
    context.term = term_;
    context.index = index_;
    context.payload_position = position_;
    context.room_bytes = room;
    context.at_segment_start = at_start;
    context.store_time_ms = store_time_ms_;
    return context;
  }
  BuildResult Build(std::size_t room = kRoom, bool at_start = false) {
    payload_.clear();
    const BuildResult result = appender_->Build(Context(room, at_start), &payload_);
    if (result == BuildResult::kBuilt) ++index_;
    return result;
  }
  // Applies the entry built last, as a state without fencing tokens would.
  void Apply(LogIndex index, Term term) {
    ReplicatedState::CommandResult result;
    if (!payload_.empty()) {
      const auto command = DecodeStateCommand(ParsePayload(payload_).value().command).value();
      result.offsets.assign(command.offsets.size(), CommitFate::kStored);
      result.locks_accepted.assign(command.locks.size(), true);
    }
    appender_->OnApplied(index, term, result);
  }
  bool answered(std::size_t number) const { return outcomes_[number].has_value(); }
  StatusCode code(std::size_t number) const { return outcomes_[number].value().status.code(); }
  std::vector<std::string> Bodies() const {
    std::vector<std::string> bodies;
    for (const MessageView& m : RecordsOf(payload_)) bodies.emplace_back(m.body);
    return bodies;
  }

  ManualClock clock_;
  std::unique_ptr<Appender> appender_;
  Term term_;
  LogIndex index_{10};
  PhysicalOffset position_{4096};
  std::int64_t store_time_ms_ = 1700000000500;
  std::string payload_;
  std::vector<std::optional<AppendOutcome>> outcomes_;
};

StateCommand Commit(const std::string& group, std::int64_t offset) {
  StateCommand command;
  command.offsets.push_back({{GroupName(group), Queue("T", 0)}, QueueOffset{offset}, 0});
  return command;
}

StateCommand Lock(const std::string& client, std::uint64_t token) {
  StateCommand command;
  command.locks.push_back({{GroupName("g"), Queue("T", 0)}, ClientId(client), token});
  return command;
}

StateCommand PutTopic(const std::string& name) {
  StateCommand command;
  command.put_topics.emplace_back();
  command.put_topics.back().name = Topic(name);
  return command;
}

StateCommand DeleteTopic(const std::string& name) {
  StateCommand command;
  command.delete_topics.emplace_back(name);
  return command;
}

// ---- Behind a topic's deletion ------------------------------------------------------------------

TEST_F(AppenderTest, AMessageBehindItsTopicsDeletionIsRefusedUntilTheTopicIsMadeAgain) {
  Open(3);
  const std::size_t in_front = Send("T", 0, "in front");
  const std::size_t deletion = Submit(DeleteTopic("T"));
  const std::size_t behind = Send("T", 0, "behind");
  const std::size_t other = Send("U", 0, "other");
  const std::size_t batch = Submit({}, {Draft("U", 0, "a"), Draft("T", 1, "b")});
  const std::size_t again = Submit(PutTopic("T"));
  const std::size_t next = Send("T", 0, "of the next T");
  std::vector<std::vector<std::string>> entries;
  while (Build() == BuildResult::kBuilt) {
    entries.push_back(Bodies());
    Apply(index_ - 1, term_);
  }
  EXPECT_THAT(entries, ElementsAre(ElementsAre("in front"), ElementsAre(), ElementsAre("other"),
                                   ElementsAre(), ElementsAre("of the next T")));
  EXPECT_EQ(code(in_front), StatusCode::kOk);
  EXPECT_EQ(code(deletion), StatusCode::kOk);
  EXPECT_EQ(code(behind), StatusCode::kNotFound);
  EXPECT_EQ(code(batch), StatusCode::kNotFound) << "whole or not at all";
  EXPECT_EQ(code(other), StatusCode::kOk);
  EXPECT_EQ(code(again), StatusCode::kOk);
  EXPECT_EQ(outcomes_[next]->messages.at(0).queue_offset, QueueOffset{0});
}

TEST_F(AppenderTest, AProposalThatMakesItsTopicItselfIsTakenBehindTheDeletion) {
  Open(3);
  Submit(DeleteTopic("T"));
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  const std::size_t both = Submit(PutTopic("T"), {Draft("T", 0, "first")});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_THAT(Bodies(), ElementsAre("first"));
  EXPECT_FALSE(answered(both));
}

TEST_F(AppenderTest, ADeletionIsForgottenWhenNoSenderCanBeThatLateAndByTheNextTerm) {
  Open(3);
  Submit(DeleteTopic("T"));
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  clock_.Advance(milliseconds(120000));  // not applied: it counts however long that takes
  std::size_t late = Send("T", 0, "late");
  EXPECT_EQ(Build(), BuildResult::kNothing);
  EXPECT_EQ(code(late), StatusCode::kNotFound);
  Apply(index_ - 1, term_);
  late = Send("T", 0, "late");
  EXPECT_EQ(Build(), BuildResult::kNothing);
  clock_.Advance(milliseconds(61000));
  Send("T", 0, "a state without topics takes it");
  EXPECT_EQ(Build(), BuildResult::kBuilt);

  Submit(DeleteTopic("T"));
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  appender_->CloseTerm();
  Open(4);  // the deletion may never have been committed
  Send("T", 0, "of term 4");
  EXPECT_EQ(Build(), BuildResult::kBuilt);
}

// ---- What an entry holds ------------------------------------------------------------------------

TEST_F(AppenderTest, AProposalOfAnEarlierTermIsRefusedInALaterOne) {
  Open(5);
  Status refused;
  Proposal proposal;
  proposal.messages = {Draft("T", 0, "of term 3")};
  proposal.deadline = clock_.MonoNow() + milliseconds(3000);
  proposal.only_in = Term{3};
  proposal.done = [&](const AppendOutcome& outcome) { refused = outcome.status; };
  appender_->Submit(std::move(proposal));
  EXPECT_EQ(refused.code(), StatusCode::kNotLeader);
  EXPECT_EQ(Build(), BuildResult::kNothing);
}

TEST_F(AppenderTest, MessagesGetTheirFinalPlaces) {
  appender_->OpenTerm(term_ = Term{3}, {{Queue("T", 1), QueueOffset{40}}});
  const std::size_t first = Submit({}, {Draft("T", 1, "a"), Draft("U", 0, "bb")});
  const std::size_t second = Send("T", 1, "ccc");
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_EQ(payload_.size() % 8, 0u);
  const auto records = RecordsOf(payload_);
  ASSERT_EQ(records.size(), 3u);
  const PayloadView view = ParsePayload(payload_).value();
  PhysicalOffset at = position_ + static_cast<std::int64_t>(view.records_at);
  const std::int64_t offsets[] = {40, 0, 41};
  for (std::size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(records[i].queue_offset, QueueOffset{offsets[i]});
    EXPECT_EQ(records[i].physical_offset, at);
    EXPECT_EQ(records[i].store_time_ms, store_time_ms_);
    EXPECT_EQ(records[i].store_host, Host("10.0.0.1:10911"));
    at += static_cast<std::int64_t>(records[i].record.size());
  }
  EXPECT_FALSE(answered(first));
  Apply(LogIndex{10}, Term{3});
  ASSERT_EQ(code(first), StatusCode::kOk);
  const AppendOutcome& outcome = *outcomes_[first];
  EXPECT_EQ(outcome.term, Term{3});
  ASSERT_EQ(outcome.messages.size(), 2u);
  EXPECT_EQ(outcome.messages[0].queue_offset, QueueOffset{40});
  EXPECT_EQ(outcome.messages[0].physical_offset, records[0].physical_offset);
  EXPECT_EQ(outcome.messages[0].store_time_ms, store_time_ms_);
  EXPECT_EQ(outcome.messages[1].physical_offset, records[1].physical_offset);
  EXPECT_EQ(outcomes_[second]->messages.at(0).queue_offset, QueueOffset{41});
}

TEST_F(AppenderTest, QueueOffsetsContinueFromEntryToEntryWithoutWaitingForCommit) {
  Open(1);
  for (std::int64_t i = 0; i < 3; ++i) {
    Send("T", 0, "x");
    ASSERT_EQ(Build(), BuildResult::kBuilt);
    EXPECT_EQ(RecordsOf(payload_).at(0).queue_offset, QueueOffset{i});
  }
}

TEST_F(AppenderTest, CompatibleCommandsShareAnEntryAndEachGetsItsOwnResult) {
  Open(1);
  const std::size_t one = Submit(Commit("a", 1));
  StateCommand two_offsets = Commit("b", 2);
  two_offsets.offsets.push_back(two_offsets.offsets[0]);
  two_offsets.locks = Lock("c", 9).locks;
  const std::size_t two = Submit(two_offsets, {Draft("T", 0, "x")});
  const std::size_t three = Submit(Lock("d", 10));
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  const auto command = DecodeStateCommand(ParsePayload(payload_).value().command).value();
  ASSERT_EQ(command.offsets.size(), 3u);
  EXPECT_EQ(command.offsets[0].key.group, GroupName("a"));
  EXPECT_EQ(command.offsets[2].key.group, GroupName("b"));
  ASSERT_EQ(command.locks.size(), 2u);
  ReplicatedState::CommandResult result;
  result.offsets = {CommitFate::kStored, CommitFate::kStale, CommitFate::kStored};
  result.locks_accepted = {false, true};
  appender_->OnApplied(LogIndex{10}, Term{1}, result);
  EXPECT_THAT(outcomes_[one]->command.offsets, ElementsAre(CommitFate::kStored));
  EXPECT_THAT(outcomes_[two]->command.offsets,
              ElementsAre(CommitFate::kStale, CommitFate::kStored));
  EXPECT_THAT(outcomes_[two]->command.locks_accepted, ElementsAre(false));
  EXPECT_THAT(outcomes_[three]->command.locks_accepted, ElementsAre(true));
  EXPECT_TRUE(outcomes_[three]->command.offsets.empty());
}

TEST_F(AppenderTest, ACommandThatCannotBeMergedGetsAnEntryOfItsOwn) {
  StateCommand put_group;
  put_group.put_groups.emplace_back();
  StateCommand delete_group;
  delete_group.delete_groups.emplace_back("g");
  StateCommand levels;
  levels.set_delay_levels = "1s";
  for (const StateCommand& own :
       {PutTopic("T"), DeleteTopic("V"), put_group, delete_group, levels}) {
    Make({});
    Open(term_.value() + 1);
    Send("T", 0, "before");
    Submit(own, {Draft("T", 0, "with it")});
    Send("T", 0, "behind");
    ASSERT_EQ(Build(), BuildResult::kBuilt);
    EXPECT_THAT(Bodies(), ElementsAre("before"));
    ASSERT_EQ(Build(), BuildResult::kBuilt);
    EXPECT_THAT(Bodies(), ElementsAre("with it"));
    EXPECT_EQ(ParsePayload(payload_).value().command, EncodeStateCommand(own));
    ASSERT_EQ(Build(), BuildResult::kBuilt);
    EXPECT_THAT(Bodies(), ElementsAre("behind"));
    EXPECT_EQ(Build(), BuildResult::kNothing);
  }
}

TEST_F(AppenderTest, OnlyTheProposalThatChangedTopicsHearsOfIt) {
  Open(1);
  const std::size_t put = Submit(PutTopic("T"));
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  ReplicatedState::CommandResult result;
  result.topics_changed = {"T"};
  appender_->OnApplied(LogIndex{10}, Term{1}, result);
  EXPECT_THAT(outcomes_[put]->command.topics_changed, ElementsAre("T"));
}

TEST_F(AppenderTest, ADeletedTopicsQueuesBeginAgainAtZero) {
  appender_->OpenTerm(term_ = Term{1}, {{Queue("T", 0), QueueOffset{40}},
                                        {Queue("T", 7), QueueOffset{9}},
                                        {Queue("U", 0), QueueOffset{5}}});
  Submit(DeleteTopic("T"));
  Submit(PutTopic("T"), {Draft("T", 0, "x"), Draft("T", 7, "x"), Draft("U", 0, "x")});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  const auto records = RecordsOf(payload_);
  EXPECT_EQ(records.at(0).queue_offset, QueueOffset{0});
  EXPECT_EQ(records.at(1).queue_offset, QueueOffset{0});
  EXPECT_EQ(records.at(2).queue_offset, QueueOffset{5});
}

// ---- Room ---------------------------------------------------------------------------------------

TEST_F(AppenderTest, AnEntryHoldsNoMoreThanItsLimit) {
  AppenderOptions options;
  options.max_entry_bytes = 1000;
  Make(options);
  Open(1);
  for (int i = 0; i < 10; ++i) Send("T", 0, std::string(200, 'x'));
  std::size_t sent = 0;
  while (Build() == BuildResult::kBuilt) {
    EXPECT_LE(payload_.size(), 1000u);
    EXPECT_EQ(RecordsOf(payload_).size(), sent < 9 ? 3u : 1u);
    sent += RecordsOf(payload_).size();
  }
  EXPECT_EQ(sent, 10u);
}

TEST_F(AppenderTest, AnEntryHoldsNoMoreThanTheRoomInTheSegment) {
  Open(1);
  for (int i = 0; i < 4; ++i) Send("T", 0, std::string(200, 'x'));
  ASSERT_EQ(Build(700), BuildResult::kBuilt);
  EXPECT_LE(payload_.size(), 700u);
  EXPECT_EQ(RecordsOf(payload_).size(), 2u);
}

TEST_F(AppenderTest, OneProposalLargerThanTheLimitGoesAlone) {
  AppenderOptions options;
  options.max_entry_bytes = 1000;
  Make(options);
  Open(1);
  Send("T", 0, "small");
  Send("T", 0, std::string(5000, 'x'));
  Send("T", 0, "small");
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_EQ(RecordsOf(payload_).size(), 1u);
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_EQ(RecordsOf(payload_).at(0).body.size(), 5000u);
  EXPECT_EQ(RecordsOf(payload_).size(), 1u);
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_EQ(RecordsOf(payload_).size(), 1u);
}

TEST_F(AppenderTest, TheFirstThatDoesNotFitAsksForANewSegment) {
  Open(1);
  const std::size_t large = Send("T", 0, std::string(500, 'x'));
  EXPECT_EQ(Build(300), BuildResult::kDoesNotFit);
  EXPECT_TRUE(payload_.empty());
  EXPECT_FALSE(answered(large));
  ASSERT_EQ(Build(kRoom, true), BuildResult::kBuilt);
  EXPECT_EQ(RecordsOf(payload_).at(0).queue_offset, QueueOffset{0});
}

TEST_F(AppenderTest, WhatNoSegmentCanHoldIsRefusedAndTheNextGoesOn) {
  Open(1);
  const std::size_t huge = Send("T", 0, std::string(5000, 'x'));
  Send("T", 0, "small");
  EXPECT_EQ(Build(1000, false), BuildResult::kDoesNotFit);
  ASSERT_EQ(Build(1000, true), BuildResult::kBuilt);
  EXPECT_EQ(code(huge), StatusCode::kInvalidArgument);
  EXPECT_THAT(Bodies(), ElementsAre("small"));
}

TEST_F(AppenderTest, ABatchIsNeverSplit) {
  AppenderOptions options;
  options.max_entry_bytes = 500;
  Make(options);
  Open(1);
  Send("T", 0, "small");
  Submit({}, {Draft("T", 0, std::string(200, 'a')), Draft("T", 0, std::string(200, 'b'))});
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_EQ(RecordsOf(payload_).size(), 1u);
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_EQ(RecordsOf(payload_).size(), 2u);
}

// ---- Refusals at once ---------------------------------------------------------------------------

TEST_F(AppenderTest, WithoutATermNothingIsTaken) {
  EXPECT_EQ(code(Send("T", 0, "x")), StatusCode::kNotLeader);
  EXPECT_EQ(Build(), BuildResult::kNothing);
  Open(1);
  EXPECT_FALSE(answered(Send("T", 0, "x")));
}

TEST_F(AppenderTest, ADraftThatNoRecordCanHoldIsRefused) {
  Open(1);
  MessageDraft draft = Draft("T", 0, "x");
  draft.properties.assign(40000, 'p');
  EXPECT_EQ(code(Submit({}, {Draft("T", 0, "fine"), draft})), StatusCode::kInvalidArgument);
  EXPECT_EQ(Build(), BuildResult::kNothing);
}

TEST_F(AppenderTest, WIRE_5_TooManyProposalsAreBusyUntilOneHasItsFate) {
  AppenderOptions options;
  options.max_waiting = 2;
  Make(options);
  Open(1);
  Send("T", 0, "1");
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  Send("T", 0, "2");
  EXPECT_EQ(appender_->waiting(), 2u);
  EXPECT_EQ(code(Send("T", 0, "3")), StatusCode::kBusy) << "what is in flight counts";
  Apply(LogIndex{10}, Term{1});
  EXPECT_EQ(appender_->waiting(), 1u);
  EXPECT_FALSE(answered(Send("T", 0, "4")));
  appender_->SetWaitingMax(3);
  EXPECT_FALSE(answered(Send("T", 0, "5")));
  appender_->SetWaitingMax(1);
  EXPECT_EQ(code(Send("T", 0, "6")), StatusCode::kBusy);
  EXPECT_EQ(appender_->waiting(), 3u) << "what waits stays";
}

TEST_F(AppenderTest, TooManyBytesAreBusyUntilTheyAreBuilt) {
  AppenderOptions options;
  options.max_waiting_bytes = 1000;
  Make(options);
  Open(1);
  EXPECT_FALSE(answered(Send("T", 0, std::string(500, 'x'))));
  EXPECT_EQ(code(Send("T", 0, std::string(500, 'x'))), StatusCode::kBusy);
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_FALSE(answered(Send("T", 0, std::string(500, 'x'))));
}

TEST_F(AppenderTest, EachSubmitWakesTheProposer) {
  int woken = 0;
  appender_->set_wake([&] { ++woken; });
  Send("T", 0, "refused");
  EXPECT_EQ(woken, 0);
  Open(1);
  Send("T", 0, "x");
  EXPECT_EQ(woken, 1);
}

TEST_F(AppenderTest, WhatWasGatheredWakesTheProposerOnceAndAtOnce) {
  int woken = 0;
  int woken_now = 0;
  appender_->set_wake([&] { ++woken; }, [&] { ++woken_now; });
  Open(1);
  appender_->BeginGather();
  appender_->EndGather();
  EXPECT_EQ(woken_now, 0) << "nothing came";
  appender_->BeginGather();
  Send("T", 0, "x");
  Send("T", 0, "y");
  EXPECT_EQ(woken + woken_now, 0);
  appender_->EndGather();
  EXPECT_EQ(woken, 0);
  EXPECT_EQ(woken_now, 1);
}

// ---- Fates --------------------------------------------------------------------------------------

TEST_F(AppenderTest, LosingTheTermRefusesWhatWasNotBuiltAndKeepsTheRest) {
  Open(1);
  const std::size_t built = Send("T", 0, "built");
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  const std::size_t waiting = Send("T", 0, "waiting");
  appender_->CloseTerm();
  EXPECT_EQ(code(waiting), StatusCode::kNotLeader);
  EXPECT_FALSE(answered(built));
  EXPECT_EQ(code(Send("T", 0, "late")), StatusCode::kNotLeader);
  Apply(LogIndex{10}, Term{1});
  EXPECT_EQ(code(built), StatusCode::kOk) << "the log decides, not the role";
}

TEST_F(AppenderTest, AnotherTermAtTheIndexMeansItNeverWas) {
  Open(1);
  const std::size_t first = Send("T", 0, "1");
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  const std::size_t second = Send("T", 0, "2");
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  appender_->CloseTerm();
  payload_.clear();
  Apply(LogIndex{9}, Term{1});
  EXPECT_FALSE(answered(first));
  Apply(LogIndex{10}, Term{2});
  EXPECT_EQ(code(first), StatusCode::kNotLeader);
  EXPECT_EQ(code(second), StatusCode::kNotLeader) << "nothing of term 1 can follow term 2";
  EXPECT_EQ(appender_->waiting(), 0u);
}

TEST_F(AppenderTest, WhatAReceivedStateSkipsOverIsUnknownNotLost) {
  Open(1);
  const std::size_t inside = Send("T", 0, "in the state, or not");
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  const std::size_t behind = Send("T", 0, "behind the state");
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  appender_->CloseTerm();
  payload_.clear();
  appender_->OnSkipped(LogIndex{10});
  EXPECT_EQ(code(inside), StatusCode::kTimedOut);
  EXPECT_FALSE(answered(behind));
  Apply(LogIndex{11}, Term{2});
  EXPECT_EQ(code(behind), StatusCode::kNotLeader);
  EXPECT_EQ(appender_->waiting(), 0u);
}

TEST_F(AppenderTest, ANewerTermBelowTheIndexDecidesToo) {
  Open(1);
  const std::size_t lost = Send("T", 0, "x");
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  appender_->CloseTerm();
  payload_.clear();
  Apply(LogIndex{8}, Term{2});
  EXPECT_EQ(code(lost), StatusCode::kNotLeader);
}

TEST_F(AppenderTest, AReelectedLeaderMayBuildAtAnOldIndex) {
  Open(1);
  const std::size_t lost = Send("T", 0, "lost");
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  appender_->CloseTerm();
  payload_.clear();
  Apply(LogIndex{9}, Term{3});  // its own no-op, in the place before
  EXPECT_EQ(code(lost), StatusCode::kNotLeader);
  Open(3);
  index_ = LogIndex{10};
  const std::size_t fresh = Send("T", 0, "fresh");
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_EQ(RecordsOf(payload_).at(0).queue_offset, QueueOffset{0}) << "the tail begins anew";
  Apply(LogIndex{10}, Term{3});
  EXPECT_EQ(code(fresh), StatusCode::kOk);
}

TEST_F(AppenderTest, EntriesOfOthersAnswerNobody) {
  Open(1);
  const std::size_t mine = Send("T", 0, "x");
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  Apply(LogIndex{9}, Term{1});
  EXPECT_FALSE(answered(mine));
  Apply(LogIndex{10}, Term{1});
  EXPECT_EQ(code(mine), StatusCode::kOk);
}

// ---- Deadlines ----------------------------------------------------------------------------------

TEST_F(AppenderTest, WhatIsPastItsDeadlineIsNotAppended) {
  Open(1);
  const std::size_t late = Submit({}, {Draft("T", 0, "late")}, milliseconds(100));
  Send("T", 0, "fine");
  clock_.Advance(milliseconds(100));
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  EXPECT_THAT(Bodies(), ElementsAre("fine"));
  EXPECT_EQ(code(late), StatusCode::kUnavailable);
}

TEST_F(AppenderTest, ExpiryTellsTheUnbuiltFromTheUnknown) {
  Open(1);
  const std::size_t built = Submit({}, {Draft("T", 0, "built")}, milliseconds(100));
  const std::size_t patient = Submit(Commit("p", 1), {}, milliseconds(200));
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  const std::size_t waiting = Submit({}, {Draft("T", 0, "waiting")}, milliseconds(100));
  const std::size_t later = Submit({}, {Draft("T", 0, "later")}, milliseconds(200));
  clock_.Advance(milliseconds(99));
  appender_->ExpireWaiters();
  EXPECT_FALSE(answered(built));
  EXPECT_FALSE(answered(waiting));
  clock_.Advance(milliseconds(1));
  appender_->ExpireWaiters();
  EXPECT_EQ(code(built), StatusCode::kTimedOut);
  EXPECT_EQ(code(waiting), StatusCode::kUnavailable);
  EXPECT_FALSE(answered(patient));
  EXPECT_FALSE(answered(later));
  EXPECT_EQ(appender_->waiting(), 2u);
  Apply(LogIndex{10}, Term{1});  // the one that timed out is not answered again
  EXPECT_EQ(code(patient), StatusCode::kOk);
  EXPECT_THAT(outcomes_[patient]->command.offsets, ElementsAre(CommitFate::kStored));
  clock_.Advance(milliseconds(100));
  appender_->ExpireWaiters();
  EXPECT_EQ(code(later), StatusCode::kUnavailable);
  EXPECT_EQ(appender_->waiting(), 0u);
}

TEST_F(AppenderTest, AnExpiredProposalGivesItsBytesBack) {
  AppenderOptions options;
  options.max_waiting_bytes = 1000;
  Make(options);
  Open(1);
  Submit({}, {Draft("T", 0, std::string(600, 'x'))}, milliseconds(100));
  clock_.Advance(milliseconds(100));
  appender_->ExpireWaiters();
  EXPECT_FALSE(answered(Send("T", 0, std::string(600, 'x'))));
}

TEST_F(AppenderTest, AbandonAnswersEverybody) {
  Open(1);
  const std::size_t built = Send("T", 0, "built");
  ASSERT_EQ(Build(), BuildResult::kBuilt);
  const std::size_t waiting = Send("T", 0, "waiting");
  appender_->Abandon();
  EXPECT_EQ(code(built), StatusCode::kTimedOut);
  EXPECT_EQ(code(waiting), StatusCode::kNotLeader);
  EXPECT_EQ(code(Send("T", 0, "late")), StatusCode::kNotLeader);
  EXPECT_EQ(appender_->waiting(), 0u);
}

}  // namespace
}  // namespace triad::broker
