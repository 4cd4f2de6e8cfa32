// The cgroups of both versions, in a directory that stands for the root of the machine.
#include "kernel/cgroups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "file_tree.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CgroupsTest : public ::testing::Test {
 protected:
  CgroupsTest() { tree_.Write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"); }
  // A cgroup of version 2 that is not the root.
  void Group(const std::string& directory, const std::string& max = "max") {
    tree_.Write(directory + "/cgroup.procs", "");
    tree_.Write(directory + "/cgroup.type", "domain\n");
    tree_.Write(directory + "/memory.max", max + "\n");
    tree_.Write(directory + "/memory.events", "low 0\noom_kill 2\n");
  }
  void LegacyGroup(const std::string& directory, const std::string& limit = "9223372036854771712") {
    tree_.Write(directory + "/cgroup.procs", "");
    tree_.Write(directory + "/memory.limit_in_bytes", limit + "\n");
    tree_.Write(directory + "/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  }

  CgroupPaths Find() {
    KernelFiles files(tree_.path());
    return FindCgroup(files, files.Read("/proc/7/cgroup"));
  }

  FileTree tree_;
  MemoryCgroups cgroups_{tree_.path()};
};

TEST_F(CgroupsTest, LevelsGoFromTheProcessUpToTheTopWithoutTheRoot) {
  tree_.Write("proc/7/cgroup", "0::/job.slice/rank\n");
  tree_.Write("sys/fs/cgroup/cgroup.procs", "");
  Group("sys/fs/cgroup/job.slice");
  Group("sys/fs/cgroup/job.slice/rank");
  EXPECT_THAT(Find().unified, ElementsAre("/sys/fs/cgroup/job.slice/rank", "/sys/fs/cgroup/job.slice"));
  EXPECT_THAT(Find().legacy, IsEmpty());
  tree_.Write("proc/7/cgroup", "0::/\n");
  EXPECT_TRUE(Find().empty()) << "the root has the values of the whole machine";
}

TEST_F(CgroupsTest, InACgroupNamespaceTheTopIsTheContainersCgroup) {
  tree_.Write("proc/7/cgroup", "0::/\n");
  Group("sys/fs/cgroup");
  EXPECT_THAT(Find().unified, ElementsAre("/sys/fs/cgroup"));
  tree_.Write("proc/7/cgroup", "0::/../other\n");
  EXPECT_TRUE(Find().empty()) << "a process of another container";
}

TEST_F(CgroupsTest, APathBelowTheMountedDirectoryOfVersionOne) {
  tree_.Write("proc/self/mountinfo",
              "35 31 0:32 /docker/ab /sys/fs/cgroup/memory\\040v1 ro - cgroup cgroup rw,memory\n"
              "36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  tree_.Write("proc/7/cgroup", "4:memory:/docker/ab/rank\n3:cpu,cpuacct:/docker/ab\n2:blkio:/\n1:name=systemd:/x\nbroken\n");
  LegacyGroup("sys/fs/cgroup/memory v1");
  LegacyGroup("sys/fs/cgroup/memory v1/rank");
  LegacyGroup("sys/fs/cgroup/cpu,cpuacct/docker/ab");
  LegacyGroup("sys/fs/cgroup/cpu,cpuacct");
  tree_.Write("sys/fs/cgroup/cpu,cpuacct/release_agent", "");
  const CgroupPaths paths = Find();
  EXPECT_THAT(paths.Of("memory"), ElementsAre("/sys/fs/cgroup/memory v1/rank", "/sys/fs/cgroup/memory v1"));
  EXPECT_THAT(paths.Of("cpu"), ElementsAre("/sys/fs/cgroup/cpu,cpuacct/docker/ab"));
  EXPECT_EQ(paths.Of("cpuacct"), paths.Of("cpu"));
  EXPECT_THAT(paths.Of("blkio"), IsEmpty());
  tree_.Write("proc/7/cgroup", "4:memory:/docker/ab/gone\n");
  EXPECT_TRUE(Find().empty()) << "that of the container is another one";
  tree_.Write("proc/7/cgroup", "4:memory:/docker/abc\n");
  EXPECT_TRUE(Find().empty()) << "/docker/abc is not below /docker/ab";
}

TEST_F(CgroupsTest, LinesOfAnotherFormAreSkipped) {
  tree_.Write("proc/7/cgroup", "0::job\n0:::\nbroken\n");
  Group("sys/fs/cgroup/job");
  EXPECT_TRUE(Find().empty());
}

TEST_F(CgroupsTest, OfVersion2) {
  tree_.Write("proc/7/cgroup", "0::/jobs/dlrm\n");
  Group("sys/fs/cgroup/jobs", "4096");
  Group("sys/fs/cgroup/jobs/dlrm");
  const CgroupLevels levels = cgroups_.Of("7");
  ASSERT_THAT(levels, ElementsAre("/sys/fs/cgroup/jobs/dlrm", "/sys/fs/cgroup/jobs"));
  EXPECT_EQ(cgroups_.Kills(levels[0]), 2);
  tree_.Write("sys/fs/cgroup/jobs/dlrm/memory.events.local", "low 0\noom 2\noom_kill 1\n");
  EXPECT_EQ(cgroups_.Kills(levels[0]), 1) << "without its children";
  const auto limit = cgroups_.LimitOf(levels);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->bytes, 4096);
  EXPECT_EQ(limit->level, "/jobs") << "that of the cgroup above";
}

TEST_F(CgroupsTest, WithoutTheControllerTheCgroupAboveCounts) {
  tree_.Write("proc/7/cgroup", "0::/job/rank\n");
  Group("sys/fs/cgroup/job");
  tree_.Write("sys/fs/cgroup/job/rank/cgroup.procs", "");
  EXPECT_THAT(cgroups_.Of("7"), ElementsAre("/sys/fs/cgroup/job"));
}

TEST_F(CgroupsTest, OfVersion1BesideVersion2) {
  tree_.Write("proc/self/mountinfo",
              "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
              "36 31 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  tree_.Write("proc/7/cgroup", "12:cpu,cpuacct:/a\n4:hugetlb,memory:/jobs/dlrm\n0::/b\n");
  Group("sys/fs/cgroup/unified/b");
  LegacyGroup("sys/fs/cgroup/memory/jobs/dlrm", "1048576");
  LegacyGroup("sys/fs/cgroup/memory/jobs");
  const CgroupLevels levels = cgroups_.Of("7");
  ASSERT_THAT(levels, ElementsAre("/sys/fs/cgroup/memory/jobs/dlrm", "/sys/fs/cgroup/memory/jobs"));
  EXPECT_EQ(cgroups_.Kills(levels[0]), 3);
  ASSERT_TRUE(cgroups_.LimitOf(levels));
  EXPECT_EQ(cgroups_.LimitOf(levels)->bytes, 1048576);
  EXPECT_EQ(cgroups_.LimitOf(levels)->level, "/jobs/dlrm");
}

// As Docker and Kubernetes make them: the mount is the container's own cgroup, and has the limit.
TEST_F(CgroupsTest, TheTopOfAContainerIsItsCgroupWithItsLimit) {
  tree_.Write("proc/7/cgroup", "0::/\n");
  Group("sys/fs/cgroup", "4096");
  ASSERT_THAT(cgroups_.Of("7"), ElementsAre("/sys/fs/cgroup"));
  const auto limit = cgroups_.LimitOf(cgroups_.Of("7"));
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->bytes, 4096);
  EXPECT_EQ(limit->level, "");
}

TEST_F(CgroupsTest, WhatCannotBeReadIsNotKnown) {
  EXPECT_THAT(cgroups_.Of("7"), IsEmpty());
  tree_.Write("proc/7/cgroup", "0::/../outside\n");
  EXPECT_THAT(cgroups_.Of("7"), IsEmpty());
  EXPECT_FALSE(cgroups_.Kills(""));
  EXPECT_FALSE(cgroups_.Kills("/sys/fs/cgroup/gone"));
  EXPECT_FALSE(cgroups_.KillsOfHost());
  EXPECT_FALSE(cgroups_.LimitOf({"/sys/fs/cgroup/gone"}));
}

TEST_F(CgroupsTest, TheHostCountsToo) {
  tree_.Write("proc/vmstat", "nr_free_pages 12\noom_kill 9\nthp_fault 0\n");
  EXPECT_EQ(cgroups_.KillsOfHost(), 9);
}

}  // namespace
}  // namespace persia::agent
