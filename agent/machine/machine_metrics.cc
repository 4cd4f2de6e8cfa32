#include "machine/machine_metrics.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"

namespace persia::agent {
namespace {

constexpr std::chrono::milliseconds kMinInterval = std::chrono::seconds(1);
constexpr std::chrono::milliseconds kMaxInterval = std::chrono::seconds(15);

struct Detail {
  Rows::Family family;
  std::optional<uint64_t> WorkerDetail::*value;
  const char* kind = nullptr;  // the value of the label ctxswitchtype; null: no such label
};

constexpr const char* kSwitches =
    "Context switches of the process's main thread: voluntary (it waited), nonvoluntary (others wanted its processor).";
constexpr Detail kDetails[] = {
    {{"persia_process_context_switches_total", MetricType::kCounter, kSwitches},
     &WorkerDetail::involuntary_switches,
     "nonvoluntary"},
    {{"persia_process_context_switches_total", MetricType::kCounter, kSwitches},
     &WorkerDetail::voluntary_switches,
     "voluntary"},
    {{"persia_process_max_fds", MetricType::kGauge, "Limit on open file descriptors of the process."}, &WorkerDetail::max_fds},
    {{"persia_process_proportional_memory_bytes", MetricType::kGauge,
      "Resident memory of the process, with its share of what it shares with others (PSS). Read once a minute or less often."},
     &WorkerDetail::proportional_bytes},
    {{"persia_process_swapped_memory_bytes", MetricType::kGauge, "Memory of the process in swap space."},
     &WorkerDetail::swapped_bytes},
};

}  // namespace

void MachineMetrics::Use(bool enabled, std::chrono::milliseconds interval) {
  interval_ = std::clamp(interval, kMinInterval, kMaxInterval);
  if (!enabled)
    reader_.reset();
  else if (reader_ == nullptr)
    reader_ = std::make_unique<MachineReader>(options_.read, interval_);
  else
    reader_->SetInterval(interval_);
}

std::shared_ptr<const Snapshot> MachineMetrics::Collect(std::span<const Process> processes) {
  std::shared_ptr<const MachineResult> result;
  if (reader_ != nullptr) {
    std::vector<ProcessId> alive;
    for (const Process& process : processes)
      if (process.alive) alive.push_back(process.id);
    reader_->Watch(std::move(alive));
    result = reader_->Newest();
  }
  if (result != nullptr && options_.now() - result->read_at > 3 * interval_ + kMaxInterval) result = nullptr;

  if (result != nullptr) {
    ReportAbsent(*result);
    rows_.On(options_.identity);
    for (const MachineReading::Series& series : result->series) rows_.Add(*series.family, series.value, series.labels);
    for (const Process& process : processes) {
      const auto found = process.alive ? result->workers.find(process.id) : result->workers.end();
      if (found != result->workers.end()) AddWorker(process, found->second);
    }
  }
  return rows_.Take();
}

void MachineMetrics::AddWorker(const Process& process, const WorkerDetail& details) {
  rows_.On(process.identity);
  const std::string number = std::to_string(process.ordinal);
  for (const Detail& detail : kDetails) {
    const std::optional<uint64_t>& known = details.*detail.value;
    const double value = known ? static_cast<double>(*known) : kAbsentValue;
    if (detail.kind == nullptr)
      rows_.Add(detail.family, value, {{"process", number}});
    else
      rows_.Add(detail.family, value, {{"ctxswitchtype", detail.kind}, {"process", number}});
  }
}

void MachineMetrics::ReportAbsent(const MachineResult& result) {
  for (const std::string& words : result.absent) {
    if (std::ranges::find(absent_, words) != absent_.end()) continue;
    absent_.push_back(words);
    LogDebug("machine.absent", words);
  }
}

}  // namespace persia::agent
