#include "machine/machine_sources.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace persia::agent {
namespace {

// A filesystem in memory answers within microseconds, one on a network within milliseconds.
constexpr std::chrono::milliseconds kAnswerPatience(100);

struct Source {
  std::string_view prefix;
  const char* words;
};
constexpr Source kSources[] = {
    {"persia_cgroup_", "the job is in no cgroup that is visible here"},
    {"persia_pressure_", "the kernel has no pressure stall information (/proc/pressure)"},
    {"persia_network_", "no interface of the job's network namespace is shown"},
    {"persia_infiniband_", "there is no InfiniBand adapter (/sys/class/infiniband)"},
    {"persia_filesystem_", "no filesystem has answered yet"},
};

}  // namespace

MachineSources::MachineSources(Options options)
    : options_(std::move(options)),
      files_(options_.root),
      proc_(options_.root + "/proc"),
      details_(proc_),
      shm_("shm", options_.statvfs),
      state_("state", options_.statvfs),
      working_directory_("working_directory", options_.statvfs) {}

MachineResult MachineSources::Read(std::span<const ProcessId> processes, TimePoint now) {
  Follow(processes);
  MachineReading reading;
  ReadCgroup(files_, subject_.cgroup, reading);
  ReadPressure(files_, subject_.cgroup, reading);
  if (!subject_.network.empty()) ReadNetwork(files_, subject_.network, reading);
  ReadInfiniband(files_, reading);
  ReadFilesystems(now, reading);
  const auto is_new = [&](const ProcessId& process) {
    return std::ranges::find(details_of_, process) == details_of_.end();  // also of those that /proc does not have
  };
  if (!details_read_ || now - *details_read_ >= options_.worker_interval || std::ranges::any_of(processes, is_new)) {
    details_.Read(processes, now);
    details_read_ = now;
    details_of_.assign(processes.begin(), processes.end());
  }
  MachineResult result{.series = reading.TakeSorted(), .workers = details_.values(), .absent = {}, .read_at = now};
  for (const Source& source : kSources) {
    const bool there = std::ranges::any_of(result.series, [&](const MachineReading::Series& series) {
      return std::string_view(series.family->name).starts_with(source.prefix);
    });
    if (!there) result.absent.emplace_back(source.words);
  }
  return result;
}

void MachineSources::Follow(std::span<const ProcessId> processes) {
  const auto is_there = [&](const ProcessId& process) { return proc_.StatOf(process).has_value(); };
  // The same worker again: it may have been moved to another cgroup.
  if (subject_.worker && std::ranges::find(processes, *subject_.worker) != processes.end() && is_there(*subject_.worker))
    return FollowWorker(*subject_.worker);
  const auto first = std::ranges::find_if(processes, is_there);
  if (first != processes.end()) return FollowWorker(*first);
  if (!subject_.worker) {
    subject_.cgroup = FindCgroup(files_, proc_.Read("self", "/cgroup"));
    subject_.working_directory = proc_.Link("self", "/cwd");
    return;
  }
  // It has ended: its pid may be that of another process now.
  const std::string proc = "/proc/" + std::to_string(subject_.worker->pid) + "/";
  if (subject_.network != "self") subject_.network.clear();
  for (std::string* path : {&subject_.shm, &subject_.working_directory})
    if (path->starts_with(proc)) path->clear();
}

void MachineSources::FollowWorker(const ProcessId& worker) {
  const std::string pid = std::to_string(worker.pid);
  const bool shares_mounts = SharesNamespace(pid, "mnt");
  std::string membership(proc_.Read(pid, "/cgroup"));
  const bool is_known = worker == subject_.worker && membership == subject_.membership && !subject_.cgroup.empty();
  Subject subject{.worker = worker,
                  .membership = membership,
                  .cgroup = is_known ? subject_.cgroup : FindCgroup(files_, membership),
                  .network = SharesNamespace(pid, "net") ? "self" : pid,
                  .shm = shares_mounts ? "/dev/shm" : "/proc/" + pid + "/root/dev/shm",
                  .working_directory = shares_mounts ? proc_.Link(pid, "/cwd") : "/proc/" + pid + "/cwd"};
  if (proc_.StatOf(worker)) subject_ = std::move(subject);
}

bool MachineSources::SharesNamespace(const std::string& pid, std::string_view kind) {
  const auto own = proc_.Inode("self/ns/", kind);
  // The namespace of another user's process cannot be read: most likely it is the agent's.
  return proc_.Inode(pid + "/ns/", kind).value_or(own.value_or(0)) == own.value_or(0);
}

void MachineSources::ReadFilesystems(TimePoint now, MachineReading& reading) {
  const std::pair<FilesystemProbe&, const std::string&> probes[] = {
      {shm_, subject_.shm}, {state_, options_.state_directory}, {working_directory_, subject_.working_directory}};
  for (const auto& [probe, path] : probes)
    if (!path.empty()) probe.Ask(files_.PathOf(path), now);
  for (const auto& [probe, path] : probes) {
    if (path.empty()) continue;
    probe.Await(kAnswerPatience);
    probe.Read(now, reading);
  }
}

}  // namespace persia::agent
