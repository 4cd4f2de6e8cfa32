// One agent's hold on a job: its directory, its lock, and the run that it begins or goes on with.
//
//   Result<JobSession> session = JobSession::Begin(options);
//   if (session.value().other_agent()) ... it stands aside
//   ...
//   session.value().EndRun();   // only if the job has done its work
//
// A run is one execution of the job across restarts, of the job and of the agent: what was counted in it goes on counting. Its
// id is the configured one, else that of the run which agent.conf says is unfinished, else made up.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/job_directory.h"
#include "app/options.h"
#include "model/result.h"

namespace persia::agent {

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

  // The run is over: the next one starts at zero, and segments of this run whose writers have ended are removed. Returns how
  // many were. REQUIRES: no other agent.
  Result<size_t> EndRun();

 private:
  explicit JobSession(JobDirectory directory) : directory_(std::move(directory)) {}

  JobDirectory directory_;
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
};
JobView LookAt(const AgentOptions& options);

}  // namespace persia::agent
