#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "fake_machine.h"
#include "kernel/cgroups.h"
#include "machine/machine_reading.h"

namespace persia::agent {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class CgroupTest : public ::testing::Test {
 protected:
  CgroupTest() { machine_.Write("/proc/self/mountinfo", kUnified); }

  // A cgroup of v2 that is not the root.
  void Group(const std::string& path, const std::map<std::string, std::string>& files) {
    machine_.Write(path + "/cgroup.procs", "");
    machine_.Write(path + "/cgroup.type", "domain\n");
    for (const auto& [name, text] : files) machine_.Write(path + "/" + name, text);
  }
  void LegacyGroup(const std::string& path, const std::map<std::string, std::string>& files) {
    machine_.Write(path + "/cgroup.procs", "");
    for (const auto& [name, text] : files) machine_.Write(path + "/" + name, text);
  }
  std::map<std::string, double> Values() {
    KernelFiles files(machine_.root());
    const CgroupPaths paths = FindCgroup(files, files.Read("/proc/7/cgroup"));
    MachineReading reading;
    ReadCgroup(files, paths, reading);
    ReadPressure(files, paths, reading);
    return ValuesOf(reading.TakeSorted());
  }

  static constexpr const char* kUnified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  FakeMachine machine_;
};

TEST_F(CgroupTest, VersionTwoHasAllValues) {
  machine_.Write("/proc/7/cgroup", "0::/job\n");
  Group("/sys/fs/cgroup/job",
        {{"memory.max", "1000\n"},
         {"memory.current", "900\n"},
         {"memory.peak", "950\n"},
         {"memory.swap.current", "7\n"},
         {"memory.stat", "anon 100\ninactive_anon 5\ninactive_file 300\n"},
         {"memory.events", "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 0\n"},
         {"cpu.max", "150000 100000\n"},
         {"cpu.stat", "usage_usec 2500000\nuser_usec 1\nnr_periods 10\nnr_throttled 4\nthrottled_usec 1500000\n"},
         {"io.stat",
          "8:0 rbytes=100 wbytes=200 rios=3 wios=4 dbytes=9 dios=9\n253:0 rbytes=100 wbytes=200 rios=3 wios=4\n7:0 "
          "rbytes=1\n8:16 \n"},
         {"cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\nfull avg10=0.00 total=500000\n"}});
  machine_.Write("/sys/dev/block/253:0/slaves/sda", "");
  EXPECT_THAT(
      Values(),
      UnorderedElementsAre(
          Pair("persia_cgroup_memory_limit_bytes", 1000), Pair("persia_cgroup_memory_usage_bytes", 900),
          Pair("persia_cgroup_memory_working_set_bytes", 600), Pair("persia_cgroup_memory_max_usage_bytes", 950),
          Pair("persia_cgroup_memory_swap_bytes", 7), Pair("persia_cgroup_memory_events_total{event=high}", 2),
          Pair("persia_cgroup_memory_events_total{event=max}", 3), Pair("persia_cgroup_memory_events_total{event=oom}", 4),
          Pair("persia_cgroup_memory_events_total{event=oom_kill}", 5), Pair("persia_cgroup_cpu_usage_seconds_total", 2.5),
          Pair("persia_cgroup_cpu_limit_cores", 1.5), Pair("persia_cgroup_cpu_cfs_periods_total", 10),
          Pair("persia_cgroup_cpu_cfs_throttled_periods_total", 4), Pair("persia_cgroup_cpu_cfs_throttled_seconds_total", 1.5),
          Pair("persia_cgroup_io_read_bytes_total", 100), Pair("persia_cgroup_io_written_bytes_total", 200),
          Pair("persia_cgroup_io_reads_total", 3), Pair("persia_cgroup_io_writes_total", 4),
          Pair("persia_pressure_cpu_waiting_seconds_total{scope=cgroup}", 1),
          Pair("persia_pressure_cpu_stalled_seconds_total{scope=cgroup}", 0.5)));
}

TEST_F(CgroupTest, TheLowestLimitOfAllLevelsCounts) {
  machine_.Write("/proc/7/cgroup", "0::/pod/container\n");
  Group("/sys/fs/cgroup/pod", {{"memory.max", "500\n"}, {"memory.current", "450\n"}, {"cpu.max", "max 100000\n"}});
  Group(
      "/sys/fs/cgroup/pod/container",
      {{"memory.max", "max\n"}, {"memory.current", "20\n"}, {"cpu.max", "400000 100000\n"}, {"cpu.stat", "nr_throttled 3\n"}});
  auto values = Values();
  EXPECT_EQ(values["persia_cgroup_memory_limit_bytes"], 500);
  EXPECT_EQ(values["persia_cgroup_memory_usage_bytes"], 450) << "of the cgroup that has the limit";
  EXPECT_EQ(values["persia_cgroup_cpu_limit_cores"], 4);
  EXPECT_EQ(values["persia_cgroup_cpu_cfs_throttled_periods_total"], 3);
  machine_.Write("/sys/fs/cgroup/pod/memory.max", "max\n");
  values = Values();
  EXPECT_THAT(values, Not(Contains(Key("persia_cgroup_memory_limit_bytes"))));
  EXPECT_EQ(values["persia_cgroup_memory_usage_bytes"], 20) << "without a limit, the job's own";
}

TEST_F(CgroupTest, VersionOneHasTheSameValues) {
  machine_.Write("/proc/self/mountinfo",
                 "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n36 31 0:33 / /cg/cpu rw - cgroup cgroup rw,cpu\n"
                 "37 31 0:34 / /cg/cpuacct rw - cgroup cgroup rw,cpuacct\n38 31 0:35 / /cg/blkio rw - cgroup cgroup rw,blkio\n"
                 "39 31 0:36 / /cg/unified rw - cgroup2 cgroup2 rw\n");
  machine_.Write("/proc/7/cgroup", "8:memory:/job\n7:cpu:/job\n6:cpuacct:/job\n5:blkio:/job\n0::/job\n");
  LegacyGroup("/cg/memory/job", {{"memory.limit_in_bytes", "1000\n"},
                                 {"memory.usage_in_bytes", "900\n"},
                                 {"memory.max_usage_in_bytes", "950\n"},
                                 {"memory.failcnt", "3\n"},
                                 {"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"},
                                 {"memory.stat", "inactive_file 1\ntotal_inactive_file 300\ntotal_swap 7\n"}});
  LegacyGroup("/cg/cpu/job", {{"cpu.cfs_quota_us", "150000\n"},
                              {"cpu.cfs_period_us", "100000\n"},
                              {"cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 1500000000\n"}});
  LegacyGroup("/cg/cpuacct/job", {{"cpuacct.usage", "2500000000\n"}});
  LegacyGroup("/cg/blkio/job",
              {{"blkio.throttle.io_service_bytes_recursive", "8:0 Read 100\n8:0 Write 200\n8:0 Total 300\nTotal 300\n"},
               {"blkio.throttle.io_serviced_recursive", "8:0 Read 3\n8:0 Write 4\n"}});
  Group("/cg/unified/job", {{"cpu.stat", "usage_usec 9\n"}, {"io.pressure", "some avg10=0.00 total=2000000\n"}});
  EXPECT_THAT(Values(),
              UnorderedElementsAre(
                  Pair("persia_cgroup_memory_limit_bytes", 1000), Pair("persia_cgroup_memory_usage_bytes", 900),
                  Pair("persia_cgroup_memory_working_set_bytes", 600), Pair("persia_cgroup_memory_max_usage_bytes", 950),
                  Pair("persia_cgroup_memory_swap_bytes", 7), Pair("persia_cgroup_memory_events_total{event=max}", 3),
                  Pair("persia_cgroup_memory_events_total{event=oom_kill}", 5),
                  Pair("persia_cgroup_cpu_usage_seconds_total", 2.5), Pair("persia_cgroup_cpu_limit_cores", 1.5),
                  Pair("persia_cgroup_cpu_cfs_periods_total", 10), Pair("persia_cgroup_cpu_cfs_throttled_periods_total", 4),
                  Pair("persia_cgroup_cpu_cfs_throttled_seconds_total", 1.5), Pair("persia_cgroup_io_read_bytes_total", 100),
                  Pair("persia_cgroup_io_written_bytes_total", 200), Pair("persia_cgroup_io_reads_total", 3),
                  Pair("persia_cgroup_io_writes_total", 4), Pair("persia_pressure_io_waiting_seconds_total{scope=cgroup}", 2)));
  machine_.Write("/cg/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  machine_.Write("/cg/cpu/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_THAT(Values(), Not(Contains(Key("persia_cgroup_memory_limit_bytes"))));
  EXPECT_THAT(Values(), Not(Contains(Key("persia_cgroup_cpu_limit_cores"))));
}

TEST_F(CgroupTest, InVersionOneTheKillsOfAllLevelsCount) {
  machine_.Write("/proc/self/mountinfo", "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n");
  machine_.Write("/proc/7/cgroup", "8:memory:/pod/job\n");
  LegacyGroup("/cg/memory/pod", {{"memory.limit_in_bytes", "1000\n"}, {"memory.oom_control", "under_oom 0\noom_kill 1\n"}});
  LegacyGroup("/cg/memory/pod/job",
              {{"memory.limit_in_bytes", "9223372036854771712\n"}, {"memory.oom_control", "under_oom 0\noom_kill 5\n"}});
  EXPECT_EQ(Values()["persia_cgroup_memory_events_total{event=oom_kill}"], 6) << "the limit is of the level above";
}

TEST_F(CgroupTest, DamagedFilesGiveNothing) {
  machine_.Write("/proc/7/cgroup", "0::/job\n");
  Group("/sys/fs/cgroup/job", {{"memory.max", ""}, {"memory.current", "x"}, {"cpu.max", "100 0"}, {"cpu.stat", "usage_usec"}});
  EXPECT_THAT(Values(), IsEmpty());
}

}  // namespace
}  // namespace persia::agent
