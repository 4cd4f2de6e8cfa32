#include "app/remote_targets.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>

#include "base/log.h"
#include "base/thread.h"
#include "config/config.h"
#include "config/remote_write_settings.h"
#include "lib/src/segment_format/job_directory.h"
#include "net/url.h"

namespace persia::agent {
namespace {

constexpr std::string_view kQueueSuffix = ".queue";
constexpr std::chrono::milliseconds kNoLimit = std::chrono::hours(24 * 365 * 10);

bool IsInMemory(int directory_fd) {
  struct statfs info {};
  return fstatfs(directory_fd, &info) == 0 && info.f_type == TMPFS_MAGIC;
}

}  // namespace

std::string RemoteTargets::FileName(const RemoteWriteTarget& settings) const {
  return state_.FileName("remote." + metrics::EncodeJobName(settings.name));
}

void RemoteTargets::Apply(const AgentOptions& options) {
  if (state_.directory_fd < 0) return;  // without a state there is no queue
  std::vector<Target> former = targets();
  const auto is = [](const Target& target, const RemoteWriteTarget& wanted) { return target.settings == wanted; };
  const bool same = std::equal(former.begin(), former.end(), options.remote_write.begin(), options.remote_write.end(), is);
  if (same) return;
  std::vector<Target> next;
  for (const RemoteWriteTarget& settings : options.remote_write) {
    const auto there = std::find_if(former.begin(), former.end(), [&](const Target& t) { return is(t, settings); });
    if (there == former.end()) continue;
    next.push_back(std::move(*there));
    former.erase(there);
  }
  Use(next);
  // Targets that are gone or changed are closed before their queues are opened again.
  std::map<std::string, RemoteWriteCounts> before;
  for (const Target& target : former) {
    // Pending snapshots go into the queue, and are sent by the next target that opens it.
    if (target.sink != nullptr)
      static_cast<void>(target.sink->Finish(nullptr, std::chrono::milliseconds(0), RemoteWrite::Ending::kGoesOn));
    before[target.settings.name] = StatsOf(target);
  }
  former.clear();
  for (const RemoteWriteTarget& settings : options.remote_write) {
    if (std::any_of(next.begin(), next.end(), [&](const Target& t) { return is(t, settings); })) continue;
    Target target{.settings = settings, .before = before[settings.name]};
    target.sink = Open(target, /*log_failure=*/true);
    next.push_back(std::move(target));
  }
  WarnOfUnusedQueues(options.remote_write);
  Use(std::move(next));
}

void RemoteTargets::Use(std::vector<Target> targets) {
  const MutexLock lock(mutex_);
  targets_ = std::move(targets);
  for (const Target& target : targets_)
    if (interrupted_ && target.sink != nullptr) target.sink->Interrupt();
}

std::shared_ptr<RemoteWrite> RemoteTargets::Open(const Target& target, bool log_failure) {
  const RemoteWriteTarget& settings = target.settings;
  RemoteWrite::Options options;
  options.endpoint = {.name = settings.name, .url = settings.url, .headers = settings.headers};
  options.endpoint.follow_redirects = settings.follow_redirects;
  HttpClient::Options& http = options.endpoint.http;
  http.total_timeout = settings.timeout;
  http.user_agent = user_agent_;
  http.access = settings.access;
  const Proxy proxy = ProxyFor(settings.proxy, settings.url.starts_with("https:"), ProcessEnvironment());
  http.proxy = proxy.url;
  http.no_proxy = proxy.no_proxy;
  options.relabel = settings.relabel;
  options.max_samples = settings.max_samples;
  options.endpoint.min_backoff = settings.min_backoff;
  options.endpoint.max_backoff = settings.max_backoff;
  options.sends_native = settings.send_native_histograms;
  options.send_interval = settings.send_interval;
  options.endpoint.metadata_interval = settings.sends_metadata ? settings.metadata_interval : std::chrono::milliseconds(0);
  options.endpoint.max_metadata = settings.max_metadata;
  options.directory_fd = state_.directory_fd;
  options.directory = state_.directory;
  options.file_name = FileName(settings);
  options.mode = state_.mode;
  options.queue_max_bytes = settings.queue_max_bytes;
  options.queue_max_age = settings.sample_age_limit.count() > 0 ? settings.sample_age_limit : kNoLimit;
  auto sink = RemoteWrite::Open(std::move(options));
  if (!sink.ok()) {
    if (log_failure)
      LogWarning("remote.open",
                 sink.error() + "; the agent tries again at each collection, and sends nothing to it until then");
    return nullptr;
  }
  const uint64_t waiting = sink.value()->stats().pending_samples;
  LogInfo("remote.open",
          "samples are sent to " + settings.name + " at " + ShownUrl(settings.url) +
              (waiting > 0 ? "; the queue has " + std::to_string(waiting) + " samples of an earlier agent" : "") +
              (IsInMemory(state_.directory_fd) ? "; unsent samples wait in memory, since " + state_.directory +
                                                     " is there: set state_dir to a directory on a disk to keep more of them"
                                               : ""));
  return std::move(sink).value();
}

// A queue without a target stays on disk forever.
void RemoteTargets::WarnOfUnusedQueues(const std::vector<RemoteWriteTarget>& wanted) const {
  DIR* const directory = fdopendir(openat(state_.directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (const dirent* entry = directory == nullptr ? nullptr : readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(state_.FileName("remote.")) || !name.ends_with(kQueueSuffix)) continue;
    const bool is_wanted = std::any_of(wanted.begin(), wanted.end(), [&](const RemoteWriteTarget& target) {
      return name == FileName(target) + std::string(kQueueSuffix);
    });
    if (!is_wanted) {
      LogWarning("remote.left", state_.directory + "/" + std::string(name) +
                                    " has samples for a target that is missing in the settings, or has an error there; "
                                    "add the target, correct it, or remove the directory");
    }
  }
  if (directory != nullptr) closedir(directory);
}

void RemoteTargets::Offer(const std::shared_ptr<const Snapshot>& snapshot) {
  if (snapshot == nullptr) return;
  std::vector<Target> now = targets();
  RetryOpen(now, *snapshot);
  for (const Target& target : now)
    if (target.sink != nullptr) target.sink->Offer(snapshot);
}

void RemoteTargets::RetryOpen(std::vector<Target>& targets, const Snapshot& snapshot) {
  bool tried = false;
  for (Target& target : targets) {
    if (target.sink != nullptr) continue;
    tried = true;
    target.sink = Open(target, /*log_failure=*/false);
    if (target.sink != nullptr) {
      target.before.oldest_pending_ms.reset();
    } else {
      target.before.dropped_samples["not_open"] += RemoteWrite::SamplesOf(snapshot);
      const auto collected = std::chrono::time_point_cast<std::chrono::milliseconds>(snapshot.collected_at);
      if (!target.before.oldest_pending_ms) target.before.oldest_pending_ms = collected.time_since_epoch().count();
    }
  }
  if (tried) Use(targets);
}

void RemoteTargets::Finish(const std::shared_ptr<const Snapshot>& last, std::chrono::milliseconds limit,
                           std::chrono::milliseconds limit_if_away, RemoteWrite::Ending ending) {
  TaskThreads threads("remote finish");
  for (const Target& target : targets()) {
    if (target.sink == nullptr) continue;
    threads.Run([target, &last, limit, limit_if_away, ending] {
      const Status sent = target.sink->Finish(last, target.sink->Failing() ? limit_if_away : limit, ending);
      if (!sent.ok()) LogWarning("remote.last", sent.error());
    });
  }
  threads.Join();
}

void RemoteTargets::Interrupt() {
  const MutexLock lock(mutex_);
  interrupted_ = true;
  for (const Target& target : targets_)
    if (target.sink != nullptr) target.sink->Interrupt();
}

std::map<std::string, RemoteWriteCounts> RemoteTargets::stats() const {
  std::map<std::string, RemoteWriteCounts> stats;
  for (const Target& target : targets()) stats[target.settings.name] = StatsOf(target);
  return stats;
}

RemoteWriteCounts RemoteTargets::StatsOf(const Target& target) {
  RemoteWriteCounts stats;
  if (target.sink != nullptr) stats = target.sink->stats();
  stats.AddTotalsOf(target.before);
  stats.queue_max_bytes = target.settings.queue_max_bytes;
  if (target.sink == nullptr) stats.oldest_pending_ms = target.before.oldest_pending_ms;
  return stats;
}

std::vector<RemoteTargets::Target> RemoteTargets::targets() const {
  const MutexLock lock(mutex_);
  return targets_;
}

}  // namespace persia::agent
