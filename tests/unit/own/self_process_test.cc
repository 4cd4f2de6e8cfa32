#include "own/self_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class SelfProcessTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories((proc_ / name).parent_path());
    std::ofstream(proc_ / name) << text;
  }
  // The exposed values.
  static std::map<std::string, double> Shown(SelfProcess& source) {
    const auto snapshot = source.Collect();
    std::map<std::string, double> shown;
    for (const FamilyLayout& family : snapshot->layout->families) {
      const double value = snapshot->values.at(family.series.front().first_value);
      if (std::bit_cast<uint64_t>(value) != kAbsent) shown[family.name] = value;
    }
    return shown;
  }

  const TemporaryDirectory temporary_;
  const fs::path proc_ = temporary_.path();
};

TEST_F(SelfProcessTest, ReadsWhatTheKernelWrites) {
  Write("self/stat", "42 (a) b (c) S 1 1 1 0 -1 0 0 0 0 0 250 150 0 0 20 0 4 0 1000 8192000 25 18446744073709551615\n");
  Write("self/statm", "2000 26 20 1 0 9 0\n");
  Write("self/limits",
        "Limit                     Soft Limit           Hard Limit           Units\n"
        "Max processes             100                  100                  processes\n"
        "Max open files            1024                 524288               files\n");
  Write("self/fd/0", "");
  Write("self/fd/1", "");
  Write("self/fd/2", "");
  Write("stat", "cpu 1 2 3\nbtime 1700000000\nprocesses 9\n");
  SelfProcess source({"job", {}}, proc_);
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  EXPECT_THAT(Shown(source), ElementsAre(Pair("process_cpu_seconds_total", 400 / ticks), Pair("process_max_fds", 1024),
                                         Pair("process_open_fds", 2), Pair("process_resident_memory_bytes", 26 * page),
                                         Pair("process_start_time_seconds", 1700000000 + 1000 / ticks),
                                         Pair("process_virtual_memory_bytes", 2000 * page)));
}

TEST_F(SelfProcessTest, ValuesThatCannotBeReadAreAbsent) {
  SelfProcess nothing({"job", {}}, proc_);
  EXPECT_THAT(Shown(nothing), IsEmpty());
  Write("self/stat", "garbage");
  Write("self/statm", "2000");
  Write("self/limits", "Max open files            unlimited            unlimited            files\n");
  Write("stat", "cpu\n");
  EXPECT_THAT(Shown(nothing), IsEmpty());
}

TEST_F(SelfProcessTest, ReadsThisProcess) {
  SelfProcess source({"job", {}});
  const std::map<std::string, double> shown = Shown(source);
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_GT(shown.at("process_resident_memory_bytes"), 100'000);
  EXPECT_GT(shown.at("process_virtual_memory_bytes"), shown.at("process_resident_memory_bytes"));
  const int more = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(Shown(source).at("process_open_fds"), shown.at("process_open_fds") + 1);
  close(more);
  EXPECT_GE(shown.at("process_max_fds"), shown.at("process_open_fds"));
  EXPECT_GT(shown.at("process_start_time_seconds"), now - 3600);
  EXPECT_LT(shown.at("process_start_time_seconds"), now + 60);
}

TEST_F(SelfProcessTest, KeepsItsLayout) {
  SelfProcess source({"job", {}});
  EXPECT_EQ(source.Collect()->layout, source.Collect()->layout);
}

}  // namespace
}  // namespace persia::agent
