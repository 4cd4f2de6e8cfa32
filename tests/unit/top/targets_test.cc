#include "top/targets.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "job/job_directory.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

TEST(CheckTopAddress, AcceptsAndRefuses) {
  for (const char* good : {"host:19091", "host", "[::1]:19091", "https://host/prefix/", "dns+trainers", "dns+trainers:80"}) {
    EXPECT_TRUE(CheckTopAddress(good).ok()) << good;
  }
  for (const char* bad : {"", "host:0x", "ftp://host", "http://u:secret@host", "host?x=1", "dns+http://host"}) {
    const Status checked = CheckTopAddress(bad);
    ASSERT_FALSE(checked.ok()) << bad;
    EXPECT_EQ(checked.error().find("secret"), std::string::npos);
  }
}

TEST(TargetFinder, CompletesAddresses) {
  TargetFinder finder({"host", "other:80", "https://secure", "http://proxy:8080/rank0/"}, "");
  const auto targets = finder.Find();
  ASSERT_EQ(targets.size(), 4U);
  EXPECT_EQ(targets[0].url, "http://host:19091");
  EXPECT_EQ(targets[1].url, "http://other:80");
  EXPECT_EQ(targets[2].url, "https://secure:443");
  EXPECT_EQ(targets[3].url, "http://proxy:8080/rank0");
}

TEST(TargetFinder, LooksNamesUp) {
  TargetFinder finder({"dns+localhost:1234", "dns+no-such-name.invalid"}, "");
  const auto targets = finder.Find();
  ASSERT_GE(targets.size(), 2U);
  EXPECT_TRUE(targets[0].url == "http://127.0.0.1:1234" || targets[0].url == "http://[::1]:1234") << targets[0].url;
  EXPECT_EQ(targets.back().url, "");
  EXPECT_NE(targets.back().problem, "");
}

TEST(TargetFinder, FindsLocalJobs) {
  const TemporaryDirectory root;
  auto dlrm = JobDirectory::Open({.path = root / "dlrm"});
  ASSERT_TRUE(dlrm.ok()) << dlrm.error();
  auto lock = dlrm.value().Lock();
  ASSERT_TRUE(dlrm.value().WriteConf({.run_id = "1", .job = "dlrm", .web = "http://0.0.0.0:1234"}).ok());
  std::optional dies = JobDirectory::Open({.path = root / "dies"});
  auto its_lock = dies->value().Lock();
  ASSERT_TRUE(dies->value().WriteConf({.run_id = "1", .web = "http://127.0.0.1:1"}).ok());
  auto never = JobDirectory::Open({.path = root / "never"});
  ASSERT_TRUE(never.value().WriteConf({.run_id = "1", .web = "http://127.0.0.1:1"}).ok());
  auto over = JobDirectory::Open({.path = root / "over"});
  ASSERT_TRUE(over.value().WriteConf({.run_id = "1", .ended = true}).ok());
  TargetFinder finder({}, root.path());
  const auto of = [&finder](const std::string& name) {
    for (const Target& target : finder.Find()) {
      if (target.name == name) return target;
    }
    return Target{};
  };
  EXPECT_EQ(finder.Find().size(), 2U);
  EXPECT_EQ(of("dlrm").url, "http://127.0.0.1:1234");
  EXPECT_EQ(of("dies").url, "http://127.0.0.1:1");
  // It ends while top watches.
  dies.reset();
  EXPECT_EQ(of("dies").problem, "no agent and no process of it runs");
  EXPECT_TRUE(of("dies").ended);
  ASSERT_TRUE(JobDirectory::OpenExisting(root / "dies").value().WriteConf({.run_id = "1", .ended = true}).ok());
  EXPECT_EQ(of("dies").problem, "the run has ended");
  EXPECT_EQ(finder.Find().size(), 2U);
  EXPECT_EQ(TargetFinder({}, root.path()).Find().size(), 1U);
}

}  // namespace
}  // namespace persia::agent
