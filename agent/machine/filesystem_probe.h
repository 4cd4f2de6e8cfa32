// Asks one filesystem for its free space, in a thread of its own: the call does not return while a server of NFS or FUSE hangs.
//
//   FilesystemProbe probe("state");
//   probe.Ask("/var/lib/persia", now);
//   probe.Await(100ms);                 // most answer at once
//   probe.Read(now, reading);           // without an answer for 5 s: only persia_filesystem_device_error, with 1
//
// A probe may be destroyed while its thread hangs (kernel/background_call.h).
// Thread safety: none.
#pragma once

#include <sys/statvfs.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "kernel/background_call.h"
#include "machine/machine_reading.h"

namespace persia::agent {

class FilesystemProbe {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // As statvfs(3), but returns the error.
  using Statvfs = std::function<int(const std::string& path, struct statvfs& info)>;

  static constexpr std::chrono::seconds kDeadline{5};

  // `use`: the value of the label.
  explicit FilesystemProbe(std::string use, Statvfs call = {});

  // Asks, unless a former question has no answer yet.
  void Ask(const std::string& path, TimePoint now);
  // Waits for the answer, but not if the filesystem is already known to hang.
  void Await(std::chrono::milliseconds patience) { statvfs_.Await(patience); }
  void Read(TimePoint now, MachineReading& reading) const;

 private:
  struct Answer {
    Mutex mutex;
    bool known PERSIA_GUARDED_BY(mutex) = false;
    int error PERSIA_GUARDED_BY(mutex) = 0;
    struct statvfs info PERSIA_GUARDED_BY(mutex) = {};
  };

  const std::string use_;
  const Statvfs call_;
  TimePoint asked_;
  BackgroundCall statvfs_{"statvfs"};
  const std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
};

}  // namespace persia::agent
