// Random files: for any input, the result is a clear error or a config.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "config/config.h"

namespace persia::agent {
namespace {

constexpr int kFiles = 10'000;

constexpr const char* kPieces[] = {"PersiaMetricsConfig",
                                   "common_config",
                                   "metrics_config",
                                   "job_name",
                                   "enable_metrics",
                                   "labels",
                                   "push_interval_seconds",
                                   ":",
                                   ": ",
                                   "\n",
                                   "\n  ",
                                   "\n    ",
                                   "- ",
                                   "[",
                                   "]",
                                   "{",
                                   "}",
                                   ",",
                                   "&a ",
                                   "*a",
                                   "'",
                                   "\"",
                                   "|",
                                   ">",
                                   "#",
                                   "---\n",
                                   "...\n",
                                   "!!str ",
                                   "!",
                                   "%YAML 1.2\n",
                                   "true",
                                   "0",
                                   "1e400",
                                   "~",
                                   "\t",
                                   "\\",
                                   "\x80",
                                   "\xff\xfe",
                                   std::string_view("\0x", 2).data(),
                                   "? ",
                                   "<<: *a",
                                   "@",
                                   "`",
                                   "\r\n",
                                   "\xe2\x80\xa8"};

constexpr char kGood[] = R"(common_config: &common
  intent: Train
PersiaMetricsConfig:
  enable_metrics: true
  job_name: "dlrm"
  push_interval_seconds: 10
  gateway_address: metrics_gateway:9091
  labels: {team: ads}   # a comment
  on_job_end: keep
other: [1, 2, *common]
)";

// The same files in each run.
class RandomConfig : public ::testing::Test {
 protected:
  size_t Below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }

  std::string Assembled() {
    std::string text;
    for (size_t count = Below(40); count > 0; --count) {
      text += kPieces[Below(std::size(kPieces))];
    }
    return text;
  }
  std::string Mutated() {
    std::string text = kGood;
    for (size_t count = 1 + Below(8); count > 0 && !text.empty(); --count) {
      const size_t at = Below(text.size());
      switch (Below(4)) {
        case 0:
          text[at] = static_cast<char>(Below(256));
          break;
        case 1:
          text.erase(at, 1 + Below(20));
          break;
        case 2:
          text.insert(at, kPieces[Below(std::size(kPieces))]);
          break;
        default:
          text.insert(Below(text.size()), text.substr(at, 1 + Below(40)));
      }
    }
    return text;
  }

  // Counts the results; errors must be one line each, and name the file.
  void Take(const std::string& text) {
    const Config config = ParseConfig("f.yaml", text);
    ++(config.ok() ? accepted_ : refused_);
    for (const std::string& error : config.ErrorTexts()) {
      ASSERT_TRUE(error.starts_with("f.yaml:")) << error;
      ASSERT_EQ(error.find('\n'), std::string::npos) << error;
    }
  }

  std::mt19937 random_{20240601};
  int accepted_ = 0;
  int refused_ = 0;
};

TEST_F(RandomConfig, AssembledFromPiecesNeverCrashes) {
  for (int i = 0; i < kFiles; ++i) {
    Take(Assembled());
  }
  EXPECT_GT(accepted_, kFiles / 100);
  EXPECT_GT(refused_, kFiles / 100);
}

TEST_F(RandomConfig, MutatedFromAGoodOneNeverCrashes) {
  for (int i = 0; i < kFiles; ++i) {
    Take(Mutated());
  }
  EXPECT_GT(accepted_, kFiles / 100);
  EXPECT_GT(refused_, kFiles / 100);
}

}  // namespace
}  // namespace persia::agent
