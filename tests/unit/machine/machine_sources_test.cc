#include "machine/machine_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "fake_machine.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr const char* kNetHeader =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
    "compressed\n";

std::string Interface(const std::string& name, int bytes) {
  return name + ": " + std::to_string(bytes) + " 1 2 3 4 5 6 7 80 90 100 110 120 130 140 150\n";
}

class NetworkTest : public ::testing::Test {
 protected:
  std::map<std::string, double> Values() {
    KernelFiles files(machine_.root());
    MachineReading reading;
    ReadNetwork(files, "self", reading);
    ReadInfiniband(files, reading);
    return ValuesOf(reading.TakeSorted());
  }
  FakeMachine machine_;
};

TEST_F(NetworkTest, ShowsTheInterfacesThatTheJobMayUse) {
  machine_.Write("/proc/self/net/dev", kNetHeader + Interface("    lo", 5) + Interface("  eth0", 7) + Interface("docker0", 5) +
                                           Interface("veth12", 5) + Interface("  ib0", 0));
  EXPECT_THAT(Values(), UnorderedElementsAre(Pair("persia_network_receive_bytes_total{device=eth0}", 7),
                                             Pair("persia_network_receive_errs_total{device=eth0}", 2),
                                             Pair("persia_network_receive_drop_total{device=eth0}", 3),
                                             Pair("persia_network_transmit_bytes_total{device=eth0}", 80),
                                             Pair("persia_network_transmit_errs_total{device=eth0}", 100),
                                             Pair("persia_network_transmit_drop_total{device=eth0}", 110)));
}

TEST_F(NetworkTest, TheNumberOfInterfacesIsLimited) {
  std::string text = kNetHeader;
  for (int i = 0; i < 100; ++i) text += Interface("eth" + std::to_string(i), 1);
  machine_.Write("/proc/self/net/dev", text);
  EXPECT_EQ(Values().size(), 6U * 16);
}

TEST_F(NetworkTest, RetransmittedSegmentsAreFoundByName) {
  machine_.Write(
      "/proc/self/net/snmp",
      "Ip: Forwarding OutSegs\nIp: 1 99\nTcp: RtoAlgorithm MaxConn OutSegs RetransSegs\nTcp: 1 -1 400 30\nUdp: A\nUdp: 1\n");
  EXPECT_THAT(Values(), UnorderedElementsAre(Pair("persia_network_tcp_transmit_segments_total", 400),
                                             Pair("persia_network_tcp_retransmit_segments_total", 30)));
}

TEST_F(NetworkTest, DamagedFilesGiveNothing) {
  machine_.Write("/proc/self/net/dev", "eth0\neth1:\neth2: x y\n:::\n");
  machine_.Write("/proc/self/net/snmp", "Tcp: OutSegs RetransSegs");
  EXPECT_THAT(Values(), IsEmpty());
}

TEST_F(NetworkTest, InfinibandCountsWordsAndShowsBytes) {
  const std::string port = "/sys/class/infiniband/mlx5_0/ports/1/";
  for (const auto& [name, text] : std::map<std::string, std::string>{{"counters/port_rcv_data", "1000\n"},
                                                                     {"counters/port_xmit_data", "2000\n"},
                                                                     {"counters/port_rcv_errors", "3\n"},
                                                                     {"counters/port_xmit_discards", "4\n"},
                                                                     {"counters/symbol_error", "5\n"},
                                                                     {"counters/link_error_recovery", "6\n"},
                                                                     {"counters/link_downed", "7\n"},
                                                                     {"state", "4: ACTIVE\n"},
                                                                     {"rate", "2.5 Gb/sec (1X SDR)\n"}}) {
    machine_.Write(port + name, text);
  }
  const std::string labels = "{device=mlx5_0,port=1}";
  EXPECT_THAT(Values(), UnorderedElementsAre(Pair("persia_infiniband_port_data_received_bytes_total" + labels, 4000),
                                             Pair("persia_infiniband_port_data_transmitted_bytes_total" + labels, 8000),
                                             Pair("persia_infiniband_port_receive_errors_total" + labels, 3),
                                             Pair("persia_infiniband_port_discards_transmitted_total" + labels, 4),
                                             Pair("persia_infiniband_symbol_error_total" + labels, 5),
                                             Pair("persia_infiniband_link_error_recovery_total" + labels, 6),
                                             Pair("persia_infiniband_link_downed_total" + labels, 7),
                                             Pair("persia_infiniband_state_id" + labels, 4),
                                             Pair("persia_infiniband_rate_bytes_per_second" + labels, 2.5e9 / 8)));
}

// A worker and the agent, in /proc of the test.
class MachineSourcesTest : public ::testing::Test {
 protected:
  MachineSourcesTest() {
    machine_.Write("/proc/self/mountinfo", "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
    machine_.Write("/proc/self/cgroup", "0::/agent\n");
    for (const std::string group : {"agent", "a", "b"}) {
      machine_.Write("/cg/" + group + "/cgroup.procs", "");
      machine_.Write("/cg/" + group + "/cgroup.type", "");
      machine_.Write("/cg/" + group + "/memory.current", group == "agent" ? "1" : group == "a" ? "2" : "3");
    }
    for (const char* kind : {"mnt", "net", "pid"}) machine_.Write(std::string("/proc/self/ns/") + kind, "");
    machine_.Write("/proc/self/net/dev", Interface("own", 1));
    std::filesystem::create_symlink("/agents", machine_.root() + "/proc/self/cwd");
  }

  // A process in the cgroup; with `namespaces`, in network and mount namespaces of its own.
  ProcessId Add(uint32_t pid, const std::string& cgroup, bool namespaces = false) {
    const std::string directory = "/proc/" + std::to_string(pid);
    machine_.Write(directory + "/stat", "1 (p) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 500 0 0 0\n");
    machine_.Write(directory + "/cgroup", "0::/" + cgroup + "\n");
    machine_.Write(directory + "/net/dev", Interface("of" + std::to_string(pid), 1));
    std::filesystem::create_directories(machine_.root() + directory + "/ns");
    for (const std::string kind : {"mnt", "net", "pid"}) {
      const std::string name = directory + "/ns/" + kind;
      if (namespaces && kind != "pid") {
        machine_.Write(name, "");
      } else {
        std::filesystem::create_hard_link(machine_.root() + "/proc/self/ns/" + kind, machine_.root() + name);
      }
    }
    std::filesystem::create_symlink("/srv/" + std::to_string(pid), machine_.root() + directory + "/cwd");
    KernelFiles files(machine_.root());
    return {.pid = pid, .start_ticks = 500, .pid_namespace = files.Inode("/proc/self/ns/pid").value()};
  }

  std::map<std::string, double> Read(const std::vector<ProcessId>& processes) {
    time_ += seconds(1);
    result_ = sources_.Read(processes, time_);
    return ValuesOf(result_.series);
  }
  // Reads until the filesystem of this directory was asked. The bound is that of the test.
  void AwaitAsked(const std::vector<ProcessId>& processes, const std::string& path) {
    for (;;) {
      Read(processes);
      const MutexLock lock(asked_->mutex);
      if (asked_->paths.contains(machine_.root() + path)) return;
    }
  }

  // Threads of the probes may outlive a test.
  struct Asked {
    Mutex mutex;
    std::set<std::string> paths PERSIA_GUARDED_BY(mutex);
  };
  FakeMachine machine_;
  const std::shared_ptr<Asked> asked_ = std::make_shared<Asked>();
  MachineSources sources_{{.root = machine_.root(),
                           .state_directory = "/state",
                           .statvfs = [asked = asked_](const std::string& path, struct statvfs& info) {
                             info = {};
                             const MutexLock lock(asked->mutex);
                             asked->paths.insert(path);
                             return 0;
                           }}};
  MachineSources::TimePoint time_{seconds(100)};
  MachineResult result_;
};

constexpr const char* kMemory = "persia_cgroup_memory_usage_bytes";

TEST_F(MachineSourcesTest, BeforeTheFirstWorkerTheValuesAreTheAgents) {
  auto values = Read({});
  EXPECT_EQ(values[kMemory], 1);
  EXPECT_THAT(values, Contains(Key("persia_network_receive_bytes_total{device=own}")));
  for (const char* path : {"/dev/shm", "/state", "/agents"}) AwaitAsked({}, path);
  while (!Read({}).contains("persia_filesystem_device_error{use=shm}")) continue;
}

TEST_F(MachineSourcesTest, AWorkerIsFollowedUntilItEnds) {
  const ProcessId first = Add(8, "a");
  const ProcessId second = Add(9, "b");
  EXPECT_EQ(Read({first, second})[kMemory], 2);
  EXPECT_EQ(Read({second, first})[kMemory], 2) << "the same worker";
  AwaitAsked({second, first}, "/srv/8");
  EXPECT_EQ(Read({second})[kMemory], 3);
  machine_.Remove("/proc/9");
  EXPECT_EQ(Read({})[kMemory], 3) << "between two attempts the counters do not jump to the agent's";
  AwaitAsked({}, "/srv/9");
}

TEST_F(MachineSourcesTest, AWorkerThatMovesToAnotherCgroupIsFollowed) {
  const ProcessId worker = Add(8, "a");
  EXPECT_EQ(Read({worker})[kMemory], 2);
  machine_.Write("/proc/8/cgroup", "0::/b\n");
  EXPECT_EQ(Read({worker})[kMemory], 3);
}

TEST_F(MachineSourcesTest, OfAWorkerInOtherNamespacesItsOwnAreRead) {
  const ProcessId worker = Add(8, "a", /*namespaces=*/true);
  EXPECT_THAT(Read({worker}), Contains(Key("persia_network_receive_bytes_total{device=of8}")));
  for (const char* path : {"/proc/8/root/dev/shm", "/proc/8/cwd"}) AwaitAsked({worker}, path);
  machine_.Remove("/proc/8");
  EXPECT_THAT(Read({}), Not(Contains(Key("persia_network_receive_bytes_total{device=own}"))))
      << "the interfaces of the agent are others";
}

TEST_F(MachineSourcesTest, AnotherProcessWithThePidOfAnEndedWorkerIsNotRead) {
  const long holders = asked_.use_count();
  const ProcessId worker = Add(8, "a", /*namespaces=*/true);
  for (const char* path : {"/proc/8/root/dev/shm", "/proc/8/cwd"}) AwaitAsked({worker}, path);
  // A call that still runs holds a reference.
  while (asked_.use_count() > holders) std::this_thread::yield();
  machine_.Remove("/proc/8");
  Add(8, "b", /*namespaces=*/true);
  machine_.Write("/proc/8/stat", "1 (p) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 777 0 0 0\n");
  {
    const MutexLock lock(asked_->mutex);
    asked_->paths.clear();
  }
  const auto values = Read({worker});
  EXPECT_THAT(values, Not(Contains(Key("persia_network_receive_bytes_total{device=of8}"))));
  for (const char* use : {"shm", "working_directory"}) {
    EXPECT_THAT(values, Not(Contains(Key("persia_filesystem_device_error{use=" + std::string(use) + "}"))));
  }
  AwaitAsked({worker}, "/state");
  const MutexLock lock(asked_->mutex);
  EXPECT_THAT(asked_->paths, ElementsAre(machine_.root() + "/state"));
}

TEST_F(MachineSourcesTest, AWorkerThatProcDoesNotHaveMakesNoExtraReading) {
  const ProcessId worker = Add(8, "a");
  machine_.Write("/proc/8/status", "VmSwap: 1 kB\n");
  const ProcessId gone{.pid = 9, .start_ticks = 500, .pid_namespace = worker.pid_namespace};
  const auto swapped = [&](const std::vector<ProcessId>& processes) {
    Read(processes);
    return result_.workers.at(worker).swapped_bytes;
  };
  EXPECT_EQ(swapped({worker, gone}), 1024);
  machine_.Write("/proc/8/status", "VmSwap: 2 kB\n");
  EXPECT_EQ(swapped({worker, gone}), 1024) << "the interval is 10 s";
  const ProcessId next = Add(10, "a");
  EXPECT_EQ(swapped({worker, gone, next}), 2048) << "a new worker is read at once";
}

TEST_F(MachineSourcesTest, AProcessOfAnotherNamespaceIsNotFollowed) {
  ProcessId elsewhere = Add(8, "a");
  elsewhere.pid_namespace += 1;
  EXPECT_EQ(Read({elsewhere})[kMemory], 1);
}

TEST_F(MachineSourcesTest, WhatTheMachineDoesNotHaveIsNamed) {
  while (!Read({}).contains("persia_filesystem_device_error{use=state}")) std::this_thread::yield();
  EXPECT_THAT(result_.absent, ElementsAre("the kernel has no pressure stall information (/proc/pressure)",
                                          "there is no InfiniBand adapter (/sys/class/infiniband)"));
}

}  // namespace
}  // namespace persia::agent
