// Directories in which no segment can be.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "persia/metrics/metrics.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

struct BadDirectory {
  const char* name;
  std::function<std::string(const std::string& scratch)> make;
  const char* message;
};

class BadDirectoryTest : public WorkerTest, public ::testing::WithParamInterface<BadDirectory> {};

TEST_P(BadDirectoryTest, IsRefusedInOneLineAndCountingGoesOn) {
  const std::string bad = GetParam().make(directory());
  const auto outcome = RunWorker([&] {
    setenv("PERSIA_METRICS_DIR", bad.c_str(), 1);
    Counter counter("g", "c");
    counter.Increment();
    const InitResult result = Init();
    ASSERT_FALSE(result.exporting);
    ASSERT_NE(result.detail.find(GetParam().message), std::string::npos) << result.detail;
    counter.Increment();
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 1) << outcome.error_output;
  EXPECT_NE(outcome.error_output.find(bad), std::string::npos) << outcome.error_output;
}

INSTANTIATE_TEST_SUITE_P(
    Each, BadDirectoryTest,
    ::testing::Values(BadDirectory{"Link",
                                   [](const std::string& scratch) {
                                     std::filesystem::create_directory_symlink("/tmp", scratch + "/link");
                                     return scratch + "/link";
                                   },
                                   "cannot open the directory"},
                      BadDirectory{"File",
                                   [](const std::string& scratch) {
                                     std::ofstream(scratch + "/file") << "x";
                                     return scratch + "/file";
                                   },
                                   "cannot open the directory"},
                      BadDirectory{"MissingParents", [](const std::string& scratch) { return scratch + "/a/b/c"; },
                                   "cannot open "},
                      BadDirectory{"WithoutTmpfile", [](const std::string&) { return std::string("/proc"); },
                                   geteuid() == 0 ? "O_TMPFILE" : "neither this user's alone"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace persia::metrics::tests
