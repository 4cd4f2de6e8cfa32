#include "remote/remote_write.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace persia::agent {
namespace {

constexpr size_t kMostWaiting = 2;

ActiveSeries::Options SeriesFile(const RemoteWrite::Options& options) {
  return {.file = {.directory_fd = options.directory_fd,
                   .directory = options.directory,
                   .name = options.file_name + ".series",
                   .mode = options.mode},
          .warn = [log = options.log](const std::string& message) { log.warn("remote.series", message); }};
}

}  // namespace

Result<std::unique_ptr<RemoteWrite>> RemoteWrite::Open(Options options) {
  RelabelRules rules;
  for (const RelabelConfig& config : options.relabel) {
    auto rule = RelabelRule::Make(config);
    if (!rule.ok()) return Error{"remote_write " + options.name + ": write_relabel_configs: " + rule.error()};
    rules.push_back(std::move(rule).value());
  }
  auto queue = WriteQueue::Open({.directory_fd = options.directory_fd,
                                 .directory = options.directory,
                                 .name = options.file_name + ".queue",
                                 .mode = options.mode,
                                 .max_bytes = options.queue_max_bytes,
                                 .max_age = options.queue_max_age,
                                 .log = options.log});
  if (!queue.ok()) return Error{"remote_write " + options.name + ": " + queue.error()};
  std::unique_ptr<RemoteWrite> opened(new RemoteWrite(std::move(options), std::move(rules), std::move(queue).value()));
  if (Status started = opened->StartThreads(); !started.ok()) return Error{started.error()};
  return opened;
}

RemoteWrite::RemoteWrite(Options options, RelabelRules rules, std::unique_ptr<WriteQueue> queue)
    : options_(std::move(options)),
      queue_(std::move(queue)),
      progress_(options_.name, options_.log),
      active_(SeriesFile(options_)),
      writer_({.queue = queue_.get(),
               .active = &active_,
               .rules = std::move(rules),
               .max_shards = options_.max_shards,
               .max_samples = options_.max_samples,
               .series_per_shard = options_.series_per_shard,
               .warn = [log = options_.log](const std::string& message) { log.warn("remote.write", message); }}) {
  NoteQueue();
}

// Whoever sends takes whichever shard is next: fewer of them are slower, and leave nothing out.
Status RemoteWrite::StartThreads() {
  const std::string no_thread = "remote_write " + options_.name + ": no thread to be had: ";
  options_.thread_begins(0);
  try {
    writing_ = std::thread(&RemoteWrite::WriteSnapshots, this);
  } catch (const std::system_error& error) {
    return Error{no_thread + error.what()};
  }
  for (uint32_t i = 0; i < options_.max_shards; ++i) {
    senders_.push_back(std::make_unique<ShardSender>(ShardSender::Options{.url = options_.url,
                                                                          .headers = options_.headers,
                                                                          .http = options_.http,
                                                                          .queue = queue_.get(),
                                                                          .progress = &progress_,
                                                                          .first_pause = options_.first_pause,
                                                                          .longest_pause = options_.longest_pause}));
    options_.thread_begins(i + 1);
    try {
      sending_.emplace_back(&ShardSender::Run, senders_.back().get());
    } catch (const std::system_error& error) {
      senders_.pop_back();
      if (sending_.empty()) return Error{no_thread + error.what()};
      options_.log.warn("remote.threads", no_thread + error.what() + "; " + std::to_string(sending_.size()) + " of " +
                                              std::to_string(options_.max_shards) + " send");
      break;
    }
  }
  return Done{};
}

RemoteWrite::~RemoteWrite() {
  Interrupt();
  {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
    finishing_ = true;
    wake_.notify_all();
  }
  if (writing_.joinable()) writing_.join();
  StopSending();
}

void RemoteWrite::Offer(std::shared_ptr<const Snapshot> snapshot) {
  const std::lock_guard lock(mutex_);
  if (finishing_ || snapshot == nullptr) return;
  // Ticks come a little early or late.
  if (last_taken_ && snapshot->collected_at >= *last_taken_ &&
      snapshot->collected_at < *last_taken_ + options_.send_interval - options_.send_interval / 10) {
    return;
  }
  if (waiting_.size() >= kMostWaiting) {
    dropped_behind_ += writer_.snapshots() > 0 ? writer_.series() : SamplesOf(*snapshot);
    return;
  }
  last_taken_ = snapshot->collected_at;
  waiting_.push_back(std::move(snapshot));
  wake_.notify_all();
}

uint64_t RemoteWrite::SamplesOf(const Snapshot& snapshot) {
  uint64_t samples = 0;
  if (snapshot.layout == nullptr) return samples;
  for (const FamilyLayout& family : snapshot.layout->families) {
    const auto shown = std::count_if(family.series.begin(), family.series.end(), [&](const SeriesLayout& series) {
      return !IsAbsent(snapshot.values[series.first_value]);
    });
    // A histogram has a count of all as well.
    samples += static_cast<uint64_t>(shown) * (family.ValuesPerSeries() + (family.type == MetricType::kHistogram ? 1 : 0));
  }
  return samples;
}

void RemoteWrite::WriteSnapshots() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return !waiting_.empty() || finishing_; });
    if (waiting_.empty()) break;
    const std::shared_ptr<const Snapshot> snapshot = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    NoteQueue();  // before: what of the former one was not sent by now
    writer_.Write(snapshot);
    lock.lock();
  }
  const bool ends = ending_ == Ending::kEnds;
  lock.unlock();
  if (ends) writer_.EndSeries();
}

void RemoteWrite::NoteQueue() {
  WriteQueue::Stats stats = queue_->stats();
  const std::lock_guard lock(mutex_);
  queue_stats_ = std::move(stats);
}

Status RemoteWrite::Finish(std::shared_ptr<const Snapshot> last, std::chrono::milliseconds limit, Ending ending) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  {
    const std::lock_guard lock(mutex_);
    if (last != nullptr) waiting_.push_back(std::move(last));
    ending_ = ending;
    finishing_ = true;
    wake_.notify_all();
  }
  writing_.join();
  progress_.HurryUp();
  const bool all_sent = queue_->WaitEmpty(deadline);
  StopSending();
  queue_->Close();
  NoteQueue();
  if (all_sent) return Done{};
  const uint64_t left = queue_->stats().pending_samples;
  const std::string error = progress_.counts().last_error;
  return Error{options_.name + ": " + std::to_string(left) + " samples wait in " + options_.directory + "/" +
               options_.file_name + ".queue for the next agent" + (error.empty() ? "" : "; " + error)};
}

void RemoteWrite::Interrupt() {
  queue_->Stop();
  progress_.Stop();
  for (const auto& sender : senders_) sender->Interrupt();
}

void RemoteWrite::StopSending() {
  Interrupt();
  for (std::thread& thread : sending_) thread.join();
  sending_.clear();
}

RemoteWrite::Stats RemoteWrite::stats() {
  Stats stats;
  stats.sending = progress_.counts();
  stats.shards = std::min(writer_.shards(), static_cast<uint32_t>(senders_.size()));
  stats.series = writer_.series();
  stats.snapshots = writer_.snapshots();
  const std::lock_guard lock(mutex_);
  stats.pending_samples = queue_stats_.pending_samples;
  stats.pending_bytes = queue_stats_.pending_bytes;
  stats.file_bytes = queue_stats_.file_bytes;
  stats.oldest_pending_ms = queue_stats_.oldest_pending_ms;
  stats.corrupt_places = queue_stats_.corrupt_places;
  stats.dropped_samples = queue_stats_.dropped_samples;
  stats.dropped_samples["behind"] = dropped_behind_;
  stats.dropped_samples["duplicate"] = writer_.duplicates();
  stats.dropped_samples["ends"] = writer_.ends_given_up();
  return stats;
}

}  // namespace persia::agent
