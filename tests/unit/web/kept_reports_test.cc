#include "web/kept_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::HasSubstr;

TEST(KeptReports, AreInTheUsersStateDirectory) {
  EXPECT_EQ(KeptReportsDirectory("/home/a", ""), "/home/a/.local/state/persia-metrics");
  EXPECT_EQ(KeptReportsDirectory("/home/a", "/var/a"), "/var/a/persia-metrics");
  EXPECT_EQ(KeptReportsDirectory("/home/a", "relative"), "/home/a/.local/state/persia-metrics");
  EXPECT_EQ(KeptReportsDirectory("", ""), "");
}

TEST(KeptReports, HaveTheJobTheTimeAndTheHostAsName) {
  const std::chrono::system_clock::time_point now(std::chrono::seconds(1'800'000'000));
  EXPECT_EQ(KeptReportName("dlrm v1/ä", "node-7.example", now), "dlrm_v1___-20270115-080000-node-7.example.html");
  EXPECT_EQ(KeptReportName(std::string(255, 'j'), "n", now).size(), 100 + std::string("-20270115-080000-n.html").size());
  EXPECT_NE(KeptReportName("dlrm", "a", now), KeptReportName("dlrm", "b", now)) << "of one job that ends on two hosts";
}

TEST(KeptReports, OnlyTheNewestStay) {
  const TemporaryDirectory home("/tmp");
  const std::string directory = KeptReportsDirectory(home.path(), "");
  ASSERT_TRUE(MakeKeptReportsDirectory(directory).ok());
  ASSERT_TRUE(MakeKeptReportsDirectory(directory).ok()) << "it exists";
  const auto now = std::filesystem::file_time_type::clock::now();
  for (int i = 0; i < 30; ++i) {
    const std::filesystem::path path = directory + "/" + std::to_string(i) + ".html";
    std::ofstream(path) << i;
    std::filesystem::last_write_time(path, now - std::chrono::minutes(i));
  }
  std::ofstream(directory + "/mine.txt") << "not a report";
  RemoveOldReports(directory);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(std::filesystem::exists(directory + "/" + std::to_string(i) + ".html"), i < 20) << i;
  EXPECT_TRUE(std::filesystem::exists(directory + "/mine.txt"));
}

TEST(KeptReports, ADirectoryThatCannotBeMadeIsNamed) {
  const TemporaryDirectory home("/tmp");
  std::ofstream(home / ".local") << "a file";
  const Status made = MakeKeptReportsDirectory(KeptReportsDirectory(home.path(), ""));
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error(), HasSubstr(home.path() + "/.local/state/persia-metrics"));
}

}  // namespace
}  // namespace persia::agent
