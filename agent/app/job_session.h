// One agent's hold on a job: its directory, its lock, and the run that it begins or goes on with.
//
//   Result<JobSession> session = JobSession::Begin(options);
//   if (session.value().other_agent()) ... it stands aside
//   ...
//   session.value().EndRun();   // only if the job has done its work
//
// A run is one execution of the job across restarts, of the job and of the agent: what was counted in it goes on counting. Its
// id is the configured one, else that of the run which agent.conf, or where that is lost the state, says is unfinished, else
// made up. A run that begins removes what former runs left in the directory.
// Thread safety: none.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/job_directory.h"
#include "app/options.h"
#include "model/result.h"
#include "state/state_file.h"

namespace persia::agent {

// Where the agent keeps what must outlive it: files `<prefix>.state`, `<prefix>.groups`.
struct StatePlace {
  int directory_fd = -1;
  std::string directory;
  std::string prefix;
  mode_t mode = 0600;

  [[nodiscard]] std::string Name(std::string_view kind) const { return prefix + "." + std::string(kind); }
};

// The file of what ended processes counted.
StateFile::Options RetiredStateFile(const StatePlace& place);

class JobSession {
 public:
  // Makes and locks the directory, and leaves word in agent.conf, also that metrics are off. With another agent there,
  // nothing is written.
  static Result<JobSession> Begin(const AgentOptions& options);

  // The pid of the agent that has the directory, as that wrote it; nothing if this one has it.
  [[nodiscard]] const std::optional<std::string>& other_agent() const { return other_agent_; }
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  // Whether an unfinished run goes on.
  [[nodiscard]] bool continued() const { return continued_; }
  // Of the other agent, if its run is not ours.
  [[nodiscard]] bool other_run() const { return other_run_; }
  [[nodiscard]] const JobDirectory& directory() const { return directory_; }

  // What a worker of this job finds in its environment.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> WorkerEnvironment() const;

  // As long as the session lives.
  [[nodiscard]] StatePlace state_place() const;

  // Whether a directory of ours was removed, or replaced, under way.
  [[nodiscard]] bool DirectoryIsGone() const;
  // Makes it again, with what stands in it but the state. Any thread, one at a time.
  Status RenewDirectory();

  // The run is over: the next one starts at zero; its state and the segments of this run whose writers have ended are removed.
  // Returns how many segments were. REQUIRES: no other agent.
  Result<size_t> EndRun();

 private:
  explicit JobSession(JobDirectory directory) : directory_(std::move(directory)) {}

  Status OpenStateDirectory(const AgentOptions& options);
  Result<size_t> RemoveSegments(const std::function<bool(const std::string& run_id)>& of_run) const;

  JobDirectory directory_;
  std::optional<JobDirectory> state_directory_;  // if it is another one
  std::string state_prefix_ = "agent";
  std::string job_;
  std::string run_id_;
  bool enabled_ = true;
  bool continued_ = false;
  bool other_run_ = false;
  std::optional<std::string> other_agent_;
};

// Where the segments of these options are.
std::string MetricsDirOf(const AgentOptions& options);

// A job as somebody sees it who only looks: nothing is made, locked or written.
struct JobView {
  std::string directory;
  std::string run_id = {};          // empty: no run is known
  std::optional<gid_t> group = {};  // of a shared directory
  // The state, if there is a directory for it; whose descriptor lives as long as this.
  std::optional<StateFile::Options> state = {};
  std::shared_ptr<JobDirectory> holds_state = {};
};
JobView LookAt(const AgentOptions& options);

}  // namespace persia::agent
