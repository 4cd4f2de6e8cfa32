#include "app/judgement.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "model/events.h"

namespace persia::agent {
namespace {

// An idle job writes the state, which has this time, no more often.
constexpr std::chrono::minutes kUnmarkedStep(1);
constexpr std::chrono::minutes kOrphansInterval(1);

HangJudge::Settings HangSettingsOf(const AgentOptions& options) {
  return {.interval = options.push_interval, .hang_after = options.hang_after};
}

JobEvent StacksEvent(const Process& process, const std::string& stacks, std::chrono::system_clock::time_point now) {
  JobEvent event =
      AgentEvent("worker_stacks", "the stacks of a process that hangs, pid " + std::to_string(process.id.pid), now);
  event.metadata.emplace_back("process", static_cast<int64_t>(process.ordinal));
  event.metadata.emplace_back("stacks", stacks);
  event.identity = process.identity;
  event.pid = process.id.pid;
  return event;
}

}  // namespace

Judgement::Judgement(const AgentSetup& setup, Clock& clock, EventLog& event_log, SegmentSource& segments, std::string boot_id)
    : setup_(setup),
      clock_(clock),
      event_log_(event_log),
      segments_(segments),
      state_(segments.ledger()),
      boot_id_(std::move(boot_id)),
      hang_settings_(HangSettingsOf(setup.options)),
      death_metrics_(AgentIdentity(setup)),
      goodput_metrics_(AgentIdentity(setup)) {
  if (setup.view) return;
  vitals_.emplace(Vitals::Options{.directory = setup.directory});
  vitals_->SetStderrLines(setup.options.stderr_tail);
}

void Judgement::Use(const AgentOptions& options) {
  hang_settings_ = HangSettingsOf(options);
  if (vitals_) vitals_->SetStderrLines(options.stderr_tail);
}

void Judgement::Judge(Depth depth) {
  CountTime();
  JudgeHealth(depth);
  JudgeRanks();
}

void Judgement::Show() {
  if (state_.Loaded() && state_.GoodputIsSaved()) goodput_.Saved();
  // Deaths that only this agent knows would be missing in the counts of the next one: they wait for the disk.
  if (state_.Loaded() && state_.HealthIsDurable()) death_metrics_.Show(health_.memory().deaths.totals);
}

void Judgement::End() {
  goodput_.Saved();
  if (vitals_) vitals_->RemoveOrphanedStacks();
}

void Judgement::AddTo(OwnSnapshots& own, const NanCounts& nan_counts) {
  if (death_metrics_.shows()) own.push_back(death_metrics_.Collect());
  own.push_back(rank_metrics_.Collect(*rank_verdicts_.report(), nan_counts));
  std::set<RankId> shown;
  for (const Process& process : segments_.processes()) shown.insert(process.rank);
  own.push_back(goodput_metrics_.Collect(*goodput_.report(), [&](const RankId& rank) {
    return shown.contains(rank) ? std::optional(segments_.IdentityOf(rank)) : std::nullopt;
  }));
}

// Judged with the hangs of the collection before.
void Judgement::CountTime() {
  if (!state_.Loaded()) return;
  const auto nanoseconds = [](auto moment) {
    return std::chrono::duration_cast<Goodput::Nanoseconds>(moment.time_since_epoch());
  };
  // In whole seconds: an adjustment of the clock alone is not saved.
  const auto zero = std::chrono::round<std::chrono::seconds>(nanoseconds(std::chrono::system_clock::now()) -
                                                             nanoseconds(std::chrono::steady_clock::now()));
  const MachineClocks clocks{boot_id_, zero, nanoseconds(segments_.read_at())};
  if (!std::exchange(goodput_is_restored_, true)) {
    if (auto accounts = DecodeGoodput(state_.goodput(), clocks)) goodput_.Restore(*std::move(accounts));
  }
  if (setup_.view) return;
  if (state_.GoodputIsSaved()) goodput_.Saved();
  const std::span<Process> processes = segments_.processes();
  for (Process& process : processes)
    process.hangs = process.alive && (health_.judge().job_hangs() || hung_.contains(process.id));
  Goodput::Moment moment{.now = nanoseconds(segments_.read_at()), .step = kUnmarkedStep};
  if (setup_.exec != nullptr && setup_.exec->CommandExitCode()) moment.over_at = nanoseconds(setup_.exec->ended_at());
  for (const SharedRanks::Pair& pair : shared_ranks_.Look(processes)) ReportShared(pair);
  goodput_.Look(processes, segments_.folded(), segments_.lifecycle().late_exits(), moment);
  if (!goodput_.accounts().empty()) state_.SetGoodput(EncodeGoodput(goodput_.accounts(), clocks));
}

void Judgement::ReportShared(const SharedRanks::Pair& pair) {
  JobEvent event = LoggedAgentEvent(LogLevel::kWarning, "rank_shared", SentenceOf(pair), std::chrono::system_clock::now());
  event.identity = segments_.IdentityOf(pair.rank);
  event_log_.Add({&event, 1});
}

void Judgement::JudgeHealth(Depth depth) {
  const auto now = std::chrono::system_clock::now();
  if (state_.Loaded() && !std::exchange(health_is_restored_, true)) {
    const auto memory = DecodeAs<HealthMemory>(state_.health());
    death_metrics_.Show(memory ? memory->deaths.totals : DeathMetrics::Totals{});
    if (memory) {
      health_.Restore(*memory, now);
      if (vitals_) vitals_->Restore(memory->deaths.kills);
    }
  }
  std::vector<Process> ends = segments_.Ends();
  if (vitals_) {
    vitals_->Describe(ends, clock_.Now());
    if (depth != Depth::kLook) vitals_->Look(segments_.processes(), clock_.Now());
    health_.SetKills(vitals_->kills());
  } else {
    ends.clear();  // the agent of the job reports them
  }
  health_.Look(segments_.processes(),
               {.steady = clock_.Now(),
                .wall = now,
                .settings = hang_settings_,
                .has_command = setup_.exec != nullptr,
                .exit_code = setup_.exec == nullptr ? std::nullopt : setup_.exec->CommandExitCode(),
                .began = setup_.exec == nullptr ? std::nullopt : std::optional(setup_.exec->began_at()),
                .interruption = setup_.exec == nullptr ? std::nullopt : setup_.exec->interruption(),
                .any_has_ended = segments_.stats().dead + segments_.stats().retired > 0,
                .ends = ends,
                .exit_of = [this](const Process& ended) { return segments_.lifecycle().ExitOf(ended.id); },
                .is_stopped = [this](const Process& process) { return IsStopped(process); }});
  hung_.clear();
  for (const Process& process : segments_.processes())
    if (process.verdict == HangVerdict::kHung) hung_.insert(process.id);
  if (vitals_) {
    LookForStacks();
    if (!orphans_removed_ || clock_.Now() - *orphans_removed_ >= kOrphansInterval) {
      orphans_removed_ = clock_.Now();
      vitals_->RemoveOrphanedStacks();
    }
  }
  const bool has_memory = !state_.health().empty() || health_.memory() != HealthMemory();
  if (has_memory) state_.SetHealth(Encode(health_.memory()));
  event_log_.Add(health_.TakeEvents());
}

// Of processes that hang. Those that opted in write the stacks of their threads for the next collection.
void Judgement::LookForStacks() {
  std::vector<JobEvent> events;
  for (const Process& process : segments_.processes()) {
    if (!process.alive) continue;
    if (const std::string stacks = vitals_->TakeStacks(process); !stacks.empty())
      events.push_back(StacksEvent(process, stacks, std::chrono::system_clock::now()));
    const bool hangs = health_.judge().job_hangs() || process.verdict == HangVerdict::kHung;
    hangs ? vitals_->AskForStacks(process) : vitals_->EndHang(process);
  }
  event_log_.Add(events);
}

void Judgement::JudgeRanks() {
  rank_verdicts_.Look(segments_.processes(),
                      {.steady = clock_.Now(),
                       .wall = std::chrono::system_clock::now(),
                       .interval = std::min<std::chrono::milliseconds>(hang_settings_.interval, kLookInterval),
                       .hang_after = health_.judge().hang_after(),
                       .is_stopped = [this](const Process& process) { return IsStopped(process); }});
  event_log_.Add(rank_verdicts_.TakeEvents());
}

bool Judgement::IsStopped(const Process& process) {
  const auto stat = process.alive ? proc_.StatOf(process.id) : std::nullopt;
  return stat && stat->IsStopped();
}

}  // namespace persia::agent
