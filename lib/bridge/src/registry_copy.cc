// Schedules the copies of a registry: every interval in a thread, at CopyNow, and at the end.
#include <prometheus/collectable.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "fork_safe_mutex.h"
#include "persia/metrics/internal/bridge.h"
#include "persia/metrics/prometheus_cpp.h"
#include "series_copier.h"
#include "signals_blocked.h"
#include "thread_annotations.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMinInterval(10);
constexpr milliseconds kMaxInterval = std::chrono::hours(24);
constexpr milliseconds kExitTimeout(2000);

}  // namespace

class RegistryCopy::Copier {
 public:
  Copier(std::shared_ptr<prometheus::Collectable> registry, CountedBy counted_by, milliseconds interval)
      : registry_(std::move(registry)),
        interval_(std::clamp(interval, kMinInterval, kMaxInterval)),
        pid_(getpid()),
        copier_(counted_by) {}

  // A forked child has no copying thread, and the locks may be held forever.
  [[nodiscard]] bool of_this_process() const { return getpid() == pid_; }

  void Start() noexcept {
    const SignalsBlocked blocked;
    const std::lock_guard lock(state_mutex_);
    StartThread();
  }

  void Copy() noexcept PERSIA_EXCLUDES(copy_mutex_) try {
    MutexLock lock(copy_mutex_);
    copier_.Copy(registry_->Collect());
  } catch (const std::exception& error) {
    LogNotCopied(error.what());
  } catch (...) {  // a user's Collectable
    LogNotCopied("it threw an object that is not a std::exception");
  }

  // Makes the thread do the last copy. False: there is no thread, and none can be started.
  bool BeginShutdown() noexcept {
    const SignalsBlocked blocked;
    const std::lock_guard lock(state_mutex_);
    stop_ = true;
    changed_.notify_all();
    StartThread();
    return started_;
  }

  // Joins the thread if it ends by `deadline`, else leaves it running. REQUIRES: BeginShutdown() returned true.
  void JoinUntil(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(state_mutex_);
    if (changed_.wait_until(lock, deadline, [this] { return !running_; })) JoinThread(lock);
  }

  // Joins the thread, without a time limit, and makes the last copy.
  void Shutdown() {
    std::unique_lock lock(state_mutex_);
    stop_ = true;
    changed_.notify_all();
    JoinThread(lock);
    Copy();  // the thread may have ended earlier, at exit
  }

 private:
  // Does nothing if the thread was started. REQUIRES: state_mutex_ is held.
  void StartThread() noexcept {
    if (started_) return;
    try {
      thread_ = std::thread(&Copier::Run, this);
      started_ = running_ = true;
    } catch (const std::exception& error) {
      LogNoThread(error.what());
    }
  }

  void LogNoThread(const char* error) noexcept {
    Log("cannot start the thread that copies a prometheus-cpp registry (%s); it is copied only by CopyNow and at the end",
        error);
  }

  void LogNotCopied(const char* error) noexcept {
    Log("a prometheus-cpp registry was not copied; the next copy tries again: %s", error);
  }

  // Needs no memory, since a lack of it is one of the errors.
  __attribute__((format(printf, 2, 0))) void Log(const char* format, const char* error) noexcept {
    char line[512];
    std::snprintf(line, sizeof line, format, error);
    internal::LogOnce(logged_, line);
  }

  // Takes the thread under the lock, so that only one caller joins it.
  void JoinThread(std::unique_lock<std::mutex>& lock) {
    std::thread taken = std::move(thread_);
    lock.unlock();
    if (taken.joinable()) taken.join();
  }

  void Run() {
    pthread_setname_np(pthread_self(), "persia-copy");
    std::unique_lock lock(state_mutex_);
    bool last = false;
    do {
      last = stop_;
      lock.unlock();
      Copy();
      lock.lock();
      changed_.wait_for(lock, interval_, [&] { return stop_; });
    } while (!last);
    running_ = false;
    changed_.notify_all();
  }

  const std::shared_ptr<prometheus::Collectable> registry_;
  const milliseconds interval_;
  const pid_t pid_;
  std::atomic<bool> logged_ = false;

  Mutex copy_mutex_;
  SeriesCopier copier_ PERSIA_GUARDED_BY(copy_mutex_);

  // Guards the members below.
  std::mutex state_mutex_;
  std::condition_variable changed_;
  std::thread thread_;
  bool started_ = false;
  bool stop_ = false;
  bool running_ = false;
};

namespace {

// All copiers of the process, for their last copy at exit. In static storage, so that it needs no memory, and never destroyed.
class LiveCopies {
 public:
  using Pointer = std::shared_ptr<RegistryCopy::Copier>;

  static LiveCopies& Get() noexcept {
    alignas(LiveCopies) static std::byte storage[sizeof(LiveCopies)];
    static LiveCopies& copies = *new (storage) LiveCopies;
    return copies;
  }

  void Add(const Pointer& copier) {
    const std::lock_guard lock(mutex_);
    copiers_.push_back(copier);
  }
  void Remove(const Pointer& copier) {
    const std::lock_guard lock(mutex_);
    std::erase(copiers_, copier);
  }

 private:
  // A RegistryCopy in static storage is destroyed before AtExit runs, since it was made after the registration of AtExit.
  LiveCopies() { std::atexit(&AtExit); }

  // Starts all last copies before it waits for any, so that one that blocks does not use the time of the others.
  static void AtExit() noexcept try {
    std::vector<Pointer> copiers;
    {
      const std::lock_guard lock(Get().mutex_);
      copiers = Get().copiers_;
    }
    std::erase_if(copiers, [](const Pointer& copier) { return !copier->of_this_process(); });
    const auto deadline = std::chrono::steady_clock::now() + kExitTimeout;
    const auto without_thread = std::partition(
        copiers.begin(), copiers.end(), [](const Pointer& c) { return c->BeginShutdown(); });
    std::for_each(
        copiers.begin(), without_thread, [&](const Pointer& copier) { copier->JoinUntil(deadline); });
    std::for_each(without_thread, copiers.end(), [](const Pointer& copier) { copier->Copy(); });
  } catch (const std::exception&) {  // out of memory: the last copy is not made
  }

  ForkSafeMutex<LiveCopies> mutex_;
  std::vector<Pointer> copiers_;
};

}  // namespace

RegistryCopy::RegistryCopy(std::shared_ptr<prometheus::Collectable> registry, milliseconds interval) noexcept
    : RegistryCopy(std::move(registry), CountedBy::kThisProcess, interval) {}

RegistryCopy::RegistryCopy(std::shared_ptr<prometheus::Collectable> registry, CountedBy counted_by,
                           milliseconds interval) noexcept {
  static std::atomic<bool> logged = false;
  if (registry == nullptr || registry == AsCollectable()) {
    // AsCollectable() would add the process's own metrics to themselves at each copy.
    internal::LogOnce(logged,
                      "RegistryCopy got no registry, or AsCollectable(); it copies nothing. Give it a prometheus-cpp registry");
    return;
  }
  try {
    copier_ = std::make_shared<Copier>(std::move(registry), counted_by, interval);
    LiveCopies::Get().Add(copier_);
    copier_->Start();
  } catch (const std::exception&) {
    // A constant text, which needs no memory.
    internal::LogOnce(logged, "no memory to copy a prometheus-cpp registry; it is copied by CopyNow at most");
  }
}

RegistryCopy::~RegistryCopy() {
  if (copier_ == nullptr) return;
  if (!copier_->of_this_process()) return;  // it stays in the list: its destructor would wait for the parent's thread
  LiveCopies::Get().Remove(copier_);
  copier_->Shutdown();
}

void RegistryCopy::CopyNow() noexcept {
  if (copier_ != nullptr && copier_->of_this_process()) copier_->Copy();
}

}  // namespace abi_1
}  // namespace persia::metrics
