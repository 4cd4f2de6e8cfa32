#include "job/job_session.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string_view>
#include <thread>

#include "files/proc_reader.h"
#include "ledger/ledger.h"
#include "lib/src/segment_format/job_directory.h"
#include "segment/segment_reader.h"

namespace persia::agent {
namespace {

constexpr std::chrono::milliseconds kLockInterval(20);

// The run of a segment whose writer has ended, or is this process; nothing if the file is no segment or its writer is alive.
std::optional<std::string> RunOfEnded(int directory, const char* name, const SegmentAccess& access) {
  SegmentProblem problem;
  const auto reader = SegmentReader::Open(directory, name, access, problem);
  static const uint64_t own_namespace = ProcReader().PidNamespace("self").value_or(0);
  const auto own = [&] {
    return reader->header().pid == static_cast<uint32_t>(getpid()) && reader->header().pid_namespace == own_namespace;
  };
  if (reader == nullptr || (reader->WriterLives() && !own()) || !reader->Read(1, {}, problem)) return std::nullopt;
  return reader->identity().run_id;
}

// The agents of several jobs and replicas may share a state directory.
std::string StatePrefix(const AgentOptions& options) {
  return options.state_dir.empty() ? "agent"
                                   : metrics::EncodeJobName(options.job_name) + ".rep_" + std::to_string(options.replica);
}

}  // namespace

std::string MetricsDirOf(const AgentOptions& options) {
  return options.metrics_dir.empty() ? metrics::DefaultMetricsDir(geteuid(), options.job_name) : options.metrics_dir;
}

std::shared_ptr<JournalFile> StateFileOf(const StateLocation& location) {
  return std::make_shared<DiskJournalFile>(DiskJournalFile::Options{.directory_fd = location.directory_fd,
                                                                    .directory = location.directory,
                                                                    .name = location.FileName("state"),
                                                                    .mode = location.mode});
}

JobView ViewJob(const AgentOptions& options) {
  JobView view{.directory = MetricsDirOf(options), .run_id = options.run_id};
  auto directory = JobDirectory::OpenExisting(view.directory);
  if (directory.ok()) {
    view.group = directory.value().group();
    if (view.run_id.empty()) {
      view.run_id = directory.value().ReadConf().run_id;
    }
  }
  auto state = options.state_dir.empty() ? std::move(directory) : JobDirectory::OpenExisting(options.state_dir);
  if (state.ok()) {
    view.state =
        StateFileOf({.directory_fd = state.value().fd(), .directory = state.value().path(), .prefix = StatePrefix(options)});
    if (view.run_id.empty()) {
      const auto run = RunOfState(*view.state);
      view.run_id = run.ok() ? run.value() : "";
    }
  }
  return view;
}

Result<JobSession> JobSession::Begin(const AgentOptions& options, std::chrono::milliseconds patience) {
  auto directory = JobDirectory::Open({.path = MetricsDirOf(options),
                                       .group = options.metrics_dir_group,
                                       .private_parent = options.metrics_dir.empty() && options.metrics_dir_group.empty()});
  if (!directory.ok()) {
    return Error{directory.error()};
  }
  JobSession session(std::move(directory).value());
  session.job_ = options.job_name;
  session.enabled_ = options.enable_metrics;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  auto other = session.directory_.Lock();
  while (other.ok() && other.value() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kLockInterval);
    other = session.directory_.Lock();
  }
  if (!other.ok()) {
    return Error{other.error()};
  }
  session.other_agent_ = other.value();
  if (!session.other_agent_) {
    if (Status opened = session.OpenStateDirectory(options); !opened.ok()) {
      return Error{opened.error()};
    }
  }
  const AgentConf written = session.directory_.ReadConf();
  AgentConf former = written;
  if (former.run_id.empty()) {
    const auto run = RunOfState(*StateFileOf(session.state_location()));
    if (!run.ok()) {
      return Error{run.error() + "; without it the run cannot be continued: make it readable, or remove it to start a new run"};
    }
    former.run_id = run.value();
  }
  const bool unfinished = !former.ended && !former.run_id.empty();
  if (!options.run_id.empty()) {
    session.run_id_ = options.run_id;
  } else {
    session.run_id_ = unfinished ? former.run_id : MakeRunId();
  }
  session.continued_ = unfinished && former.run_id == session.run_id_;
  session.other_run_ = session.other_agent_ && unfinished && !session.continued_;
  if (!session.other_agent_) {
    const AgentConf wanted{.enabled = session.enabled_, .run_id = session.run_id_, .job = session.job_};
    // An unchanged file is not written, so that a restarted agent works in a full directory.
    if (Status saved = wanted == written ? Status(Done{}) : session.directory_.WriteConf(wanted); !saved.ok()) {
      return Error{saved.error()};
    }
    if (!session.continued_) {
      static_cast<void>(session.RemoveSegments(
          [&](const std::string& run_id) { return !run_id.empty() && (run_id != session.run_id_ || former.ended); }));
    }
  }
  return session;
}

Status JobSession::OpenStateDirectory(const AgentOptions& options) {
  if (options.state_dir.empty()) {
    return Done{};
  }
  auto opened = JobDirectory::Open({.path = options.state_dir, .group = options.metrics_dir_group});
  if (!opened.ok()) {
    state_error_ = "state_dir: " + opened.error() + "; the state is kept beside the segments";
    return Done{};
  }
  state_directory_ = std::move(opened).value();
  state_prefix_ = StatePrefix(options);
  const auto other = state_directory_->Lock(state_prefix_ + ".lock");
  if (!other.ok()) {
    return Error{"state_dir: " + other.error()};
  }
  if (other.value()) {
    return Error{"state_dir: the agent with pid " + *other.value() + " uses " + options.state_dir + "/" + state_prefix_ +
                 ".state already; give this one another state_dir or another replica (REPLICA_INDEX)"};
  }
  return Done{};
}

StateLocation JobSession::state_location() const {
  const JobDirectory& directory = state_directory_ ? *state_directory_ : directory_;
  return {.directory_fd = directory.fd(),
          .directory = directory.path(),
          .prefix = state_prefix_,
          .mode = static_cast<mode_t>(directory.group() ? 0660 : 0600)};
}

std::vector<std::pair<std::string, std::string>> JobSession::WorkerEnvironment() const {
  return {{"PERSIA_METRICS_DIR", directory_.path()},
          {"PERSIA_JOB_NAME", job_},
          {"PERSIA_RUN_ID", run_id_},
          {"PERSIA_METRICS_ENABLED", enabled_ ? "1" : "0"}};
}

Status JobSession::RecreateDirectory() {
  if (state_directory_ && state_directory_->WasRemoved()) {
    if (Status recreated = state_directory_->Recreate(); !recreated.ok()) {
      return Error{"state_dir: " + recreated.error()};
    }
  }
  if (!directory_.WasRemoved()) {
    return Done{};
  }
  if (Status recreated = directory_.Recreate(); !recreated.ok()) return recreated;
  return directory_.WriteConf({.enabled = enabled_, .run_id = run_id_, .job = job_});
}

Result<size_t> JobSession::EndRun() {
  const Status written = directory_.WriteConf({.enabled = enabled_, .run_id = run_id_, .job = job_, .ended = true});
  if (!written.ok()) {
    return Error{written.error()};
  }
  if (Status removed = StateFileOf(state_location())->Remove(); !removed.ok()) {
    return Error{removed.error()};
  }
  unlinkat(state_location().directory_fd, state_location().FileName("events").c_str(), 0);  // may not exist
  return RemoveSegments([this](const std::string& run_id) { return run_id.empty() || run_id == run_id_; });
}

// Removes the segments of the runs that `of_run` accepts whose writers have ended, and this process's own.
Result<size_t> JobSession::RemoveSegments(const std::function<bool(const std::string& run_id)>& of_run) const {
  const int fd = openat(directory_.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fd < 0 ? nullptr : fdopendir(fd), &closedir);
  if (listing == nullptr) {
    return Error{"cannot list " + directory_.path()};
  }
  const SegmentAccess access{.owner = geteuid(), .group = directory_.group()};
  size_t removed = 0;
  while (const dirent* entry = readdir(listing.get())) {
    if (!std::string_view(entry->d_name).ends_with(metrics::segment::kFileSuffix)) continue;
    const auto run_id = RunOfEnded(directory_.fd(), entry->d_name, access);
    if (run_id && of_run(*run_id) && unlinkat(directory_.fd(), entry->d_name, 0) == 0) {
      ++removed;
    }
  }
  return removed;
}

}  // namespace persia::agent
