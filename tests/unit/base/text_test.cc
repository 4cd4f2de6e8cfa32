#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace persia::agent {
namespace {

TEST(Quoted, StandsInOneLine) {
  EXPECT_EQ(Quoted("plain"), R"("plain")");
  EXPECT_EQ(Quoted("a\nb\tc\"d\\e"), R"("a\nb\tc\"d\\e")");
  EXPECT_EQ(Quoted("\x01\x7f\xff"), R"("\x01\x7f\xff")");
  EXPECT_EQ(Quoted("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"");
}

TEST(Quoted, IsShortenedBetweenCharacters) {
  std::string umlauts;
  for (int i = 0; i < 100; ++i) {
    umlauts += "\xc3\xbc";
  }
  EXPECT_EQ(Quoted(umlauts), "\"" + umlauts.substr(0, 80) + "...\"");
}

TEST(OneLine, HasNoLineEnds) { EXPECT_EQ(OneLine("a\r\nb\x1b[31m"), "a  b\xef\xbf\xbd[31m"); }

// A terminal obeys C1 controls, and marks of direction reorder a line.
TEST(OneLine, HasNoCharacterThatChangesTheLine) {
  EXPECT_EQ(OneLine("a\u009b31m\u2028b\u2029\u202ec\u2066\u200f\ufeff"), "a\ufffd31m\ufffdb\ufffd\ufffdc\ufffd\ufffd\ufffd");
  EXPECT_EQ(Quoted("\u009b\u202e"), R"("\xc29b\xe280ae")");
  EXPECT_EQ(OneLine("Größe 大きさ"), "Größe 大きさ");
}

TEST(CheckText, RefusesWhatCannotStandInALabel) {
  const auto error = [](std::string_view text) {
    const Status status = CheckText(text, "a name");
    return status.ok() ? "" : status.error();
  };
  EXPECT_EQ(error("a \xe2\x82\xac"), "");
  EXPECT_EQ(error(""), "a name must not be empty");
  EXPECT_EQ(error("a\nb"), R"("a\nb" has a control character in it)");
  EXPECT_EQ(error("\xc0\xaf"), R"("\xc0\xaf" is not valid UTF-8)");                  // overlong
  EXPECT_EQ(error("\xed\xa0\x80"), R"("\xed\xa0\x80" is not valid UTF-8)");          // a surrogate
  EXPECT_EQ(error("\xf4\x90\x80\x80"), R"("\xf4\x90\x80\x80" is not valid UTF-8)");  // beyond the last
  EXPECT_NE(error(std::string(4097, 'a')), "");
}

TEST(ClosestMatch, FindsTheIntendedWord) {
  constexpr std::string_view kWords[] = {"job_name", "run_id", "labels"};
  EXPECT_EQ(ClosestMatch("jobname", kWords), "job_name");
  EXPECT_EQ(ClosestMatch("job_naem", kWords), "job_name");  // neighbours swapped
  EXPECT_EQ(ClosestMatch("JOB-NAME", kWords), "job_name");
  EXPECT_EQ(ClosestMatch("label", kWords), "labels");
  EXPECT_EQ(ClosestMatch("interval", kWords), "");
  EXPECT_EQ(ClosestMatch("", kWords), "");
  EXPECT_EQ(ClosestMatch(std::string(100'000, 'x'), kWords), "");
}

TEST(ParseSize, AcceptsBytesAndUnits) {
  const std::pair<std::string_view, uint64_t> cases[] = {{"0", 0},
                                                         {"67108864", 67'108'864},
                                                         {"18446744073709551615", UINT64_MAX},
                                                         {"100B", 100},
                                                         {"10k", 10'000},
                                                         {"10KB", 10'000},
                                                         {"10Ki", 10'240},
                                                         {"64MiB", 67'108'864},
                                                         {"64 MiB", 67'108'864},
                                                         {"1.5gib", 1'610'612'736},
                                                         {"1GB", 1'000'000'000},
                                                         {"0.1k", 100},
                                                         {"1T", 1'000'000'000'000}};
  for (const auto& [text, bytes] : cases) {
    const auto size = ParseSize(text);
    ASSERT_TRUE(size.ok()) << text;
    EXPECT_EQ(size.value(), bytes) << text;
  }
}

TEST(ParseSize, RefusesOtherText) {
  for (const std::string_view text :
       {"", "k", "-1", "-1k", "1e6", "1.5", "1..5k", "1kk", "1kib2", "1i", "1  k", "1P", "9999999T", "nan"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
  EXPECT_EQ(ParseSize("much").error(), "\"much\" is not a size (1048576, 64MiB, 1GB, 10k)");
}

TEST(ParseDuration, AcceptsGosDurations) {
  const std::pair<std::string_view, int64_t> cases[] = {
      {"0", 0},           {"0s", 0},         {"1500ms", 1500}, {"1.5h", 5'400'000}, {"1h2m3s4ms", 3'723'004},
      {"1ns", 1},  // rounded up, because 0 may mean "never"
      {"10", 10'000},     {"0.5", 500},      {"16.1", 16'100}, {"1e3", 1'000'000},  {"2000us", 2},
      {"2000\u00b5s", 2}, {"2000\u03bcs", 2}};
  for (const auto& [text, milliseconds] : cases) {
    const auto duration = ParseDuration(text);
    ASSERT_TRUE(duration.ok()) << text;
    EXPECT_EQ(duration.value().count(), milliseconds) << text;
  }
}

TEST(ParseDuration, RefusesOtherText) {
  for (const std::string_view text : {"", "s", "-5", "-5s", "1d", "1e9h", "1e9", "nan", "inf", "1s ", "1..5s"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
  EXPECT_EQ(ParseDuration("soon").error(), "\"soon\" is not a duration (10, 30s, 5m, 1m20s)");
}

TEST(ParsePrometheusDuration, AcceptsWhatPrometheusDoes) {
  const std::pair<std::string_view, int64_t> cases[] = {{"0", 0},
                                                        {"0s", 0},
                                                        {"30s", 30'000},
                                                        {"1m30s", 90'000},
                                                        {"1d12h", 129'600'000},
                                                        {"2w", 1'209'600'000},
                                                        {"1y", 31'536'000'000},
                                                        {"4d1h2m3s5ms", 349'323'005},
                                                        {"10m", 600'000},
                                                        {"10ms", 10}};
  for (const auto& [text, milliseconds] : cases) {
    const auto duration = ParsePrometheusDuration(text);
    ASSERT_TRUE(duration.ok()) << text;
    EXPECT_EQ(duration.value().count(), milliseconds) << text;
  }
  for (const std::string_view text :
       {"", "30", "1.5h", "-1s", "1s1m", "1s1s", "1ms1s", "s", "1 s", "1S", "1us", "11y", "99999999999999999999s"}) {
    EXPECT_FALSE(ParsePrometheusDuration(text).ok()) << text;
  }
}

}  // namespace
}  // namespace persia::agent
