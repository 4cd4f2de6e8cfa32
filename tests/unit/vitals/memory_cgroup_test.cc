// The memory cgroups of both versions, in directories that stand for /proc and /sys/fs/cgroup.
#include "vitals/memory_cgroup.h"

#include <gtest/gtest.h>

#include <string>

#include "vitals/file_tree.h"

namespace persia::agent {
namespace {

class MemoryCgroupsTest : public ::testing::Test {
 protected:
  FileTree proc_;
  FileTree files_;
  MemoryCgroups cgroups_{{.proc = proc_.path(), .cgroups = files_.path()}};
};

TEST_F(MemoryCgroupsTest, OfVersion2) {
  proc_.Write("7/cgroup", "0::/jobs/dlrm\n");
  files_.Write("jobs/memory.max", "4096\n");
  files_.Write("jobs/dlrm/memory.max", "max\n");
  files_.Write("jobs/dlrm/memory.events", "low 0\nhigh 0\nmax 31\noom 2\noom_kill 5\noom_group_kill 0\n");
  const std::string cgroup = cgroups_.Of("7");
  EXPECT_EQ(cgroup, files_.path() + "/jobs/dlrm");
  EXPECT_EQ(cgroups_.Kills(cgroup), 5);
  files_.Write("jobs/dlrm/memory.events.local", "low 0\noom 2\noom_kill 1\n");
  EXPECT_EQ(cgroups_.Kills(cgroup), 1) << "without its children";
  const auto limit = cgroups_.LimitOf(cgroup);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->bytes, 4096);
  EXPECT_EQ(limit->cgroup, "/jobs") << "that of the cgroup above";
}

TEST_F(MemoryCgroupsTest, OfVersion1BesideVersion2) {
  proc_.Write("7/cgroup", "12:cpu,cpuacct:/a\n4:hugetlb,memory:/jobs/dlrm\n0::/b\n");
  files_.Write("memory/jobs/dlrm/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  files_.Write("memory/jobs/dlrm/memory.limit_in_bytes", "1048576\n");
  files_.Write("memory/jobs/memory.limit_in_bytes", "9223372036854771712\n");
  const std::string cgroup = cgroups_.Of("7");
  EXPECT_EQ(cgroup, files_.path() + "/memory/jobs/dlrm");
  EXPECT_EQ(cgroups_.Kills(cgroup), 3);
  ASSERT_TRUE(cgroups_.LimitOf(cgroup));
  EXPECT_EQ(cgroups_.LimitOf(cgroup)->bytes, 1048576);
}

// The mount of a container is its own cgroup, which /proc of the host's namespace names by a longer path.
TEST_F(MemoryCgroupsTest, OfAContainer) {
  proc_.Write("7/cgroup", "0::/system.slice/docker-1.scope\n");
  files_.Write("memory.events", "oom_kill 2\n");
  EXPECT_EQ(cgroups_.Of("7"), files_.path());
  EXPECT_EQ(cgroups_.Kills(cgroups_.Of("7")), 2);
}

TEST_F(MemoryCgroupsTest, WhatCannotBeReadIsNotKnown) {
  EXPECT_EQ(cgroups_.Of("7"), "");
  proc_.Write("7/cgroup", "0::/../outside\n");
  EXPECT_EQ(cgroups_.Of("7"), "");
  EXPECT_FALSE(cgroups_.Kills(""));
  EXPECT_FALSE(cgroups_.Kills(files_.path() + "/gone"));
  EXPECT_FALSE(cgroups_.KillsOfHost());
  EXPECT_FALSE(cgroups_.LimitOf(files_.path() + "/gone"));
}

TEST_F(MemoryCgroupsTest, TheHostCountsToo) {
  proc_.Write("vmstat", "nr_free_pages 12\noom_kill 9\nthp_fault 0\n");
  EXPECT_EQ(cgroups_.KillsOfHost(), 9);
}

}  // namespace
}  // namespace persia::agent
