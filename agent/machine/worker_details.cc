// /proc/<pid>/status has lines "VmSwap:     12 kB", "voluntary_ctxt_switches:  34"; the switches are those of the main thread.
// /proc/<pid>/smaps_rollup has a line "Pss:  1234 kB".
#include "machine/worker_details.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/kernel_text.h"

namespace persia::agent {
namespace {

constexpr std::chrono::duration<double> kMaxBudget{0.5};

std::optional<uint64_t> Bytes(std::optional<uint64_t> kibibytes) {
  return kibibytes ? std::optional(*kibibytes * 1024) : std::nullopt;
}

}  // namespace

void WorkerDetails::Read(std::span<const ProcessId> processes, TimePoint now) {
  Values values;
  for (const ProcessId& process : processes) {
    const std::string pid = std::to_string(process.pid);
    WorkerDetail detail;
    const auto former = values_.find(process);
    if (former != values_.end()) detail.proportional_bytes = former->second.proportional_bytes;
    const std::string_view status = proc_.Read(pid, "/status");
    detail.swapped_bytes = Bytes(NumberOf(status, "VmSwap"));
    detail.voluntary_switches = NumberOf(status, "voluntary_ctxt_switches");
    detail.involuntary_switches = NumberOf(status, "nonvoluntary_ctxt_switches");
    detail.max_fds = proc_.Limits(pid).open_files;
    // Checked after the reads: a process that is still there was there before, too.
    if (proc_.StatOf(process)) values.emplace(process, detail);
  }
  values_ = std::move(values);
  ReadMemory(processes, now);
}

void WorkerDetails::ReadMemory(std::span<const ProcessId> processes, TimePoint now) {
  using Budget = std::chrono::duration<double>;
  if (last_read_) memory_budget_ = std::min<Budget>(memory_budget_ + kMemoryShare * Budget(now - *last_read_), kMaxBudget);
  last_read_ = now;
  std::erase_if(memory_read_, [&](const auto& read) { return !values_.contains(read.first); });
  std::vector<std::pair<TimePoint, ProcessId>> due;
  for (const ProcessId& process : processes) {
    const auto read = memory_read_.find(process);
    if (!values_.contains(process)) continue;
    if (read == memory_read_.end())
      due.emplace_back(TimePoint::min(), process);
    else if (now - read->second >= kMemoryInterval)
      due.emplace_back(read->second, process);
  }
  std::ranges::sort(due);
  for (const auto& [former, process] : due) {
    if (memory_budget_.count() <= 0) return;
    const TimePoint began = clock_();
    const std::string pid = std::to_string(process.pid);
    auto bytes = Bytes(NumberOf(proc_.Read(pid, "/smaps_rollup"), "Pss"));
    if (const std::string other = bytes ? "" : proc_.OtherThreadOf(pid); !other.empty())
      bytes = Bytes(NumberOf(proc_.Read(other, "/smaps_rollup"), "Pss"));
    if (proc_.StatOf(process)) values_.at(process).proportional_bytes = bytes;
    memory_read_[process] = now;
    memory_budget_ -= clock_() - began;
  }
}

}  // namespace persia::agent
