#include "workers/pidfd_exits.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

#include "segment/segment_file.h"
#include "workers/exit_reasons.h"

namespace persia::agent {
namespace {

// linux/pidfd.h, as of Linux 6.15; a program built with older headers runs there, too.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroup_id;
  uint32_t pid, tgid, ppid;
  uint32_t ids[8];
  int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kInfoExit = uint64_t{1} << 3;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

bool GetInfo(int fd, PidfdInfo& info) {
  info = {};
  info.mask = kInfoExit;
  return ioctl(fd, kGetInfo, &info) == 0;
}

}  // namespace

void PidfdExits::Watch(const ProcessId& process) {
  if (is_known_to_fail_ || watched_.size() >= kMaxWatched || watched_.contains(process)) return;
  OwnedFd fd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!fd.valid() || !LeavesDescriptors(fd.get())) return;
  PidfdInfo info;
  if (!GetInfo(fd.get(), info)) {
    // Of this process, which lives, it fails only if the kernel does not know it.
    const OwnedFd own(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
    is_known_to_fail_ = own.valid() && !GetInfo(own.get(), info);
    return;
  }
  // The descriptor is of the process that has the pid now.
  const auto stat = proc_.Stat(std::to_string(process.pid));
  if (stat && stat->start_ticks == process.start_ticks) watched_.emplace(process, std::move(fd));
}

std::optional<std::string> PidfdExits::ReasonOf(const ProcessId& process) const {
  const auto found = watched_.find(process);
  PidfdInfo info;
  if (found == watched_.end() || !GetInfo(found->second.get(), info) || (info.mask & kInfoExit) == 0) return std::nullopt;
  return ExitReason(info.exit_code);
}

}  // namespace persia::agent
