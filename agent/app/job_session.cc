#include "app/job_session.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string_view>

#include "lib/src/job_directory.h"
#include "source/segment_reader.h"

namespace persia::agent {
namespace {

// Whether the file is a segment of the run, or of no run, whose writer has ended.
bool IsLeftBehind(int directory, const char* name, const SegmentAccess& access, const std::string& run_id) {
  SegmentProblem problem;
  const auto reader = SegmentReader::Open(directory, name, access, problem);
  if (reader == nullptr || reader->WriterLives() || !reader->Read(1, problem)) {
    return false;
  }
  return reader->identity().run_id.empty() || reader->identity().run_id == run_id;
}

}  // namespace

std::string MetricsDirOf(const AgentOptions& options) {
  return options.metrics_dir.empty() ? metrics::DefaultMetricsDir(geteuid(), options.job_name) : options.metrics_dir;
}

JobView LookAt(const AgentOptions& options) {
  JobView view{.directory = MetricsDirOf(options), .run_id = options.run_id};
  const auto directory = JobDirectory::OpenExisting(view.directory);
  if (directory.ok()) {
    view.group = directory.value().group();
    if (view.run_id.empty()) {
      view.run_id = directory.value().ReadConf().run_id;
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
  const AgentConf former = session.directory_.ReadConf();
  const bool unfinished = !former.ended && !former.run_id.empty();
  if (!options.run_id.empty()) {
    session.run_id_ = options.run_id;
  } else {
    session.run_id_ = unfinished ? former.run_id : MakeRunId();
  }
  session.continued_ = unfinished && former.run_id == session.run_id_;
  session.other_run_ = session.other_agent_ && unfinished && !session.continued_;
  if (!session.other_agent_) {
    const Status written =
        session.directory_.WriteConf({.enabled = session.enabled_, .run_id = session.run_id_, .job = session.job_});
    if (!written.ok()) {
      return Error{written.error()};
    }
  }
  return session;
}

std::vector<std::pair<std::string, std::string>> JobSession::WorkerEnvironment() const {
  return {{"PERSIA_METRICS_DIR", directory_.path()},
          {"PERSIA_JOB_NAME", job_},
          {"PERSIA_RUN_ID", run_id_},
          {"PERSIA_METRICS_ENABLED", enabled_ ? "1" : "0"}};
}

Result<size_t> JobSession::EndRun() {
  const Status written = directory_.WriteConf({.enabled = enabled_, .run_id = run_id_, .job = job_, .ended = true});
  if (!written.ok()) {
    return Error{written.error()};
  }
  const int fd = openat(directory_.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fd < 0 ? nullptr : fdopendir(fd), &closedir);
  if (listing == nullptr) {
    return Error{"cannot list " + directory_.path()};
  }
  const SegmentAccess access{.owner = geteuid(), .group = directory_.group()};
  size_t removed = 0;
  while (const dirent* entry = readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name.ends_with(metrics::segment::kFileSuffix) && IsLeftBehind(directory_.fd(), entry->d_name, access, run_id_) &&
        unlinkat(directory_.fd(), entry->d_name, 0) == 0) {
      ++removed;
    }
  }
  return removed;
}

}  // namespace persia::agent
