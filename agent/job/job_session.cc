#include "job/job_session.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>
#include <thread>

#include "base/text.h"
#include "files/small_file.h"
#include "job/state_name.h"
#include "kernel/proc_reader.h"
#include "ledger/ledger.h"
#include "lib/src/segment_format/job_directory.h"
#include "segment/segment_reader.h"

namespace persia::agent {
namespace {

constexpr std::chrono::milliseconds kLockInterval(20);
constexpr std::chrono::milliseconds kRunPatience(1000);
constexpr char kBesideSegments[] = "agent";  // begins the names of the state's files there

// What is known of a segment before its values are read.
struct SegmentUse {
  std::string run_id;
  bool is_in_use = false;  // its writer is alive, and is another process
};

// Nothing if the file is no readable segment.
std::optional<SegmentUse> UseOf(int directory, const char* name, const SegmentAccess& access) {
  SegmentProblem problem;
  const auto reader = SegmentReader::Open(directory, name, access, problem);
  static const uint64_t own_namespace = ProcReader().PidNamespace("self").value_or(0);
  if (reader == nullptr || !reader->Read(1, {}, problem)) return std::nullopt;
  const bool is_own =
      reader->header().pid == static_cast<uint32_t>(getpid()) && reader->header().pid_namespace == own_namespace;
  return SegmentUse{.run_id = reader->identity().run_id, .is_in_use = reader->WriterLives() && !is_own};
}

// Calls `each(name, use)` for each readable segment. False: the directory cannot be listed.
template <class Each>
bool ForEachSegment(const JobDirectory& directory, const Each& each) {
  const int fd = openat(directory.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fd < 0 ? nullptr : fdopendir(fd), &closedir);
  if (listing == nullptr) return false;
  const SegmentAccess access{.owner = geteuid(), .group = directory.group()};
  while (const dirent* entry = readdir(listing.get())) {
    if (!std::string_view(entry->d_name).ends_with(metrics::segment::kFileSuffix)) continue;
    if (const auto use = UseOf(directory.fd(), entry->d_name, access)) each(entry->d_name, *use);
  }
  return true;
}

// A directory that is set names the job, too.
bool HasName(const AgentOptions& options) { return options.has_job_name || !options.metrics_dir.empty(); }

// The pid of a process of ProcessText; empty: it does not live.
std::string PidIfAlive(const std::string& process) {
  std::string pid = process.substr(0, process.find(':'));
  pid_t number = 0;
  return ParseNumber(pid, number) && ProcessText(number) == process ? pid : "";
}

// Whether the job of agent.conf is the one of these settings.
bool IsSameJob(const AgentOptions& options, const JobStarter& starter, const AgentConf& conf) {
  if (HasName(options)) return conf.job.empty() || conf.job == options.job_name;
  return (!options.run_id.empty() && options.run_id == conf.run_id) ||
         (!starter.process.empty() && starter.process == conf.starter);
}

}  // namespace

bool HasProcesses(const JobDirectory& directory) {
  bool found = false;
  ForEachSegment(directory, [&](const char*, const SegmentUse& use) { found = found || use.is_in_use; });
  return found;
}

std::string MetricsDirOf(const AgentOptions& options) {
  return options.metrics_dir.empty() ? metrics::DefaultMetricsDir(geteuid(), options.job_name) : options.metrics_dir;
}

std::string ProcessText(pid_t pid) {
  ProcReader proc;
  const std::string who = std::to_string(pid);
  const auto stat = proc.Stat(who);
  const auto pid_namespace = proc.PidNamespace("self");
  if (!stat || !pid_namespace) return "";
  return who + ':' + std::to_string(stat->start_ticks) + ':' + std::to_string(*pid_namespace);
}

std::string CommandText(const std::vector<std::string>& command) {
  char directory[PATH_MAX];
  std::string text = getcwd(directory, sizeof directory) == nullptr ? "" : directory;
  for (const std::string& word : command) (text += '\0') += word;
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", Checksum(text));
  return digits;
}

std::shared_ptr<JournalFile> StateFileOf(const StateLocation& location) {
  return std::make_shared<DiskJournalFile>(DiskJournalFile::Options{.directory_fd = location.directory_fd,
                                                                    .directory = location.directory,
                                                                    .name = location.FileName("state"),
                                                                    .mode = location.mode});
}

JobView ViewJob(const AgentOptions& options) {
  JobView view{.directory = MetricsDirOf(options), .run_id = options.run_id};
  std::optional<int> state_replica;
  auto directory = JobDirectory::OpenExisting(view.directory, options.metrics_dir_group);
  if (directory.ok()) {
    const AgentConf conf = directory.value().ReadConf();
    if (conf.job == options.job_name) state_replica = conf.state_replica;
    view.group = directory.value().group();
    view.agent_pid = directory.value().Holder().value_or(LockHolder{}).pid;
    if (view.run_id.empty()) view.run_id = conf.run_id;
  } else if (access(view.directory.c_str(), F_OK) == 0 || errno != ENOENT) {
    view.refusal = directory.error();
  }
  auto state = options.state_dir.empty() ? std::move(directory)
                                         : JobDirectory::OpenExisting(options.state_dir, options.metrics_dir_group);
  if (state.ok()) {
    StateLocation location{.directory_fd = state.value().fd(), .directory = state.value().path(), .prefix = kBesideSegments};
    if (!options.state_dir.empty()) {
      if (!state_replica) state_replica = NotedReplica(state.value(), options.job_name, options.replica);
      location.prefix = StatePrefix(options.job_name, state_replica.value_or(options.replica));
    }
    view.state = StateFileOf(location);
    if (view.run_id.empty()) {
      const auto run = RunOfState(*view.state);
      view.run_id = run.ok() ? run.value() : "";
    }
  }
  return view;
}

Result<JobSession> JobSession::Begin(const AgentOptions& options, std::chrono::milliseconds patience,
                                     const JobStarter& starter) {
  auto directory = JobDirectory::Open({.path = MetricsDirOf(options), .group = options.metrics_dir_group});
  if (!directory.ok()) return Error{directory.error()};
  JobSession session(std::move(directory).value());
  session.job_ = options.job_name;
  session.enabled_ = options.enable_metrics;
  const auto has_run = [&] {
    const AgentConf conf = session.directory_.ReadConf();
    return !options.run_id.empty() || (!conf.run_id.empty() && !conf.ended);
  };
  auto other = session.directory_.Lock();
  for (std::chrono::milliseconds waited(0); other.ok() && other.value(); waited += kLockInterval) {
    if (waited >= (has_run() ? patience : std::max(patience, kRunPatience))) break;
    std::this_thread::sleep_for(kLockInterval);
    other = session.directory_.Lock();
  }
  if (!other.ok()) return Error{other.error()};
  session.other_agent_ = other.value();
  const AgentConf written = session.directory_.ReadConf();
  session.web_ = written.web;  // until this agent listens
  AgentConf former = written;
  if (!IsSameJob(options, starter, written)) {
    session.other_job_ = session.UserOfDirectory(written, starter);
    if (!session.other_job_.empty()) return session;
    // A lost file does not tell whose the state is.
    const bool may_continue = !HasName(options) && (written.run_id.empty() || starter.command == written.command);
    former.ended = former.ended || !may_continue;
  }
  // For another run, this host may have other replicas.
  const bool is_of_run = options.run_id.empty() ? !former.ended : options.run_id == written.run_id;
  if (written.job == options.job_name && is_of_run) session.state_replica_ = written.state_replica;
  if (!session.other_agent_) {
    if (Status opened = session.OpenStateDirectory(options); !opened.ok()) return Error{opened.error()};
  }
  if (starter.may_be_over && !session.other_agent_ && !written.run_id.empty() &&
      (written.ended || written.run_id != options.run_id)) {
    session.run_id_ = options.run_id;
    session.run_is_over_ = true;
    if (written.run_id == options.run_id) static_cast<void>(session.RemoveRun(nullptr));
    return session;
  }
  if (former.run_id.empty()) {
    const auto run = RunOfState(*StateFileOf(session.state_location()));
    if (!run.ok())
      return Error{run.error() + "; without it the run cannot be continued: make it readable, or remove it to start a new run"};
    former.run_id = run.value();
  }
  const bool unfinished = !former.ended && !former.run_id.empty();
  if (!options.run_id.empty())
    session.run_id_ = options.run_id;
  else
    session.run_id_ = unfinished ? former.run_id : MakeRunId();
  session.continued_ = unfinished && former.run_id == session.run_id_;
  session.other_run_ = session.other_agent_ && unfinished && !session.continued_;
  if (!session.other_agent_) {
    session.starter_ = starter;
    session.CountAttempt(written);
    const AgentConf wanted = session.Conf();
    // An unchanged file is not written, so that a restarted agent works in a full directory.
    // Nor does it need who started the job and when, and where the state is: workers read only the rest.
    AgentConf needed = wanted;
    needed.starter = written.starter;
    needed.command = written.command;
    needed.state_replica = written.state_replica;
    needed.attempt = written.attempt;
    needed.run_began = written.run_began;
    if (Status saved = wanted == written ? Status(Done{}) : session.directory_.WriteConf(wanted);
        !saved.ok() && needed != written)
      return Error{saved.error()};
    if (!session.continued_) {
      static_cast<void>(session.RemoveSegments(
          [&](const std::string& run_id) { return !run_id.empty() && (run_id != session.run_id_ || former.ended); }));
    }
  }
  return session;
}

// `exec` that run at the same time are one attempt.
void JobSession::CountAttempt(const AgentConf& former) {
  using std::chrono::system_clock;
  attempt_ = continued_ ? former.attempt : 1;
  run_began_ = continued_ ? former.run_began : system_clock::to_time_t(system_clock::now());
  const bool is_other_exec = !starter_.process.empty() && starter_.process != former.starter;
  if (continued_ && attempt_ > 0 && is_other_exec && !starter_.goes_on && PidIfAlive(former.starter).empty()) ++attempt_;
}

// Its agent, its supervisor, or a process of its run that outlived them.
std::string JobSession::UserOfDirectory(const AgentConf& conf, const JobStarter& starter) const {
  const std::string job = conf.job.empty() ? "" : " of job " + Quoted(conf.job);
  if (other_agent_) return "the agent with pid " + *other_agent_ + job;
  if (const std::string pid = PidIfAlive(conf.starter); !pid.empty()) return "exec with pid " + pid + job;
  bool in_use = false;
  if (!starter.process.empty() && !conf.ended && !conf.run_id.empty()) {
    ForEachSegment(
        directory_,
        [&](const char*, const SegmentUse& use) { in_use = in_use || (use.is_in_use && use.run_id == conf.run_id); });
  }
  return in_use ? "a process" + job : "";
}

AgentConf JobSession::Conf() const {
  return {.enabled = enabled_,
          .run_id = run_id_,
          .job = job_,
          .starter = starter_.process,
          .command = starter_.command,
          .web = web_,
          .state_replica = state_replica_,
          .attempt = attempt_,
          .run_began = run_began_};
}

Status JobSession::OpenStateDirectory(const AgentOptions& options) {
  if (options.state_dir.empty()) return Done{};
  auto opened = JobDirectory::Open({.path = options.state_dir, .group = options.metrics_dir_group});
  if (!opened.ok()) {
    state_error_ = "state_dir: " + opened.error() + "; the state is kept beside the segments";
    return Done{};
  }
  state_directory_ = std::move(opened).value();
  const int replica = state_replica_.value_or(options.replica);
  if (!state_replica_) {
    if (const auto noted = NotedReplica(*state_directory_, job_, options.replica)) {
      const auto other = LockState(*noted, {});
      if (other.ok() && !other.value()) return Done{};
    }
  }
  const auto other = LockState(replica, kRunPatience);
  if (!other.ok()) return Error{"state_dir: " + other.error()};
  if (other.value()) {
    state_error_ = "state_dir: the agent with pid " + *other.value() + " uses " + options.state_dir + "/" + state_prefix_ +
                   ".state already; this one keeps its state beside the segments; give it another state_dir or another "
                   "replica (REPLICA_INDEX)";
    state_directory_.reset();
    state_replica_.reset();
    state_prefix_ = kBesideSegments;
  }
  return Done{};
}

// The pid of another agent, if that has the lock for all of `patience`. One that ends or is killed frees the job's lock first.
Result<std::optional<std::string>> JobSession::LockState(int replica, std::chrono::milliseconds patience) {
  state_replica_ = replica;
  state_prefix_ = StatePrefix(job_, replica);
  const std::string name = state_prefix_ + ".lock";
  auto other = state_directory_->Lock(name);
  for (std::chrono::milliseconds waited(0); other.ok() && other.value() && waited < patience; waited += kLockInterval) {
    std::this_thread::sleep_for(kLockInterval);
    other = state_directory_->Lock(name);
  }
  return other;
}

void JobSession::NoteStateName(const AgentOptions& options) const {
  if (options.state_dir.empty() || !state_replica_) return;
  const auto state = JobDirectory::OpenExisting(options.state_dir, options.metrics_dir_group);
  if (state.ok()) NoteReplica(state.value(), job_, options.replica, *state_replica_);
}

StateLocation JobSession::state_location() const {
  const JobDirectory& directory = state_directory_ ? *state_directory_ : directory_;
  return {.directory_fd = directory.fd(),
          .directory = directory.path(),
          .prefix = state_prefix_,
          .mode = static_cast<mode_t>(directory.group() ? 0660 : 0600)};
}

bool JobSession::HasState() const {
  const auto run = RunOfState(*StateFileOf(state_location()));
  return run.ok() && run.value() == run_id_;
}

std::vector<std::pair<std::string, std::string>> JobSession::WorkerEnvironment() const {
  std::vector<std::pair<std::string, std::string>> environment = {{"PERSIA_METRICS_DIR", directory_.path()},
                                                                  {"PERSIA_JOB_NAME", job_},
                                                                  {"PERSIA_RUN_ID", run_id_},
                                                                  {"PERSIA_METRICS_ENABLED", enabled_ ? "1" : "0"}};
  if (directory_.group()) environment.emplace_back("PERSIA_METRICS_DIR_GROUP", std::to_string(*directory_.group()));
  return environment;
}

Status JobSession::PublishPage(const std::string& url) {
  if (url == web_) return Done{};
  web_ = url;
  return directory_.WriteConf(Conf());
}

Status JobSession::RecreateDirectory() {
  if (state_directory_ && state_directory_->WasRemoved()) {
    if (Status recreated = state_directory_->Recreate(); !recreated.ok()) return Error{"state_dir: " + recreated.error()};
  }
  if (!directory_.WasRemoved()) return Done{};
  if (Status recreated = directory_.Recreate(); !recreated.ok()) return recreated;
  return directory_.WriteConf(Conf());
}

Result<JobSession::Removal> JobSession::EndRun(const std::set<std::string>& counted) {
  AgentConf conf = Conf();
  conf.ended = true;
  const Status written = directory_.WriteConf(conf);
  if (!written.ok()) return Error{written.error()};
  return RemoveRun(&counted);
}

// `counted`: as RemoveSegments.
Result<JobSession::Removal> JobSession::RemoveRun(const std::set<std::string>* counted) const {
  if (Status removed = StateFileOf(state_location())->Remove(); !removed.ok()) return Error{removed.error()};
  for (const char* kind : {"events", "gpu"})
    unlinkat(state_location().directory_fd, state_location().FileName(kind).c_str(), 0);  // may not exist
  if (state_directory_) RemoveNotes(*state_directory_, job_, *state_replica_);
  return RemoveSegments([this](const std::string& run_id) { return run_id.empty() || run_id == run_id_; }, counted);
}

// Removes the segments of the runs that `of_run` accepts whose writers have ended, and this process's own. `counted`: null:
// all.
Result<JobSession::Removal> JobSession::RemoveSegments(const std::function<bool(const std::string& run_id)>& of_run,
                                                       const std::set<std::string>* counted) const {
  Removal removal;
  const bool listed = ForEachSegment(directory_, [&](const char* name, const SegmentUse& use) {
    if (use.is_in_use || !of_run(use.run_id)) return;
    if (counted != nullptr && !counted->contains(name))
      ++removal.kept;
    else if (unlinkat(directory_.fd(), name, 0) == 0)
      ++removal.removed;
  });
  if (!listed) return Error{"cannot list " + directory_.path()};
  return removal;
}

}  // namespace persia::agent
