#include "web/machine_json.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "web/history_fixture.h"
#include "web/status_json.h"

namespace persia::agent {
namespace {

constexpr MetricType kGauge = MetricType::kGauge;
constexpr MetricType kCounter = MetricType::kCounter;

TestFamily OfJob(std::string name, double value) {
  return {.name = std::move(name), .type = kCounter, .series = {{{}, {value}}}};
}

// `values`: by the value of the label.
TestFamily By(std::string name, const std::string& label, const std::vector<std::pair<std::string, double>>& values) {
  TestFamily family{.name = std::move(name), .type = kGauge};
  for (const auto& [value_of_label, value] : values) family.series.push_back({{{label, value_of_label}}, {value}});
  return family;
}

Json Machine(const std::vector<TestFamily>& now) { return MachineJson(*MakeSnapshot(now), {}); }

// After ten seconds.
Json MachineAfter(const std::vector<TestFamily>& before, const std::vector<TestFamily>& now) {
  // The first collection is without the machine.
  return MachineJson(
      *MakeSnapshot(now),
      std::vector<History::Entry>{{1000, MakeSnapshot({})}, {2000, MakeSnapshot(before)}, {12'000, MakeSnapshot(now)}});
}

TEST(MachineJson, IsNullIfNeitherTheMachineNorAGpuIsRead) {
  EXPECT_TRUE(Machine({By("persia_process_open_fds", "process", {{"0", 7}})}).is_null());
  EXPECT_FALSE(Machine({By("persia_gpu_up", "gpu", {{"0", 1}})}).is_null());
  EXPECT_FALSE(Machine({By("persia_filesystem_device_error", "use", {{"shm", 1}})}).is_null());
}

TEST(MachineJson, WhatTheKernelLacksIsNull) {
  const Json machine = Machine({By("persia_filesystem_device_error", "use", {{"shm", 1}})});
  EXPECT_EQ(machine.dump(),
            R"({"memory":null,"cpu":null,"pressure":{"cgroup":null,"host":null},)"
            R"("filesystems":[{"use":"shm","size_bytes":null,"avail_bytes":null,"files":null,"files_free":null,)"
            R"("error":true}],"network":null,"infiniband":null,"ranks":[],"gpus":[]})");
}

TEST(MachineJson, HasMemoryAndOomKillsOfTheJob) {
  const Json machine =
      Machine({By("persia_cgroup_memory_events_total", "event", {{"max", 5}, {"oom", 4}, {"oom_kill", 3}}),
               OfJob("persia_cgroup_memory_limit_bytes", 4096), OfJob("persia_cgroup_memory_max_usage_bytes", 4000),
               OfJob("persia_cgroup_memory_swap_bytes", 0), OfJob("persia_cgroup_memory_working_set_bytes", 2048)});
  EXPECT_EQ(machine["memory"].dump(),
            R"({"working_set_bytes":2048,"limit_bytes":4096,"max_usage_bytes":4000,"swap_bytes":0,"oom_kills":3})");
}

TEST(MachineJson, RatesAreThoseOfTheRecentCollections) {
  const auto at = [](double used, double periods, double throttled, double waited, double received, double again) {
    return std::vector<TestFamily>{OfJob("persia_cgroup_cpu_cfs_periods_total", periods),
                                   OfJob("persia_cgroup_cpu_cfs_throttled_periods_total", throttled),
                                   OfJob("persia_cgroup_cpu_usage_seconds_total", used),
                                   By("persia_network_receive_bytes_total", "device", {{"eth0", received}, {"eth1", received}}),
                                   OfJob("persia_network_tcp_retransmit_segments_total", again),
                                   OfJob("persia_network_tcp_transmit_segments_total", 900),
                                   By("persia_pressure_io_waiting_seconds_total", "scope", {{"cgroup", 1}, {"host", waited}})};
  };
  auto before = at(100, 1000, 10, 5, 7000, 100);
  before[5].series[0].values = {600};
  const Json machine = MachineAfter(before, at(125, 1100, 35, 9, 9000, 200));
  EXPECT_EQ(machine["cpu"].dump(), R"({"used_cores":2.5,"limit_cores":null,"throttled_ratio":0.25})");
  EXPECT_EQ(machine["network"]["receive_bytes_per_second"], 400) << "of both interfaces";
  EXPECT_EQ(machine["network"]["tcp_retransmit_ratio"], 0.25);
  EXPECT_EQ(machine["pressure"]["host"].dump(), R"({"io":{"waiting_ratio":0.4,"stalled_ratio":null}})");
  EXPECT_EQ(machine["pressure"]["cgroup"]["io"]["waiting_ratio"], 0);
  // Without two collections, the rest is there.
  const Json first = Machine(at(125, 1100, 35, 9, 9000, 200));
  EXPECT_EQ(first["cpu"].dump(), R"({"used_cores":null,"limit_cores":null,"throttled_ratio":null})");
  EXPECT_TRUE(first["pressure"]["host"].is_null());
}

TEST(MachineJson, InfinibandHasTheSumsOfItsPorts) {
  const auto ports = [](std::string name, double first, double second) {
    TestFamily family{.name = std::move(name), .type = kCounter};
    family.series = {{{{"device", "mlx5_0"}, {"port", "1"}}, {first}}, {{{"device", "mlx5_0"}, {"port", "2"}}, {second}}};
    return family;
  };
  const auto at = [&](double received, double symbol_errors) {
    return std::vector<TestFamily>{ports("persia_infiniband_link_downed_total", 1, 2),
                                   ports("persia_infiniband_port_data_received_bytes_total", received, received),
                                   ports("persia_infiniband_port_data_transmitted_bytes_total", 0, 0),
                                   ports("persia_infiniband_state_id", 4, 1),
                                   ports("persia_infiniband_symbol_error_total", symbol_errors, 0)};
  };
  EXPECT_EQ(MachineAfter(at(1000, 10), at(6000, 15))["infiniband"].dump(),
            R"({"ports":2,"active_ports":1,"receive_bytes_per_second":1000.0,"transmit_bytes_per_second":0.0,)"
            R"("errors_per_second":0.5})");
}

TEST(MachineJson, ARankHasTheSumsOfItsProcessesAndTheFilesOfTheOneNearestToItsLimit) {
  const auto at = [](double faults) {
    return std::vector<TestFamily>{By("persia_filesystem_device_error", "use", {{"shm", 0}}),
                                   By("persia_process_major_page_faults_total", "process", {{"0", faults}, {"2", 50}}),
                                   By("persia_process_max_fds", "process", {{"1", 1000}, {"2", 100}}),
                                   By("persia_process_open_fds", "process", {{"0", 999}, {"1", 200}, {"2", 90}, {"3", 999}}),
                                   By("persia_process_proportional_memory_bytes", "process", {{"0", 4096}, {"1", 1024}}),
                                   By("persia_process_swapped_memory_bytes", "process", {{"0", 0}, {"1", 512}})};
  };
  const Json machine = MachineAfter(at(5), at(25));
  EXPECT_EQ(machine["ranks"].dump(),
            R"([{"role":"","instance":"rep_0","proportional_bytes":5120,"swapped_bytes":512,"open_files":90,)"
            R"("max_open_files":100,"major_page_faults_per_second":2.0}])");
}

TEST(MachineJson, AGpuHasItsGaugesReasonsAndErrors) {
  TestFamily throttled{.name = "persia_gpu_throttled", .type = kGauge};
  throttled.series = {{{{"gpu", "0"}, {"reason", "hw_thermal"}}, {1}}, {{{"gpu", "0"}, {"reason", "sw_power_cap"}}, {0}}};
  TestFamily xids{.name = "persia_gpu_xid_errors_total", .type = kCounter};
  xids.series = {{{{"class", "fatal"}, {"gpu", "1"}, {"xid", "79"}}, {2}}};
  TestFamily info{.name = "persia_gpu_info", .type = kGauge, .series = {{{{"gpu", "0"}, {"model", "H100"}}, {1}}}};
  TestFamily ecc{.name = "persia_gpu_ecc_errors_total", .type = kCounter};
  ecc.series = {{{{"gpu", "0"}, {"kind", "corrected"}}, {4}}, {{{"gpu", "0"}, {"kind", "uncorrected"}}, {0}}};
  const Json machine = Machine(
      {ecc, info, By("persia_gpu_power_watts", "gpu", {{"0", 350}}), throttled, By("persia_gpu_up", "gpu", {{"0", 1}}), xids});
  ASSERT_EQ(machine["gpus"].size(), 2U);
  EXPECT_EQ(
      machine["gpus"][0].dump(),
      R"({"gpu":"0","role":"","instance":"rep_0","model":"H100","up":true,"utilization_ratio":null,"memory_used_bytes":null,)"
      R"("memory_total_bytes":null,"temperature_celsius":null,"power_watts":350.0,"power_limit_watts":null,)"
      R"("throttled":["hw_thermal"],"xids":{},"ecc_errors":{"corrected":4,"uncorrected":0}})");
  EXPECT_TRUE(machine["gpus"][1]["up"].is_null()) << "the device belongs to another rank now";
  EXPECT_EQ(machine["gpus"][1]["xids"].dump(), R"({"79":2})");
}

TEST(RecentEntries, AreThoseOfTheLast30SecondsOrWhatThereIs) {
  std::vector<History::Entry> history;
  EXPECT_TRUE(RecentEntries(history).empty());
  for (int64_t ms = 1000; ms <= 51'000; ms += 10'000) history.push_back({ms, MakeSnapshot({})});
  EXPECT_EQ(RecentEntries(history).front().unix_ms, 21'000);
  EXPECT_EQ(RecentEntries(history).back().snapshot, history.back().snapshot);
  history.back().unix_ms = 53'000;
  EXPECT_EQ(RecentEntries(history).front().unix_ms, 21'000) << "at least 30 s";
  history.erase(history.begin(), history.begin() + 4);
  EXPECT_EQ(RecentEntries(history).size(), 2U);
}

TEST(GoodputJson, HasTheNamesOfTheSummaryOfARun) {
  using std::chrono::seconds;
  const auto bucket = [](GoodputReport::Rank & rank, Bucket of) -> auto& { return rank.time[static_cast<size_t>(of)]; };
  GoodputReport::Rank trainer{.redone_steps = 7, .marks = true};
  bucket(trainer, Bucket::kCompute) = seconds(30);
  bucket(trainer, Bucket::kUnmarked) = seconds(10);
  GoodputReport::Rank loader{.restarts = 2, .repair = seconds(6)};
  bucket(loader, Bucket::kStarting) = seconds(4);
  bucket(loader, Bucket::kUnmarked) = seconds(8);
  const Json goodput = GoodputJson({.ranks = {trainer, loader}});
  EXPECT_EQ(goodput["ratio"], 0.75);
  EXPECT_EQ(goodput["bucket_seconds"]["compute"], 30);
  EXPECT_EQ(goodput["bucket_seconds"]["unmarked"], 10);
  EXPECT_EQ(goodput["bucket_seconds"]["starting"], 0) << "only of ranks that mark phases, as the ratio";
  EXPECT_EQ(goodput["seconds_without_phases"], 12);
  EXPECT_EQ(goodput["restarts"], 2);
  EXPECT_EQ(goodput["redone_steps"], 7);
  EXPECT_EQ(goodput["mean_time_to_repair_seconds"], 3);
  loader.redone_steps.reset();
  EXPECT_TRUE(GoodputJson({.ranks = {trainer, loader}})["redone_steps"].is_null()) << "unknown of one";
  EXPECT_TRUE(GoodputJson({.ranks = {loader}}).is_null()) << "no rank marks phases";
  EXPECT_TRUE(GoodputJson({.ranks = {trainer}})["mean_time_to_repair_seconds"].is_null());
}

}  // namespace
}  // namespace persia::agent
