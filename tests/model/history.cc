#include "history.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "oracle.h"
#include "segment_loads.h"
#include "workers/segment_source.h"
#include "world.h"

namespace persia::agent::model {
namespace {

constexpr uint32_t kRemovesAtLoad = 12;  // of a collection's `b`

class Job {
 public:
  explicit Job(const Config& config) : config_(config), oracle_(config_, world_) {}

  void Do(const Step& step);
  // Everything works again, all processes end: all is counted, and nothing is left in the directory.
  void Heal();
  [[nodiscard]] const std::string& wrong() const { return oracle_.wrong().empty() ? wrong_ : oracle_.wrong(); }

 private:
  void StartAgent(bool refuses_large);
  void EndAgent() { agent_.reset(); }
  void Collect(const Step& step, bool soon = false);
  void ForgetShown() {
    exits_.clear();
    restarts_.clear();
    in_phase_ = {};
  }
  void JudgeExits();
  void JudgeDeaths();
  void JudgeRestarts();
  [[nodiscard]] bool AllCanBeRead() const;
  void JudgePhases(const AllShown& shown);
  [[nodiscard]] std::string RunId() const { return "run-" + std::to_string(run_); }
  [[nodiscard]] SeriesLimits Limits() const {
    return {.series = config_.max_series, .series_of_instance = kMaxSeriesOfInstance};
  }
  Process* Find(uint32_t number) {
    const size_t count = world_.processes.size() - first_;
    return count == 0 ? nullptr : &world_.processes[first_ + number % count];
  }

  const Config config_;
  World world_;
  ExitReasons reaped_;                             // tells of each end after the collection that saw it
  std::map<std::string, uint64_t> exits_;          // shown in this run
  std::map<std::string, uint64_t> restarts_;       // shown in this run
  std::array<double, kIdentities> in_phase_ = {};  // shown in this run
  std::map<std::string, uint64_t> died_;           // ranks that it missed in its last collection, and which process of them
  Oracle oracle_;
  std::unique_ptr<SegmentSource> agent_;
  bool refuses_large_ = false;
  bool state_was_read_ = false;     // by this agent
  bool state_was_damaged_ = false;  // since it started
  bool state_had_trouble_ = false;  // ever
  int run_ = 1;
  bool run_is_new_ = true;
  size_t first_ = 0;  // process of this run
  std::string wrong_;
  std::chrono::milliseconds now_{100'000'000};
  std::chrono::milliseconds wall_was_set_{1'000'000'000'000};
};

void Job::StartAgent(bool refuses_large) {
  if (agent_ != nullptr) return;
  refuses_large_ = refuses_large;
  SegmentSourceOptions options;
  options.job = "model";
  options.run_id = RunId();
  options.max_segment_bytes = refuses_large ? kSmallSegment : kLargeSegment;
  options.files = std::make_unique<ModelDirectory>(world_);
  options.reaped = config_.supervised ? &reaped_ : nullptr;
  options.steady = [this] { return std::chrono::steady_clock::time_point(now_); };
  options.wall = [this] { return std::chrono::system_clock::time_point(now_ + wall_was_set_); };
  const SeriesLimits limits = Limits();
  options.limits = limits;
  options.ledger = {.file = StateOf(world_),
                    .saves_living = config_.state_elsewhere,
                    .run_id = RunId(),
                    .new_run = run_is_new_,
                    .processes = {.gauge_ttl = kGaugeTtl, .hide_ended = config_.hides_ended, .limits = limits},
                    .min_growth = config_.small_checkpoints ? size_t{1} : Ledger::Options{}.min_growth,
                    .threaded = false,
                    .now = options.steady};
  run_is_new_ = false;
  state_was_read_ = false;
  if (std::exchange(state_was_damaged_, false)) ForgetShown();
  died_.clear();
  agent_ = std::make_unique<SegmentSource>(std::move(options));
  oracle_.BeginAgent();
}

void Job::Collect(const Step& step, bool soon) {
  if (agent_ == nullptr) return;
  // A minute is longer than any delay after a failure.
  now_ += soon ? std::chrono::milliseconds(100) : std::chrono::minutes(1) + std::chrono::seconds(1);
  oracle_.BeginCollection(now_);
  const auto count = [&](bool ends, bool normally) {
    if (Process* last = Find(UINT32_MAX); last != nullptr && *last->alive) {
      last->Count(step.a % kCounts, 1);
      last->Set(0);
      now_ += std::chrono::milliseconds(1);
      last->Toggle(now_);
      if (ends) last->End(normally, now_);
    }
  };
  const bool at_load = step.b >= kFirstAtLoad;
  world_.operations = 0;
  world_.tear = step.b > 2 && !at_load ? step.b : 0;
  world_.before_operation = [&](uint32_t operation) {
    if (step.b == 0 || at_load || operation != step.a) return;
    if (step.b != 2) throw Killed();
    count(/*ends=*/true, /*normally=*/false);
  };
  uint32_t loads = 0;
  const SegmentLoads observed([&] {
    if (loads++ != step.a || !at_load) return;
    if (step.b == kRemovesAtLoad) {
      Process* last = Find(UINT32_MAX);
      if (last != nullptr && *last->alive) last->Remove();
      return;
    }
    count(/*ends=*/step.b > kFirstAtLoad, /*normally=*/step.b > kFirstAtLoad + 1);
  });
  state_was_read_ = state_was_read_ || !world_.state_unreadable;
  std::optional<AllShown> shown;
  try {
    shown = ShownIn(*agent_->Collect());
  } catch (const Killed&) {
    EndAgent();
  }
  world_.before_operation = [](uint32_t) {};
  if (shown) JudgeExits();
  if (shown) JudgeDeaths();
  if (shown) JudgeRestarts();
  if (shown) JudgePhases(*shown);
  for (uint32_t pid = 1; pid <= world_.processes.size(); ++pid) {
    const Process& process = world_.processes[pid - 1];
    if (!*process.alive) reaped_.Add(pid, 0, process.died ? SIGKILL : 0);
  }
  oracle_.EndCollection(shown ? &*shown : nullptr,
                        {.soon = soon, .state_was_read = state_was_read_, .refuses_large = refuses_large_});
}

// A rank that died is missed until another process has its place. Beyond the limits its instance may be forgotten.
void Job::JudgeDeaths() {
  if (config_.max_series < Config().max_series) return;
  std::map<std::string, uint64_t> died;
  std::set<std::string> replaced;
  for (const agent::Process& process : agent_->processes()) {
    if (process.ordinal != 0) continue;
    std::string identity;
    for (const auto& [name, value] : process.identity.labels) identity += value + " ";
    if (process.died) died.emplace(identity, process.predecessors);
    const auto before = died_.find(identity);
    if (before != died_.end() && (process.alive || process.predecessors > before->second)) replaced.insert(identity);
  }
  for (const auto& [identity, number] : died_) {
    if (!died.contains(identity) && !replaced.contains(identity)) wrong_ = identity + "is not missed any more";
  }
  died_ = std::move(died);
}

// The counts of ends do not fall, and no end is counted twice.
void Job::JudgeExits() {
  std::map<std::string, uint64_t> exits;
  uint64_t ended = 0;
  for (const EndedProcesses& of : agent_->ended()) {
    std::string identity;
    for (const auto& [name, value] : of.identity.labels) identity += value + " ";
    for (const auto& [reason, count] : of.exits) {
      const std::string key = identity + reason;
      exits[key] += count;
      ended += count;
      if (count < exits_[key]) wrong_ = "the ended processes of " + key + " fell to " + std::to_string(count);
    }
  }
  for (const auto& [key, count] : exits) exits_[key] = count;
  // One whose file is lost counts as ended, too.
  const size_t all = world_.processes.size() - first_;
  if (ended > all) wrong_ = std::to_string(ended) + " processes are counted as ended, of " + std::to_string(all);
}

// An agent that has just started can read all segments, or has the values of the lost ones in its state.
bool Job::AllCanBeRead() const {
  const bool has_saved = config_.state_elsewhere && !state_had_trouble_;
  return !refuses_large_ && !world_.state_unreadable && !world_.no_descriptors && !world_.no_descriptors_in_open &&
         std::ranges::none_of(world_.processes, [&](const Process& process) {
           return process.broken || !(process.in_directory || process.removed || has_saved);
         });
}

// The number of processes that took an ordinal after another process does not fall, if all processes can be read. Beyond the
// limits an instance may be forgotten.
void Job::JudgeRestarts() {
  if (!AllCanBeRead() || oracle_.damaged() || config_.max_series < Config().max_series) restarts_.clear();
  for (const agent::Process& process : agent_->processes()) {
    std::string place;
    for (const auto& [name, value] : process.identity.labels) place += value + " ";
    uint64_t& before = restarts_[place + std::to_string(process.ordinal)];
    if (process.restarts < before) {
      wrong_ = "the restarts of " + place + std::to_string(process.ordinal) + " fell to " + std::to_string(process.restarts);
    }
    before = process.restarts;
  }
}

// The time in phases does not fall, and none is shown that has not passed.
void Job::JudgePhases(const AllShown& shown) {
  if (!AllCanBeRead()) in_phase_ = {};
  constexpr double kTolerance = 1e-6;
  for (uint32_t identity = 0; identity < kIdentities; ++identity) {
    if (!shown.of[identity].in_phase) continue;
    const double seconds = *shown.of[identity].in_phase;
    // Beyond the limits its instance may be forgotten.
    const bool fell = seconds < in_phase_[identity] - kTolerance && config_.max_series == Config().max_series;
    double most = 0;
    for (size_t i = first_; i < world_.processes.size(); ++i) {
      const Process& process = world_.processes[i];
      if (process.identity == identity) most += process.InPhase(/*whole=*/true, now_);
    }
    if (fell || seconds > most + kTolerance) {
      wrong_ = std::to_string(seconds) + " s in a phase are shown of identity " + std::to_string(identity) + ", " +
               std::to_string(in_phase_[identity]) + " s before, of " + std::to_string(most);
    }
    in_phase_[identity] = seconds;
  }
}

void Job::Do(const Step& step) {
  Process* process = Find(step.a);
  const bool lives = process != nullptr && *process->alive;
  switch (step.what) {
    case Do::kStart:
      world_.Start(step.a / 2 % kIdentities, step.a % 2 == 1, RunId());
      break;
    case Do::kCount:
      if (lives) process->Count(step.b % kCounts, step.b);
      break;
    case Do::kSet:
      if (lives) process->Set(step.b);
      break;
    case Do::kRemove:
      if (lives) process->Remove();
      break;
    case Do::kPhase:
      if (lives) process->Toggle(now_);
      break;
    case Do::kDie:
      if (lives) process->End(/*normally=*/step.b % 2 == 1, now_);
      break;
    case Do::kAgent:
      StartAgent(step.a % 2 == 1);
      break;
    case Do::kCollect:
      Collect(step);
      break;
    case Do::kSoon:
      Collect(step, /*soon=*/true);
      break;
    case Do::kStop:
      if (agent_ != nullptr) agent_->FlushState(std::chrono::seconds(0));
      EndAgent();
      break;
    case Do::kKill:
      EndAgent();
      break;
    case Do::kWait:
      now_ += std::chrono::seconds(100) * step.a;
      break;
    case Do::kDisk:
      state_had_trouble_ = true;
      world_.disk_full = !world_.disk_full;
      break;
    case Do::kState:
      state_had_trouble_ = true;
      world_.state_unreadable = !world_.state_unreadable;
      break;
    case Do::kOpen:
      world_.no_descriptors_in_open = !world_.no_descriptors_in_open;
      break;
    case Do::kList:
      world_.no_descriptors = !world_.no_descriptors;
      break;
    case Do::kReadOnly:
      world_.read_only = !world_.read_only;
      if (!config_.state_elsewhere) world_.disk_full = world_.read_only;  // the state is in this directory
      break;
    case Do::kBreak:
      if (process != nullptr) process->broken = !process->broken;
      break;
    case Do::kLose:
      if (!config_.state_elsewhere) break;  // the state would be lost with it
      for (size_t i = first_; i < world_.processes.size(); ++i) {
        world_.processes[i].in_directory = false;
        if (step.a % 2 == 0) world_.processes[i].End(/*normally=*/false, now_);
      }
      break;
    case Do::kReturn:
      for (size_t i = first_; i < world_.processes.size(); ++i) {
        world_.processes[i].in_directory = !world_.processes[i].removed;
      }
      break;
    case Do::kDamage:
      world_.DamageState(10 * step.a + step.b, step.a % 2 == 1);
      oracle_.StateWasDamaged();
      state_was_damaged_ = state_had_trouble_ = true;
      ForgetShown();  // an agent that has not read it yet
      break;
    case Do::kClock: {
      const auto by = std::chrono::seconds(100) * step.b * (step.a % 2 == 1 ? -1 : 1);
      wall_was_set_ += by;
      oracle_.ClockWasSet(by);
      break;
    }
    case Do::kLimit:
      if (agent_ != nullptr) {
        refuses_large_ = !refuses_large_;
        agent_->SetLimits(Limits(), refuses_large_ ? kSmallSegment : kLargeSegment, kGaugeTtl, config_.hides_ended);
      }
      break;
    case Do::kNewRun:
      for (Process& ended : world_.processes) {
        ended.End(/*normally=*/true, now_);
      }
      EndAgent();
      ++run_;
      run_is_new_ = true;
      first_ = world_.processes.size();
      oracle_.BeginRun();
      ForgetShown();
      break;
  }
}

void Job::Heal() {
  world_.disk_full = world_.state_unreadable = world_.no_descriptors = world_.no_descriptors_in_open = world_.read_only = false;
  for (Process& process : world_.processes) {
    process.broken = false;
  }
  EndAgent();
  StartAgent(false);
  for (int i = 0; i < 2; ++i) {
    Collect({});
    for (Process& process : world_.processes) {
      process.End(/*normally=*/true, now_);
    }
  }
  Collect({});
  uint64_t ended = 0;
  for (const agent::Process& process : agent_->processes()) {
    ended += process.predecessors;
    if (process.restarts + 1 != process.predecessors && wrong_.empty()) {
      wrong_ = "of " + std::to_string(process.predecessors) + " ended processes " + std::to_string(process.restarts) +
               " are restarts";
    }
  }
  uint64_t least = 0;  // an agent removes a file once it has counted the process
  for (size_t i = first_; i < world_.processes.size(); ++i) least += world_.processes[i].removed ? 1 : 0;
  const bool all_are_shown = !config_.hides_ended && config_.max_series == Config().max_series && !state_had_trouble_;
  if ((ended > world_.processes.size() - first_ || (ended < least && all_are_shown)) && wrong_.empty()) {
    wrong_ = std::to_string(ended) + " processes are counted as ended, of " + std::to_string(world_.processes.size() - first_) +
             "; agents have removed the files of " + std::to_string(least);
  }
  for (size_t i = first_; i < world_.processes.size(); ++i) {
    if (world_.processes[i].in_directory && wrong_.empty()) wrong_ = "the file " + world_.processes[i].name + " is left";
  }
}

}  // namespace

std::string Check(const std::vector<Step>& steps, const Config& config) {
  Job job(config);
  for (const Step& step : steps) {
    job.Do(step);
    if (!job.wrong().empty()) return job.wrong();
  }
  job.Heal();
  return job.wrong();
}

}  // namespace persia::agent::model
