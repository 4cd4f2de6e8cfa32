#include "history.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "workers/segment_source.h"
#include "world.h"

namespace persia::agent::model {
namespace {

constexpr const char* kNames[] = {"kStart", "kCount", "kDie",  "kAgent", "kCollect", "kSoon",   "kStop",  "kKill",  "kDisk",
                                  "kState", "kOpen",  "kList", "kBreak", "kLose",    "kReturn", "kLimit", "kNewRun"};
static_assert(std::size(kNames) == static_cast<size_t>(Do::kLast) + 1);

// What is known to be true of a process, whatever the agents do.
struct Truth {
  uint64_t durable = 0;  // had counted when its values were certainly on disk
  bool opened = false;   // by the present agent, which reads it from then on, whatever becomes of the file
  bool settled = false;  // an agent that had not opened it has seen that its file was gone: what it counted is final
};

// A process when a collection began.
struct Before {
  uint64_t counted;
  bool alive;
};

class Job {
 public:
  explicit Job(const Config& config) : config_(config) {}

  void Do(const Step& step);
  // Everything works again, all processes end: all is counted, and nothing is left in the directory.
  void Heal();
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  void StartAgent(bool refuses_large);
  void EndAgent();
  void Collect(const Step& step, bool soon = false);
  void Judge(double shown, const std::vector<Before>& before, bool soon);
  [[nodiscard]] bool CanOpen(const Process& process) const {
    return process.in_directory && !process.broken && !world_.no_descriptors && !world_.no_descriptors_in_open &&
           !(refuses_large_ && IsLarge(process));
  }
  static bool IsLarge(const Process& process) {
    return reinterpret_cast<const testing::segment::Header*>(process.bytes->data())->max_bytes == kLargeSegment;
  }
  [[nodiscard]] std::string RunId() const { return "run-" + std::to_string(run_); }
  Process* Find(uint32_t number) {
    const size_t count = world_.processes.size() - first_;
    return count == 0 ? nullptr : &world_.processes[first_ + number % count];
  }

  const Config config_;
  World world_;
  std::unique_ptr<SegmentSource> agent_;
  bool refuses_large_ = false;
  bool state_was_read_ = false;  // by this agent
  int run_ = 1;
  bool run_is_new_ = true;
  size_t first_ = 0;  // process of this run
  std::vector<Truth> truths_;
  double floor_ = 0;  // was shown when all was on disk
  std::string wrong_;
  std::chrono::milliseconds now_{100'000'000};
};

void Job::StartAgent(bool refuses_large) {
  if (agent_ != nullptr) return;
  refuses_large_ = refuses_large;
  SegmentSourceOptions options;
  options.job = "model";
  options.run_id = RunId();
  options.max_segment_bytes = refuses_large ? kSmallSegment : kLargeSegment;
  options.files = std::make_unique<ModelDirectory>(world_);
  options.steady = [this] { return std::chrono::steady_clock::time_point(now_); };
  options.wall = [this] { return std::chrono::system_clock::time_point(now_); };
  options.ledger = {.file = StateOf(world_),
                    .saves_living = config_.state_elsewhere,
                    .run_id = RunId(),
                    .new_run = run_is_new_,
                    .processes = {.hide_ended = false},
                    .threaded = false,
                    .now = options.steady};
  run_is_new_ = false;
  state_was_read_ = false;
  agent_ = std::make_unique<SegmentSource>(std::move(options));
  for (Truth& truth : truths_) {
    truth.opened = false;
  }
}

void Job::EndAgent() { agent_.reset(); }

void Job::Collect(const Step& step, bool soon) {
  if (agent_ == nullptr) return;
  // A minute is longer than any delay after a failure.
  now_ += soon ? std::chrono::milliseconds(100) : std::chrono::minutes(1) + std::chrono::seconds(1);
  std::vector<Before> before;
  for (const Process& process : world_.processes) {
    before.push_back({process.counted, *process.alive});
  }
  world_.operations = 0;
  world_.before_operation = [&](uint32_t operation) {
    if (step.b == 0 || operation != step.a) return;
    if (step.b == 1) throw Killed();
    if (Process* last = Find(UINT32_MAX); last != nullptr && *last->alive) {
      last->Count(1);
      *last->alive = false;
    }
  };
  state_was_read_ = state_was_read_ || !world_.state_unreadable;
  try {
    const auto snapshot = agent_->Collect();
    double shown = 0;
    for (const FamilyLayout& family : snapshot->layout->families) {
      if (family.name != "my_app_batches") continue;
      for (const SeriesLayout& series : family.series) {
        shown += snapshot->values[series.first_value];
      }
    }
    Judge(shown, before, soon);
  } catch (const Killed&) {
    EndAgent();
  }
  world_.before_operation = [](uint32_t) {};
}

// `before`: each process when the collection began.
void Job::Judge(double shown, const std::vector<Before>& before, bool soon) {
  if (!state_was_read_) return;  // until then what is in it is missing, as the log says
  double least = 0;
  double most = 0;
  for (size_t i = first_; i < world_.processes.size(); ++i) {
    const Process& process = world_.processes[i];
    Truth& truth = truths_[i];
    truth.opened = truth.opened || (!soon && !truth.settled && CanOpen(process));
    const bool gone = !process.in_directory && !process.removed;
    truth.settled = truth.settled || (!truth.opened && gone && !world_.no_descriptors);
    // All that is in a file that the agent has removed is owed, unless it was final before the file came back.
    const bool all = process.removed && !truth.settled;
    const uint64_t owed = all ? process.counted : truth.opened ? before[i].counted : truth.durable;
    least += static_cast<double>(owed);
    most += static_cast<double>(process.counted);
    const bool saved = config_.state_elsewhere || !before[i].alive;
    if (!world_.disk_full && !soon && truth.opened && saved) truth.durable = owed;
  }
  const auto claim = [&](const std::string& what) {
    if (wrong_.empty()) {
      wrong_ = "shown " + std::to_string(static_cast<int64_t>(shown)) + what + std::to_string(static_cast<int64_t>(least)) +
               " to " + std::to_string(static_cast<int64_t>(most)) + " were counted";
    }
  };
  if (shown < least) claim(", lost: ");
  if (shown > most) claim(", counted twice: ");
  if (shown < floor_) claim(" after " + std::to_string(static_cast<int64_t>(floor_)) + ": ");
  if (!world_.disk_full && !soon && config_.state_elsewhere) floor_ = std::max(floor_, shown);
}

void Job::Do(const Step& step) {
  Process* process = Find(step.a);
  switch (step.what) {
    case Do::kStart:
      world_.Start(step.a % 2 == 1, RunId());
      truths_.emplace_back();
      break;
    case Do::kCount:
      if (process != nullptr && *process->alive) process->Count(step.b);
      break;
    case Do::kDie:
      if (process != nullptr) *process->alive = false;
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
    case Do::kDisk:
      world_.disk_full = !world_.disk_full;
      break;
    case Do::kState:
      world_.state_unreadable = !world_.state_unreadable;
      break;
    case Do::kOpen:
      world_.no_descriptors_in_open = !world_.no_descriptors_in_open;
      break;
    case Do::kList:
      world_.no_descriptors = !world_.no_descriptors;
      break;
    case Do::kBreak:
      if (process != nullptr) process->broken = !process->broken;
      break;
    case Do::kLose:
      if (!config_.state_elsewhere) break;  // the state would be lost with it
      for (size_t i = first_; i < world_.processes.size(); ++i) {
        world_.processes[i].in_directory = false;
        if (step.a % 2 == 0) *world_.processes[i].alive = false;
      }
      break;
    case Do::kReturn:
      for (size_t i = first_; i < world_.processes.size(); ++i) {
        world_.processes[i].in_directory = !world_.processes[i].removed;
      }
      break;
    case Do::kLimit:
      if (agent_ != nullptr) {
        refuses_large_ = !refuses_large_;
        agent_->SetLimits({}, refuses_large_ ? kSmallSegment : kLargeSegment, std::chrono::seconds(300), false);
      }
      break;
    case Do::kNewRun:
      for (Process& ended : world_.processes) {
        *ended.alive = false;
      }
      EndAgent();
      ++run_;
      run_is_new_ = true;
      first_ = world_.processes.size();
      floor_ = 0;
      break;
  }
}

void Job::Heal() {
  world_.disk_full = world_.state_unreadable = world_.no_descriptors = world_.no_descriptors_in_open = false;
  for (Process& process : world_.processes) {
    process.broken = false;
  }
  EndAgent();
  StartAgent(false);
  for (int i = 0; i < 2; ++i) {
    Collect({});
    for (Process& process : world_.processes) {
      *process.alive = false;
    }
  }
  Collect({});
  for (size_t i = first_; i < world_.processes.size(); ++i) {
    if (world_.processes[i].in_directory && wrong_.empty()) wrong_ = "the file " + world_.processes[i].name + " is left";
  }
}

// xorshift64*.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15 + 1) {}
  uint32_t Below(uint32_t limit) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>((state_ * 0x2545F4914F6CDD1D) >> 33) % limit;
  }

 private:
  uint64_t state_;
};

}  // namespace

std::vector<Step> RandomHistory(uint64_t seed) {
  Random random(seed);
  std::vector<Step> steps = {{Do::kAgent, random.Below(2)}, {Do::kStart, random.Below(2)}};
  const uint32_t length = 4 + random.Below(16);
  // What happens all the time happens more often.
  constexpr Do kUsual[] = {Do::kCollect, Do::kCollect, Do::kCollect, Do::kCount, Do::kCount, Do::kStart, Do::kAgent, Do::kDie};
  for (uint32_t i = 0; i < length; ++i) {
    Step step;
    step.what = random.Below(2) == 0 ? kUsual[random.Below(std::size(kUsual))]
                                     : static_cast<Do>(random.Below(static_cast<uint32_t>(Do::kLast) + 1));
    step.a = random.Below(step.what == Do::kCollect ? 12 : 6);
    step.b = step.what == Do::kCollect || step.what == Do::kSoon ? random.Below(3) : 1 + random.Below(9);
    steps.push_back(step);
  }
  return steps;
}

std::string Check(const std::vector<Step>& steps, const Config& config) {
  Job job(config);
  for (const Step& step : steps) {
    job.Do(step);
    if (!job.wrong().empty()) return job.wrong();
  }
  job.Heal();
  return job.wrong();
}

void Shrink(std::vector<Step>& steps, const Config& config) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t i = 0; i < steps.size(); ++i) {
      std::vector<Step> without = steps;
      without.erase(without.begin() + static_cast<ptrdiff_t>(i));
      if (!Check(without, config).empty()) {
        steps = std::move(without);
        smaller = true;
        break;
      }
      for (uint32_t Step::*number : {&Step::a, &Step::b}) {
        std::vector<Step> lower = steps;
        while (lower[i].*number > 0) {
          --(lower[i].*number);
          if (Check(lower, config).empty()) break;
          steps = lower;
          smaller = true;
        }
      }
    }
  }
}

std::string Print(const std::vector<Step>& steps, const Config& config) {
  std::string text = "  EXPECT_EQ(Check({";
  for (const Step& step : steps) {
    text += "{Do::" + std::string(kNames[static_cast<size_t>(step.what)]) + ", " + std::to_string(step.a) + ", " +
            std::to_string(step.b) + "}, ";
  }
  return text + "}, {.state_elsewhere = " + (config.state_elsewhere ? "true" : "false") + "}), \"\");\n";
}

}  // namespace persia::agent::model
