#include "app/job_session.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string_view>

#include "lib/src/job_directory.h"
#include "source/proc_reader.h"
#include "source/retired_codec.h"
#include "source/segment_reader.h"

namespace persia::agent {
namespace {

// The run of a segment whose writer has ended; nothing if it is none, or its writer lives.
std::optional<std::string> RunOfDead(int directory, const char* name, const SegmentAccess& access) {
  SegmentProblem problem;
  const auto reader = SegmentReader::Open(directory, name, access, problem);
  static const uint64_t own_namespace = ProcReader().PidNamespace("self").value_or(0);
  const auto own = [&] {
    return reader->header().pid == static_cast<uint32_t>(getpid()) && reader->header().pid_namespace == own_namespace;
  };
  if (reader == nullptr || (reader->WriterLives() && !own()) || !reader->Read(1, {}, problem)) {
    return std::nullopt;
  }
  return reader->identity().run_id;
}

// The run that a state is of; empty if there is none, or a broken one: the collector says so. An error: it cannot be read.
Result<std::string> RunIn(const StateFile::Options& file) {
  std::string broken;
  const auto payload = StateFile(file).Look(broken);
  if (!payload.ok()) {
    return Error{payload.error()};
  }
  return payload.value() ? RunOfRetired(*payload.value()) : std::string();
}

// Several jobs' agents, and several of one job, may share a state directory.
std::string StatePrefix(const AgentOptions& options) {
  return options.state_dir.empty() ? "agent"
                                   : metrics::EncodeJobName(options.job_name) + ".rep_" + std::to_string(options.replica);
}

}  // namespace

std::string MetricsDirOf(const AgentOptions& options) {
  return options.metrics_dir.empty() ? metrics::DefaultMetricsDir(geteuid(), options.job_name) : options.metrics_dir;
}

StateFile::Options RetiredStateFile(const StatePlace& place) {
  return {.directory_fd = place.directory_fd,
          .directory = place.directory,
          .name = place.Name("state"),
          .magic = {'P', 'R', 'S', 'M', 'S', 'T', 'A', '\n'},
          .version = kRetiredStateVersion,
          .mode = place.mode};
}

JobView LookAt(const AgentOptions& options) {
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
    view.holds_state = std::make_shared<JobDirectory>(std::move(state).value());
    view.state = RetiredStateFile(
        {.directory_fd = view.holds_state->fd(), .directory = view.holds_state->path(), .prefix = StatePrefix(options)});
    if (view.run_id.empty()) {
      const auto run = RunIn(*view.state);
      view.run_id = run.ok() ? run.value() : "";
    }
  }
  return view;
}

Result<JobSession> JobSession::Begin(const AgentOptions& options) {
  auto directory = JobDirectory::Open({.path = MetricsDirOf(options),
                                       .group = options.metrics_dir_group,
                                       .private_parent = options.metrics_dir.empty() && options.metrics_dir_group.empty()});
  if (!directory.ok()) {
    return Error{directory.error()};
  }
  JobSession session(std::move(directory).value());
  session.job_ = options.job_name;
  session.enabled_ = options.enable_metrics;
  const auto other = session.directory_.Lock();
  if (!other.ok()) {
    return Error{other.error()};
  }
  session.other_agent_ = other.value();
  if (!session.other_agent_) {
    if (Status opened = session.OpenStateDirectory(options); !opened.ok()) {
      return Error{opened.error()};
    }
  }
  const AgentConf standing = session.directory_.ReadConf();
  AgentConf former = standing;
  if (former.run_id.empty()) {
    const auto run = RunIn(RetiredStateFile(session.state_place()));
    if (!run.ok()) {
      return Error{run.error() + "; without it the run cannot go on: make it readable, or remove it to begin anew"};
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
    // What stands there already takes no room: an agent that comes back to a full directory goes on.
    const Status written = wanted == standing ? Status(Done{}) : session.directory_.WriteConf(wanted);
    if (!written.ok()) {
      return Error{written.error()};
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
    return Error{"state_dir: " + opened.error()};
  }
  state_directory_ = std::move(opened).value();
  state_prefix_ = StatePrefix(options);
  const auto other = state_directory_->Lock(state_prefix_ + ".lock");
  if (!other.ok()) {
    return Error{"state_dir: " + other.error()};
  }
  if (other.value()) {
    return Error{"state_dir: the agent with pid " + *other.value() + " has " + options.state_dir + "/" + state_prefix_ +
                 ".state already; give this one another state_dir, or a replica of its own (REPLICA_INDEX)"};
  }
  return Done{};
}

StatePlace JobSession::state_place() const {
  const JobDirectory& place = state_directory_ ? *state_directory_ : directory_;
  return {.directory_fd = place.fd(),
          .directory = place.path(),
          .prefix = state_prefix_,
          .mode = static_cast<mode_t>(place.group() ? 0660 : 0600)};
}

std::vector<std::pair<std::string, std::string>> JobSession::WorkerEnvironment() const {
  return {{"PERSIA_METRICS_DIR", directory_.path()},
          {"PERSIA_JOB_NAME", job_},
          {"PERSIA_RUN_ID", run_id_},
          {"PERSIA_METRICS_ENABLED", enabled_ ? "1" : "0"}};
}

bool JobSession::DirectoryIsGone() const { return directory_.Gone() || (state_directory_ && state_directory_->Gone()); }

Status JobSession::RenewDirectory() {
  if (state_directory_ && state_directory_->Gone()) {
    if (Status renewed = state_directory_->Renew(); !renewed.ok()) {
      return Error{"state_dir: " + renewed.error()};
    }
  }
  if (!directory_.Gone()) {
    return Done{};
  }
  if (Status renewed = directory_.Renew(); !renewed.ok()) {
    return renewed;
  }
  return directory_.WriteConf({.enabled = enabled_, .run_id = run_id_, .job = job_});
}

Result<size_t> JobSession::EndRun() {
  const Status written = directory_.WriteConf({.enabled = enabled_, .run_id = run_id_, .job = job_, .ended = true});
  if (!written.ok()) {
    return Error{written.error()};
  }
  if (Status removed = StateFile(RetiredStateFile(state_place())).Remove(); !removed.ok()) {
    return Error{removed.error()};
  }
  unlinkat(state_place().directory_fd, state_place().Name("events").c_str(), 0);  // which may not be there
  return RemoveSegments([this](const std::string& run_id) { return run_id.empty() || run_id == run_id_; });
}

// Of those whose writers have ended, and this process's own.
Result<size_t> JobSession::RemoveSegments(const std::function<bool(const std::string& run_id)>& of_run) const {
  const int fd = openat(directory_.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fd < 0 ? nullptr : fdopendir(fd), &closedir);
  if (listing == nullptr) {
    return Error{"cannot list " + directory_.path()};
  }
  const SegmentAccess access{.owner = geteuid(), .group = directory_.group()};
  size_t removed = 0;
  while (const dirent* entry = readdir(listing.get())) {
    if (!std::string_view(entry->d_name).ends_with(metrics::segment::kFileSuffix)) {
      continue;
    }
    const auto run_id = RunOfDead(directory_.fd(), entry->d_name, access);
    if (run_id && of_run(*run_id) && unlinkat(directory_.fd(), entry->d_name, 0) == 0) {
      ++removed;
    }
  }
  return removed;
}

}  // namespace persia::agent
