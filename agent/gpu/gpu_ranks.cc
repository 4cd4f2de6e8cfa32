#include "gpu/gpu_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "gpu/gpu_mask.h"

namespace persia::agent {
namespace {

// Adds a process unless one of its rank is there.
void AddRank(size_t process, std::span<const Process> processes, std::vector<size_t>& users) {
  const auto is_same = [&](size_t other) { return processes[other].identity == processes[process].identity; };
  if (std::ranges::none_of(users, is_same)) users.push_back(process);
}

bool HasRank(const std::vector<size_t>& users, size_t process, std::span<const Process> processes) {
  return std::ranges::any_of(
      users, [&](size_t user) { return processes[user].identity == processes[process].identity; });
}

uint64_t SinceBoot(uint64_t ticks) {
  static const auto per_second = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return ticks * (1'000'000'000 / per_second);
}

bool SeesSameDevices(ProcReader& proc, const std::string& pid) {
  const std::string own_group(proc.Read("self", "/cgroup"));
  const auto mounts = proc.Inode(pid, "/ns/mnt");
  return mounts && mounts == proc.Inode("self", "/ns/mnt") && proc.Read(pid, "/cgroup") == own_group;
}

}  // namespace

GpuRanks::GpuRanks(std::filesystem::path proc, uint64_t initial, std::chrono::milliseconds patience)
    : proc_path_(std::move(proc)),
      proc_(proc_path_),
      own_namespace_(proc_.PidNamespace("self")),
      knows_pids_(own_namespace_ == initial),
      patience_(patience) {}

std::vector<std::optional<size_t>> GpuRanks::Assign(const GpuSample& sample, std::span<const Process> processes) {
  bool all = true;
  const std::vector<Worker> workers = FindWorkers(sample, processes, all);
  const Users by_pids = ByPids(sample, processes, workers);
  const std::optional<Users> by_masks = all ? ByMasks(sample, processes, workers, by_pids) : std::nullopt;
  std::vector<std::optional<size_t>> ranks(sample.devices.size());
  std::map<std::string, ProcessId> now;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const GpuDevice& device = sample.devices[i];
    if (device.is_divided) continue;
    if (by_pids[i].size() == 1) {
      ranks[i] = by_pids[i].front();
    } else if (by_masks && (*by_masks)[i].size() == 1) {
      // If the driver lists several ranks, it must be one of them.
      const size_t user = (*by_masks)[i].front();
      if (by_pids[i].empty() || HasRank(by_pids[i], user, processes)) ranks[i] = user;
    }
    if (const auto last = last_.find(device.gpu); device.is_lost && !ranks[i] && last != last_.end()) {
      const auto is_it = [&](const Worker& worker) { return processes[worker.index].id == last->second; };
      if (const auto worker = std::ranges::find_if(workers, is_it); worker != workers.end()) ranks[i] = worker->index;
    }
    if (ranks[i]) now[device.gpu] = processes[*ranks[i]].id;
  }
  last_ = std::move(now);
  return ranks;
}

// `all` becomes false if /proc does not show a living worker.
std::vector<GpuRanks::Worker> GpuRanks::FindWorkers(const GpuSample& sample, std::span<const Process> processes, bool& all) {
  std::vector<Worker> workers;
  std::set<ProcessId> living;
  std::vector<ProcessId> unseen;
  for (size_t i = 0; i < processes.size(); ++i) {
    const Process& process = processes[i];
    if (!process.alive) continue;
    if (process.id.pid_namespace != own_namespace_ || !proc_.StatOf(process.id)) {
      all = false;
      continue;
    }
    if (!seen_.contains(process.id)) unseen.push_back(process.id);
    living.insert(process.id);
    workers.push_back({.index = i, .started_before = SinceBoot(process.id.start_ticks) <= sample.boot_ns});
  }
  if (!unseen.empty()) LookAt(std::move(unseen));
  std::erase_if(seen_, [&](const auto& seen) { return !living.contains(seen.first); });
  for (Worker& worker : workers) {
    const auto seen = seen_.find(processes[worker.index].id);
    if (seen == seen_.end()) continue;
    worker.same_devices = seen->second.same_devices;
    if (seen->second.environment) worker.environment = &*seen->second.environment;
  }
  return workers;
}

void GpuRanks::LookAt(std::vector<ProcessId> processes) {
  look_.Start([proc = proc_path_, processes = std::move(processes), news = news_] {
    ProcReader reader(proc);
    for (const ProcessId& process : processes) {
      const std::string pid = std::to_string(process.pid);
      Seen seen;
      seen.same_devices = SeesSameDevices(reader, pid);
      std::string environment(reader.Read(pid, "/environ"));
      if (!environment.empty()) seen.environment = std::move(environment);
      const MutexLock lock(news->mutex);
      news->seen.emplace(process, std::move(seen));
    }
  });
  look_.Await(patience_);
  const MutexLock lock(news_->mutex);
  seen_.merge(news_->seen);
  news_->seen.clear();
}

GpuRanks::Users GpuRanks::ByPids(const GpuSample& sample, std::span<const Process> processes,
                                 std::span<const Worker> workers) const {
  Users users(sample.devices.size());
  if (!knows_pids_) return users;
  for (size_t i = 0; i < users.size(); ++i) {
    for (const Worker& worker : workers) {
      const auto& pids = sample.devices[i].pids;
      const bool is_user = worker.started_before && std::ranges::find(pids, processes[worker.index].id.pid) != pids.end();
      if (is_user) AddRank(worker.index, processes, users[i]);
    }
  }
  return users;
}

std::optional<GpuRanks::Users> GpuRanks::ByMasks(const GpuSample& sample, std::span<const Process> processes,
                                                 std::span<const Worker> workers, const Users& by_pids) const {
  Users users(sample.devices.size());
  for (const Worker& worker : workers) {
    if (worker.environment == nullptr) return std::nullopt;
    const auto mask = DevicesOfMask(*worker.environment, sample.devices, worker.same_devices);
    if (!mask) return std::nullopt;
    for (const size_t device : *mask) AddRank(worker.index, processes, users[device]);
    for (size_t i = 0; i < users.size(); ++i) {
      const auto& pids = sample.devices[i].pids;
      const bool uses =
          HasRank(by_pids[i], worker.index, processes) && std::ranges::find(pids, processes[worker.index].id.pid) != pids.end();
      // The program has changed its mask since its start.
      if (uses && !sample.devices[i].is_divided && std::ranges::find(*mask, i) == mask->end()) return std::nullopt;
    }
  }
  return users;
}

}  // namespace persia::agent
