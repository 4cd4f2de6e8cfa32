// What the preparation of an `exec` and the agents do.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "shared_job.h"
#include "shown.h"

namespace persia::agent::model {

AgentOptions SharedJob::Options(const Participant& of) const {
  AgentOptions options;
  options.job_name = "model";
  options.has_job_name = true;
  options.metrics_dir = directory_;
  options.run_id = of.run;
  options.state_dir = state_directory_;
  options.replica = of.number;
  return options;
}

SegmentSourceOptions SharedJob::SourceOptions(const JobSession& session) {
  SegmentSourceOptions options;
  options.directory = directory_;
  options.job = "model";
  options.run_id = session.run_id();
  options.steady = [this] { return std::chrono::steady_clock::time_point(time_); };
  options.wall = [this] { return std::chrono::system_clock::time_point(time_ + std::chrono::hours(400'000)); };
  options.ledger = {.file = StateFileOf(session.state_location()),
                    .saves_living = !state_directory_.empty(),
                    .run_id = session.run_id(),
                    .new_run = !session.continued(),
                    .threaded = false,
                    .now = options.steady};
  return options;
}

const Participant* SharedJob::Collecting() const {
  for (const auto& participant : participants_) {
    if (participant != nullptr && participant->collects) return participant.get();
  }
  return nullptr;
}

// Of the agent that collects; empty: none has one.
std::string SharedJob::Page() const {
  const Participant* const of = Collecting();
  return of != nullptr && of->has_page ? PageOf(*of) : "";
}

void SharedJob::Prepare(Participant& exec) {
  auto session = JobSession::Begin(Options(exec), {}, Starter(exec));
  if (!session.ok()) return Claim(exec.name + ": " + session.error());
  const auto others = session.value().FileOfOthers();
  if (!others.ok()) return Claim(exec.name + ": " + others.error());
  exec.file_of_others = others.value();
  exec.run = session.value().run_id();
}

void SharedJob::AgentOfExec(Participant& exec) {
  const std::string page = Page();
  auto session = BeginInTurn(Options(exec), {}, Starter(exec),
                             {.place = PlaceOf(exec),
                              .is_restarted = exec.was_killed,
                              .command_has_ended = [&] { return exec.succeeded.has_value(); },
                              .pause =
                                  [&] {
                                    Pause();
                                    return false;
                                  },
                              .on_wait =
                                  [&](const JobSession& waiting) {
                                    if (!page.empty() && Page() == page && waiting.page() != page) {
                                      Claim(exec.name + " says that the values are on " + waiting.page());
                                    }
                                  }});
  if (!session) return;
  if (!session->ok()) return Claim(exec.name + ": " + session->error());
  if (!session->value().other_agent() && !session->value().run_is_over()) Collect(exec, session->value());
}

void SharedJob::AgentOfRun(Participant& run) {
  auto session = JobSession::Begin(Options(run));
  if (!session.ok()) return Claim(run.name + ": " + session.error());
  if (session.value().other_agent()) return;
  session.value().NoteCollecting(true);
  run.run = session.value().run_id();
  Collect(run, session.value());
}

void SharedJob::Collect(Participant& participant, JobSession& session) {
  if (const Participant* const other = Collecting(); other != nullptr) {
    Claim(participant.name + " collects while " + other->name + " does");
  }
  participant.collects = true;
  SegmentSource source(SourceOptions(session));
  if (!session.PublishPage(PageOf(participant)).ok()) Claim(participant.name + " cannot publish its page");
  participant.has_page = true;
  while (!participant.succeeded) {
    CollectAndPush(participant, source);
    Pause();
  }
  EndTurn(
      session, {.place = PlaceOf(participant), .is_complete = [&] { return *participant.succeeded; }},
      [&](bool) { CollectLast(participant, source); },
      [&] { EndRun(participant, session, source.lifecycle().CountedFiles()); });
  Moment();
  left_run_ = *participant.succeeded ? participant.run : "";
}

void SharedJob::CollectAndPush(Participant& participant, SegmentSource& source) {
  time_ += std::chrono::minutes(2);  // longer than any delay after a failure
  const auto before = oracle_.Now(participant.run);
  const AllShown shown = ShownIn(*source.Collect());
  Moment();
  HandoverOracle::Values values{};
  for (uint32_t i = 0; i < kJobIdentities; ++i) values[i] = static_cast<uint64_t>(shown.of[i].counts[0].value_or(0));
  oracle_.Shown(participant.name, participant.run, before, values);
  Moment();
  oracle_.Pushed(before);
  Moment();
}

// Leaves out the case that docs/guarantees.md excepts: no preparation is in progress when the agent looks for others, and none
// begins before the agent has ended.
void SharedJob::CollectLast(Participant& participant, SegmentSource& source) {
  CollectAndPush(participant, source);
  const auto is_prepared = [](const auto& other) {
    return other != nullptr && (other->is == Is::kPreparing || other->is == Is::kPrepared);
  };
  while (std::ranges::any_of(participants_, is_prepared)) Pause();
  ending_ = &participant;
}

void SharedJob::EndRun(Participant& participant, JobSession& session, const std::set<std::string>& counted) {
  for (const auto& other : participants_) {
    if (other != nullptr && other->is == Is::kRunning && !other->succeeded && other->run == participant.run) {
      Claim(participant.name + " ends the run while " + other->name + " goes on");
    }
  }
  oracle_.RunEnds(participant.name, participant.run);
  if (const auto removed = session.EndRun(counted); !removed.ok()) Claim(participant.name + ": " + removed.error());
}

}  // namespace persia::agent::model
