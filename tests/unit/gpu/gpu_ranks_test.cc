#include "gpu/gpu_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;

constexpr std::optional<size_t> kNone = std::nullopt;

// A folder that looks like /proc. Its namespaces are files, whose inodes are the namespaces' numbers.
class GpuRanksTest : public ::testing::Test {
 protected:
  GpuRanksTest() {
    std::filesystem::create_directories(Self() + "/ns");
    std::ofstream(Self() + "/cgroup") << "0::/job\n";
    SetNamespace(Self(), "pid", "own");
    SetNamespace(Self(), "mnt", "own");
  }

  [[nodiscard]] std::string Self() const { return proc_ / "self"; }
  void SetNamespace(const std::string& process, const std::string& kind, const std::string& name) {
    const std::string file = proc_ / (kind + "-" + name);
    std::ofstream(file, std::ios::app).flush();
    std::filesystem::remove(process + "/ns/" + kind);
    std::filesystem::create_symlink(file, process + "/ns/" + kind);
  }
  [[nodiscard]] uint64_t InodeOf(const std::string& kind, const std::string& name) const {
    struct stat info {};
    return stat((proc_ / (kind + "-" + name)).c_str(), &info) == 0 ? info.st_ino : 0;
  }

  // A living worker, with its files in /proc. `environment`: separated by spaces.
  Process AddWorker(uint32_t pid, int rank, std::string environment = "HOME=/root") {
    const std::string folder = proc_ / std::to_string(pid);
    std::filesystem::create_directories(folder + "/ns");
    std::ofstream(folder + "/stat") << pid << " (python3) S 1 1 1 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 7 0 " << kStarted
                                    << " 1 1 0\n";
    for (char& c : environment) c = c == ' ' ? '\0' : c;
    std::ofstream(folder + "/environ") << environment << '\0';
    std::ofstream(folder + "/cgroup") << "0::/job\n";
    SetNamespace(folder, "pid", "own");
    SetNamespace(folder, "mnt", "own");
    return {.id = {.pid = pid, .start_ticks = kStarted, .pid_namespace = InodeOf("pid", "own")},
            .identity = {"dlrm", {{"instance", "rep_" + std::to_string(rank)}, {"role", "trainer"}}},
            .alive = true};
  }

  [[nodiscard]] std::vector<std::optional<size_t>> Assign(const std::vector<Process>& processes) {
    return GpuRanks(std::filesystem::path(proc_.path()), initial_ ? InodeOf("pid", "own") : GpuRanks::kInitialPidNamespace,
                    std::chrono::minutes(1))
        .Assign(sample_, processes);
  }

  static constexpr uint64_t kStarted = 5000;
  const TemporaryDirectory proc_;
  bool initial_ = true;  // the agent is in the initial pid namespace
  GpuSample sample_{.boot_ns = 100'000'000'000'000, .devices = {{.gpu = "0", .uuid = "GPU-a"}, {.gpu = "1", .uuid = "GPU-b"}}};
};

TEST_F(GpuRanksTest, TheDriversProcessesDecide) {
  sample_.devices[0].pids = {101, 9999};
  sample_.devices[1].pids = {100};
  EXPECT_THAT(Assign({AddWorker(100, 0), AddWorker(101, 1)}), ElementsAre(1, 0));
}

TEST_F(GpuRanksTest, InAnotherNamespaceTheDriversNumbersMeanNothing) {
  initial_ = false;
  sample_.devices[0].pids = {101};
  EXPECT_THAT(Assign({AddWorker(100, 0), AddWorker(101, 1)}), ElementsAre(kNone, kNone));
}

TEST_F(GpuRanksTest, AProcessOfAnotherNamespaceOrStartTimeIsNoRank) {
  sample_.devices[0].pids = {100};
  sample_.devices[1].pids = {101};
  Process elsewhere = AddWorker(100, 0);
  elsewhere.id.pid_namespace += 1;
  Process later = AddWorker(101, 1);
  later.id.start_ticks += 1;
  EXPECT_THAT(Assign({elsewhere, later}), ElementsAre(kNone, kNone));
}

TEST_F(GpuRanksTest, AProcessThatStartedAfterTheSampleIsAnotherOne) {
  sample_.devices[0].pids = {100};
  sample_.boot_ns = 1'000'000'000;
  EXPECT_THAT(Assign({AddWorker(100, 0)}), ElementsAre(kNone, kNone));
}

TEST_F(GpuRanksTest, ADeadRankHasNoDevice) {
  sample_.devices[0].pids = {100};
  Process dead = AddWorker(100, 0);
  dead.alive = false;
  EXPECT_THAT(Assign({dead}), ElementsAre(kNone, kNone));
}

TEST_F(GpuRanksTest, TwoRanksOnADeviceAreNone) {
  sample_.devices[0].pids = {100, 101};
  EXPECT_THAT(Assign({AddWorker(100, 0), AddWorker(101, 1)}), ElementsAre(kNone, kNone));
}

TEST_F(GpuRanksTest, TwoProcessesOfARankAreIt) {
  sample_.devices[0].pids = {100, 101};
  EXPECT_THAT(Assign({AddWorker(100, 0), AddWorker(101, 0)}), ElementsAre(0, kNone));
}

TEST_F(GpuRanksTest, ARankMayHaveSeveralDevices) {
  sample_.devices[0].pids = {100};
  sample_.devices[1].pids = {100};
  EXPECT_THAT(Assign({AddWorker(100, 0)}), ElementsAre(0, 0));
}

TEST_F(GpuRanksTest, WithoutPidsTheMasksDecide) {
  initial_ = false;
  EXPECT_THAT(Assign({AddWorker(100, 0, "CUDA_VISIBLE_DEVICES=GPU-b"), AddWorker(101, 1, "CUDA_VISIBLE_DEVICES=GPU-a")}),
              ElementsAre(1, 0));
}

TEST_F(GpuRanksTest, OfTwoRanksThatMayUseADeviceItIsNone) {
  initial_ = false;
  EXPECT_THAT(Assign({AddWorker(100, 0, "CUDA_VISIBLE_DEVICES=GPU-a,GPU-b"), AddWorker(101, 1, "CUDA_VISIBLE_DEVICES=GPU-a")}),
              ElementsAre(kNone, 0));
}

TEST_F(GpuRanksTest, AWorkerWithoutAMaskMayUseAnyDevice) {
  initial_ = false;
  EXPECT_THAT(Assign({AddWorker(100, 0, "CUDA_VISIBLE_DEVICES=GPU-a"), AddWorker(101, 1)}), ElementsAre(kNone, kNone));
}

TEST_F(GpuRanksTest, AWorkerWhoseEnvironmentCannotBeReadMayUseAnyDevice) {
  initial_ = false;
  const Process hidden = AddWorker(101, 1);
  std::filesystem::remove(proc_ / "101/environ");
  EXPECT_THAT(Assign({AddWorker(100, 0, "CUDA_VISIBLE_DEVICES=GPU-a"), hidden}), ElementsAre(kNone, kNone));
  Process elsewhere = AddWorker(102, 2, "CUDA_VISIBLE_DEVICES=GPU-b");
  elsewhere.id.pid_namespace += 1;
  EXPECT_THAT(Assign({AddWorker(100, 0, "CUDA_VISIBLE_DEVICES=GPU-a"), elsewhere}), ElementsAre(kNone, kNone));
}

TEST_F(GpuRanksTest, AMaskOfIndexesNeedsTheAgentsContainer) {
  initial_ = false;
  const std::string mask = "CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=PCI_BUS_ID";
  EXPECT_THAT(Assign({AddWorker(100, 0, mask)}), ElementsAre(kNone, 0));
  Process other = AddWorker(100, 0, mask);
  SetNamespace(proc_ / "100", "mnt", "other");
  EXPECT_THAT(Assign({other}), ElementsAre(kNone, kNone));
  other = AddWorker(100, 0, mask);
  std::ofstream(proc_ / "100/cgroup") << "0::/job/task_1\n";  // as Slurm's tasks, each with its own device 0
  EXPECT_THAT(Assign({other}), ElementsAre(kNone, kNone));
}

TEST_F(GpuRanksTest, AMaskThatTheProgramChangedCountsForNobody) {
  sample_.devices[1].pids = {100};
  EXPECT_THAT(Assign({AddWorker(100, 0, "CUDA_VISIBLE_DEVICES=GPU-a")}), ElementsAre(kNone, 0));
}

TEST_F(GpuRanksTest, OfSeveralUsersTheMaskMayTellTheOwner) {
  sample_.devices[0].pids = {100, 101};
  sample_.devices[1].pids = {101};
  // A rank that touched the device of another.
  EXPECT_THAT(Assign({AddWorker(100, 0, "CUDA_VISIBLE_DEVICES=GPU-a"), AddWorker(101, 1, "CUDA_VISIBLE_DEVICES=GPU-a,GPU-b")}),
              ElementsAre(kNone, 1));
}

TEST_F(GpuRanksTest, ADividedDeviceBelongsToNobody) {
  sample_.devices = {{.gpu = "0", .uuid = "GPU-a", .is_divided = true, .pids = {100}},
                     {.gpu = "0:0", .uuid = "MIG-1", .parent_uuid = "GPU-a", .pids = {100}},
                     {.gpu = "0:1", .uuid = "MIG-2", .parent_uuid = "GPU-a", .pids = {}}};
  EXPECT_THAT(Assign({AddWorker(100, 0)}), ElementsAre(kNone, 0, kNone));
}

TEST_F(GpuRanksTest, ALostDeviceKeepsItsRankWhileTheProcessLives) {
  std::vector<Process> processes = {AddWorker(100, 0)};
  GpuRanks ranks(std::filesystem::path(proc_.path()), InodeOf("pid", "own"), std::chrono::minutes(1));
  sample_.devices[0].pids = {100};
  EXPECT_THAT(ranks.Assign(sample_, processes), ElementsAre(0, kNone));
  sample_.devices[0].pids = {};
  sample_.devices[0].is_lost = true;
  EXPECT_THAT(ranks.Assign(sample_, processes), ElementsAre(0, kNone));
  EXPECT_THAT(ranks.Assign(sample_, processes), ElementsAre(0, kNone));
  processes[0].alive = false;
  EXPECT_THAT(ranks.Assign(sample_, processes), ElementsAre(kNone, kNone));
  processes[0].alive = true;
  EXPECT_THAT(ranks.Assign(sample_, processes), ElementsAre(kNone, kNone)) << "it was nobody's in between";
}

// A pipe takes the place of a file of the kernel that does not answer.
TEST_F(GpuRanksTest, AnEnvironmentThatCannotBeReadDelaysNothing) {
  const std::vector<Process> processes = {AddWorker(100, 0, "CUDA_VISIBLE_DEVICES=GPU-a"), AddWorker(101, 1)};
  const std::string environment = proc_ / "101/environ";
  std::filesystem::remove(environment);
  ASSERT_EQ(mkfifo(environment.c_str(), 0600), 0);
  sample_.devices[0].pids = {100};
  GpuRanks ranks(std::filesystem::path(proc_.path()), InodeOf("pid", "own"), std::chrono::milliseconds(20));
  EXPECT_THAT(ranks.Assign(sample_, processes), ElementsAre(0, kNone));
  EXPECT_THAT(ranks.Assign(sample_, processes), ElementsAre(0, kNone));
  std::ofstream(environment) << "CUDA_VISIBLE_DEVICES=GPU-b" << '\0';
  while (ranks.Assign(sample_, processes)[1] != 1) std::this_thread::yield();
}

}  // namespace
}  // namespace persia::agent
