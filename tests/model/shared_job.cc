#include "shared_job.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "temporary_directory.h"
#include "world.h"

namespace persia::agent::model {
namespace {

constexpr uint32_t kUntilItWaits = 1'000'000;  // calls on files
constexpr int kMostRounds = 100;

}  // namespace

SharedJob::SharedJob(const std::string& directory, HandoverConfig config)
    : directory_(directory + "/job"), state_directory_(config.has_state_dir ? directory + "/state" : "") {}

SharedJob::~SharedJob() {
  for (const auto& participant : participants_) {
    if (participant != nullptr) Kill(*participant);
  }
}

// Here another one may go on, or this one is killed: then its calls do nothing, and the first that may throw ends it.
bool SharedJob::BeforeCall(const FileCall& call) {
  if (now_ == nullptr) return true;
  NoteConf();
  waits_ = waits_ || call.kind == FileCall::Kind::kWait;
  if (!now_->is_killed && (--calls_left_ == 0 || waits_)) Fiber::Yield();
  if (now_->is_killed && call.may_throw) End(*now_);
  conf_is_new_ = !now_->is_killed && call.kind == FileCall::Kind::kRename && call.name == "agent.conf";
  return !now_->is_killed;
}

// REQUIRES: it is killed.
void SharedJob::End(Participant& participant) {
  if (!std::exchange(participant.ends, true)) throw Killed();
}

void SharedJob::Moment() { BeforeCall({}); }

void SharedJob::Pause() { BeforeCall({.kind = FileCall::Kind::kWait}); }

void SharedJob::Claim(const std::string& what) {
  if (now_ != nullptr && now_->is_killed) End(*now_);
  oracle_.Claim(what);
}

void SharedJob::NoteConf() {
  if (!std::exchange(conf_is_new_, false)) return;
  Participant* const writer = std::exchange(now_, nullptr);  // this call is the oracle's
  if (!of_oracle_) of_oracle_ = JobDirectory::OpenExisting(directory_).value();
  oracle_.Wrote(writer->name, of_oracle_->ReadConf());
  now_ = writer;
}

void SharedJob::GoOn(Participant& participant, uint32_t calls) {
  if (participant.agent == nullptr) return Supervise(participant);
  calls_left_ = calls == 0 ? kUntilItWaits : calls;
  waits_ = false;
  now_ = &participant;
  participant.agent->Resume();
  NoteConf();
  now_ = nullptr;
  if (!participant.agent->has_ended()) return;
  participant.agent.reset();
  participant.collects = participant.has_page = false;
  if (ending_ == &participant) ending_ = nullptr;
  const bool was_killed = std::exchange(participant.is_killed, false);
  participant.was_killed = participant.was_killed || was_killed;
  participant.ends = false;
  if (participant.is == Is::kPreparing) {
    participant.is = was_killed || participant.run.empty() ? Is::kOver : Is::kPrepared;
  } else {
    participant.agent_is_done = !was_killed;
    if (!was_killed && !participant.run.empty()) JudgeEnd(participant);
  }
  if (!participant.is_exec) participant.is = Is::kOver;
}

// Starts the command or the agent, or sees the agent's end.
void SharedJob::Supervise(Participant& exec) {
  if (exec.is == Is::kPrepared) {
    exec.place = 1000 * static_cast<uint64_t>(exec.number);
    exec.lock_of_place = OwnedFd(open(exec.file_of_others.c_str(), O_RDONLY | O_CLOEXEC));
    struct flock lock {};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(exec.place);
    lock.l_len = 1;
    if (fcntl(exec.lock_of_place.get(), F_OFD_SETLK, &lock) != 0) Claim(exec.name + " has no place");
    exec.is = Is::kRunning;
  }
  if (exec.is != Is::kRunning) return;
  if (!exec.agent_is_done) {
    exec.agent = Begin(exec, &SharedJob::AgentOfExec);
  } else {
    exec.lock_of_place = OwnedFd();
    if (exec.succeeded) exec.is = Is::kOver;
  }
}

std::unique_ptr<Fiber> SharedJob::Begin(Participant& participant, void (SharedJob::*program)(Participant&)) {
  return std::make_unique<Fiber>([this, &participant, program] {
    try {
      (this->*program)(participant);
    } catch (const Killed&) {
    }
  });
}

void SharedJob::Kill(Participant& participant) {
  if (participant.agent == nullptr) return;
  if (!participant.agent->has_begun()) {
    participant.agent.reset();
    if (!participant.is_exec || participant.is == Is::kPreparing) participant.is = Is::kOver;
    return;
  }
  participant.is_killed = true;
  GoOn(participant, 0);
}

void SharedJob::KillAll(uint32_t place, bool with_command) {
  Participant& participant = *participants_[place];
  one_was_killed_ = true;
  Kill(participant);
  for (const size_t number : participant.workers) oracle_.worker(number).excused = true;
  if (with_command && participant.is_exec) EndWorker(participant.worker);
  participant.lock_of_place = OwnedFd();
  participant.is = Is::kOver;
}

// Workers that outlive their agent go on.
void SharedJob::FreePlace(uint32_t place) {
  std::unique_ptr<Participant>& participant = participants_[place];
  if (participant == nullptr || participant->is != Is::kOver) return;
  if (participant->worker) {
    EndWorker(orphans_[place]);
    oracle_.worker(participant->worker->number()).excused = true;
    orphans_[place] = std::move(participant->worker);
  }
  participant.reset();
}

void SharedJob::Add(const FileWorker& worker, uint64_t by) { worker.SetCount(oracle_.worker(worker.number()).count += by); }

void SharedJob::EndWorker(std::optional<FileWorker>& worker) {
  if (worker) oracle_.worker(worker->number()).alive = false;
  worker.reset();
}

void SharedJob::Count(uint32_t place, uint64_t by) {
  Participant* const participant = participants_[place].get();
  const bool has_job = participant != nullptr && participant->is == Is::kRunning && !participant->succeeded &&
                       (participant->is_exec || participant->collects);
  if (has_job && !participant->worker) {
    const uint32_t identity = static_cast<uint32_t>(participant->number) % kJobIdentities;
    const size_t number = oracle_.Start(participant->run, identity);
    participant->worker.emplace(directory_, number, participant->run, identity);
    participant->workers.push_back(number);
  }
  if (has_job) {
    Add(*participant->worker, by);
  } else if (orphans_[place]) {
    Add(*orphans_[place], by);
  }
}

void SharedJob::Leave(Participant& participant, bool succeeds) {
  if (participant.is != Is::kRunning || participant.succeeded) return;
  if (participant.is_exec) EndWorker(participant.worker);
  const bool may_end = participant.is_exec || !succeeds || (participant.collects && !oracle_.AnyAlive(participant.run));
  if (may_end) participant.succeeded = succeeds;
  if (participant.is_exec && !participant.lock_of_place.valid()) participant.is = Is::kOver;
}

// The agent of a participant has ended.
void SharedJob::JudgeEnd(const Participant& participant) {
  const auto goes_on = [&](const auto& other) {
    return other != nullptr && other->is != Is::kOver && !other->agent_is_done && other->run == participant.run;
  };
  if (std::ranges::any_of(participants_, goes_on) || one_was_killed_) return;
  if (participant.run == left_run_ && !oracle_.HasEnded(participant.run)) {
    Claim(participant.name + " is the last one of a run that has not ended");
  }
  for (const size_t number : participant.workers) {
    const HandoverOracle::Worker& worker = oracle_.worker(number);
    if (!worker.alive && worker.pushed != worker.count) Claim(participant.name + " has ended before its counts were pushed");
  }
}

void SharedJob::Do(const Handover& step) {
  const uint32_t place = step.a % kPlaces;
  FreePlace(place);
  std::unique_ptr<Participant>& participant = participants_[place];
  const auto start = [&](bool is_exec) {
    if (participant != nullptr) return;
    participant = std::make_unique<Participant>();
    participant->number = ++started_;
    participant->is_exec = is_exec;
    participant->name = (is_exec ? "exec " : "run ") + std::to_string(started_);
    participant->is = is_exec ? Is::kPreparing : Is::kRunning;
    participant->agent = Begin(*participant, is_exec ? &SharedJob::Prepare : &SharedJob::AgentOfRun);
  };
  switch (step.what) {
    case Handover::Do::kExec:
      if (ending_ == nullptr) start(/*is_exec=*/true);
      return;
    case Handover::Do::kRun:
      return start(/*is_exec=*/false);
    case Handover::Do::kGo:
      if (participant != nullptr) GoOn(*participant, step.b);
      return;
    case Handover::Do::kCount:
      return Count(place, step.b);
    case Handover::Do::kEnd:
      return EndWorker(participant != nullptr && participant->worker ? participant->worker : orphans_[place]);
    case Handover::Do::kLeave:
      if (participant != nullptr) Leave(*participant, step.b % 2 == 0);
      return;
    case Handover::Do::kKill:
      if (participant != nullptr) Kill(*participant);
      return;
    case Handover::Do::kKillAll:
      if (participant != nullptr) KillAll(place, step.b % 2 == 0);
      return;
  }
}

void SharedJob::EndAll() {
  for (int round = 0; round < kMostRounds; ++round) {
    bool any = false;
    for (uint32_t place = 0; place < kPlaces; ++place) {
      EndWorker(orphans_[place]);
      if (participants_[place] != nullptr) EndWorker(participants_[place]->worker);
    }
    for (uint32_t place = 0; place < kPlaces; ++place) {
      if (participants_[place] != nullptr && participants_[place]->is != Is::kOver) {
        any = true;
        Leave(*participants_[place], /*succeeds=*/true);
        GoOn(*participants_[place], 0);
      }
      FreePlace(place);
    }
    if (!any) return;
  }
  Claim("an agent waits for ever");
}

void SharedJob::Finish() {
  EndAll();
  for (const Handover::Do what : {Handover::Do::kExec, Handover::Do::kGo, Handover::Do::kGo, Handover::Do::kCount}) {
    Do({.what = what, .a = 0, .b = what == Handover::Do::kCount ? 1U : 0U});
  }
  EndAll();
  oracle_.Judge();
  for (const std::string& directory : {directory_, state_directory_}) {
    if (!std::filesystem::exists(directory)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      const std::string name = entry.path().filename();
      const bool is_left = name.ends_with(".seg") && !oracle_.worker(std::stoul(name)).excused;
      if (is_left || name.ends_with(".state") || name.ends_with(".host")) Claim("the file " + name + " is left");
    }
  }
}

std::string Check(const std::vector<Handover>& steps, HandoverConfig config) {
  thread_local const TemporaryDirectory directory("/dev/shm");
  std::filesystem::remove_all(directory / "all");
  std::filesystem::create_directory(directory / "all");
  SharedJob job(directory / "all", config);
  for (const Handover& step : steps) {
    job.Do(step);
    if (!job.wrong().empty()) return job.wrong();
  }
  job.Finish();
  return job.wrong();
}

}  // namespace persia::agent::model
