// What is kept of living processes, and how the end of one is described.
#include "health/vitals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "file_tree.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Processes below a directory that stands for /proc, in one memory cgroup of version 2.
class VitalsTest : public ::testing::Test {
 protected:
  VitalsTest() {
    Proc("self/ns/pid", "");
    Proc("self/cgroup", "0::/\n");
    Proc("self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    Proc("vmstat", "oom_kill 0\n");
    SetKills(0);
    for (const char* file : {"cgroup.procs", "cgroup.type"}) tree_.Write("sys/fs/cgroup/job/" + std::string(file), "");
    tree_.Write("sys/fs/cgroup/job/memory.max", "1048576\n");
    namespace_ = ProcReader(tree_.path() + "/proc").PidNamespace("self").value();
    Restart();
  }
  void Restart() {
    vitals_.emplace(Vitals::Options{.directory = tree_.path(), .root = tree_.path(), .free_ratio = free_ratio_});
  }
  void Proc(const std::string& name, const std::string& text) { tree_.Write("proc/" + name, text); }
  void SetKills(int kills) { tree_.Write("sys/fs/cgroup/job/memory.events", "oom_kill " + std::to_string(kills) + "\n"); }
  void SetKillsOfHost(int kills) { Proc("vmstat", "oom_kill " + std::to_string(kills) + "\n"); }

  void Start(uint32_t pid) {
    const std::string name = std::to_string(pid);
    Proc(name + "/stat", name + " (x) S 1 1 1 0 -1 0 0 0 0 0 150 50 0 0 20 0 3 0 77 0 0\n");
    SetResident(pid, 10);
    Proc(name + "/cgroup", "0::/job\n");
    Proc(name + "/oom_score", "950\n");
    Proc(name + "/limits",
         "Limit                     Soft Limit           Hard Limit           Units     \n"
         "Max cpu time              30                   unlimited            seconds   \n"
         "Max open files            1024                 4096                 files     \n");
    Process process;
    process.alive = true;
    process.id.pid = pid;
    process.id.pid_namespace = namespace_;
    process.id.start_ticks = 77;
    processes_.push_back(process);
  }
  void SetResident(uint32_t pid, int pages) {
    Proc(std::to_string(pid) + "/statm", "100 " + std::to_string(pages) + " 1 1 0 1 0\n");
  }
  void Look() { vitals_->Look(processes_, now_); }
  Circumstances End(uint32_t pid, const std::string& exit) {
    std::vector<Process> ends{EndOf(pid, exit)};
    vitals_->Describe(ends, now_);
    return ends[0].end->about;
  }
  Process EndOf(uint32_t pid, const std::string& exit) {
    return {.id = {.pid = pid, .start_ticks = 77, .pid_namespace = namespace_}, .end = ProcessEnd{.exit = exit}};
  }

  FileTree tree_;
  FullFilesystems::FreeRatio free_ratio_ = [](const std::string&, dev_t) { return 0.5; };
  uint64_t namespace_ = 0;
  std::vector<Process> processes_;
  std::optional<Vitals> vitals_;
  Vitals::TimePoint now_{seconds(1000)};
};

TEST_F(VitalsTest, AnEndHasWhatWasKnownOfTheProcess) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  Start(7);
  Look();
  now_ += seconds(50);
  SetResident(7, 90);
  Look();
  const Circumstances about = End(7, "SIGSEGV");
  EXPECT_EQ(about.resident, 90 * page);
  EXPECT_EQ(about.resident_before, 10 * page);
  EXPECT_EQ(about.oom_score, 950);
  EXPECT_EQ(about.max_open_files, 1024);
  EXPECT_EQ(about.max_cpu_seconds, 30);
  EXPECT_FALSE(about.max_file_bytes);
  EXPECT_FALSE(about.killed_for_memory);
}

TEST_F(VitalsTest, TheTrendIsOfTheLastMinute) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  Start(7);
  Look();
  for (const int pages : {20, 30}) {
    now_ += seconds(50);
    SetResident(7, pages);
    Look();
  }
  EXPECT_EQ(End(7, "SIGSEGV").resident_before, 20 * page);
}

TEST_F(VitalsTest, AKillOfItsCgroupExplainsASigkill) {
  Start(7);
  Look();
  SetKills(1);
  const Circumstances about = End(7, "SIGKILL");
  EXPECT_TRUE(about.killed_for_memory);
  EXPECT_EQ(about.memory_limit, 1048576);
  EXPECT_EQ(about.memory_cgroup, "/job");
}

TEST_F(VitalsTest, ASigkillWithoutAKillIsFromElsewhere) {
  Start(7);
  Look();
  SetKillsOfHost(1);  // in another cgroup
  const Circumstances about = End(7, "SIGKILL");
  EXPECT_FALSE(about.killed_for_memory);
  EXPECT_TRUE(about.kills_are_known);
}

TEST_F(VitalsTest, OfSeveralThatEndedTheOneWithTheMostMemoryWasKilled) {
  Start(7);
  Start(8);
  SetResident(8, 90);
  Look();
  SetKills(1);
  std::vector<Process> ends{EndOf(7, "SIGKILL"), EndOf(8, "SIGKILL")};
  vitals_->Describe(ends, now_);
  EXPECT_FALSE(ends[0].end->about.killed_for_memory);
  EXPECT_TRUE(ends[1].end->about.killed_for_memory);
}

TEST_F(VitalsTest, AKillOfACgroupThatIsGoneIsFoundByTheHostsCount) {
  Start(7);
  Look();
  tree_.Remove("sys/fs/cgroup/job");
  SetKillsOfHost(1);
  EXPECT_TRUE(End(7, "SIGKILL").killed_for_memory);
  EXPECT_FALSE(End(8, "SIGKILL").killed_for_memory) << "one kill, one death";
}

// It lived between two collections, so that nothing is known of it.
TEST_F(VitalsTest, AKillOfAProcessThatWasNotSeenIsFoundByTheHostsCount) {
  SetKillsOfHost(1);
  EXPECT_TRUE(End(9, "SIGKILL").killed_for_memory);
}

// It may have ended by SIGTERM, and the kernel's kill may be one of another job.
TEST_F(VitalsTest, AnUnknownEndOfAProcessThatWasNotSeenIsAKillOnlyByTheAgentsCgroup) {
  Proc("self/cgroup", "0::/job\n");
  Restart();
  SetKillsOfHost(3);
  EXPECT_FALSE(End(9, "unknown").killed_for_memory);
  EXPECT_FALSE(End(9, "").killed_for_memory);
  EXPECT_FALSE(End(9, "").kills_are_known) << "it may yet be told that SIGKILL ended it";
  SetKills(1);
  EXPECT_TRUE(End(9, "unknown").killed_for_memory);
  EXPECT_TRUE(End(10, "SIGKILL").killed_for_memory) << "it may have been in a cgroup of its own";
}

TEST_F(VitalsTest, ACrashTakesNoKill) {
  Start(7);
  Start(8);
  Look();
  SetKills(1);
  EXPECT_FALSE(End(7, "SIGSEGV").killed_for_memory);
  EXPECT_TRUE(End(8, "SIGKILL").killed_for_memory);
}

TEST_F(VitalsTest, ANewAgentFindsAKillSinceTheFormerOne) {
  Start(7);
  Look();
  const auto kills = vitals_->kills();
  SetKillsOfHost(1);
  SetKills(1);
  Restart();
  vitals_->Restore(kills);
  EXPECT_TRUE(End(7, "SIGKILL").killed_for_memory);
}

// The trainer is in another container, whose cgroup the agent does not see.
TEST_F(VitalsTest, AKillOfACgroupThatIsNotVisibleIsFoundByTheHostsCount) {
  Proc("self/mountinfo", "30 23 0:26 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  tree_.Write("sys/fs/cgroup/memory/cgroup.procs", "");
  tree_.Write("sys/fs/cgroup/memory/memory.oom_control", "oom_kill 0\n");
  Proc("self/cgroup", "4:memory:/docker/ab\n");
  Restart();
  Start(7);
  Proc("7/cgroup", "4:memory:/docker/cd\n");
  Look();
  SetKillsOfHost(1);
  EXPECT_TRUE(End(7, "SIGKILL").killed_for_memory);
}

TEST_F(VitalsTest, AFullFilesystemInMemoryIsToldOfASigbusOnly) {
  Proc("self/mountinfo", "5 1 0:32 / /dev/shm rw - tmpfs shm rw\n");
  free_ratio_ = [](const std::string&, dev_t) { return 0.0; };
  Restart();
  std::vector<std::string> full;
  // Another thread reads the filesystems. The record of an end waits for it for half a second.
  while (full.empty()) full = End(7, "SIGBUS").full_filesystems;
  EXPECT_THAT(full, ElementsAre("/dev/shm"));
  EXPECT_THAT(End(7, "SIGSEGV").full_filesystems, IsEmpty());
}

TEST_F(VitalsTest, AFilesystemThatHangsIsNotWaitedFor) {
  Proc("self/mountinfo", "5 1 0:32 / /dev/shm rw - tmpfs shm rw\n6 1 0:33 / /fuse rw - tmpfs x rw\n");
  std::promise<void> gate, reached;
  free_ratio_ = [open = gate.get_future().share(), &reached](const std::string& path, dev_t) {
    if (path != "/fuse") return 0.0;
    reached.set_value();
    open.wait();
    return 0.0;
  };
  Restart();
  Start(7);
  for (int i = 0; i < 3; ++i) Look();  // would not return
  reached.get_future().wait();
  EXPECT_THAT(End(7, "SIGBUS").full_filesystems, ElementsAre("/dev/shm")) << "it has answered";
  gate.set_value();
}

}  // namespace
}  // namespace persia::agent
