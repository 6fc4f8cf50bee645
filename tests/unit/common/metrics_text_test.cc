// The text format of metrics, and the histograms behind it.

#include "common/metrics_text.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

namespace triad {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Type = MetricsText::Type;

constexpr std::string_view kNothingLeftOut = "triad_metrics_lines_left_out 0\n";

// The page without its last family.
std::string PageOf(MetricsText* text) {
  const std::string page = text->Take();
  return page.substr(0, page.find("# HELP triad_metrics_lines_left_out"));
}

TEST(MetricsText, AFamilyIsHelpTypeAndSamples) {
  MetricsText text({}, 10);
  text.Family("a_total", Type::kCounter, "How many");
  text.Add({}, 7);
  text.Add({{"topic", "T"}}, std::int64_t{-3});
  text.Family("b", Type::kGauge, "How much");
  text.Add({{"x", "1"}, {"y", "2"}}, 0.5);
  EXPECT_EQ(PageOf(&text),
            "# HELP a_total How many\n# TYPE a_total counter\na_total 7\na_total{topic=\"T\"} -3\n"
            "# HELP b How much\n# TYPE b gauge\nb{x=\"1\",y=\"2\"} 0.5\n");
}

TEST(MetricsText, CommonLabelsComeFirstOnEveryLine) {
  MetricsText text({{"cluster", "c"}, {"node_id", "n"}}, 10);
  text.Family("a", Type::kGauge, "h");
  text.Add({}, 1);
  text.Add({{"topic", "T"}}, 2);
  const std::string page = text.Take();
  EXPECT_THAT(page, HasSubstr("\na{cluster=\"c\",node_id=\"n\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("\na{cluster=\"c\",node_id=\"n\",topic=\"T\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("\ntriad_metrics_lines_left_out{cluster=\"c\",node_id=\"n\"} 0\n"));
}

TEST(MetricsText, LabelValuesAreEscapedAndAlwaysUtf8) {
  struct Case {
    const char* name;
    std::string value;
    std::string written;
  };
  const Case cases[] = {
      {"quote", "a\"b", "a\\\"b"},
      {"backslash", "a\\b", "a\\\\b"},
      {"line end", "a\nb", "a\\nb"},
      {"letters", "\xC3\xA4\xE4\xB8\xAD\xF0\x9F\x98\x80", "\xC3\xA4\xE4\xB8\xAD\xF0\x9F\x98\x80"},
      {"a byte of none", "a\xFF\x62", "a?b"},
      {"cut off", "a\xE4\xB8", "a??"},
      {"overlong", "\xC0\xAF\xE0\x80\xAF", "?????"},
      {"a surrogate", "\xED\xA0\x80", "???"},
      {"beyond the last", "\xF4\x90\x80\x80", "????"},
      {"cut by a quote", "\xC3\"", "?\\\""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    MetricsText text({}, 10);
    text.Family("a", Type::kGauge, "h");
    text.Add({{"l", c.value}}, 1);
    EXPECT_EQ(PageOf(&text), "# HELP a h\n# TYPE a gauge\na{l=\"" + c.written + "\"} 1\n");
  }
}

TEST(MetricsText, HelpIsOneLine) {
  MetricsText text({}, 10);
  text.Family("a", Type::kGauge, "one\ntwo \\ three");
  text.Add({}, 1);
  EXPECT_THAT(text.Take(), StartsWith("# HELP a one\\ntwo \\\\ three\n# TYPE"));
}

TEST(MetricsText, NumbersThatAreNoneAreSpelledOut) {
  MetricsText text({}, 10);
  text.Family("a", Type::kGauge, "h");
  text.Add({}, std::nan(""));
  text.Add({}, std::numeric_limits<double>::infinity());
  text.Add({}, -std::numeric_limits<double>::infinity());
  EXPECT_THAT(text.Take(), HasSubstr("\na NaN\na +Inf\na -Inf\n"));
}

TEST(MetricsText, NumbersAreWrittenAsPeopleWriteThem) {
  MetricsText text({}, 10);
  text.Family("a", Type::kGauge, "h");
  for (const double value : {0.0, 0.0005, -0.25, 1e14, 1e-9, 2.5e20}) text.Add({}, value);
  EXPECT_THAT(text.Take(),
              HasSubstr("\na 0\na 0.0005\na -0.25\na 100000000000000\na 1e-09\na 2.5e+20\n"));
}

TEST(MetricsText, BucketsAreCumulativeAndEndWithAll) {
  FixedHistogram histogram{500, 1000, 2000000};
  histogram.Record(500);  // its upper bound belongs to a range
  histogram.Record(501, 2);
  histogram.Record(3000000);
  histogram.Record(-5);  // a clock that went back
  MetricsText text({}, 10);
  text.Family("t_seconds", Type::kHistogram, "h");
  text.AddHistogram({{"p", "x"}}, histogram.Read(), 1e6);
  EXPECT_EQ(PageOf(&text),
            "# HELP t_seconds h\n# TYPE t_seconds histogram\n"
            "t_seconds_bucket{p=\"x\",le=\"0.0005\"} 2\n"
            "t_seconds_bucket{p=\"x\",le=\"0.001\"} 4\n"
            "t_seconds_bucket{p=\"x\",le=\"2\"} 4\n"
            "t_seconds_bucket{p=\"x\",le=\"+Inf\"} 5\n"
            "t_seconds_sum{p=\"x\"} 3.001502\n"
            "t_seconds_count{p=\"x\"} 5\n");
}

TEST(MetricsText, SaysHowManyLinesHadNoRoom) {
  FixedHistogram histogram{1};  // four lines
  MetricsText text({}, 5);
  text.Family("a", Type::kGauge, "h");
  text.Add({}, 1);
  text.Add({}, 2);
  text.Family("b", Type::kHistogram, "h");
  text.AddHistogram({}, histogram.Read(), 1);
  text.Family("c", Type::kGauge, "h");
  for (int i = 0; i < 5; ++i) text.Add({}, 10 + i);
  EXPECT_EQ(text.left_out(), 6u);
  const std::string page = text.Take();
  EXPECT_THAT(page, Not(HasSubstr("# HELP b"))) << "half a histogram, or a family without samples";
  EXPECT_THAT(page, HasSubstr("\nc 12\n# HELP"));
  EXPECT_THAT(page, testing::EndsWith("\ntriad_metrics_lines_left_out 6\n"));
}

TEST(MetricsText, AnEmptyPageSaysThatNothingIsLeftOut) {
  MetricsText text({}, 0);
  text.Family("a", Type::kGauge, "h");
  EXPECT_THAT(text.Take(), testing::EndsWith(kNothingLeftOut));
}

TEST(FixedHistogram, NumbersNeverGoBackWhileOthersRecord) {
  FixedHistogram histogram{10, 20, 30};
  constexpr std::uint64_t kEach = 200000;
  std::atomic<int> recording{2};
  const auto record = [&](std::int64_t value) {
    for (std::uint64_t i = 0; i < kEach; ++i) histogram.Record(value);
    --recording;
  };
  std::thread low(record, 5);
  std::thread high(record, 40);
  FixedHistogram::Reading before = histogram.Read();
  bool went_back = false;
  while (recording > 0) {
    const FixedHistogram::Reading now = histogram.Read();
    for (std::size_t i = 0; i < now.counts.size(); ++i) {
      went_back = went_back || now.counts[i] < before.counts[i];
    }
    went_back = went_back || now.sum < before.sum;
    before = now;
  }
  low.join();
  high.join();
  EXPECT_FALSE(went_back);
  EXPECT_EQ(histogram.Read().counts, (std::vector<std::uint64_t>{kEach, 0, 0, kEach}));
  EXPECT_EQ(histogram.Read().sum, kEach * 45);
}

}  // namespace
}  // namespace triad
