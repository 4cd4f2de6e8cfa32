// One agent's session with a job: the job's directory, its lock, and the run, which is new or continued.
//
//   Result<JobSession> session = JobSession::Begin(options);
//   if (session.value().other_agent()) ... another agent collects
//   ...
//   session.value().EndRun();   // only if the job is complete
//
// A run is one execution of the job, across restarts of the job and of the agent: its counters continue. Its id is the
// configured one, else that of the unfinished run in agent.conf or, if that file is lost, in the state, else a random one. A
// new run removes the segments of previous runs from the directory.
//
// Agents in one directory have the same job if they have the same job_name. A job without a name is the same only if its run
// id is, or the supervisor that started it. What continues a run: config/README.md.
// Thread safety: none.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/options.h"
#include "files/journal_file.h"
#include "job/job_directory.h"

namespace persia::agent {

// Where the agent keeps its state files: `<prefix>.state`, `<prefix>.groups`, `<prefix>.events`.
struct StateLocation {
  int directory_fd = -1;
  std::string directory;
  std::string prefix;
  mode_t mode = 0600;

  [[nodiscard]] std::string FileName(std::string_view kind) const { return prefix + "." + std::string(kind); }
};

// Which `exec` starts the job, for AgentConf.
struct JobStarter {
  std::string process = {};  // of ProcessText
  std::string command = {};
  // The run of the settings may be over, and all of the command's counts pushed: by an agent of this `exec` that was killed
  // after the command's end, or by another one's.
  bool may_be_over = false;
  // This agent goes on with an attempt of the run: after a former agent of its `exec`, or after another `exec` that ran beside
  // it.
  bool goes_on = false;
};
// A process, so that another one with its pid is told from it; empty if /proc cannot be read.
std::string ProcessText(pid_t pid);
// The command with the working directory, as a hash.
std::string CommandText(const std::vector<std::string>& command);

// The file of the ledger.
std::shared_ptr<JournalFile> StateFileOf(const StateLocation& location);

class JobSession {
 public:
  // Creates and locks the directory and writes agent.conf, even if metrics are disabled. If another agent holds the lock for
  // all of `patience`, Begin writes nothing. (A killed agent holds the lock for a moment longer.) While that agent begins or
  // ends a run, there is none to continue, and Begin waits for up to a second.
  static Result<JobSession> Begin(const AgentOptions& options, std::chrono::milliseconds patience = {},
                                  const JobStarter& starter = {});

  // What uses the directory for another job, for messages; empty: nothing does. If something does, Begin has written nothing.
  // REQUIRES for all other methods but directory() and other_agent(): it is empty.
  [[nodiscard]] const std::string& other_job() const { return other_job_; }

  // The pid of another agent that holds the lock; nothing if this one does.
  [[nodiscard]] const std::optional<std::string>& other_agent() const { return other_agent_; }
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  // Whether an unfinished run is continued.
  [[nodiscard]] bool continued() const { return continued_; }
  // How many `exec` have run the job, one after another, in this run; 0: not known.
  [[nodiscard]] int attempt() const { return attempt_; }
  // In seconds since 1970; 0: not known.
  [[nodiscard]] int64_t run_began() const { return run_began_; }
  // Whether an agent has saved a state of the run: one that `exec` has just begun has none, although its agent continues it.
  [[nodiscard]] bool HasState() const;
  // Why state_dir cannot be opened, so that the state is beside the segments; empty: it is open, or not set.
  [[nodiscard]] const std::string& state_error() const { return state_error_; }
  // Whether the other agent collects another run.
  [[nodiscard]] bool other_run() const { return other_run_; }
  // Whether JobStarter::may_be_over is so. Begin then changes nothing, but removes what is left of a run that has ended.
  [[nodiscard]] bool run_is_over() const { return run_is_over_; }
  [[nodiscard]] const JobDirectory& directory() const { return directory_; }

  // The environment variables for a worker of this job.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> WorkerEnvironment() const;

  // In `state_dir`: for the next agent with this one's replica, if agent.conf is lost.
  void NoteStateName(const AgentOptions& options) const;

  // Valid as long as the session lives.
  [[nodiscard]] StateLocation state_location() const;

  // Whether the metrics directory, or the agent's lock in it, was removed or replaced.
  [[nodiscard]] bool DirectoryWasRemoved() const { return directory_.WasRemoved(); }
  // The same of the directory of the state. It may be on a disk that hangs.
  [[nodiscard]] bool StateDirectoryWasRemoved() const {
    return (state_directory_ ? *state_directory_ : directory_).WasRemoved();
  }
  // The URL of the page of the agent that collects; empty: there is none.
  [[nodiscard]] const std::string& page() const { return web_; }
  // Writes the URL of the agent's page into agent.conf, for `top`; empty: there is no page. REQUIRES: no other agent; not
  // during RecreateDirectory.
  Status PublishPage(const std::string& url);
  // Creates it again, with agent.conf but without the state files. Any thread, one at a time.
  Status RecreateDirectory();

  // As of JobDirectory.
  Result<std::string> FileOfOthers() { return directory_.FileOfOthers(); }
  [[nodiscard]] bool HasOthers(uint64_t own_place = 0) const { return directory_.HasOthers(own_place); }
  [[nodiscard]] std::optional<LockHolder> Holder() const { return directory_.Holder(); }
  void NoteCollecting(bool collects) { directory_.NoteCollecting(collects); }

  // Segments whose writers have ended.
  struct Removal {
    size_t removed = 0;
    size_t kept = 0;  // their values are not counted
  };
  // Ends the run: the next one starts at zero. Removes its state, and its segments whose writers have ended, of those in
  // `counted`, names of files. REQUIRES: no other agent.
  Result<Removal> EndRun(const std::set<std::string>& counted);

 private:
  explicit JobSession(JobDirectory directory) : directory_(std::move(directory)) {}

  void CountAttempt(const AgentConf& former);
  [[nodiscard]] std::string UserOfDirectory(const AgentConf& conf, const JobStarter& starter) const;
  [[nodiscard]] AgentConf Conf() const;
  Status OpenStateDirectory(const AgentOptions& options);
  Result<std::optional<std::string>> LockState(int replica, std::chrono::milliseconds patience);
  Result<Removal> RemoveRun(const std::set<std::string>* counted) const;
  Result<Removal> RemoveSegments(const std::function<bool(const std::string& run_id)>& of_run,
                                 const std::set<std::string>* counted = nullptr) const;

  JobDirectory directory_;
  std::optional<JobDirectory> state_directory_;  // unless it is the metrics directory
  std::optional<int> state_replica_;             // in the names of its files; before it is open, what agent.conf says
  std::string state_prefix_ = "agent";
  std::string state_error_;
  std::string job_;
  std::string run_id_;
  std::string web_;
  JobStarter starter_;
  int attempt_ = 0;
  int64_t run_began_ = 0;
  bool enabled_ = true;
  bool continued_ = false;
  bool other_run_ = false;
  bool run_is_over_ = false;
  std::optional<std::string> other_agent_;
  std::string other_job_;
};

// Whether a process records in the directory.
bool HasProcesses(const JobDirectory& directory);

// The directory of the segments.
std::string MetricsDirOf(const AgentOptions& options);

// A job for a command that only reads: nothing is created, locked or written.
struct JobView {
  std::string directory;
  std::string run_id = {};                  // empty: no run is known
  std::optional<gid_t> group = {};          // of a shared directory
  std::shared_ptr<JournalFile> state = {};  // null: its directory does not exist
  uint32_t agent_pid = 0;                   // of the agent that collects; 0: none
  std::string refusal = {};                 // why a directory that exists is not read
};
JobView ViewJob(const AgentOptions& options);

}  // namespace persia::agent
