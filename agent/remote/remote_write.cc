#include "remote/remote_write.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/thread.h"

namespace persia::agent {
namespace {

constexpr size_t kMaxWaiting = 2;

}  // namespace

Result<std::unique_ptr<RemoteWrite>> RemoteWrite::Open(Options options) {
  RelabelRules rules;
  for (const RelabelConfig& config : options.relabel) {
    auto rule = RelabelRule::Make(config);
    if (!rule.ok()) return Error{"remote_write " + options.endpoint.name + ": write_relabel_configs: " + rule.error()};
    rules.push_back(std::move(rule).value());
  }
  auto queue = DiskQueue::Open({.directory_fd = options.directory_fd,
                                .directory = options.directory,
                                .name = options.file_name + ".queue",
                                .mode = options.mode,
                                .max_bytes = options.queue_max_bytes,
                                .max_age = options.queue_max_age,
                                .after_step = options.after_step});
  if (!queue.ok()) return Error{"remote_write " + options.endpoint.name + ": " + queue.error()};
  std::unique_ptr<RemoteWrite> opened(new RemoteWrite(std::move(options), std::move(rules), std::move(queue).value()));
  try {
    opened->writing_ =
        StartThread("rw write " + opened->options_.endpoint.name, [target = opened.get()] { target->WriteSnapshots(); });
    opened->sender_.Start();
  } catch (const std::system_error& error) {
    return Error{"remote_write " + opened->options_.endpoint.name + ": cannot start a thread: " + error.what()};
  }
  return opened;
}

RemoteWrite::RemoteWrite(Options options, RelabelRules rules, std::unique_ptr<DiskQueue> queue)
    : options_(std::move(options)),
      queue_(std::move(queue)),
      active_({.directory_fd = options_.directory_fd,
               .directory = options_.directory,
               .name = options_.file_name + ".series",
               .mode = options_.mode}),
      writer_({.queue = queue_.get(),
               .active = &active_,
               .rules = std::move(rules),
               .sends_native = options_.sends_native,
               .max_samples = options_.max_samples}),
      sender_({.endpoint = options_.endpoint, .queue = queue_.get(), .takes_native = options_.sends_native}) {
  UpdateQueueStats();
}

void RemoteWrite::Interrupt() { sender_.Stop(); }

RemoteWrite::~RemoteWrite() {
  Interrupt();
  {
    const MutexLock lock(mutex_);
    waiting_.clear();
    finishing_ = true;
    changed_.NotifyAll();
  }
  if (writing_.joinable()) writing_.join();
}

void RemoteWrite::Offer(std::shared_ptr<const Snapshot> snapshot) {
  if (snapshot != nullptr) sender_.OfferMetadata(snapshot->layout);
  const MutexLock lock(mutex_);
  if (finishing_ || snapshot == nullptr) return;
  was_skipped_ = true;
  changed_.NotifyAll();
  // Collections come a little early or late.
  if (last_taken_ && snapshot->collected_at >= *last_taken_ &&
      snapshot->collected_at < *last_taken_ + options_.send_interval - options_.send_interval / 10)
    return;
  if (waiting_.size() >= kMaxWaiting) {
    dropped_behind_ += writer_.snapshots() > 0 ? writer_.series() : SamplesOf(*snapshot);
    return;
  }
  last_taken_ = snapshot->collected_at;
  waiting_.push_back(std::move(snapshot));
  was_skipped_ = false;
}

uint64_t RemoteWrite::SamplesOf(const Snapshot& snapshot) {
  uint64_t samples = 0;
  if (snapshot.layout == nullptr) return samples;
  for (const FamilyLayout& family : snapshot.layout->families) {
    const auto shown = std::count_if(family.series.begin(), family.series.end(), [&](const SeriesLayout& series) {
      return !IsAbsent(snapshot.values[series.first_value]);
    });
    // A histogram has `_sum`, `_count` and a bucket to +Inf as well. Of a native one, this is the classic form.
    const size_t lines = family.type == MetricType::kHistogram ? family.bounds.size() + 3 : family.ValuesPerSeries();
    samples += static_cast<uint64_t>(shown) * lines;
  }
  return samples;
}

bool RemoteWrite::NextSnapshot(std::shared_ptr<const Snapshot>& snapshot) {
  const MutexLock lock(mutex_);
  while (waiting_.empty() && !was_skipped_ && !finishing_) changed_.Wait(mutex_);
  was_skipped_ = false;
  snapshot = nullptr;
  if (waiting_.empty()) return !finishing_;
  snapshot = std::move(waiting_.front());
  waiting_.pop_front();
  return true;
}

void RemoteWrite::WriteSnapshots() {
  std::shared_ptr<const Snapshot> snapshot;
  while (NextSnapshot(snapshot)) {
    UpdateQueueStats();  // before the write: pending requests are a backlog then
    writer_.Write(snapshot);
  }
}

void RemoteWrite::UpdateQueueStats() {
  RemoteWriteCounts stats = queue_->stats();
  const MutexLock lock(mutex_);
  queue_stats_ = std::move(stats);
}

Status RemoteWrite::Finish(std::shared_ptr<const Snapshot> last, std::chrono::milliseconds limit, Ending ending) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  if (last != nullptr) sender_.OfferMetadata(last->layout);
  {
    const MutexLock lock(mutex_);
    finishing_ = true;
    changed_.NotifyAll();
  }
  writing_.join();
  writer_.Write(last);
  if (ending == Ending::kEnds) writer_.EndSeries();
  sender_.Finish(deadline);
  const bool all_sent = queue_->empty();
  UpdateQueueStats();
  if (all_sent) return Done{};
  const uint64_t left = queue_->stats().pending_samples;
  const std::string error = sender_.counts().last_error;
  return Error{options_.endpoint.name + ": " + std::to_string(left) + " samples wait in " + options_.directory + "/" +
               options_.file_name + ".queue for the next agent" + (error.empty() ? "" : "; " + error)};
}

RemoteWriteCounts RemoteWrite::stats() {
  const RemoteWriteCounts sending = sender_.counts();
  const MutexLock lock(mutex_);
  RemoteWriteCounts stats = queue_stats_;
  stats.AddTotalsOf(sending);
  stats.last_error = sending.last_error;
  stats.dropped_samples["behind"] = dropped_behind_;
  stats.dropped_samples["duplicate"] = writer_.duplicates();
  stats.dropped_samples["ends"] = writer_.ends_given_up();
  return stats;
}

}  // namespace persia::agent
