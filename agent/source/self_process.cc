// /proc/self/stat is "pid (comm) state ppid ...": comm may hold spaces and brackets, so fields are counted from the last ')'.
// /proc/self/limits has a line "Max open files  <soft>  <hard>  files"; /proc/stat a line "btime <seconds since 1970>".
#include "source/self_process.h"

#include <unistd.h>

#include <bit>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

namespace fs = std::filesystem;

const double kUnknown = std::bit_cast<double>(kAbsent);

// In the order of their names: a layout's families are sorted.
enum Place : size_t { kCpu, kMaxFds, kOpenFds, kResident, kStartTime, kVirtual, kPlaces };

struct About {
  const char* name;
  MetricType type;
  const char* help;
};
constexpr About kFamilies[kPlaces] = {
    {"process_cpu_seconds_total", MetricType::kCounter, "Processor time of the agent, user and system."},
    {"process_max_fds", MetricType::kGauge, "File descriptors that the agent may have open."},
    {"process_open_fds", MetricType::kGauge, "File descriptors that the agent has open."},
    {"process_resident_memory_bytes", MetricType::kGauge, "Memory of the agent that is in RAM."},
    {"process_start_time_seconds", MetricType::kGauge, "When the agent started, in seconds since 1970."},
    {"process_virtual_memory_bytes", MetricType::kGauge, "Address space of the agent."},
};

std::string ReadWhole(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text after `label` on its line; empty if there is none.
std::string After(const std::string& text, std::string_view label) {
  const size_t at = text.find(label);
  if (at == std::string::npos) return "";
  return text.substr(at + label.size(), text.find('\n', at) - at - label.size());
}

double Number(const std::string& word) {
  double number = kUnknown;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

// The fields of /proc/self/stat from the third on, which is `state`.
std::vector<std::string> StatFields(const fs::path& proc) {
  const std::string stat = ReadWhole(proc / "self/stat");
  const size_t comm_end = stat.rfind(')');
  if (comm_end == std::string::npos) return {};
  std::istringstream words(stat.substr(comm_end + 1));
  return {std::istream_iterator<std::string>(words), {}};
}

double OpenFds(const fs::path& proc) {
  std::error_code error;
  fs::directory_iterator entry(proc / "self/fd", error);
  if (error) return kUnknown;
  // The directory that is being read is one of them, and gone in a moment.
  return static_cast<double>(std::distance(entry, fs::directory_iterator())) - 1;
}

}  // namespace

SelfProcess::SelfProcess(Identity identity, fs::path proc) : proc_(std::move(proc)) {
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back(std::move(identity));
  for (const About& about : kFamilies) {
    layout->families.push_back({.name = about.name,
                                .type = about.type,
                                .help = about.help,
                                .unit = "",
                                .bounds = {},
                                .series = {{.identity = 0, .first_value = layout->value_count++, .labels = {}}}});
  }
  layout_ = std::move(layout);
}

Result<std::shared_ptr<const Snapshot>> SelfProcess::Collect() {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = layout_;
  snapshot->values.assign(kPlaces, kUnknown);
  snapshot->collected_at = std::chrono::system_clock::now();
  std::vector<double>& values = snapshot->values;

  // proc(5) counts fields from 1, and the first two are left out here.
  constexpr size_t kUserTime = 14 - 3;
  constexpr size_t kSystemTime = 15 - 3;
  constexpr size_t kStarted = 22 - 3;
  constexpr size_t kVirtualBytes = 23 - 3;
  constexpr size_t kResidentPages = 24 - 3;
  const std::vector<std::string> stat = StatFields(proc_);
  if (stat.size() > kResidentPages) {
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    values[kCpu] = (Number(stat[kUserTime]) + Number(stat[kSystemTime])) / ticks;
    values[kVirtual] = Number(stat[kVirtualBytes]);
    values[kResident] = Number(stat[kResidentPages]) * static_cast<double>(sysconf(_SC_PAGESIZE));
    const std::string booted = After(ReadWhole(proc_ / "stat"), "btime ");
    if (!booted.empty()) values[kStartTime] = Number(booted) + Number(stat[kStarted]) / ticks;
  }
  values[kOpenFds] = OpenFds(proc_);
  std::istringstream limits(After(ReadWhole(proc_ / "self/limits"), "Max open files"));
  if (std::string soft; limits >> soft) values[kMaxFds] = Number(soft);
  return std::shared_ptr<const Snapshot>(std::move(snapshot));
}

}  // namespace persia::agent
