#include "dledger/raft/log_view.h"
#include "tests/unit/dledger/raft_core_fixture.h"

namespace triad::dledger {
namespace {

LogView ViewOf(const std::vector<std::uint64_t>& terms, std::size_t window = 1000) {
  const Recovered recovered = RecoveredWith(9, terms);
  return LogView(LogIndex{1}, Term{0}, recovered.last_index, recovered.term_runs, window);
}

TEST(RaftLogView, KnowsTheTermOfEveryEntryAndOfNothingElse) {
  const LogView view = ViewOf({1, 1, 3, 3, 7});
  const std::uint64_t expected[] = {0, 1, 1, 3, 3, 7, 0};
  for (std::uint64_t i = 0; i < 7; ++i) EXPECT_EQ(view.TermAt(LogIndex{i}), Term{expected[i]});
}

TEST(RaftLogView, FindsWhereATermBegins) {
  const LogView view = ViewOf({1, 1, 3, 3, 7});
  EXPECT_EQ(view.RunStart(LogIndex{4}), LogIndex{3});
  EXPECT_EQ(view.RunStart(LogIndex{5}), LogIndex{5});
  EXPECT_EQ(view.RunStart(LogIndex{2}), LogIndex{1});
}

TEST(RaftLogView, FindsTheLastEntryOfATermAtMost) {
  const LogView view = ViewOf({2, 2, 4, 4, 7});
  EXPECT_EQ(view.LastWithTermAtMost(LogIndex{5}, Term{4}), LogIndex{4});
  EXPECT_EQ(view.LastWithTermAtMost(LogIndex{5}, Term{3}), LogIndex{2});
  EXPECT_EQ(view.LastWithTermAtMost(LogIndex{1}, Term{9}), LogIndex{1});
  EXPECT_EQ(view.LastWithTermAtMost(LogIndex{5}, Term{1}), LogIndex{0});
}

TEST(RaftLogView, TruncatingForgetsTermsAndEntries) {
  LogView view = ViewOf({1, 1});
  view.Append(MakeEntry(3, 3));
  view.Append(MakeEntry(4, 4));
  view.TruncateFrom(LogIndex{3});
  EXPECT_EQ(view.last(), LogIndex{2});
  EXPECT_EQ(view.last_term(), Term{1});
  EXPECT_EQ(view.Find(LogIndex{3}), nullptr);
  view.TruncateFrom(LogIndex{1});
  EXPECT_EQ(view.last(), LogIndex{0});
  EXPECT_EQ(view.last_term(), Term{0});
  view.Append(MakeEntry(5, 1));
  EXPECT_EQ(view.TermAt(LogIndex{1}), Term{5});
}

TEST(RaftLogView, TheWindowKeepsTheNewestEntriesWithinItsBytes) {
  LogView view = ViewOf({}, /*window=*/35);
  for (std::uint64_t i = 1; i <= 10; ++i) view.Append(MakeEntry(1, i, 10));
  EXPECT_EQ(view.window_first(), LogIndex{8});
  EXPECT_EQ(view.Find(LogIndex{7}), nullptr);
  ASSERT_NE(view.Find(LogIndex{8}), nullptr);
  EXPECT_EQ(view.Find(LogIndex{8})->index, LogIndex{8});
  view.Append(MakeEntry(1, 11, 500));
  EXPECT_EQ(view.window_first(), LogIndex{11}) << "the newest stays, however large";
}

TEST(RaftLogView, ALogThatBeginsLaterKnowsTheTermOfItsBaseAndNothingBefore) {
  const LogView view(LogIndex{5}, Term{1}, LogIndex{6}, {{.first = LogIndex{5}, .term = Term{2}}},
                     100);
  EXPECT_FALSE(view.KnowsTermAt(LogIndex{3}));
  EXPECT_EQ(view.TermAt(LogIndex{3}), Term{0});
  EXPECT_TRUE(view.KnowsTermAt(LogIndex{4}));
  EXPECT_EQ(view.TermAt(LogIndex{4}), Term{1});
  EXPECT_EQ(view.RunStart(LogIndex{6}), LogIndex{5});
  EXPECT_EQ(view.LastWithTermAtMost(LogIndex{6}, Term{1}), LogIndex{4});
}

TEST(RaftLogView, AnEmptyLogThatBeginsLaterEndsAtItsBase) {
  LogView view(LogIndex{5}, Term{3}, LogIndex{4}, {}, 100);
  EXPECT_EQ(view.last(), LogIndex{4});
  EXPECT_EQ(view.last_term(), Term{3});
  view.Append(MakeEntry(3, 5));
  EXPECT_EQ(view.TermAt(LogIndex{5}), Term{3});
  view.TruncateFrom(LogIndex{5});
  EXPECT_EQ(view.last_term(), Term{3});
}

TEST(RaftLogView, PurgingKeepsTheTermBeforeTheNewBeginning) {
  LogView view = ViewOf({1, 1, 3, 3, 7});
  view.PurgeBefore(LogIndex{4});
  EXPECT_EQ(view.first(), LogIndex{4});
  const std::uint64_t expected[] = {0, 0, 0, 3, 3, 7, 0};
  for (std::uint64_t i = 0; i < 7; ++i) EXPECT_EQ(view.TermAt(LogIndex{i}), Term{expected[i]});
  view.PurgeBefore(LogIndex{2});  // never back
  EXPECT_EQ(view.first(), LogIndex{4});
  view.PurgeBefore(LogIndex{6});  // all of it
  EXPECT_EQ(view.last(), LogIndex{5});
  EXPECT_EQ(view.last_term(), Term{7});
}

TEST(RaftLogView, PurgingDropsEntriesOfTheWindow) {
  LogView view = ViewOf({}, 1000);
  for (std::uint64_t i = 1; i <= 4; ++i) view.Append(MakeEntry(1, i));
  view.PurgeBefore(LogIndex{3});
  EXPECT_EQ(view.window_first(), LogIndex{3});
  EXPECT_EQ(view.Find(LogIndex{2}), nullptr);
  EXPECT_NE(view.Find(LogIndex{3}), nullptr);
}

TEST(RaftLogView, AResetLogIsEmptyAndBeginsAtItsNewBase) {
  LogView view = ViewOf({1, 1, 2});
  view.Append(MakeEntry(2, 4));
  view.Reset(LogIndex{9}, Term{5});
  EXPECT_EQ(view.first(), LogIndex{9});
  EXPECT_EQ(view.last(), LogIndex{8});
  EXPECT_EQ(view.last_term(), Term{5});
  EXPECT_EQ(view.window_first(), LogIndex{9});
}

TEST(RaftLogView, AgreesWithAPlainVectorOfTerms) {
  LogView view = ViewOf({}, 60);
  std::vector<std::uint64_t> naive;
  std::uint64_t dice = 12345, term = 1;
  for (int i = 0; i < 5000; ++i) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t draw = dice >> 40;
    if (draw % 5 == 0 && !naive.empty()) {
      const std::uint64_t from = 1 + draw / 5 % naive.size();
      view.TruncateFrom(LogIndex{from});
      naive.resize(from - 1);
      ++term;
    } else {
      naive.push_back(term);
      view.Append(MakeEntry(term, naive.size(), 10));
    }
    ASSERT_EQ(view.last().value(), naive.size());
    for (std::uint64_t at = 1; at <= naive.size(); ++at) {
      ASSERT_EQ(view.TermAt(LogIndex{at}).value(), naive[at - 1]);
      const EntryRef entry = view.Find(LogIndex{at});
      ASSERT_EQ(entry != nullptr, LogIndex{at} >= view.window_first());
      if (entry != nullptr) {
        ASSERT_EQ(entry->term.value(), naive[at - 1]);
      }
    }
  }
}

}  // namespace
}  // namespace triad::dledger
