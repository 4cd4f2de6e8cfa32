#include "workers/worker_metrics.h"

#include <algorithm>
#include <bit>
#include <chrono>
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
bool SameProcess(const Process& a, const Process& b) {
  const auto all = [](const Process& p) {
    return std::tie(p.alive, p.id, p.ordinal, p.restart_count, p.run_id, p.library_version, p.identity, p.last_exit);
  };
  return all(a) == all(b);
}

// A living process is newer than an ended one.
bool IsNewer(const Process& a, const Process& b) {
  const auto age = [](const Process& p) { return std::tie(p.alive, p.id.start_ticks, p.id.pid); };
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

constexpr Rows::Family kDied{
    "persia_process_died", MetricType::kGauge,
    "Of an ended process: 1 if it ended by a signal or an error, not because the job was asked to end, and nothing has "
    "replaced it, until the command ends, else 0."};
constexpr Rows::Family kHung{
    "persia_process_hung", MetricType::kGauge,
    "Of a running process: 1 if its metrics have not changed for persia_job_hang_after_seconds, while others of its job did, "
    "else 0."};
constexpr Rows::Family kLastChange{
    "persia_process_last_change_timestamp_seconds", MetricType::kGauge,
    "When a metric of the process last changed, in seconds since 1970. Absent until the first change that the agent has "
    "seen."};
constexpr Rows::Family kRestarts{"persia_process_restarts_total", MetricType::kCounter,
                                 "Processes of this run that took this number after another process with it had ended."};
constexpr Rows::Family kSegmentUsed{"persia_process_segment_used_ratio", MetricType::kGauge,
                                    "How full the process's segment is, from 0 to 1. Series that do not fit are not recorded."};
constexpr Rows::Family kUp{"persia_process_up", MetricType::kGauge, "1 if the process is running, 0 if it has ended."};

struct UsageFamily {
  Rows::Family family;
  ProcessUsage::Number ProcessUsage::*value;
};
constexpr UsageFamily kUsage[] = {
    {{"persia_process_cpu_seconds_total", MetricType::kCounter,
      "User and system processor time of the process. It starts at 0 with each process."},
     &ProcessUsage::cpu_seconds},
    {{"persia_process_io_wait_seconds_total", MetricType::kCounter,
      "Time for which the process's main thread waited for a disk. Absent unless the kernel's delay accounting is on."},
     &ProcessUsage::disk_wait_seconds},
    {{"persia_process_major_page_faults_total", MetricType::kCounter,
      "Page faults of the process that read from a disk or from swap space."},
     &ProcessUsage::major_faults},
    {{"persia_process_minor_page_faults_total", MetricType::kCounter,
      "Page faults of the process that the kernel resolved in memory."},
     &ProcessUsage::minor_faults},
    {{"persia_process_open_fds", MetricType::kGauge, "Open file descriptors of the process."}, &ProcessUsage::open_fds},
    {{"persia_process_read_bytes_total", MetricType::kCounter,
      "Bytes that the process, and its children that it has waited for, have read from disks; the page cache does not count."},
     &ProcessUsage::read_bytes},
    {{"persia_process_resident_memory_bytes", MetricType::kGauge, "Resident memory of the process."},
     &ProcessUsage::resident_bytes},
    {{"persia_process_run_queue_wait_seconds_total", MetricType::kCounter,
      "Time for which the process's main thread could run and waited for a processor."},
     &ProcessUsage::run_queue_wait_seconds},
    {{"persia_process_start_time_seconds", MetricType::kGauge, "When the process started, in seconds since 1970."},
     &ProcessUsage::start_time},
    {{"persia_process_threads", MetricType::kGauge, "Threads of the process."}, &ProcessUsage::threads},
    {{"persia_process_virtual_memory_bytes", MetricType::kGauge, "Virtual memory of the process."},
     &ProcessUsage::virtual_bytes},
    {{"persia_process_write_bytes_total", MetricType::kCounter,
      "Bytes that the process, and its children that it has waited for, have written to disks, or will when the kernel "
      "writes its page cache."},
     &ProcessUsage::written_bytes},
};

}  // namespace

WorkerMetrics::WorkerMetrics(Options options) : options_(std::move(options)), proc_(options_.proc) {}

std::shared_ptr<const Snapshot> WorkerMetrics::Collect() {
  const std::span<Process> processes = options_.processes();
  UpdateEntries(processes);
  for (size_t i = 0; i < order_.size(); ++i) {
    ReadUsage(processes[i], *order_[i]);
    AddProcess(processes[i], *order_[i]);
  }
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

void WorkerMetrics::UpdateEntries(std::span<const Process> processes) {
  bool changed = processes.size() != order_.size() || infos_.empty();
  std::vector<Entry*> order;
  order.reserve(processes.size());
  for (size_t i = 0; i < processes.size(); ++i) {
    const Process& process = processes[i];
    Entry* entry = i < order_.size() ? order_[i] : nullptr;
    if (entry == nullptr || !SameProcess(entry->process, process)) {
      changed = true;
      entry = &entries_[{process.identity, process.ordinal}];
      SetProcess(*entry, process);
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

void WorkerMetrics::SetProcess(Entry& entry, const Process& process) {
  const bool other = entry.process.id != process.id;
  entry.process = process;
  entry.pid = std::to_string(process.id.pid);
  entry.ordinal = std::to_string(process.ordinal);
  entry.last_exit = Text(process.last_exit);
  entry.readable = process.alive && proc_.IsInNamespace(entry.pid, process.id.pid_namespace);
  if (other) entry.start_time.reset();
  if (other || !process.library_version.empty()) entry.library_version = process.library_version;
}

void WorkerMetrics::FindFirsts() {
  std::map<ProcessId, Entry*> firsts;
  for (Entry* entry : order_) {
    const Process& process = entry->process;
    if (!process.alive) continue;
    Entry*& first = firsts.try_emplace(process.id, entry).first->second;
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

void WorkerMetrics::AddProcess(const Process& process, const Entry& entry) {
  using Number = ProcessUsage::Number;
  const auto add = [&](const Rows::Family& family, Number value) { rows_.Add(family, value, {{"process", entry.ordinal}}); };
  const auto is_living = [&](double value) { return process.alive ? Number(value) : std::nullopt; };
  rows_.On(process.identity);
  add(kUp, process.alive ? 1 : 0);
  add(kSegmentUsed, is_living(process.segment_used_ratio));
  add(kHung, options_.shows_hangs ? is_living(process.verdict == HangVerdict::kHung ? 1 : 0) : std::nullopt);
  add(kDied, process.alive ? std::nullopt : Number(process.died ? 1 : 0));
  add(kRestarts, static_cast<double>(process.restarts));
  // Whole milliseconds, so that the printed number is short.
  const auto changed = std::chrono::floor<std::chrono::milliseconds>(process.last_change.time_since_epoch()).count();
  add(kLastChange, changed != 0 ? Number(static_cast<double>(changed) / 1000) : std::nullopt);
  for (const auto& [family, value] : kUsage) add(family, process.usage.*value);
  if (!entry.last_exit.empty()) rows_.Add(kLastExit, 1.0, {{"process", entry.ordinal}, {"reason", entry.last_exit}});
}

void WorkerMetrics::ReadUsage(Process& process, Entry& entry) {
  ProcessUsage& usage = process.usage = {};
  const auto stat = entry.readable && entry.is_first ? proc_.Stat(entry.pid) : std::nullopt;
  if (!stat || stat->start_ticks != process.id.start_ticks) return;
  usage.cpu_seconds = stat->cpu_seconds;
  usage.threads = static_cast<double>(stat->threads);
  usage.major_faults = static_cast<double>(stat->major_faults);
  usage.minor_faults = static_cast<double>(stat->minor_faults);
  usage.disk_wait_seconds = stat->disk_wait_seconds;
  usage.run_queue_wait_seconds = proc_.RunQueueWait(entry.pid);
  if (const auto io = proc_.Io(entry.pid)) {
    usage.read_bytes = static_cast<double>(io->read_bytes);
    usage.written_bytes = static_cast<double>(io->written_bytes);
  }
  if (const auto memory = proc_.Memory(entry.pid)) {
    usage.resident_bytes = memory->resident_bytes;
    usage.virtual_bytes = memory->virtual_bytes;
  }
  if (!entry.start_time) entry.start_time = proc_.UnixTime(process.id.start_ticks);
  usage.start_time = entry.start_time;
  if (const auto open_fds = proc_.OpenFds(entry.pid)) usage.open_fds = static_cast<double>(*open_fds);
}

}  // namespace persia::agent
