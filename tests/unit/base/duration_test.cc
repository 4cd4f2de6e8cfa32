#include "base/duration.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace persia::agent {
namespace {

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
