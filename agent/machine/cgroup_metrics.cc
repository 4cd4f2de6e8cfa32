// v2 (Documentation/admin-guide/cgroup-v2.rst): cpu.max is "quota period" in microseconds, and begins with "max" if there is no
// limit; io.stat has a line "8:0 rbytes=1 wbytes=2 rios=3 wios=4 ..." for each device.
// v1: cpu.cfs_quota_us is -1 without a limit; blkio.throttle.io_service_bytes_recursive has lines "8:0 Read 1".
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernel/kernel_text.h"
#include "machine/machine_reading.h"

namespace persia::agent {
namespace {

constexpr MachineFamily kMemoryUsage{"persia_cgroup_memory_usage_bytes", MetricType::kGauge,
                                     "Memory in use of the job's cgroup, with the page cache."};
constexpr MachineFamily kMemoryWorkingSet{
    "persia_cgroup_memory_working_set_bytes", MetricType::kGauge,
    "Memory in use of the job's cgroup without inactive page cache, which the kernel frees before it kills."};
constexpr MachineFamily kMemoryPeak{"persia_cgroup_memory_max_usage_bytes", MetricType::kGauge,
                                    "The most memory that the job's cgroup has had in use."};
constexpr MachineFamily kMemoryLimit{"persia_cgroup_memory_limit_bytes", MetricType::kGauge,
                                     "Memory limit of the job's cgroup. Absent without a limit."};
constexpr MachineFamily kMemorySwap{"persia_cgroup_memory_swap_bytes", MetricType::kGauge,
                                    "Swap space in use of the job's cgroup."};
constexpr MachineFamily kMemoryEvents{
    "persia_cgroup_memory_events_total", MetricType::kCounter,
    "Events of the memory of the job's cgroup: high (it was throttled at memory.high), max (it reached the limit), oom (it "
    "could not free enough), oom_kill (the kernel killed a process)."};
constexpr MachineFamily kCpu{"persia_cgroup_cpu_usage_seconds_total", MetricType::kCounter,
                             "Processor time of the job's cgroup."};
constexpr MachineFamily kCpuLimit{"persia_cgroup_cpu_limit_cores", MetricType::kGauge,
                                  "Processors that the job's cgroup may use at the same time. Absent without a limit."};
constexpr MachineFamily kPeriods{"persia_cgroup_cpu_cfs_periods_total", MetricType::kCounter,
                                 "Periods of the processor limit in which the job's cgroup ran."};
constexpr MachineFamily kThrottledPeriods{"persia_cgroup_cpu_cfs_throttled_periods_total", MetricType::kCounter,
                                          "Periods in which the processor limit stopped the job's cgroup."};
constexpr MachineFamily kThrottled{"persia_cgroup_cpu_cfs_throttled_seconds_total", MetricType::kCounter,
                                   "Time for which the processor limit stopped the job's cgroup, summed over its processors."};

constexpr double kNano = 1e-9;

// Each version has other files, and other keys in memory.stat. Of the level with the lowest limit; without one, of the cgroup
// itself.
void ReadMemory(KernelFiles& files, const CgroupLevels& levels, bool is_v1, MachineReading& reading) {
  const auto limit = LowestMemoryLimit(files, levels);
  const std::string& level = limit ? limit->level : levels.front();
  const auto number = [&](const char* v2, const char* v1) { return files.Number(level + (is_v1 ? v1 : v2)); };
  const auto add_event = [&](std::string_view event, std::optional<uint64_t> count) {
    reading.Add(kMemoryEvents, {{"event", std::string(event)}}, count);
  };
  if (limit) reading.Add(kMemoryLimit, {}, limit->bytes);
  const auto usage = number("/memory.current", "/memory.usage_in_bytes");
  reading.Add(kMemoryUsage, {}, usage);
  reading.Add(kMemoryPeak, {}, number("/memory.peak", "/memory.max_usage_in_bytes"));
  const auto swap = files.Number(level + "/memory.swap.current");
  const std::string_view stat = files.Read(level, "/memory.stat");
  reading.Add(kMemorySwap, {}, is_v1 ? NumberOf(stat, "total_swap") : swap);
  if (const auto cache = NumberOf(stat, is_v1 ? "total_inactive_file" : "inactive_file"); usage && cache)
    reading.Add(kMemoryWorkingSet, {}, *usage - std::min(*usage, *cache));
  if (!is_v1) {
    const std::string_view events = files.Read(level, "/memory.events");
    for (const std::string_view event : {"high", "max", "oom", "oom_kill"}) add_event(event, NumberOf(events, event));
    return;
  }
  add_event("max", files.Number(level + "/memory.failcnt"));
  // A kill counts in the cgroup of the killed process alone, not in those above it.
  std::optional<uint64_t> kills;
  for (const std::string& each : levels) {
    const auto of_level = NumberOf(files.Read(each, "/memory.oom_control"), "oom_kill");
    if (of_level) kills = kills.value_or(0) + *of_level;
  }
  add_event("oom_kill", kills);
}

// Of the level with the lowest limit; without one, of the cgroup itself.
void ReadCpuLimit(KernelFiles& files, const CgroupLevels& levels, bool is_v1, MachineReading& reading) {
  const std::string* level = &levels.front();
  std::optional<double> lowest;
  for (const std::string& each : levels) {
    std::string_view text = files.Read(each, is_v1 ? "/cpu.cfs_quota_us" : "/cpu.max");
    const auto quota = LeadingNumber(NextWord(text));
    const auto period = is_v1 ? files.Number(each + "/cpu.cfs_period_us") : LeadingNumber(NextWord(text));
    if (!quota || period.value_or(0) == 0) continue;
    const double cores = static_cast<double>(*quota) / static_cast<double>(*period);
    if (lowest && *lowest <= cores) continue;
    lowest = cores;
    level = &each;
  }
  if (lowest) reading.Add(kCpuLimit, {}, *lowest);
  const std::string_view stat = files.Read(*level, "/cpu.stat");
  reading.Add(kPeriods, {}, NumberOf(stat, "nr_periods"));
  reading.Add(kThrottledPeriods, {}, NumberOf(stat, "nr_throttled"));
  reading.Add(kThrottled, {}, NumberOf(stat, is_v1 ? "throttled_time" : "throttled_usec"), is_v1 ? kNano : kMicro);
}

// How io.stat of v2 begins the words of a number, and where v1 has it.
struct IoCount {
  MachineFamily family;
  std::string_view key;
  std::string_view v1_file;
  std::string_view v1_operation;
};
constexpr std::string_view kV1Bytes = "/blkio.throttle.io_service_bytes_recursive";
constexpr std::string_view kV1Times = "/blkio.throttle.io_serviced_recursive";
constexpr IoCount kIoCounts[] = {
    {{"persia_cgroup_io_read_bytes_total", MetricType::kCounter, "Bytes that the job's cgroup has read from disks."},
     "rbytes=",
     kV1Bytes,
     "Read"},
    {{"persia_cgroup_io_written_bytes_total", MetricType::kCounter, "Bytes that the job's cgroup has written to disks."},
     "wbytes=",
     kV1Bytes,
     "Write"},
    {{"persia_cgroup_io_reads_total", MetricType::kCounter, "Reads of disks by the job's cgroup."}, "rios=", kV1Times, "Read"},
    {{"persia_cgroup_io_writes_total", MetricType::kCounter, "Writes to disks by the job's cgroup."},
     "wios=",
     kV1Times,
     "Write"},
};

// A device on top of others (a volume, a RAID, a loop device, whose major number is 7) counts the same bytes again.
bool IsStacked(KernelFiles& files, std::string_view device) {
  if (device.starts_with("7:")) return true;
  return !files.List("/sys/dev/block/" + std::string(device) + "/slaves").empty();
}

void ReadIo(KernelFiles& files, const std::string& level, bool is_v1, MachineReading& reading) {
  for (const IoCount& count : kIoCounts) {
    const std::string path = level + std::string(is_v1 ? count.v1_file : "/io.stat");
    if (!files.Exists(path)) continue;
    uint64_t sum = 0;
    std::string_view text = files.Read(path);
    while (!text.empty()) {
      std::string_view line = NextLine(text);
      if (IsStacked(files, NextWord(line))) continue;
      for (std::string_view word = NextWord(line); !word.empty(); word = NextWord(line)) {
        if (word.starts_with(count.key)) sum += LeadingNumber(word.substr(count.key.size())).value_or(0);
        if (word == count.v1_operation) sum += LeadingNumber(NextWord(line)).value_or(0);
      }
    }
    reading.Add(count.family, {}, sum);
  }
}

struct Resource {
  std::string_view name;
  MachineFamily waiting;
  MachineFamily stalled;
};
constexpr Resource kResources[] = {
    {"cpu",
     {"persia_pressure_cpu_waiting_seconds_total", MetricType::kCounter,
      "Time in which at least one process waited for a processor."},
     {"persia_pressure_cpu_stalled_seconds_total", MetricType::kCounter,
      "Time in which all processes waited for a processor. Of a cgroup only."}},
    {"io",
     {"persia_pressure_io_waiting_seconds_total", MetricType::kCounter,
      "Time in which at least one process waited for a disk."},
     {"persia_pressure_io_stalled_seconds_total", MetricType::kCounter,
      "Time in which no process could run because all waited for a disk."}},
    {"memory",
     {"persia_pressure_memory_waiting_seconds_total", MetricType::kCounter,
      "Time in which at least one process waited for memory."},
     {"persia_pressure_memory_stalled_seconds_total", MetricType::kCounter,
      "Time in which no process could run because all waited for memory."}},
};

std::optional<uint64_t> TotalOf(std::string_view text, std::string_view kind) {
  while (!text.empty()) {
    std::string_view line = NextLine(text);
    if (NextWord(line) != kind) continue;
    constexpr std::string_view kTotal = "total=";
    const size_t at = line.find(kTotal);
    return at == std::string_view::npos ? std::nullopt : LeadingNumber(line.substr(at + kTotal.size()));
  }
  return std::nullopt;
}

}  // namespace

void ReadCgroup(KernelFiles& files, const CgroupPaths& paths, MachineReading& reading) {
  // On a machine with both versions, each controller belongs to one of them.
  const CgroupLevels& memory = paths.Of("memory");
  const CgroupLevels& cpu = paths.Of("cpu");
  const CgroupLevels& usage = paths.Of("cpuacct");
  const CgroupLevels& io = paths.Of("blkio");
  const CgroupLevels& unified = paths.unified;
  if (!memory.empty()) ReadMemory(files, memory, /*is_v1=*/true, reading);
  if (!cpu.empty()) ReadCpuLimit(files, cpu, /*is_v1=*/true, reading);
  if (!usage.empty()) reading.Add(kCpu, {}, files.Number(usage.front() + "/cpuacct.usage"), kNano);
  if (!io.empty()) ReadIo(files, io.front(), /*is_v1=*/true, reading);
  if (unified.empty()) return;
  if (memory.empty()) ReadMemory(files, unified, /*is_v1=*/false, reading);
  if (io.empty()) ReadIo(files, unified.front(), /*is_v1=*/false, reading);
  if (!cpu.empty() || !usage.empty()) return;
  reading.Add(kCpu, {}, NumberOf(files.Read(unified.front(), "/cpu.stat"), "usage_usec"), kMicro);
  ReadCpuLimit(files, unified, /*is_v1=*/false, reading);
}

// A file has two lines, times in microseconds: "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" and "full ...".
void ReadPressure(KernelFiles& files, const CgroupPaths& paths, MachineReading& reading) {
  for (const Resource& resource : kResources) {
    const auto add = [&](const MachineFamily& family, const char* scope, std::string_view text, const char* kind) {
      reading.Add(family, {{"scope", scope}}, TotalOf(text, kind), kMicro);
    };
    const std::string_view host = files.Read("/proc/pressure/", resource.name);
    add(resource.waiting, "host", host, "some");
    // The kernel does not measure this time for the processors of the host: it writes 0.
    if (resource.name != "cpu") add(resource.stalled, "host", host, "full");
    if (paths.unified.empty()) continue;
    const std::string_view cgroup = files.Read(paths.unified.front() + "/" + std::string(resource.name), ".pressure");
    add(resource.waiting, "cgroup", cgroup, "some");
    add(resource.stalled, "cgroup", cgroup, "full");
  }
}

}  // namespace persia::agent
