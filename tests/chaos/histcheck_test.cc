// The checker against hand-written histories, against histories of a correct model that are spoiled
// in one place, and its search against plain trying of every order.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/chaos/history_checker.h"
#include "tests/chaos/model_history.h"

namespace triad::chaos {
namespace {

struct Written {
  std::string name, expected, text;
};

std::vector<Written> ReadWritten(const std::string& file) {
  std::ifstream in(std::string(TRIAD_HISTORIES "/") + file);
  EXPECT_TRUE(in.good()) << file;
  std::vector<Written> all;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("== ", 0) == 0) {
      const std::size_t bar = line.find(" | ");
      all.push_back({line.substr(3, bar - 3), line.substr(bar + 3), ""});
    } else if (!all.empty()) {
      all.back().text += line + "\n";
    }
  }
  return all;
}

// "good", or the names of what was counted.
std::string WordsOf(const Verdict& v) {
  const std::pair<const char*, std::uint64_t> counts[] = {{"lost", v.lost},
                                                          {"duplicated", v.duplicated},
                                                          {"unexpected", v.unexpected},
                                                          {"corrupt", v.corrupt},
                                                          {"order_violations", v.order_violations},
                                                          {"undelivered", v.undelivered},
                                                          {"lock_overlaps", v.lock_overlaps},
                                                          {"bad", v.keys_bad},
                                                          {"faults_open", v.faults_open},
                                                          {"unknown", v.keys_unknown}};
  std::set<std::string> words;
  for (const auto& [name, count] : counts) {
    if (count > 0) words.insert(name);
  }
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text.empty() ? "good" : text;
}

std::string Sorted(const std::string& words) {
  std::set<std::string> set;
  std::istringstream in(words);
  for (std::string word; std::getline(in, word, ',');) set.insert(word);
  std::string text;
  for (const std::string& word : set) text += (text.empty() ? "" : ",") + word;
  return text;
}

TEST(Histcheck, JudgesEveryWrittenHistoryAsItIsWritten) {
  int good = 0;
  int bad = 0;
  for (const char* file :
       {"messages.txt", "order.txt", "objects.txt", "topics.txt", "faults.txt", "retries.txt"}) {
    for (const Written& written : ReadWritten(file)) {
      SCOPED_TRACE(std::string(file) + ": " + written.name);
      std::istringstream in(written.text);
      const Result<Verdict> verdict = CheckHistory(in);
      ASSERT_TRUE(verdict.ok()) << verdict.status();
      EXPECT_EQ(WordsOf(*verdict), Sorted(written.expected)) << ReportOf(*verdict);
      EXPECT_EQ(verdict->good(), written.expected == "good");
      ++(written.expected == "good" ? good : bad);
    }
  }
  EXPECT_GE(good, 20);
  EXPECT_GE(bad, 20);
}

TEST(Histcheck, RefusesWhatIsNoHistoryNamingTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\"op\":\"send\"", "line 1"},
      {"[]", "JSON object"},
      {"{\"op\":\"dance\"}", "dance"},
      {"{\"id\":1,\"outcome\":\"perhaps\"}", "perhaps"},
      {"{\"outcome\":\"ok\"}", "without 'id'"},
      {"{\"id\":4,\"outcome\":\"ok\"}", "not running"},
      {"{\"id\":\"x\",\"op\":\"max\"}", "'id' is not a number"},
      {"{\"id\":1,\"op\":\"max\",\"t_inv_ns\":9}\n{\"id\":2,\"op\":\"max\",\"t_inv_ns\":8}",
       "older"},
      {"{\"id\":1,\"op\":\"max\"}\n{\"id\":1,\"op\":\"max\"}", "line 2: id 1 is running"},
      {"{\"id\":1,\"op\":\"send\",\"key\":\"T/0\",\"value\":\"x\"}", "name-number"},
      {"{\"id\":1,\"op\":\"send\",\"key\":\"T/0\",\"value\":\"x-99999999\"}", "hole"},
      {"{\"id\":1,\"op\":\"send\",\"key\":\"T\",\"value\":\"x-1\"}\n{\"id\":1,\"outcome\":\"ok\"}",
       "without queue"}};
  for (const auto& [text, expected] : cases) {
    SCOPED_TRACE(text);
    std::istringstream in(text);
    const Result<Verdict> verdict = CheckHistory(in);
    ASSERT_FALSE(verdict.ok());
    EXPECT_NE(std::string(verdict.status().message()).find(expected), std::string::npos)
        << verdict.status();
  }
}

TEST(Histcheck, ReadsWhatItWrites) {
  Event event;
  event.id = 7;
  event.invokes = event.completes = true;
  event.op = Op::kDeliver;
  event.outcome = Outcome::kInfo;
  event.client = "c\"1", event.key = "T/0", event.value = "p-1", event.node = "n0";
  event.group = "g", event.order = "k";
  event.invoked_ns = 5, event.returned_ns = 6, event.offset = 0, event.min = 2, event.hash = 3;
  event.token = 4, event.attempts = 0, event.leader = true, event.born = 8;
  const std::string line = FormatEvent(event);
  const Result<Event> again = ParseEvent(line);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(FormatEvent(*again), line);
  EXPECT_EQ(again->client, event.client);
  EXPECT_EQ(again->offset, 0);
  EXPECT_EQ(again->attempts, 0);
  EXPECT_EQ(again->born, 8);
  EXPECT_TRUE(again->leader && again->invokes && again->completes);
}

TEST(Histcheck, CountsAsRecoveredOnlyWhatStaysUnknown) {
  std::istringstream in(R"({"id":1,"op":"send","key":"T/0","value":"p-1"}
{"id":2,"op":"send","key":"T/0","value":"p-2"}
{"op":"deliver","outcome":"ok","group":"g","key":"T/0","offset":0,"value":"p-1"}
{"op":"deliver","outcome":"ok","group":"g","key":"T/0","offset":1,"value":"p-2"}
{"id":1,"outcome":"ok","offset":0}
{"id":2,"outcome":"info"})");
  const Result<Verdict> verdict = CheckHistory(in);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->recovered, 1u);
}

TEST(Histcheck, CountsCopiesByWhoMadeThemAndDoesNotFailTheClientsOwn) {
  std::istringstream in(
      R"({"op":"group","outcome":"ok","group":"g","key":"T","value":"concurrent","attempts":2}
{"id":1,"op":"send","key":"T/0","value":"p-1"}
{"id":1,"outcome":"ok","offset":0}
{"op":"deliver","outcome":"fail","group":"g","key":"T/0","offset":0,"value":"p-1","born":5}
{"op":"deliver","outcome":"fail","group":"g","key":"%RETRY%g/0","offset":0,"value":"p-1","times":1,"born":5}
{"op":"deliver","outcome":"ok","group":"g","key":"%RETRY%g/0","offset":1,"value":"p-1","times":1,"born":7}
{"op":"read","outcome":"ok","node":"n0","key":"T/0","offset":0,"value":"p-1","born":5}
{"op":"drained","outcome":"ok","node":"n0","key":"T/0","offset":1}
{"op":"read","outcome":"ok","node":"n0","key":"%RETRY%g/0","offset":0,"value":"p-1","times":1,"born":5}
{"op":"read","outcome":"ok","node":"n0","key":"%RETRY%g/0","offset":1,"value":"p-1","times":1,"born":7}
{"op":"drained","outcome":"ok","node":"n0","key":"%RETRY%g/0","offset":2}
{"op":"read","outcome":"ok","node":"n0","key":"%DLQ%g/0","offset":0,"value":"p-1","times":2,"born":5}
{"op":"drained","outcome":"ok","node":"n0","key":"%DLQ%g/0","offset":1})");
  const Result<Verdict> verdict = CheckHistory(in);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_TRUE(verdict->good()) << ReportOf(*verdict);
  EXPECT_EQ(verdict->retries, 1u);
  EXPECT_EQ(verdict->dead_letters, 1u);
  EXPECT_EQ(verdict->own_copies, 1u);
}

TEST(Histcheck, MeasuresFailoverFromTheFaultToTheFirstAcknowledgementOfALaterSend) {
  std::istringstream in(
      R"({"id":1,"op":"send","key":"T/0","value":"p-1","t_inv_ns":1000000}
{"op":"fault","key":"kill","value":"n0","leader":true,"outcome":"ok","t_inv_ns":2000000,"t_ret_ns":2000000}
{"id":1,"outcome":"ok","offset":0,"t_ret_ns":3000000}
{"id":2,"op":"send","key":"T/0","value":"p-2","t_inv_ns":4000000}
{"id":2,"outcome":"ok","offset":1,"t_ret_ns":402000000}
{"op":"fault","key":"kill","value":"n1","leader":true,"outcome":"ok","t_inv_ns":500000000,"t_ret_ns":500000000})");
  const Result<Verdict> verdict = CheckHistory(in);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(PercentileMs(verdict->failover_ns, 0.5), 400);
  EXPECT_EQ(verdict->faults_without_ack, 1u);
}

TEST(Histcheck, MeasuresFailoverAsEachClientSeesIt) {
  std::istringstream in(
      R"({"op":"fault","key":"kill","value":"n0","leader":true,"t_inv_ns":1000000}
{"id":1,"op":"send","client":"a","key":"T/0","value":"a-1","t_inv_ns":2000000}
{"id":2,"op":"send","client":"b","key":"T/0","value":"b-1","t_inv_ns":2000000}
{"id":1,"outcome":"ok","offset":0,"t_ret_ns":101000000}
{"id":2,"outcome":"info","t_ret_ns":200000000}
{"id":3,"op":"send","client":"b","key":"T/0","value":"b-2","t_inv_ns":300000000}
{"id":3,"outcome":"ok","offset":1,"t_ret_ns":501000000}
{"id":4,"op":"send","client":"b","key":"T/0","value":"b-3","t_inv_ns":510000000}
{"id":4,"outcome":"ok","offset":2,"t_ret_ns":520000000})");
  const Result<Verdict> verdict = CheckHistory(in);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->failover_ns, std::vector<std::int64_t>{100'000'000});
  EXPECT_EQ(verdict->client_failover_ns, (std::vector<std::int64_t>{100'000'000, 500'000'000}));
}

TEST(Histcheck, CountsFaultsByWhetherTheyTookEffectAndHowLongTheyLasted) {
  std::istringstream in(R"({"id":1,"op":"fault","key":"cut","value":"n0","t_inv_ns":1000}
{"id":2,"op":"fault","key":"cut","value":"n1","t_inv_ns":2000}
{"id":1,"outcome":"ok","value":"7 packets dropped","t_ret_ns":5000}
{"id":2,"outcome":"fail","value":"0 packets dropped","t_ret_ns":9000})");
  const Result<Verdict> verdict = CheckHistory(in);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_TRUE(verdict->good());
  EXPECT_EQ(verdict->faults, 1u);
  EXPECT_EQ(verdict->faults_in_vain, 1u);
  EXPECT_EQ(verdict->fault_ns.at("cut"), 11'000);
}

TEST(Histcheck, FindsEverySpoiledPlaceInHistoriesOfACorrectBroker) {
  std::map<std::string, int> spoiled;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ModelHistory history(seed);
    const std::string clean = history.Text();
    std::istringstream good(clean);
    const Result<Verdict> before = CheckHistory(good);
    ASSERT_TRUE(before.ok()) << before.status();
    ASSERT_TRUE(before->good()) << ReportOf(*before);
    const std::string what = history.Spoil();
    ++spoiled[what];
    std::istringstream bad(history.Text());
    const Result<Verdict> after = CheckHistory(bad);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_FALSE(after->good()) << "not found: " << what;
  }
  EXPECT_GE(spoiled.size(), 13u);
}

}  // namespace
}  // namespace triad::chaos
