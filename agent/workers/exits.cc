#include "workers/exits.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "model/ends.h"
#include "segment/segment_file.h"

namespace persia::agent {

std::string ExitReason(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return "exit_" + std::to_string(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal_" + std::to_string(signal);
}

void ExitReasons::Add(uint32_t pid, uint64_t start_ticks, int wait_status) {
  std::string reason = ExitReason(wait_status);
  const MutexLock lock(mutex_);
  const Key key{pid, start_ticks};
  if (!reasons_.insert_or_assign(key, std::move(reason)).second) return;
  order_.push_back(key);
  if (order_.size() > kMaxProcesses) {
    reasons_.erase(order_.front());
    order_.pop_front();
  }
}

std::optional<std::string> ExitReasons::ReasonOf(uint32_t pid, uint64_t start_ticks) const {
  const MutexLock lock(mutex_);
  const auto found = reasons_.find({pid, start_ticks});
  return found == reasons_.end() ? std::nullopt : std::optional(found->second);
}

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

namespace segment = persia::metrics::segment;

ExitLookup::ExitLookup(const ExitReasons* reaped) : reaped_(reaped), own_namespace_(proc_.PidNamespace("self")) {}

std::optional<std::string> ExitLookup::ReasonOf(const SegmentReader& ended) {
  const ProcessId process = ended.process();
  if (auto reason = ReasonOf(process)) return reason;
  if (const uint64_t mark = ended.exit_mark(); mark != segment::kNoExit) {
    const bool has_code = mark >= segment::kExitCode && mark <= segment::kExitCode + 0xff;
    return has_code ? "exit_" + std::to_string(mark - segment::kExitCode) : std::string(kExitOfUnknownCode);
  }
  if (!HasPidHere(process)) return std::nullopt;
  const auto status = proc_.WaitStatusOfZombie(std::to_string(process.pid), process.start_ticks);
  return status ? std::optional(ExitReason(*status)) : std::nullopt;
}

void ExitLookup::Watch(const SegmentReader& living) {
  if (HasPidHere(living.process())) pidfds_.Watch(living.process());
}

bool ExitLookup::IsReaped(const SegmentReader& reader) const { return ReasonOf(reader.process()).has_value(); }

bool ExitLookup::Lives(const SegmentReader& unlocked) {
  const ProcessId process = unlocked.process();
  if (process.start_ticks == 0 || !HasPidHere(process)) return false;
  const auto stat = proc_.Stat(std::to_string(process.pid));
  return stat && stat->start_ticks == process.start_ticks && !stat->exits;
}

std::optional<std::string> ExitLookup::ReasonOf(const ProcessId& ended) const {
  if (!HasPidHere(ended)) return std::nullopt;
  auto reason = reaped_ != nullptr ? reaped_->ReasonOf(ended.pid, ended.start_ticks) : std::nullopt;
  return reason ? std::move(reason) : pidfds_.ReasonOf(ended);
}

bool ExitLookup::MayLearnMore(const ProcessId& ended) const {
  return reaped_ != nullptr || (HasPidHere(ended) && pidfds_.IsWatched(ended));
}

bool ExitLookup::HasPidHere(const ProcessId& process) const {
  return own_namespace_ && process.pid_namespace == *own_namespace_;
}

}  // namespace persia::agent
