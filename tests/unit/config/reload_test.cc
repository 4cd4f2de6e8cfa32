#include "config/reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A reloader of a file, beside a flag; the fixture keeps the options that it applies.
class ReloaderTest : public ::testing::Test {
 protected:
  ReloaderTest() {
    Write("job_name: first\n  push_interval_seconds: 10\n");
    sources_ = {.flags = {{"--label", "team=ads"}}, .environment = [](const char*) { return std::nullopt; }, .file = file_};
    current_ = LoadConfig(sources_).options;
    current_.log_level = LogLevel::kOff;
  }
  void Write(const std::string& settings) { std::ofstream(file_) << "PersiaMetricsConfig:\n  log_level: off\n  " << settings; }
  Reloader Make() {
    return Reloader({.sources = sources_,
                     .current = current_,
                     .apply = [this](const AgentOptions& options) { applied_.push_back(options); },
                     .note = [this](bool good, size_t errors) { noted_.emplace_back(good, errors); }});
  }

  const TemporaryDirectory directory_;
  const std::string file_ = directory_ / "config.yaml";
  ConfigSources sources_;
  AgentOptions current_;
  std::vector<AgentOptions> applied_;
  std::vector<std::pair<bool, size_t>> noted_;
};

TEST_F(ReloaderTest, HandsOnWhatMayChangeAndKeepsTheRest) {
  Reloader reloader = Make();
  Write("job_name: second\n  push_interval_seconds: 3\n");
  EXPECT_THAT(reloader.Reload(), IsEmpty());
  ASSERT_EQ(applied_.size(), 1u);
  EXPECT_EQ(applied_[0].push_interval, 3s);
  EXPECT_EQ(applied_[0].job_name, "first");
  EXPECT_THAT(applied_[0].labels, ElementsAre(std::pair("team", "ads")));
  EXPECT_THAT(noted_, ElementsAre(std::pair(true, 0U)));
}

TEST_F(ReloaderTest, OneErrorRefusesAll) {
  Reloader reloader = Make();
  Write("push_interval_seconds: 3\n  web_config_file: /nowhere/web.yaml\n");
  EXPECT_THAT(reloader.Reload(), ElementsAre(HasSubstr("/nowhere/web.yaml")));
  Write("push_interval_seconds: 3\n  max_series: none\n");
  EXPECT_THAT(reloader.Reload(), ElementsAre(HasSubstr("max_series: \"none\"")));
  EXPECT_THAT(applied_, IsEmpty());
  EXPECT_THAT(noted_, ElementsAre(std::pair(false, 1U), std::pair(false, 1U)));
}

TEST_F(ReloaderTest, AnErrorInAFlagRefusesNothing) {
  sources_.flags.emplace_back("--push-timeout", "soon");
  Reloader reloader = Make();
  Write("push_interval_seconds: 3\n");
  EXPECT_THAT(reloader.Reload(), IsEmpty());
  ASSERT_EQ(applied_.size(), 1u);
  EXPECT_EQ(applied_[0].push_interval, 3s);
  Write("push_interval_seconds: often\n");
  EXPECT_THAT(reloader.Reload(), ElementsAre(HasSubstr("push_interval_seconds"))) << "the flag's error is not repeated";
  EXPECT_THAT(noted_, ElementsAre(std::pair(true, 1U), std::pair(false, 2U)));
}

}  // namespace
}  // namespace persia::agent
