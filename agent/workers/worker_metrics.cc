#include "workers/worker_metrics.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "naming/naming.h"

namespace persia::agent {
namespace {

// The text in a segment may be of any length.
constexpr size_t kMaxTextBytes = 128;

std::string Text(std::string_view text) { return SanitizeText(text.substr(0, kMaxTextBytes)); }

// Whether the input of the layout and of the reads of /proc is equal.
bool SameProcess(const WorkerProcess& a, const WorkerProcess& b) {
  const auto all = [](const WorkerProcess& p) {
    return std::tie(p.alive, p.pid, p.start_ticks, p.pid_namespace, p.ordinal, p.restart_count, p.run_id, p.library_version,
                    p.identity, p.last_exit);
  };
  return all(a) == all(b);
}

// A living process is newer than an ended one.
bool IsNewer(const WorkerProcess& a, const WorkerProcess& b) {
  const auto age = [](const WorkerProcess& p) { return std::tie(p.alive, p.start_ticks, p.pid); };
  return age(a) > age(b);
}

constexpr Rows::Family kJobInfo{
    "persia_job_info", MetricType::kGauge,
    "1. The labels are the run and the versions of the identity's newest process. Of the agent while there is no process."};
constexpr Rows::Family kLastExit{
    "persia_process_last_exit_info", MetricType::kGauge,
    "1. The label reason is how the last process with this number that ended did: exit_<code>, the signal's name, exit (its "
    "code is not known), or unknown (by a signal or _exit)."};
constexpr Rows::Family kExits{"persia_process_exits_total", MetricType::kCounter,
                              "Processes of this run that ended, by reason: as in persia_process_last_exit_info."};

}  // namespace

const std::array<Rows::Family, WorkerMetrics::kValues> WorkerMetrics::kFamilies{{
    {"persia_process_cpu_seconds_total", MetricType::kCounter,
     "User and system processor time of the process. It starts at 0 with each process."},
    {"persia_process_died", MetricType::kGauge,
     "Of an ended process: 1 if it ended by a signal or an error, not because the job was asked to end, and nothing has "
     "replaced it, until the command ends, else 0."},
    {"persia_process_hung", MetricType::kGauge,
     "Of a running process: 1 if its metrics have not changed for persia_job_hang_after_seconds, while others of its job did, "
     "else 0."},
    {"persia_process_io_wait_seconds_total", MetricType::kCounter,
     "Time for which the process's main thread waited for a disk. Absent unless the kernel's delay accounting is on."},
    {"persia_process_last_change_timestamp_seconds", MetricType::kGauge,
     "When a metric of the process last changed, in seconds since 1970. Absent until the first change that the agent has "
     "seen."},
    {"persia_process_major_page_faults_total", MetricType::kCounter,
     "Page faults of the process that read from a disk or from swap space."},
    {"persia_process_minor_page_faults_total", MetricType::kCounter,
     "Page faults of the process that the kernel resolved in memory."},
    {"persia_process_open_fds", MetricType::kGauge, "Open file descriptors of the process."},
    {"persia_process_read_bytes_total", MetricType::kCounter,
     "Bytes that the process, and its children that it has waited for, have read from disks; the page cache does not count."},
    {"persia_process_resident_memory_bytes", MetricType::kGauge, "Resident memory of the process."},
    {"persia_process_restarts_total", MetricType::kCounter,
     "Processes of this run that took this number after another process with it had ended."},
    {"persia_process_run_queue_wait_seconds_total", MetricType::kCounter,
     "Time for which the process's main thread could run and waited for a processor."},
    {"persia_process_segment_used_ratio", MetricType::kGauge,
     "How full the process's segment is, from 0 to 1. Series that do not fit are not recorded."},
    {"persia_process_start_time_seconds", MetricType::kGauge, "When the process started, in seconds since 1970."},
    {"persia_process_threads", MetricType::kGauge, "Threads of the process."},
    {"persia_process_up", MetricType::kGauge, "1 if the process is running, 0 if it has ended."},
    {"persia_process_virtual_memory_bytes", MetricType::kGauge, "Virtual memory of the process."},
    {"persia_process_write_bytes_total", MetricType::kCounter,
     "Bytes that the process, and its children that it has waited for, have written to disks, or will when the kernel "
     "writes its page cache."},
}};

WorkerMetrics::WorkerMetrics(Options options) : options_(std::move(options)), proc_(options_.proc) {}

std::shared_ptr<const Snapshot> WorkerMetrics::Collect() {
  UpdateEntries(options_.processes());
  for (size_t i = 0; i < order_.size(); ++i) AddProcess(i);
  for (const auto& [identity, info] : infos_) {
    rows_.On(identity);
    rows_.Add(kJobInfo, 1.0, info);
  }
  for (const EndedProcesses& ended : options_.ended ? options_.ended() : std::span<const EndedProcesses>()) {
    rows_.On(ended.identity);
    for (const auto& [reason, count] : ended.exits) rows_.Add(kExits, static_cast<double>(count), {{"reason", Text(reason)}});
  }
  return rows_.Take();
}

void WorkerMetrics::UpdateEntries(std::span<const WorkerProcess> processes) {
  bool changed = processes.size() != order_.size() || infos_.empty();
  std::vector<Entry*> order;
  order.reserve(processes.size());
  for (size_t i = 0; i < processes.size(); ++i) {
    const WorkerProcess& process = processes[i];
    Entry* entry = i < order_.size() ? order_[i] : nullptr;
    if (entry == nullptr || !SameProcess(entry->process, process)) {
      changed = true;
      entry = &entries_[{process.identity, process.ordinal}];
      SetProcess(*entry, process);
    } else {
      entry->process.restarts = process.restarts;
      entry->process.last_change = process.last_change;
      entry->process.segment_used_ratio = process.segment_used_ratio;
      entry->process.died = process.died;
      entry->process.ended_at = process.ended_at;
    }
    order.push_back(entry);
  }
  order_ = std::move(order);
  if (changed) {
    FindFirsts();
    const std::set<const Entry*> there(order_.begin(), order_.end());
    std::erase_if(entries_, [&](const auto& entry) { return !there.contains(&entry.second); });
    FindInfos();
  }
}

void WorkerMetrics::SetProcess(Entry& entry, const WorkerProcess& process) {
  const bool other = entry.process.pid != process.pid || entry.process.start_ticks != process.start_ticks;
  entry.process = process;
  entry.pid = std::to_string(process.pid);
  entry.ordinal = std::to_string(process.ordinal);
  entry.last_exit = Text(process.last_exit);
  entry.readable = process.alive && proc_.IsInNamespace(entry.pid, process.pid_namespace);
  if (other) entry.start_time.reset();
  if (other || !process.library_version.empty()) entry.library_version = process.library_version;
}

void WorkerMetrics::FindFirsts() {
  std::map<std::tuple<uint64_t, uint32_t, uint64_t>, Entry*> firsts;
  for (Entry* entry : order_) {
    const WorkerProcess& process = entry->process;
    if (!process.alive) continue;
    Entry*& first = firsts.try_emplace({process.pid_namespace, process.pid, process.start_ticks}, entry).first->second;
    if (process.ordinal < first->process.ordinal) first = entry;
    entry->is_first = false;
  }
  for (const auto& [process, first] : firsts) first->is_first = true;
}

void WorkerMetrics::FindInfos() {
  std::map<Identity, const Entry*> newest;
  for (const Entry* entry : order_) {
    const Entry*& of_identity = newest[entry->process.identity];
    if (of_identity == nullptr || IsNewer(entry->process, of_identity->process)) of_identity = entry;
  }
  infos_.clear();
  for (const auto& [identity, entry] : newest) {
    infos_[identity] = {{"agent_version", options_.agent_version},
                        {"library_version", Text(entry->library_version)},
                        {"restart_count", std::to_string(entry->process.restart_count)},
                        {"run_id", Text(entry->process.run_id.empty() ? options_.run_id : entry->process.run_id)}};
  }
  if (newest.empty() && options_.agent)
    infos_[*options_.agent] = {{"agent_version", options_.agent_version}, {"run_id", Text(options_.run_id)}};
}

void WorkerMetrics::AddProcess(size_t index) {
  const Entry& entry = *order_[index];
  const Values values = ValuesOf(index);
  rows_.On(entry.process.identity);
  for (size_t value = 0; value < kValues; ++value) rows_.Add(kFamilies[value], values[value], {{"process", entry.ordinal}});
  if (!entry.last_exit.empty()) rows_.Add(kLastExit, 1.0, {{"process", entry.ordinal}, {"reason", entry.last_exit}});
}

WorkerMetrics::Values WorkerMetrics::ValuesOf(size_t index) {
  Entry& entry = *order_[index];
  Values values;
  values.fill(kAbsentValue);
  const auto set = [&](Value value, double to) { values[value] = to; };
  const WorkerProcess& process = entry.process;
  set(kUp, process.alive ? 1 : 0);
  if (process.alive) {
    set(kSegmentUsed, process.segment_used_ratio);
    if (options_.judge != nullptr) set(kHung, options_.judge->Of(index) == HangJudge::Verdict::kHung ? 1 : 0);
  } else {
    set(kDied, process.died ? 1 : 0);
  }
  set(kRestarts, static_cast<double>(process.restarts));
  if (process.last_change.time_since_epoch().count() != 0) {
    // Whole milliseconds, so that the printed number is short.
    const auto at = std::chrono::floor<std::chrono::milliseconds>(process.last_change.time_since_epoch());
    set(kLastChange, static_cast<double>(at.count()) / 1000);
  }
  const auto stat = entry.readable && entry.is_first ? proc_.Stat(entry.pid) : std::nullopt;
  if (!stat || stat->start_ticks != process.start_ticks) return values;
  set(kCpu, stat->cpu_seconds);
  set(kThreads, static_cast<double>(stat->threads));
  set(kMajorFaults, static_cast<double>(stat->major_faults));
  set(kMinorFaults, static_cast<double>(stat->minor_faults));
  set(kIoWait, stat->disk_wait_seconds.value_or(kAbsentValue));
  set(kRunQueueWait, proc_.RunQueueWait(entry.pid).value_or(kAbsentValue));
  if (const auto io = proc_.Io(entry.pid)) {
    set(kReadBytes, static_cast<double>(io->read_bytes));
    set(kWrittenBytes, static_cast<double>(io->written_bytes));
  }
  if (const auto memory = proc_.Memory(entry.pid)) {
    set(kResident, memory->resident_bytes);
    set(kVirtual, memory->virtual_bytes);
  }
  if (!entry.start_time) entry.start_time = proc_.UnixTime(process.start_ticks);
  set(kStartTime, entry.start_time.value_or(kAbsentValue));
  if (const auto open_fds = proc_.OpenFds(entry.pid)) set(kOpenFds, static_cast<double>(*open_fds));
  return values;
}

}  // namespace persia::agent
