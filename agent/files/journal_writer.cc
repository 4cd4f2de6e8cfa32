#include "files/journal_writer.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "base/timing.h"

namespace persia::agent {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using TimePoint = steady_clock::time_point;

// The waiting writes, and the results of writes. The thread that has set `writing_` uses the file without the lock.
class JournalWriter::Queue {
 public:
  explicit Queue(Options options) : options_(std::move(options)), last_(options_.last), written_(options_.written) {}

  uint64_t Add(std::string records, bool checkpoint) PERSIA_EXCLUDES(mutex_);
  void Confirm() PERSIA_EXCLUDES(mutex_);
  // The writer's thread.
  void Run() PERSIA_EXCLUDES(mutex_);
  // Without a thread: writes waiting records.
  void Drain() PERSIA_EXCLUDES(mutex_);
  void SetMode(bool threaded) PERSIA_EXCLUDES(mutex_);
  // False: a write hangs.
  bool Close(milliseconds patience) PERSIA_EXCLUDES(mutex_);
  bool Await(uint64_t number, milliseconds patience) PERSIA_EXCLUDES(mutex_);

  bool WantsCheckpoint() PERSIA_EXCLUDES(mutex_);
  bool Blocked() PERSIA_EXCLUDES(mutex_);
  uint64_t last() PERSIA_EXCLUDES(mutex_);
  uint64_t written() PERSIA_EXCLUDES(mutex_);
  Stats stats() PERSIA_EXCLUDES(mutex_);

  [[nodiscard]] const Options& options() const { return options_; }

 private:
  struct Write {
    std::string records;
    bool checkpoint;
    uint64_t number;
    size_t file_bytes;  // before it
  };

  bool Waits() const PERSIA_REQUIRES(mutex_) { return checkpoint_waits_ || confirm_waits_ || !waiting_.empty(); }
  bool InBackoff() const PERSIA_REQUIRES(mutex_) {
    return needs_checkpoint_ && blocked_until_ && options_.now() < *blocked_until_;
  }
  void DropWaiting() PERSIA_REQUIRES(mutex_);
  // All waiting records, as one write.
  Write Take() PERSIA_REQUIRES(mutex_);
  void Perform(const Write& write) PERSIA_EXCLUDES(mutex_);
  void Finish(const Write& write, size_t size, const Status& status) PERSIA_EXCLUDES(mutex_);

  const Options options_;

  Mutex mutex_;
  CondVar changed_;
  enum class Mode { kNotStarted, kThreaded, kUnthreaded, kStopped } mode_ PERSIA_GUARDED_BY(mutex_) = Mode::kNotStarted;
  // The waiting records, after those of a checkpoint if `checkpoint_waits_`.
  std::string waiting_ PERSIA_GUARDED_BY(mutex_);
  bool checkpoint_waits_ PERSIA_GUARDED_BY(mutex_) = false;
  bool confirm_waits_ PERSIA_GUARDED_BY(mutex_) = false;
  bool writing_ PERSIA_GUARDED_BY(mutex_) = false;
  size_t writing_bytes_ PERSIA_GUARDED_BY(mutex_) = 0;
  TimePoint writing_since_ PERSIA_GUARDED_BY(mutex_);
  uint64_t last_ PERSIA_GUARDED_BY(mutex_);
  uint64_t written_ PERSIA_GUARDED_BY(mutex_);
  // The last write failed, or there was none, and no checkpoint waits.
  bool needs_checkpoint_ PERSIA_GUARDED_BY(mutex_) = true;
  Backoff backoff_ PERSIA_GUARDED_BY(mutex_){1s, 30s};
  std::optional<TimePoint> blocked_until_ PERSIA_GUARDED_BY(mutex_);
  // Sizes of the last checkpoint that was added, and of the records appended after it.
  size_t checkpoint_bytes_ PERSIA_GUARDED_BY(mutex_) = 0;
  size_t appended_bytes_ PERSIA_GUARDED_BY(mutex_) = 0;
  // Of the oldest change that is not on disk, and of the oldest that waits.
  std::optional<TimePoint> behind_since_ PERSIA_GUARDED_BY(mutex_);
  std::optional<TimePoint> waiting_since_ PERSIA_GUARDED_BY(mutex_);
  Stats stats_ PERSIA_GUARDED_BY(mutex_);  // bytes_written, errors, file_bytes, error
};

uint64_t JournalWriter::Queue::Add(std::string records, bool checkpoint) {
  uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    if (!checkpoint && records.empty()) return last_;
    number = ++last_;
    if (mode_ == Mode::kStopped) return number;
    const TimePoint now = options_.now();
    if (!behind_since_) behind_since_ = now;
    if (checkpoint) {
      checkpoint_bytes_ = records.size();
      appended_bytes_ = 0;
      needs_checkpoint_ = false;
      waiting_ = std::move(records);
      checkpoint_waits_ = true;
    } else {
      if (needs_checkpoint_) return number;
      appended_bytes_ += records.size();
      waiting_ += records;
    }
    if (!waiting_since_) waiting_since_ = now;
    changed_.NotifyAll();
    if (mode_ != Mode::kUnthreaded) return number;
  }
  Drain();
  return number;
}

void JournalWriter::Queue::Confirm() {
  {
    const MutexLock lock(mutex_);
    if (mode_ == Mode::kStopped || needs_checkpoint_ || Waits()) return;
    confirm_waits_ = true;
    changed_.NotifyAll();
    if (mode_ != Mode::kUnthreaded) return;
  }
  Drain();
}

void JournalWriter::Queue::Run() {
  for (;;) {
    Write write;
    {
      const MutexLock lock(mutex_);
      while (mode_ != Mode::kStopped && !Waits()) changed_.Wait(mutex_);
      if (mode_ == Mode::kStopped) return;
      write = Take();
    }
    Perform(write);
  }
}

void JournalWriter::Queue::Drain() {
  for (;;) {
    Write write;
    {
      const MutexLock lock(mutex_);
      while (writing_) changed_.Wait(mutex_);
      if (!Waits()) return;
      write = Take();
    }
    Perform(write);
  }
}

void JournalWriter::Queue::SetMode(bool threaded) {
  const MutexLock lock(mutex_);
  mode_ = threaded ? Mode::kThreaded : Mode::kUnthreaded;
}

bool JournalWriter::Queue::Close(milliseconds patience) {
  const TimePoint deadline = steady_clock::now() + patience;
  const MutexLock lock(mutex_);
  while (mode_ == Mode::kThreaded && (writing_ || Waits()) && steady_clock::now() < deadline)
    changed_.WaitUntil(mutex_, deadline);
  mode_ = Mode::kStopped;
  DropWaiting();
  changed_.NotifyAll();
  return !writing_;
}

bool JournalWriter::Queue::Await(uint64_t number, milliseconds patience) {
  const TimePoint deadline = steady_clock::now() + patience;
  const MutexLock lock(mutex_);
  const bool hangs = writing_ && options_.now() - writing_since_ > patience;
  while (written_ < number && !hangs && (writing_ || Waits()) && mode_ == Mode::kThreaded && steady_clock::now() < deadline)
    changed_.WaitUntil(mutex_, deadline);
  return written_ >= number;
}

bool JournalWriter::Queue::WantsCheckpoint() {
  const MutexLock lock(mutex_);
  if (needs_checkpoint_) return !InBackoff();
  return appended_bytes_ >= std::max(checkpoint_bytes_, options_.min_growth);
}

bool JournalWriter::Queue::Blocked() {
  const MutexLock lock(mutex_);
  return InBackoff();
}

uint64_t JournalWriter::Queue::last() {
  const MutexLock lock(mutex_);
  return last_;
}

uint64_t JournalWriter::Queue::written() {
  const MutexLock lock(mutex_);
  return written_;
}

JournalWriter::Stats JournalWriter::Queue::stats() {
  const MutexLock lock(mutex_);
  Stats stats = stats_;
  stats.waiting_bytes = waiting_.size() + writing_bytes_;
  if (behind_since_) stats.behind = std::chrono::duration_cast<milliseconds>(options_.now() - *behind_since_);
  return stats;
}

void JournalWriter::Queue::DropWaiting() {
  waiting_ = {};
  checkpoint_waits_ = false;
  confirm_waits_ = false;
  waiting_since_.reset();
}

JournalWriter::Queue::Write JournalWriter::Queue::Take() {
  Write write{std::move(waiting_), checkpoint_waits_, last_, stats_.file_bytes};
  writing_ = true;
  writing_bytes_ = write.records.size();
  writing_since_ = options_.now();
  DropWaiting();
  return write;
}

void JournalWriter::Queue::Perform(const Write& write) {
  Status status = Done{};
  size_t size = 0;
  try {
    std::string bytes;
    if (write.checkpoint)
      bytes = JournalCheckpoint(options_.format, write.records);
    else if (!write.records.empty())
      bytes = JournalBatch(write.file_bytes, write.records);
    size = bytes.size();
    status = write.checkpoint ? options_.file->Replace(bytes) : options_.file->Append(bytes);
  } catch (...) {
    Finish(write, 0, Error{"cannot write " + options_.file->path() + ": the write was abandoned"});
    throw;
  }
  Finish(write, size, status);
}

void JournalWriter::Queue::Finish(const Write& write, size_t size, const Status& status) {
  const MutexLock lock(mutex_);
  writing_ = false;
  writing_bytes_ = 0;
  changed_.NotifyAll();
  if (status.ok()) {
    written_ = write.number;
    stats_.bytes_written += size;
    stats_.file_bytes = write.checkpoint ? size : write.file_bytes + size;
    stats_.error.reset();
    behind_since_ = waiting_since_;
    backoff_ = Backoff(1s, 30s);
    return;
  }
  ++stats_.errors;
  stats_.error = status.error();
  // The file may have lost its end, which the waiting records were to follow.
  if (checkpoint_waits_ || mode_ == Mode::kStopped) return;
  DropWaiting();
  needs_checkpoint_ = true;
  blocked_until_ = options_.now() + backoff_.Next();
}

JournalWriter::JournalWriter(Options options) : queue_(std::make_shared<Queue>(std::move(options))) {
  if (!queue_->options().threaded) queue_->SetMode(false);
}

JournalWriter::~JournalWriter() { Stop(0ms); }

void JournalWriter::Start() {
  if (!queue_->options().threaded) return;
  const bool threaded = thread_.Start([queue = queue_] { queue->Run(); });
  queue_->SetMode(threaded);
  if (!threaded) queue_->Drain();
}

void JournalWriter::Stop(milliseconds patience) {
  if (queue_->Close(patience)) thread_.Await(1h);  // it ends at once
}

uint64_t JournalWriter::Append(std::string records) { return queue_->Add(std::move(records), false); }
uint64_t JournalWriter::Replace(std::string records) { return queue_->Add(std::move(records), true); }
uint64_t JournalWriter::ReplaceOnly(std::string_view payload) { return Replace(OnlyRecord(payload)); }
void JournalWriter::Confirm() { queue_->Confirm(); }
bool JournalWriter::WantsCheckpoint() const { return queue_->WantsCheckpoint(); }
bool JournalWriter::Blocked() const { return queue_->Blocked(); }
uint64_t JournalWriter::last() const { return queue_->last(); }
uint64_t JournalWriter::written() const { return queue_->written(); }
bool JournalWriter::AwaitWritten(uint64_t number, milliseconds patience) { return queue_->Await(number, patience); }
JournalWriter::Stats JournalWriter::stats() const { return queue_->stats(); }

}  // namespace persia::agent
