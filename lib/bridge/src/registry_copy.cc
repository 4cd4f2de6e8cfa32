// When a registry is copied: every interval in a thread, when asked, and a last time.
#include <prometheus/collectable.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <string>
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
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLeastInterval(10);
constexpr milliseconds kMostInterval = std::chrono::hours(24);
constexpr milliseconds kPatienceAtExit(2000);

}  // namespace

class RegistryCopy::Copier {
 public:
  Copier(std::shared_ptr<prometheus::Collectable> registry, milliseconds interval)
      : registry_(std::move(registry)), interval_(std::clamp(interval, kLeastInterval, kMostInterval)), pid_(getpid()) {}

  // A forked child has no thread of it, and its locks may be held for ever.
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
    SayNotCopied(error.what());
  } catch (...) {  // a Collectable may throw what it likes
    SayNotCopied("it threw what is no std::exception");
  }

  // Has the thread make the last copy. False: there can be none.
  bool BeginToEnd() noexcept {
    const SignalsBlocked blocked;
    const std::lock_guard lock(state_mutex_);
    stop_ = true;
    changed_.notify_all();
    StartThread();
    return started_;
  }

  // Ends the thread, or, if it takes too long, leaves it. REQUIRES: BeginToEnd() was true.
  void EndUntil(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(state_mutex_);
    if (changed_.wait_until(lock, deadline, [this] { return !running_; })) {
      JoinThread(lock);
    }
  }

  // Ends the thread, however long it takes.
  void End() {
    std::unique_lock lock(state_mutex_);
    stop_ = true;
    changed_.notify_all();
    JoinThread(lock);
    Copy();  // the thread may have ended before, at exit
  }

 private:
  // Unless there was one, or there is no place for one. REQUIRES: state_mutex_ is held.
  void StartThread() noexcept {
    if (started_) {
      return;
    }
    try {
      thread_ = std::thread(&Copier::Run, this);
      started_ = running_ = true;
    } catch (const std::exception& error) {
      SayNoThread(error.what());
    }
  }

  // What is said where memory may be out is not worth an end of the program.
  void SayNoThread(const char* why) noexcept try {
    internal::SayOnce(said_, std::string("no thread to copy a prometheus-cpp registry (") + why +
                                 "); it is copied at the end, and when CopyNow is called");
  } catch (const std::bad_alloc&) {
  }

  void SayNotCopied(const char* why) noexcept try {
    internal::SayOnce(said_, std::string("a prometheus-cpp registry was not copied, and will be tried again: ") + why);
  } catch (const std::bad_alloc&) {
  }

  // Whoever takes the thread joins it.
  void JoinThread(std::unique_lock<std::mutex>& lock) {
    std::thread taken = std::move(thread_);
    lock.unlock();
    if (taken.joinable()) {
      taken.join();
    }
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
  std::atomic<bool> said_ = false;

  Mutex copy_mutex_;
  SeriesCopier copier_ PERSIA_GUARDED_BY(copy_mutex_);

  // Guards what follows.
  std::mutex state_mutex_;
  std::condition_variable changed_;
  std::thread thread_;
  bool started_ = false;
  bool stop_ = false;
  bool running_ = false;
};

namespace {

// All copies that there are, for the last copy at exit. Never destroyed.
class LiveCopies {
 public:
  using Pointer = std::shared_ptr<RegistryCopy::Copier>;

  static LiveCopies& Get() {
    static LiveCopies& copies = *new LiveCopies;
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
  // A copy that is an object in static storage is destroyed before this is called: it was made after the handler was set.
  LiveCopies() { std::atexit(&AtExit); }

  // One that blocks shall not take the time of the others: all are told before any is waited for.
  static void AtExit() noexcept try {
    std::vector<Pointer> copiers;
    {
      const std::lock_guard lock(Get().mutex_);
      copiers = Get().copiers_;
    }
    std::erase_if(copiers, [](const Pointer& copier) { return !copier->of_this_process(); });
    const auto deadline = std::chrono::steady_clock::now() + kPatienceAtExit;
    const auto in_place = std::partition(copiers.begin(), copiers.end(), [](const Pointer& c) { return c->BeginToEnd(); });
    std::for_each(copiers.begin(), in_place, [&](const Pointer& copier) { copier->EndUntil(deadline); });
    std::for_each(in_place, copiers.end(), [](const Pointer& copier) { copier->Copy(); });
  } catch (const std::exception&) {  // no memory: what was copied last stays
  }

  ForkSafeMutex<LiveCopies> mutex_;
  std::vector<Pointer> copiers_;
};

}  // namespace

RegistryCopy::RegistryCopy(std::shared_ptr<prometheus::Collectable> registry, milliseconds interval) noexcept {
  static std::atomic<bool> said = false;
  if (registry == nullptr || registry == AsCollectable()) {
    // Copying its own metrics would count them again each time.
    internal::SayOnce(said, "RegistryCopy needs a prometheus-cpp registry, other than AsCollectable(); it copies nothing");
    return;
  }
  try {
    copier_ = std::make_shared<Copier>(std::move(registry), interval);
    LiveCopies::Get().Add(copier_);
    copier_->Start();
  } catch (const std::exception&) {
    // The text is a constant, since it is memory that is out.
    internal::SayOnce(said, "no memory to copy a prometheus-cpp registry; it is copied when CopyNow is called, if at all");
  }
}

RegistryCopy::~RegistryCopy() {
  if (copier_ == nullptr) {
    return;
  }
  if (!copier_->of_this_process()) {
    return;  // it stays in the list: its thread is the parent's, and a condition variable waits for those who wait on it
  }
  LiveCopies::Get().Remove(copier_);
  copier_->End();
}

void RegistryCopy::CopyNow() noexcept {
  if (copier_ != nullptr && copier_->of_this_process()) {
    copier_->Copy();
  }
}

}  // namespace persia::metrics
