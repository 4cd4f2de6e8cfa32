// A file has two lines, times in microseconds: "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" and "full ...".
#include "machine/pressure_metrics.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "files/kernel_text.h"

namespace persia::agent {
namespace {

constexpr MachineFamily kCpuWaiting{"persia_pressure_cpu_waiting_seconds_total", MetricType::kCounter,
                                    "Time in which at least one process waited for a processor."};
constexpr MachineFamily kCpuStalled{"persia_pressure_cpu_stalled_seconds_total", MetricType::kCounter,
                                    "Time in which all processes waited for a processor. Of a cgroup only."};
constexpr MachineFamily kIoWaiting{"persia_pressure_io_waiting_seconds_total", MetricType::kCounter,
                                   "Time in which at least one process waited for a disk."};
constexpr MachineFamily kIoStalled{"persia_pressure_io_stalled_seconds_total", MetricType::kCounter,
                                   "Time in which no process could run because all waited for a disk."};
constexpr MachineFamily kMemoryWaiting{"persia_pressure_memory_waiting_seconds_total", MetricType::kCounter,
                                       "Time in which at least one process waited for memory."};
constexpr MachineFamily kMemoryStalled{"persia_pressure_memory_stalled_seconds_total", MetricType::kCounter,
                                       "Time in which no process could run because all waited for memory."};

struct Resource {
  const char* name;
  const MachineFamily& waiting;
  const MachineFamily& stalled;
};
constexpr Resource kResources[] = {
    {"cpu", kCpuWaiting, kCpuStalled}, {"io", kIoWaiting, kIoStalled}, {"memory", kMemoryWaiting, kMemoryStalled}};

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

void ReadPressure(KernelFiles& files, const CgroupPaths& paths, MachineReading& reading) {
  for (const Resource& resource : kResources) {
    const std::string_view host = files.Read(std::string("/proc/pressure/") + resource.name);
    reading.Add(resource.waiting, {{"scope", "host"}}, TotalOf(host, "some"), kMicro);
    // The kernel does not measure this time for the processors of the host: it writes 0.
    if (&resource.stalled != &kCpuStalled) reading.Add(resource.stalled, {{"scope", "host"}}, TotalOf(host, "full"), kMicro);
    if (paths.unified.empty()) continue;
    const std::string_view cgroup = files.Read(paths.unified.front() + "/" + resource.name + ".pressure");
    reading.Add(resource.waiting, {{"scope", "cgroup"}}, TotalOf(cgroup, "some"), kMicro);
    reading.Add(resource.stalled, {{"scope", "cgroup"}}, TotalOf(cgroup, "full"), kMicro);
  }
}

}  // namespace persia::agent
