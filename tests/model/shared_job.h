// One job, of which several agents run: each `exec` with its supervisor and its command, each `run`, and their workers.
//
//   SharedJob job(directory, config);
//   for (const Handover& step : steps) job.Do(step);
//   job.Finish();
//   job.wrong()                                 // the first contradiction; empty: all is right
//
// Preparations and agents are fibers: one goes on for some calls on files, then another one. Thread safety: one thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/owned_fd.h"
#include "fiber.h"
#include "file_calls.h"
#include "file_worker.h"
#include "handover.h"
#include "handover_oracle.h"
#include "job/job_session.h"
#include "job/turns.h"
#include "workers/segment_source.h"

namespace persia::agent::model {

inline constexpr uint32_t kPlaces = 3;

// An `exec` or a `run`.
struct Participant {
  enum class Is { kPreparing, kPrepared, kRunning, kOver };

  int number = 0;
  std::string name;
  bool is_exec = false;
  Is is = Is::kPreparing;
  std::string run;  // empty: it has none yet
  std::string file_of_others;
  uint64_t place = 0;  // among the supervisors; 0: it has none
  OwnedFd lock_of_place;
  std::optional<bool> succeeded;  // null: the command has not ended
  bool agent_is_done = false;
  bool is_killed = false;
  bool was_killed = false;  // a former agent
  bool ends = false;        // what is left on the killed one's stack is being destroyed
  bool collects = false;
  bool has_page = false;
  std::optional<FileWorker> worker;
  std::vector<size_t> workers;   // all of them
  std::unique_ptr<Fiber> agent;  // or the preparation
};

class SharedJob {
 public:
  // REQUIRES: the directory is empty.
  SharedJob(const std::string& directory, HandoverConfig config);
  ~SharedJob();

  void Do(const Handover& step);
  // Everybody ends, and an `exec` after them: all is counted, and nothing is left.
  void Finish();
  [[nodiscard]] const std::string& wrong() const { return oracle_.wrong(); }

 private:
  using Is = Participant::Is;

  bool BeforeCall(const FileCall& call);
  void NoteConf();
  static void End(Participant& participant);
  void Claim(const std::string& what);
  void Moment();
  void Pause();

  std::unique_ptr<Fiber> Begin(Participant& participant, void (SharedJob::*program)(Participant&));
  void GoOn(Participant& participant, uint32_t calls);
  void Supervise(Participant& exec);
  void Kill(Participant& participant);
  void KillAll(uint32_t place, bool with_command);
  void Leave(Participant& participant, bool succeeds);
  void FreePlace(uint32_t place);
  void EndAll();

  void Count(uint32_t place, uint64_t by);
  void Add(const FileWorker& worker, uint64_t by);
  void EndWorker(std::optional<FileWorker>& worker);

  // The programs.
  void Prepare(Participant& exec);
  void AgentOfExec(Participant& exec);
  void AgentOfRun(Participant& run);
  void Collect(Participant& participant, JobSession& session);
  void CollectAndPush(Participant& participant, SegmentSource& source);
  void CollectLast(Participant& participant, SegmentSource& source);
  void EndRun(Participant& participant, JobSession& session, const std::set<std::string>& counted);
  [[nodiscard]] AgentOptions Options(const Participant& of) const;
  [[nodiscard]] SegmentSourceOptions SourceOptions(const JobSession& session);
  static JobStarter Starter(const Participant& exec) { return {.process = exec.name, .command = "a command"}; }
  static Place PlaceOf(const Participant& exec) { return {.fd = exec.lock_of_place.get(), .number = exec.place}; }
  static std::string PageOf(const Participant& participant) { return "http://" + participant.name; }
  void JudgeEnd(const Participant& participant);
  [[nodiscard]] const Participant* Collecting() const;
  [[nodiscard]] std::string Page() const;

  const std::string directory_;
  const std::string state_directory_;  // empty: the state is beside the segments
  std::optional<JobDirectory> of_oracle_;
  HandoverOracle oracle_;
  std::array<std::unique_ptr<Participant>, kPlaces> participants_;
  std::array<std::optional<FileWorker>, kPlaces> orphans_;  // the last ones of agents that are gone
  Participant* now_ = nullptr;                              // whose preparation or agent goes on
  const Participant* ending_ = nullptr;                     // it looks for others
  std::string left_run_;                                    // of the last one that has collected, if it succeeded
  bool one_was_killed_ = false;                             // with its supervisor: it may have been the last one
  bool conf_is_new_ = false;                                // it has replaced agent.conf
  uint32_t calls_left_ = 0;
  bool waits_ = false;
  int started_ = 0;
  std::chrono::milliseconds time_{100'000'000};
  const FileCalls calls_{[this](const FileCall& call) { return BeforeCall(call); }};
};

}  // namespace persia::agent::model
