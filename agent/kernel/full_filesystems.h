// Filesystems in memory (tmpfs) that are full: a process that writes to a mapped file of one gets SIGBUS.
//
//   FullFilesystems filesystems;
//   filesystems.Ask();
//   filesystems.Await(100ms);                    // most answer at once
//   for (const std::string& point : filesystems.Find()) ...
//
// A thread of its own asks them, since another filesystem that hangs may be mounted on the way to one. Only the last mount of a
// mount point is judged, and only if the path leads to it. Thread safety: none.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/mutex.h"
#include "kernel/background_call.h"

namespace persia::agent {

class FullFilesystems {
 public:
  // The free share of the filesystem of this device at a mount point, from 0 to 1; negative: not known.
  using FreeRatio = std::function<double(const std::string& mount_point, dev_t device)>;

  explicit FullFilesystems(std::string proc = "/proc", FreeRatio free_ratio = FreeRatioOf);

  // Begins a question, unless the former one has no answer yet.
  void Ask();
  // Waits for the answer, but not again for one that it once waited for in vain.
  void Await(std::chrono::milliseconds patience) { call_.Await(patience); }
  // The mount points of full ones, by the last answer of each. The call does not wait.
  [[nodiscard]] std::set<std::string> Find() const;

  [[nodiscard]] static double FreeRatioOf(const std::string& mount_point, dev_t device);

 private:
  struct Answers {
    Mutex mutex;
    std::set<std::string> full PERSIA_GUARDED_BY(mutex);
  };

  const std::string proc_;
  const FreeRatio free_ratio_;
  const std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();
  BackgroundCall call_{"statvfs"};
};

}  // namespace persia::agent
