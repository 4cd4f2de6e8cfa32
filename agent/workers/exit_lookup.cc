#include "workers/exit_lookup.h"

#include <cstdint>
#include <utility>

#include "model/exit_reason.h"

namespace persia::agent {

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
