#include "health/vitals.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>

#include "base/mutex.h"
#include "model/ends.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;

constexpr seconds kTrend(60);
constexpr seconds kSlowInterval(30);
// How long a collection waits for other filesystems at a death.
constexpr std::chrono::milliseconds kAnswerPatience(500);
// The source of the count of all kills of the host.
const std::string kHost = "host";

// The cgroup that counts the kills; empty: none that is visible.
std::string CountingOf(const CgroupLevels& levels) { return levels.empty() ? "" : levels.front(); }

bool IsKill(const std::string& exit) { return exit == "SIGKILL" || exit == "exit_137"; }

// Whether the kernel may have killed a process with this exit for lack of memory.
bool MayBeKill(const std::string& exit) { return exit.empty() || exit == kUnknownEnd || IsKill(exit); }

}  // namespace

Vitals::Vitals(Options options)
    : cgroups_(options.root),
      filesystems_(options.root + "/proc", std::move(options.free_ratio)),
      stacks_(std::move(options.directory)),
      proc_(options.root + "/proc"),
      own_namespace_(proc_.PidNamespace("self")),
      own_cgroup_(CountingOf(cgroups_.Of("self"))) {
  NoteKills(TimePoint());
}

// Of the host, the agent's own cgroup, and those of all processes.
void Vitals::NoteKills(TimePoint now) {
  if (const auto count = cgroups_.KillsOfHost()) kills_.Note(kHost, *count, now);
  std::set<std::string> noted{""};
  const auto note = [&](const std::string& cgroup) {
    if (!noted.insert(cgroup).second) return;
    if (const auto count = cgroups_.Kills(cgroup)) kills_.Note(cgroup, *count, now);
  };
  note(own_cgroup_);
  for (const auto& [key, sample] : samples_) note(sample.cgroup);
}

bool Vitals::TakeKill(const Sample* sample, ProcessEnd& end, TimePoint now) {
  // A process that ended before it was seen: most are in the agent's own cgroup.
  const std::string& cgroup = sample != nullptr ? sample->cgroup : own_cgroup_;
  const bool is_counted = !cgroup.empty() && cgroups_.Kills(cgroup).has_value();
  end.about.kills_are_known = is_counted || kills_.IsKnown(kHost);
  if (!MayBeKill(end.exit)) return false;
  if (kills_.Take(cgroup, now)) {
    kills_.Take(kHost, now);  // which counts it, too
    if (sample != nullptr && sample->limit) {
      end.about.memory_limit = sample->limit->bytes;
      end.about.memory_cgroup = sample->limit->level;
    }
    return true;
  }
  // Its cgroup is not visible, or was removed with it. Of a process that was not seen, it may be another one than the agent's;
  // but the host counts the kills of other jobs, too, so without a known SIGKILL that is not evidence enough.
  const bool host_decides = !is_counted || (sample == nullptr && IsKill(end.exit));
  if (host_decides) return kills_.Take(kHost, now);
  if (sample == nullptr && kills_.Waits(kHost, now)) end.about.kills_are_known = false;
  return false;
}

void Vitals::Describe(std::vector<Process>& ends, TimePoint now) {
  if (ends.empty()) return;
  NoteKills(now);
  std::set<std::string> full;
  const auto may_be_full = [](const Process& ended) { return ended.end->exit.empty() || ended.end->exit == "SIGBUS"; };
  if (std::ranges::any_of(ends, may_be_full)) {
    full = filesystems_.Find();  // in the collection before
    filesystems_.Ask();
    filesystems_.Await(kAnswerPatience);
    full.merge(filesystems_.Find());
  }
  for (Process& ended : ends) {
    Circumstances& about = ended.end->about;
    if (const Sample* const sample = SampleOf(ended)) about = sample->about;
    if (may_be_full(ended)) about.full_filesystems.assign(full.begin(), full.end());
    about.stacks = stacks_.Read(ended.id);
    stacks_.Remove(ended.id);
  }
  ReadStderr(ends);
  // If there are fewer kills than processes that they may explain, those with the most memory were killed.
  std::vector<Process*> by_memory;
  for (Process& ended : ends) by_memory.push_back(&ended);
  const auto resident = [](const Process* ended) { return ended->end->about.resident.value_or(0); };
  std::ranges::stable_sort(by_memory, std::greater(), resident);
  for (Process* ended : by_memory) ended->end->about.killed_for_memory = TakeKill(SampleOf(*ended), *ended->end, now);
}

const Vitals::Sample* Vitals::SampleOf(const Process& process) const {
  const auto found = samples_.find(process.id);
  return found == samples_.end() ? nullptr : &found->second;
}

void Vitals::ReadStderr(std::vector<Process>& ends) {
  std::vector<std::pair<size_t, StderrFile>> files;
  for (size_t i = 0; i < ends.size(); ++i) {
    const Sample* const sample = SampleOf(ends[i]);
    if (stderr_lines_ > 0 && sample != nullptr && sample->stderr_file) files.emplace_back(i, *sample->stderr_file);
  }
  if (files.empty()) return;
  struct Answers {
    Mutex mutex;
    std::map<size_t, std::vector<std::string>> lines PERSIA_GUARDED_BY(mutex);
  };
  const auto answers = std::make_shared<Answers>();
  const bool began = stderr_call_.Start([files, answers, count = stderr_lines_] {
    for (const auto& [end, file] : files) {
      std::vector<std::string> lines = file.LastLines(count);
      const MutexLock lock(answers->mutex);
      answers->lines.emplace(end, std::move(lines));
    }
  });
  if (!began) return;
  stderr_call_.Await(kAnswerPatience);
  const MutexLock lock(answers->mutex);
  for (auto& [end, lines] : answers->lines) ends[end].end->about.stderr_lines = std::move(lines);
}

void Vitals::Look(std::span<const Process> processes, TimePoint now) {
  ++looks_;
  cgroups_.Forget();
  for (const Process& process : processes) {
    if (!process.alive || process.id.pid_namespace == 0 || process.id.pid_namespace != own_namespace_) continue;
    Sample& sample = samples_[process.id];
    sample.look = looks_;
    Measure(process.id, sample, now);
  }
  std::erase_if(samples_, [&](const auto& sample) { return sample.second.look != looks_; });
  NoteKills(now);  // of new cgroups, from which their kills are counted
  kills_.DropBefore(now - 2 * MemoryKills::kPatience);
  filesystems_.Ask();  // for the ends of the next collection
}

void Vitals::Measure(const ProcessId& process, Sample& sample, TimePoint now) {
  const std::string pid = std::to_string(process.pid);
  const auto stat = proc_.Stat(pid);
  if (!stat || stat->start_ticks != process.start_ticks) return;
  Circumstances& about = sample.about;
  about.cpu_seconds = static_cast<uint64_t>(stat->cpu_seconds);
  about.open_files = proc_.OpenFds(pid);
  const auto memory = proc_.Memory(pid);
  if (memory && memory->resident_bytes > 0) {  // 0: it is ending
    about.resident = static_cast<uint64_t>(memory->resident_bytes);
    sample.resident.emplace_back(now, *about.resident);
    while (now - sample.resident.front().first > kTrend) sample.resident.pop_front();
    about.resident_before = sample.resident.front().second;
  }
  if (sample.slow_read && now - *sample.slow_read < kSlowInterval) return;
  sample.slow_read = now;
  sample.stderr_file = stderr_lines_ > 0 ? StderrFile::Of(proc_, pid) : std::nullopt;
  const ProcLimits limits = proc_.Limits(pid);
  about.max_open_files = limits.open_files;
  about.max_file_bytes = limits.file_bytes;
  about.max_cpu_seconds = limits.cpu_seconds;
  about.max_address_space = limits.address_space;
  if (const auto score = proc_.Number(pid + "/oom_score")) about.oom_score = static_cast<int>(*score);
  const CgroupLevels& levels = cgroups_.Of(pid);
  sample.cgroup = CountingOf(levels);
  sample.limit = cgroups_.LimitOf(levels);
}

void Vitals::AskForStacks(const Process& process) {
  const auto found = samples_.find(process.id);
  if (found == samples_.end() || std::exchange(found->second.was_asked, true)) return;
  found->second.awaits_stacks = stacks_.Ask(process.id);
}

void Vitals::EndHang(const Process& process) {
  if (const auto found = samples_.find(process.id); found != samples_.end()) found->second.was_asked = false;
}

std::string Vitals::TakeStacks(const Process& process) {
  const auto found = samples_.find(process.id);
  if (found == samples_.end() || !found->second.awaits_stacks) return "";
  std::string text = stacks_.Read(process.id);
  if (!text.empty()) found->second.awaits_stacks = false;
  return text;
}

}  // namespace persia::agent
