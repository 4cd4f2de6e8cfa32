#include "app/remote_targets.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "app/beside.h"
#include "app/remote_write_settings.h"
#include "lib/src/job_directory.h"

namespace persia::agent {
namespace {

constexpr std::string_view kQueueSuffix = ".queue";

bool IsInMemory(int directory_fd) {
  struct statfs info {};
  return fstatfs(directory_fd, &info) == 0 && info.f_type == TMPFS_MAGIC;
}

RemoteWrite::Stats WithCountsOf(const RemoteWrite::Stats& before, RemoteWrite::Stats now) {
  now.sending.samples_sent += before.sending.samples_sent;
  now.sending.samples_refused += before.sending.samples_refused;
  now.sending.requests_refused += before.sending.requests_refused;
  now.sending.retries += before.sending.retries;
  now.sending.bytes += before.sending.bytes;
  now.sending.highest_sent_ms = std::max(now.sending.highest_sent_ms, before.sending.highest_sent_ms);
  now.corrupt_places += before.corrupt_places;
  for (const auto& [reason, samples] : before.dropped_samples) now.dropped_samples[reason] += samples;
  return now;
}

}  // namespace

std::string RemoteTargets::FileName(const RemoteWriteTarget& settings) const {
  return place_.Name("remote." + metrics::EncodeJobName(settings.name));
}

void RemoteTargets::Apply(const AgentOptions& options) {
  if (place_.directory_fd < 0) return;  // who has no state only looks
  std::vector<Target> former = targets();
  const auto is = [&options](const Target& target, const RemoteWriteTarget& wanted) {
    return target.settings == wanted && target.connect_timeout == options.connect_timeout;
  };
  const bool same = std::equal(former.begin(), former.end(), options.remote_write.begin(), options.remote_write.end(), is);
  if (same) return;
  std::vector<Target> next;
  for (const RemoteWriteTarget& settings : options.remote_write) {
    const auto there = std::find_if(former.begin(), former.end(), [&](const Target& t) { return is(t, settings); });
    if (there == former.end()) continue;
    next.push_back(std::move(*there));
    former.erase(there);
  }
  {
    const std::lock_guard lock(mutex_);
    targets_ = next;
  }
  // Those that are gone or changed are closed before their queues are opened again.
  std::map<std::string, RemoteWrite::Stats> before;
  for (const Target& target : former) {
    // Snapshots that wait go into the queue; what is not sent from there is by who opens it next.
    if (target.sink != nullptr) {
      static_cast<void>(target.sink->Finish(nullptr, std::chrono::milliseconds(0), RemoteWrite::Ending::kGoesOn));
    }
    before[target.settings.name] = StatsOf(target);
  }
  former.clear();
  for (const RemoteWriteTarget& settings : options.remote_write) {
    if (std::any_of(next.begin(), next.end(), [&](const Target& t) { return is(t, settings); })) continue;
    Target target{.settings = settings, .connect_timeout = options.connect_timeout, .before = before[settings.name]};
    target.sink = Open(target, /*again=*/false);
    next.push_back(std::move(target));
  }
  TellOfOthers(options.remote_write);
  const std::lock_guard lock(mutex_);
  targets_ = std::move(next);
  for (const Target& target : targets_) {
    if (interrupted_ && target.sink != nullptr) target.sink->Interrupt();
  }
}

std::shared_ptr<RemoteWrite> RemoteTargets::Open(const Target& target, bool again) {
  const RemoteWriteTarget& settings = target.settings;
  RemoteWrite::Options options;
  options.name = settings.name;
  options.url = settings.url;
  options.headers = settings.headers;
  options.http.connect_timeout = target.connect_timeout;
  options.http.total_timeout = settings.timeout;
  options.http.user_agent = user_agent_;
  options.http.access = settings.access;
  options.relabel = settings.relabel;
  options.max_shards = settings.max_shards;
  options.max_samples = settings.max_samples;
  options.send_interval = settings.send_interval;
  options.directory_fd = place_.directory_fd;
  options.directory = place_.directory;
  options.file_name = FileName(settings);
  options.mode = place_.mode;
  options.queue_max_bytes = settings.queue_max_bytes;
  options.queue_max_age = settings.queue_max_age;
  options.log = log_;
  auto sink = RemoteWrite::Open(std::move(options));
  if (!sink.ok()) {
    if (!again)
      log_.warn("remote.open", sink.error() + "; it is tried again with each collection, and gets nothing until then");
    return nullptr;
  }
  const uint64_t waiting = sink.value()->stats().pending_samples;
  log_.note("remote.open",
            "samples are sent to " + settings.name + " at " + ShownUrl(settings.url) +
                (waiting > 0 ? "; " + std::to_string(waiting) + " wait since an earlier agent" : "") +
                (IsInMemory(place_.directory_fd) ? "; what cannot be sent waits in memory, as " + place_.directory +
                                                       " is there: a state_dir on a disk holds more, and outlives the host"
                                                 : ""));
  return std::move(sink).value();
}

// A queue that nobody sends from takes room for ever.
void RemoteTargets::TellOfOthers(const std::vector<RemoteWriteTarget>& wanted) const {
  DIR* const directory = fdopendir(openat(place_.directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (const dirent* entry = directory == nullptr ? nullptr : readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(place_.Name("remote.")) || !name.ends_with(kQueueSuffix)) continue;
    const bool is_wanted = std::any_of(wanted.begin(), wanted.end(), [&](const RemoteWriteTarget& target) {
      return name == FileName(target) + std::string(kQueueSuffix);
    });
    if (!is_wanted) {
      log_.warn("remote.left", place_.directory + "/" + std::string(name) +
                                   " holds samples for a target that the settings do not name; name it again, or remove "
                                   "the directory");
    }
  }
  if (directory != nullptr) closedir(directory);
}

void RemoteTargets::Offer(const std::shared_ptr<const Snapshot>& snapshot) {
  if (snapshot == nullptr) return;
  OpenAgain(*snapshot);
  for (const Target& target : targets()) {
    if (target.sink != nullptr) target.sink->Offer(snapshot);
  }
}

void RemoteTargets::OpenAgain(const Snapshot& snapshot) {
  for (size_t i = 0; i < targets_.size(); ++i) {
    Target target = targets_[i];
    if (target.sink != nullptr) continue;
    target.sink = Open(target, /*again=*/true);
    if (target.sink != nullptr) {
      target.before.oldest_pending_ms.reset();
    } else {
      target.before.dropped_samples["not_open"] += RemoteWrite::SamplesOf(snapshot);
      const auto collected = std::chrono::time_point_cast<std::chrono::milliseconds>(snapshot.collected_at);
      if (!target.before.oldest_pending_ms) target.before.oldest_pending_ms = collected.time_since_epoch().count();
    }
    const std::lock_guard lock(mutex_);
    if (interrupted_ && target.sink != nullptr) target.sink->Interrupt();
    targets_[i] = std::move(target);
  }
}

void RemoteTargets::Finish(const std::shared_ptr<const Snapshot>& last, std::chrono::milliseconds limit,
                           std::chrono::milliseconds limit_if_away, RemoteWrite::Ending ending) {
  Beside beside;
  for (const Target& target : targets()) {
    if (target.sink == nullptr) continue;
    beside.Run([this, target, &last, limit, limit_if_away, ending] {
      const Status sent = target.sink->Finish(last, target.sink->Failing() ? limit_if_away : limit, ending);
      if (!sent.ok()) log_.warn("remote.last", sent.error());
    });
  }
  beside.Join();
}

void RemoteTargets::Interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  for (const Target& target : targets_) {
    if (target.sink != nullptr) target.sink->Interrupt();
  }
}

std::vector<std::pair<std::string, RemoteWrite::Stats>> RemoteTargets::stats() const {
  std::vector<std::pair<std::string, RemoteWrite::Stats>> stats;
  for (const Target& target : targets()) {
    stats.emplace_back(target.settings.name, StatsOf(target));
  }
  return stats;
}

RemoteWrite::Stats RemoteTargets::StatsOf(const Target& target) {
  if (target.sink != nullptr) return WithCountsOf(target.before, target.sink->stats());
  RemoteWrite::Stats stats = target.before;
  stats.shards = 0;
  return stats;
}

std::vector<RemoteTargets::Target> RemoteTargets::targets() const {
  const std::lock_guard lock(mutex_);
  return targets_;
}

}  // namespace persia::agent
